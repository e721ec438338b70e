"""Whether a line of shell is one simple command, whose failure nothing hides."""

from __future__ import annotations

import re
import shlex

_SHELLS = ("sh", "bash", "dash", "ash", "ksh")
_OPERATOR = re.compile(r"[|;&`]")
_QUOTES = re.compile(r"""['"\\]""")
_SHELL = re.compile(rf"(?:^|[/\s])(?:{'|'.join(_SHELLS)})(?:\s|$)")


def operator_in(line: str) -> str:
    """The first ``|``, ``||``, ``&``, ``&&``, ``;`` or backtick that the shell would act on; "" if there is none.

    Also inside ``$(...)`` and in a script that is given to ``sh -c``.
    """
    return _operator(line) or next((found for script in _scripts(line) if (found := operator_in(script))), "")


def _operator(line: str) -> str:
    if _OPERATOR.search(line) is None:
        return ""
    open_: list[str] = []
    at = 0
    while at < len(line):
        character, inside = line[at], open_[-1] if open_ else ""
        if character == "\\":
            at += 1
        elif character == "'" and inside != '"':
            at = line.find("'", at + 1)
            if at < 0:
                return ""
        elif inside and character == inside:
            open_.pop()
        elif character == '"':
            open_.append('"')
        elif line[at : at + 2] in ("$(", "${"):
            at += 1
            open_.append(")" if line[at] == "(" else "}")
        elif character == "`":
            return "`"
        elif character in "|;&" and inside in ("", ")") and line[at - 1 : at] not in ("<", ">"):
            return character * 2 if line[at + 1 : at + 2] == character else character
        at += 1
    return ""


def _scripts(line: str) -> list[str]:
    """The scripts that a command line gives to a shell after ``-c``."""
    # Whatever the quotes make words of, a shell's name is left when they are gone. To split a line takes far longer.
    if _SHELL.search(_QUOTES.sub("", line)) is None:
        return []
    try:
        words = shlex.split(line)
    except ValueError:
        return []
    scripts = []
    for number, word in enumerate(words):
        if word.rpartition("/")[2] in _SHELLS:
            options = (at for at, each in enumerate(words[number + 1 :], number + 2) if each[:1] == "-" and "c" in each)
            scripts += [words[at] for at in options if at < len(words)][:1]
    return scripts
