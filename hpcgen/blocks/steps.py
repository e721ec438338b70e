"""What blocks are written with: small immutable words that say nothing of any format.

A :class:`Run` is a list of simple commands that must all succeed, in order, in one shell. Each command
is one line without ``&&``, ``||``, ``;`` or ``|``: the format writers join them, so that a failing
command fails the build in every format (see docs/architecture.md, "Every failing step").
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hpcgen.blocks.inputs import Archive as Archive
from hpcgen.blocks.inputs import BazelFile as BazelFile
from hpcgen.blocks.inputs import BazelFiles as BazelFiles
from hpcgen.blocks.inputs import GitTree as GitTree
from hpcgen.blocks.inputs import Image as Image
from hpcgen.blocks.inputs import Input as Input
from hpcgen.blocks.inputs import Wheels as Wheels
from hpcgen.blocks.inputs import image as image
from hpcgen.support.quoting import plain, sh


class InstalledList(msgspec.Struct, frozen=True):
    """A wheel list that a step installs, by its name: into which folder, and whether pip compiles it from source."""

    name: str
    folder: str
    compiled: bool = False


class PipCommands(list[str]):
    """Commands that install a wheel list, and the record of it, which the step keeps for the SBOM."""

    def __init__(self, commands: Iterable[str], installed: InstalledList) -> None:
        super().__init__(commands)
        self.installed = installed


class Run(msgspec.Struct, frozen=True):
    """Commands of one build step.

    Parameters
    ----------
    about: a few words for the log and the recipe's comment, e.g. ``configure``.
    commands: simple shell commands, already quoted; see the module's text.
    caches: download caches worth keeping between builds (``pip``), where the format can.
    installs: wheel lists that they install.
    """

    about: str
    commands: tuple[str, ...]
    caches: tuple[str, ...] = ()
    installs: tuple[InstalledList, ...] = ()

    def __post_init__(self) -> None:
        for command in self.commands:
            plain(command, f"a command of step '{self.about}'")


def run(about: str, *commands: str | Iterable[str], caches: tuple[str, ...] = ()) -> Run:
    """A :class:`Run` from commands and lists of commands, in order; it knows the wheel lists that those install."""
    flat: list[str] = []
    for item in commands:
        flat.extend([item] if isinstance(item, str) else item)
    installs = tuple(item.installed for item in commands if isinstance(item, PipCommands))
    return Run(about, tuple(flat), caches, installs)


def command(*words: str) -> str:
    """One simple command from words, each quoted for the shell where it needs to be."""
    return " ".join(sh(word) for word in words)


def write_lines(path: str, text: str) -> list[str]:
    """Commands that write a text file inside the image, without a heredoc (ch-image has none).

    One command per line of text, so that a change of one line is a change of one line of the recipe.
    """
    lines = text.rstrip("\n").split("\n")
    target = sh(path)
    return [f"printf '%s\\n' {sh(line)} {'>>' if number else '>'} {target}" for number, line in enumerate(lines)]


class Packages(msgspec.Struct, frozen=True):
    """Packages of the distribution by package manager: those to build with and those to run with."""

    build: dict[str, list[str]] = {}
    run: dict[str, list[str]] = {}


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


class HostFile(msgspec.Struct, frozen=True):
    """A file of the building machine that is copied into both stages before anything else (certificates)."""

    source: str
    target: str


class Runtime(msgspec.Struct, frozen=True):
    """What the slim final stage keeps of a block: paths copied from the builder, and folders made empty."""

    copies: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Test(msgspec.Struct, frozen=True):
    """One proof inside the image: a command that must succeed; ``device`` names what must be there first."""

    name: str
    command: str
    device: str = ""
    expect: str = ""
