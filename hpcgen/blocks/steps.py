"""What blocks are written with: small immutable words that say nothing of any format.

A :class:`Run` is a list of simple commands that must all succeed, in order, in one shell. Each command
is one line without ``&&``, ``||``, ``;`` or ``|``, but for a :class:`Compound` such as :func:`pipe` makes: the format
writers join them, so that a failing command fails the build in every format (see docs/internals/recipes.md).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import msgspec

from hpcgen.blocks.inputs.archive import Archive as Archive
from hpcgen.blocks.inputs.base import Input as Input
from hpcgen.blocks.inputs.bazel import BazelCall as BazelCall
from hpcgen.blocks.inputs.bazel import BazelFiles as BazelFiles
from hpcgen.blocks.inputs.conda import CondaFiles as CondaFiles
from hpcgen.blocks.inputs.git_tree import GitTree as GitTree
from hpcgen.blocks.inputs.image import Image as Image
from hpcgen.blocks.inputs.image import image as image
from hpcgen.blocks.inputs.spack import SpackSources as SpackSources
from hpcgen.blocks.inputs.wheel_file import WheelFile as WheelFile
from hpcgen.blocks.inputs.wheels import InstalledList as InstalledList
from hpcgen.blocks.inputs.wheels import Wheels as Wheels
from hpcgen.core.errors import InputError
from hpcgen.core.model.bazel import BazelFile as BazelFile
from hpcgen.core.model.image_paths import KIT_PATH
from hpcgen.core.model.performance import Measure as Measure
from hpcgen.core.model.recipe_facts import FigureTable as FigureTable
from hpcgen.core.model.recipe_facts import RankLayout as RankLayout
from hpcgen.core.support.quoting import command as command
from hpcgen.core.support.quoting import plain


class TextFile(msgspec.Struct, frozen=True):
    """A text file of the kit that a step finds in the image.

    path: in the kit, such as ``files/requirements/pip-26.3.txt``: people find and read it there.
    target: absolute path in the image.
    text: its content.
    executable: whether it is a program; else everybody may read it and nobody run it.
    InputError: ``path`` is no plain path below the kit, or ``target`` is not absolute.
    """

    path: str
    target: str
    text: str
    executable: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(KIT_PATH, self.path) or not re.fullmatch("(/[A-Za-z0-9._+-]+)+", self.target):
            raise InputError(
                f"{self.path!r} cannot be a file of a kit, copied to {self.target!r}",
                expected="a path such as files/requirements/NAME.txt, and an absolute path of plain names",
            )


class ArchiveFile(msgspec.Struct, frozen=True):
    """An archive that a step finds in the image and removes: of any size, and no text.

    path: in the build context; it is no file of the kit.
    target: absolute path in the image.
    source: where it lies now.
    sha256: of its bytes.
    """

    path: str
    target: str
    source: Path
    sha256: str


Joins = Literal["", "next", "previous"]
"""With which step a step shares a layer."""


class Run(msgspec.Struct, frozen=True):
    """One build step: files that it finds in the image, and commands.

    about: a few words for the log and the recipe's comment, e.g. ``configure``.
    commands: simple shell commands, already quoted; see the module's text.
    caches: download caches worth keeping between builds (``pip``), where the format can.
    installs: wheel lists that they install.
    calls: how they call Bazel.
    files: text files that are in place before the first command.
    finds: a folder of the image in which the stack's own files are in place, too; none if empty.
    joins: with which step it shares a layer, where formats have layers. ``next`` is for what is quick: it is done again
        whenever the step after it is. ``previous`` is for what is never done without the step before it; the two share
        a shell, so the folder may be another than ``/``.
    checks: it changes nothing in the image, so that this is the same one without it.
    archives: archives that are in place before the first command, and that the commands remove.
    """

    about: str
    commands: tuple[str, ...]
    caches: tuple[str, ...] = ()
    installs: tuple[InstalledList, ...] = ()
    files: tuple[TextFile, ...] = ()
    calls: tuple[BazelCall, ...] = ()
    finds: str = ""
    joins: Joins = ""
    checks: bool = False
    archives: tuple[ArchiveFile, ...] = ()

    def __post_init__(self) -> None:
        if self.joins == "next" and any(line.startswith("cd ") for line in self.commands):
            raise StepError(
                f"step '{self.about}' joins the next one and changes the folder, which that does not expect",
                remedy="leave `joins` out, or name files by their whole path instead of `cd`",
            )
        for line in self.commands:
            try:
                plain(line, f"a command of step '{self.about}'")
            except InputError as error:
                raise StepError(error.problems) from None
            if not isinstance(line, Compound):
                _check_simple(line, f"step '{self.about}'")
        if (made := MADE.get()) is not None:
            made.append(self)


MADE: ContextVar[list[Run] | None] = ContextVar("made", default=None)
"""Takes note of the steps that a block makes, while its code runs."""


class StepError(InputError):
    """A step or a list of packages that a block must not make; the block's file and line become its place."""


class Compound(str):
    """A command made of several, each failure of which is seen to: hpcgen's own, or of :func:`pipe`."""

    __slots__ = ()


def pipe(*commands: str) -> Compound:
    """One command that feeds the output of each command to the next, and fails if any of them fails.

    ``a | b`` succeeds whenever ``b`` does, and ``pipefail`` is not in every ``/bin/sh``. A command that stops reading
    early, such as ``head``, makes the one before it fail.

    StepError: fewer than two commands, or one that is not simple.
    """
    if len(commands) < 2:
        raise StepError("a pipe is made of two or more commands", expected="pipe('zcat x.gz', 'patch -p1')")
    for line in commands:
        _check_simple(line, "a pipe")
    # Each part that fails says so on 3, which is what the substitution returns; 4 is the real stdout.
    parts = " | ".join(f"{{ {{ {line}; }} 3>&- 4>&- || echo {n} >&3; }}" for n, line in enumerate(commands, 1))
    return Compound(f'{{ failed=$({{ {parts}; }} 3>&1 >&4); test -z "$failed"; }} 4>&1')


_INSTEAD = {
    "|": "use pipe(first, second), which fails when either does",
    "||": "take it out: a step must not go on after a failure",
    "&": "let the step wait for it",
    "`": "take it out, or write $(...)",
}


def _check_simple(line: str, what: str) -> None:
    """StepError where a line is more than one command: what fails in the middle of it would be hidden."""
    for word in ("'||'", "'&&'"):
        if f" {word} " in line:
            raise StepError(
                f"a command of {what} has {word} as a word: {line}",
                expected="a command for each, without any operator between them",
                remedy="command() quotes it, so the program would get it as an argument",
            )
    if found := operator_in(line):
        raise StepError(
            f"a command of {what} has {found} outside quotes: {line}",
            expected="one simple command on one line, so that each failure fails the build",
            remedy=_INSTEAD.get(found, "split it into two commands: all commands of a step share one shell"),
        )


Part = str | TextFile | InstalledList | BazelCall
"""What a step is made of: a command, a file that its commands find, or a record of what they install or call."""


def run(
    about: str, *parts: Part | Iterable[Part], caches: tuple[str, ...] = (), finds: str = "", joins: Joins = ""
) -> Run:
    """A :class:`Run` from parts and lists of parts, in order; all files are in place before the first command."""
    flat: list[Part] = []
    for item in parts:
        flat.extend([item] if isinstance(item, (str, TextFile, InstalledList, BazelCall)) else item)
    return Run(
        about,
        tuple(part for part in flat if isinstance(part, str)),
        caches,
        tuple(part for part in flat if isinstance(part, InstalledList)),
        tuple(part for part in flat if isinstance(part, TextFile)),
        tuple(part for part in flat if isinstance(part, BazelCall)),
        finds,
        joins,
    )


def lines(*text: str) -> str:
    """The text of a file from its lines."""
    return "".join(f"{line}\n" for line in text)


def _check_list(what: str, value: Any) -> None:
    """StepError for a text, which would be taken for a list of its letters."""
    if isinstance(value, str):
        raise StepError(f"{what} given as a text: {value!r}", expected=f"a list: {value.split()}")


class Packages(msgspec.Struct, frozen=True):
    """Packages of the distribution by package manager: those to build with and those to run with."""

    build: dict[str, list[str]] = {}
    run: dict[str, list[str]] = {}

    def __post_init__(self) -> None:
        for names in (self.build, self.run):
            for manager, listed in names.items():
                _check_list(f"packages for {manager} are", listed)


class Environment(msgspec.Struct, frozen=True):
    """Variables that a block contributes. ``paths`` are put in front of PATH-like variables.

    ``build`` holds for the builder stage alone, ``both`` for builder and image. ``arguments`` are known while
    building, in both stages, and never stay in the image (proxies).
    """

    both: dict[str, str] = {}
    build: dict[str, str] = {}
    paths: dict[str, list[str]] = {}
    build_paths: dict[str, list[str]] = {}
    arguments: dict[str, str] = {}

    def __post_init__(self) -> None:
        for paths in (self.paths, self.build_paths):
            for name, folders in paths.items():
                _check_list(f"the folders of {name} are", folders)


class HostFile(msgspec.Struct, frozen=True):
    """A file of the building machine that is copied into both stages before anything else (certificates)."""

    source: str
    target: str


class Runtime(msgspec.Struct, frozen=True):
    """What the slim final stage keeps of a block: paths copied from the builder, and folders made empty."""

    copies: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_list("copies is", self.copies)
        _check_list("folders is", self.folders)


class Test(msgspec.Struct, frozen=True):
    """One proof inside the image: a command that must succeed; ``device`` names what must be there first.

    expect: text that the output must contain.
    ranks: the command is one rank of a job over several nodes, which ``hpcgen test --nodes`` alone starts: one rank on
        each of ``two`` nodes, a ``pair`` on one node, one on each node (``per_node``), one for each GPU (``per_gpu``),
        or those of the job's layout (``all``).
    figures: whose table the output has, if it has numbers that sites compare: ``osu``, ``nccl_tests``, ``hpl``.
    measure: which figure of a profile's partition these are held against.
    """

    name: str
    command: str
    device: str = ""
    expect: str = ""
    ranks: RankLayout = ""
    figures: FigureTable = ""
    measure: Measure | None = None


_SHELLS = ("sh", "bash", "dash", "ash", "ksh")
_OPERATOR = re.compile(r"[|;&`]")
_QUOTES = re.compile(r"""['"\\]""")
_SHELL = re.compile(rf"(?:^|[/\s])(?:{'|'.join(_SHELLS)})(?:\s|$)")


def complete(library: str) -> str:
    """Shell that holds where a library is there with all that it is linked with."""
    return f"test -e {library} && ldd {library} | grep -c 'not found' | grep -qx 0"


def complete_but_driver(program: str) -> str:
    """Shell that holds where a program finds its libraries, but for the GPU's driver, which is the host's."""
    return f"ldd {program} | grep 'not found' | grep -vc 'libcuda.so.1 ' | grep -qx 0"


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
