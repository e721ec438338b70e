"""What a refusal says to do, as command lines: those it spells out, and the refused one with the options it names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache

import click

from hpcgen.cli import cli

PLACES = {"DIR": "new-folder", "FILE": "new-file", "NAME": "new", "IMAGE": "image", "SITE": "workstation"}
PLACES |= {"STACK": "mpi-hello", "VERSION": "580.65.06"}
"""What stands for a word in capitals."""
_OPTION = re.compile(r"(?<![\w./-])--[a-z][a-z-]*")
_AWAY = re.compile(r"(?:^|: |\b(?:and|or) )(?:without|omit|leave)\b")
_PROGRAM = re.compile(r"(?:^|[:;,`(] ?|and |or |with |then )hpcgen (?=[a-z])")


@cache
def command_of(words: tuple[str, ...]) -> tuple[click.Command, int]:
    """The command that the first words name, and how many of them do."""
    command: click.Command = cli
    taken = 0
    for word in words:
        if not isinstance(command, click.Group):
            break
        below = command.get_command(click.Context(command), word)
        if below is None:
            break
        command, taken = below, taken + 1
    if extend := getattr(command, "extend", None):
        extend()
    return command, taken


def option_of(words: Sequence[str], name: str) -> click.Option | None:
    """The option of a command line's command; None if it has none of that name."""
    command, _ = command_of(tuple(words))
    options = (each for each in command.params if isinstance(each, click.Option))
    return next((each for each in options if name in (*each.opts, *each.secondary_opts)), None)


def remedies(said: str) -> list[tuple[str, str]]:
    """The first line of each problem, with each alternative that stands on a line of its own."""
    found, problem = [], ""
    for line in said.splitlines():
        if line.startswith(("  remedy: ", "  or: ")):
            found.append((problem, line.partition(": ")[2]))
        elif not line.startswith("  "):
            problem = line.removeprefix("hpcgen: error: ")
    return found


def typed(refused: Sequence[str], remedy: str) -> Iterator[list[str]]:
    """The command lines that a remedy means."""
    rest = re.sub(r" \(plans .*", "", remedy)
    for start in list(_PROGRAM.finditer(rest)):
        end = re.search(r"[`;,()]|: | (?:shows|lists|names|writes|describes|prints)\b|$", rest[start.end() :])
        assert end is not None
        yield _filled(shlex.split(rest[start.end() : start.end() + end.start()]))
    plain = _PROGRAM.sub("\0", rest)
    parts = re.split(r", or | or (?=without |leave |omit |add )", re.sub("\0[^`;,()]*", "", plain))
    for part in parts:
        words = _changed(list(refused), part)
        # What is to be left out and was never said leaves the command as it is.
        if words != list(refused) or (_AWAY.match(part) and _OPTION.search(part)):
            yield _filled(words)


def _filled(words: list[str]) -> list[str]:
    return [re.sub(r"\b[A-Z]{3,}\b", lambda match: PLACES.get(match[0], match[0]), word) for word in words]


def _changed(words: list[str], part: str) -> list[str]:
    """The refused command line with the options of one alternative: each put in, replaced or left out."""
    end = words.index("--") if "--" in words else len(words)
    words, command = words[:end], words[end:]
    for match in _OPTION.finditer(part):
        option = option_of(words, match[0])
        if option is None:
            continue
        said = re.match(r" ((?:'[^']*'|[^\s,;()`'])+)", part[match.end() :])
        value = shlex.split(said[1]) if said is not None and not option.is_flag else []
        if _AWAY.search(part[: match.start()]):
            words = _without(words, option, value if option.multiple else None)
        elif value or option.is_flag:
            key = value[0].partition("=")[0] if value and option.multiple else None
            words = _without(words, option, [key] if key is not None else None, exact=False)
            words += [match[0], *value]
    return [*words, *command]


def _without(words: list[str], option: click.Option, value: list[str] | None, exact: bool = True) -> list[str]:
    """The words without an option; one that may be given several times only with this value, or of this key."""
    kept: list[str] = []
    rest = iter(range(len(words)))
    for at in rest:
        if words[at] not in option.opts:
            kept.append(words[at])
            continue
        given = [] if option.is_flag else [words[next(rest)]]
        same = given == value if exact else [each.partition("=")[0] for each in given] == value
        if value is not None and value and not same:
            kept += [words[at], *given]
    return kept
