"""This Python, started again, never with the present folder on its path: a file there may be a stranger's.

``-m`` and ``-c`` put it first (``python -P`` does not, since 3.11), so a folder named hpcgen, or a msgspec.py, would be
imported in the place of the installed one.
"""

from __future__ import annotations

import sys

NOT_HERE = "import sys; sys.path[:] = filter(None, sys.path)"
"""The first line of a program's text, for any Python."""


def own_module(module: str, *words: str) -> list[str]:
    """The command that runs a module of this installation."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module, *words]
    return own_program(f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)", *words)


def own_program(text: str, *words: str) -> list[str]:
    """The command that runs a program, a line of simple statements, with all that is installed."""
    return [sys.executable, "-c", f"{NOT_HERE}; {text}", *words]
