"""Examples that ``--help`` ends with. A test reads every one as the command would, and runs what can run anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcgen.cli import COMMANDS
from hpcgen.core.support.templates import parts_of


def examples_of(name: str) -> Mapping[str, Sequence[str]]:
    """The examples of a command and of those below it, by their paths; "" is hpcgen itself."""
    if not name or name in COMMANDS:
        parts = parts_of(Path(__file__).with_suffix(".txt"))
        return {path.partition(" ")[2]: text.splitlines() for path, text in parts.items() if path}
    from hpcgen.cli.plugged import plugged_examples

    return plugged_examples(name)
