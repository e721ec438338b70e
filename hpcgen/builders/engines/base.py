"""What a builder is given and what it answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from hpcgen.builders.bundles import BundleFolder
from hpcgen.builders.progress import Event
from hpcgen.builders.steps import Labels, Recipe, Step
from hpcgen.errors import Problem
from hpcgen.model.fields import FormatName
from hpcgen.model.plan import Plan
from hpcgen.model.record import BuilderName, BuiltImage, ImageKind
from hpcgen.support.quoting import sh

Reader = Callable[[str], Iterable[Event]]
"""What a line of the engine's output says about the steps."""


class FromFile(msgspec.Struct, frozen=True):
    """A word of a command line that ends with the text of a file, as ``"NAME=$(cat FILE)"`` does."""

    before: str
    file: Path

    def text(self) -> str:
        """The word itself."""
        return self.before + self.file.read_text(encoding="utf-8").rstrip("\n")


Word = str | FromFile


class Call(msgspec.Struct, frozen=True):
    """One command: ``env`` is added to the environment; ``step`` is the index of the step that begins with it."""

    words: tuple[Word, ...]
    env: Mapping[str, str] = {}
    cwd: Path | None = None
    step: int | None = None

    def argv(self) -> list[str]:
        """The words as the program gets them."""
        return [word if isinstance(word, str) else word.text() for word in self.words]

    def shown(self) -> str:
        """The command as a line of shell."""
        words = [sh_word(word) for word in self.words]
        if self.env:
            words = ["env", *(sh(f"{name}={value}") for name, value in self.env.items()), *words]
        line = " ".join(words)
        return f"(cd {sh(str(self.cwd))} && {line})" if self.cwd is not None else line


def sh_word(word: Word) -> str:
    """One word for a shell."""
    if isinstance(word, str):
        return sh(word)
    return f'{sh(word.before)}"$(cat {sh(str(word.file))})"'


class Target(msgspec.Struct, frozen=True):
    """Where the image goes: its kind, its file or name, and the file or name that it has until it is whole."""

    kind: ImageKind
    name: str
    temporary: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file or folder; else it is in an engine's store."""
        return self.kind in ("sif", "squashfs", "directory", "tar")


class Work(msgspec.Struct, frozen=True):
    """One build.

    Parameters
    ----------
    kit: the kit's folder.
    recipe: the file that the engine reads.
    context: the folder that it is read with.
    token: what tells the temporary names of one build from another's.
    scratch: a folder for the engine's own temporary files, removed afterwards.
    cache: whether steps may be taken from the engine's cache.
    options: further words for the engine's build command.
    root: whether this is root.
    bundle: what everything is taken from, None if the steps have a network.
    epoch: seconds since 1970 that the files of a locked build get as their time, None if there is no lock.
    """

    plan: Plan
    kit: Path
    recipe: Path
    context: Path
    token: str
    scratch: Path
    target: Target
    steps: list[Step]
    cache: bool = True
    options: tuple[str, ...] = ()
    root: bool = False
    bundle: BundleFolder | None = None
    epoch: int | None = None


class Builder:
    """Base of the builders.

    ``format``: what it reads. ``alone``: it does one step after the other. ``keeps_steps``: it has a cache of steps.
    """

    format: ClassVar[FormatName]
    alone: ClassVar[bool] = True
    keeps_steps: ClassVar[bool] = True

    def __init__(self, name: BuilderName) -> None:
        self.name = name

    @property
    def program(self) -> str:
        """The program to be found on PATH."""
        return self.name

    def needs(self, target: Target) -> dict[str, str]:
        """Further programs that are needed, each with what for."""
        return {}

    def version(self) -> str:
        """The version that the installed program names; empty if it names none."""
        return version_in(asked([self.program, "--version"])[1])

    def problem(self) -> Problem | None:
        """Why the installed program cannot build here, if it says so when it is asked."""
        return None

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """Where the image goes; ``output`` as it was asked for, or where the job script looks for it."""
        raise NotImplementedError

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the recipe's text; ``labels`` of the instructions that run commands, None if there are none."""
        raise NotImplementedError

    def later_steps(self, target: Target) -> list[Step]:
        """Steps after those of the recipe."""
        return []

    def begin(self) -> None:
        """Note what :meth:`clean` has to know; called once, before the first command."""

    def load(self, work: Work) -> list[Call]:
        """Commands that bring the base images of a bundle to the engine."""
        return []

    def build(self, work: Work) -> list[Call]:
        """Commands that make the image under its temporary name."""
        raise NotImplementedError

    def publish(self, work: Work) -> list[Call]:
        """Commands that give a whole image its final name; a file's is given by the caller."""
        return []

    def more_files(self, target: Target) -> dict[str, str]:
        """Files that the commands want beside the recipe, by name."""
        return {}

    def clean(self, work: Work, built: bool) -> list[Call]:
        """Commands that remove what a build leaves; each may fail, where there is nothing."""
        return []

    def reader(self, recipe: Recipe) -> Reader:
        """What reads the output of the commands of :meth:`build`."""
        raise NotImplementedError

    def built_image(self, target: Target) -> BuiltImage:
        """Size and digest of the result."""
        from hpcgen.builders.places import measured

        return measured(target.kind, Path(target.name))


def asked(argv: Sequence[str], env: Mapping[str, str] | None = None, patience_s: float = 60) -> tuple[int, str]:
    """Status and output of a command that answers soon; status 127 and why, if it cannot be started or does not."""
    try:
        done = subprocess.run(
            list(argv),
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=patience_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return 127, str(failure)
    return done.returncode, done.stdout


def version_in(text: str) -> str:
    """The first version number in a text."""
    found = re.search(r"\d+\.\d+[0-9A-Za-z.+~-]*", text)
    return found[0] if found is not None else ""
