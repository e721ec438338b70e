"""What starts ranks or a container, with its options: which take a value, and which say how many ranks there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hpcgen.core.model.own_project import JobField
from hpcgen.core.secret_rules import secret_name
from hpcgen.core.support.templates import table


class LaunchOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of one program. Names are without dashes before them, and with ``-`` in place of ``_``.

    ``valued``: those with a value, behind ``=`` or as the next word. ``flags``: those without. ``two``: with two words.
    ``families``: how names of further ones begin that take a value. ``joined``: whether a letter and its value may be
    one word (``-n4``), and letters stand together (``-it``). ``fields``: what a value says.
    """

    valued: frozenset[str]
    flags: frozenset[str] = frozenset()
    two: frozenset[str] = frozenset()
    families: tuple[str, ...] = ()
    joined: bool = False
    fields: dict[str, JobField] = {}


class ContainerRuntime(Struct, frozen=True, forbid_unknown_fields=True):
    """A program that starts others in a container.

    ``verbs``: words before its options, empty if there is none. ``names``: options that name the image. ``positional``:
    whether the first word behind the options does, where none of them has.
    """

    options: LaunchOptions
    verbs: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    positional: bool = True


class StartingPrograms(Struct, frozen=True, forbid_unknown_fields=True):
    """What starts others, by its name, as ``launch_options.yaml`` has it, which says what each part is."""

    launchers: dict[str, LaunchOptions]
    frameworks: dict[str, LaunchOptions]
    sizes: frozenset[str]
    runtimes: dict[str, ContainerRuntime]
    pyxis: frozenset[str]


def starting() -> StartingPrograms:
    """The table of what starts ranks, processes of a framework, and containers."""
    return table(Path(__file__).with_suffix(".yaml"), StartingPrograms)


class GivenOption(NamedTuple):
    """One option as it stands on a command line; ``said``: its text."""

    name: str
    value: str
    said: str


class Taken(NamedTuple):
    """``given``: the options that a command line begins with, ``rest``: what follows. ``strange``: unknown options."""

    given: list[GivenOption]
    rest: list[str]
    strange: list[str]


def take(words: list[str], options: LaunchOptions) -> Taken:
    """The options that words begin with, and the rest."""
    given: list[GivenOption] = []
    strange: list[str] = []
    at = 0
    while at < len(words) and re.match(r"-.", words[at]):
        word = words[at]
        at += 1
        if word == "--":
            break
        before, joined, value = word.partition("=")
        name = before.lstrip("-").replace("_", "-")
        letter = _letter(name, options) if options.joined and not word.startswith("--") else None
        if letter == "":
            continue
        if letter is not None and len(name) > 1:
            name, value = letter[0], (letter[1:] + joined + value).removeprefix("=")
            if not value and at < len(words):
                value, at = words[at], at + 1
                word = f"{word} {value}"
        elif not joined:
            more = _words_of(name, options)
            if more is None:
                # A number belongs to what stands before it; a program never begins with a digit.
                number = at < len(words) and re.match(r"\d+\b(?!/)", words[at])
                more = 1 if number or secret_name(name) else 0
                strange.append(word)
            value = " ".join(words[at : at + more])
            at += more
            word = f"{word} {value}".rstrip()
        elif name not in options.valued | options.flags and not name.startswith(options.families or ("\0",)):
            strange.append(before)
        given.append(GivenOption(name, value, word))
    return Taken(given, words[at:], strange)


def _letter(name: str, options: LaunchOptions) -> str | None:
    """Of letters in one word what begins with the first that takes a value, empty if none does; None for all else."""
    rest = name.lstrip("".join(each for each in options.flags if len(each) == 1))
    return rest if not rest or rest[0] in options.valued else None


def _words_of(name: str, options: LaunchOptions) -> int | None:
    if name in options.flags:
        return 0
    if name in options.two:
        return 2
    valued = name in options.valued or (options.families and name.startswith(options.families))
    return 1 if valued else None
