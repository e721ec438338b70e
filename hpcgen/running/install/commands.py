"""Which programs of an image become commands, and what they are called on the host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, Problem, Problems
from hpcgen.core.model.stack import OfferedCommand, Program, Stack


class InstalledCommand(msgspec.Struct, frozen=True):
    """A command of the host, and the program in the image that it starts: a name or an absolute path.

    ``words``: what shells complete after it, beside files.
    """

    name: str
    program: str
    words: tuple[str, ...] = ()


def commands_of(stack: Stack) -> list[InstalledCommand]:
    """The commands that a stack names; by default the programs that its jobs start."""
    if stack.commands:
        return [
            _command(each.program, each.words) if isinstance(each, OfferedCommand) else _command(each)
            for each in stack.commands
        ]
    started = [words[0] for words in (stack.run.command, *(step.command for step in stack.run.steps)) if words]
    return [_command(f"{PurePosixPath(each).name}={each}" if "/" in each else each) for each in dict.fromkeys(started)]


def wanted_commands(asked: Sequence[str], recorded: Stack, own: Stack | None, *, trust: bool) -> list[InstalledCommand]:
    """What is installed of an image.

    Parameters
    ----------
    asked: the person's own words, ``NAME`` or ``NAME=PATH``, which decide alone where there are any.
    recorded: the stack in the image, which may be a stranger's.
    own: the person's stack of that name, if there is one.
    trust: the image's record may name programs of this host.

    Raises
    ------
    InputError: a word is none, two commands have one name, or nobody who may names any.
    """
    if asked:
        found = [_command(each) for each in asked]
    elif own is not None or trust:
        found = commands_of(own if own is not None else recorded)
    else:
        programs = [each.program if isinstance(each, OfferedCommand) else each for each in recorded.commands]
        names = " ".join(f"--command {word}" for word in programs) or "--command NAME=/PATH/IN/THE/IMAGE"
        raise InputError(
            f"there is no stack {recorded.name} of yours, and the image's own record must not decide which commands "
            "exist on this host",
            expected="a stack of yours with `commands`",
            remedy=f"{names}; or --stack FILE, or --trust-image if the image is from somebody you trust",
        )
    problems = Problems()
    for name in sorted({each.name for each in found if [other.name for other in found].count(each.name) > 1}):
        problems.add(f"two commands would be called {name}", "commands", remedy="name one of them otherwise: NAME=PATH")
    if not found:
        problems.add(f"the stack {recorded.name} starts no program, and names no commands", remedy="--command NAME")
    problems.raise_as(InputError)
    return found


def _command(word: str, words: Sequence[str] = ()) -> InstalledCommand:
    try:
        record_from(word, Program)
    except msgspec.ValidationError as failure:
        raise InputError(
            Problem(
                f"{word!r} cannot be a command",
                expected="NAME, or NAME=/PATH/IN/THE/IMAGE, of letters, digits and . _ + -",
                remedy="name the commands: `commands` in the stack, or --command",
            )
        ) from failure
    name, _, path = word.partition("=")
    return InstalledCommand(name, path or name, tuple(words))
