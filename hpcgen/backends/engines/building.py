"""What an engine is told of one build, and what it answers: plain data, and what every engine does alike."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.backends.engines.steps import Step
from hpcgen.core.errors import InputError
from hpcgen.core.model.image_paths import FILES
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import Certificate, KeptPart, PulledBase, StoredBase
from hpcgen.core.model.record import BuiltImage, ImageKindName
from hpcgen.core.support.quoting import sh


class FromFile(msgspec.Struct, frozen=True):
    """A word of a command line that ends with the text of a file, as ``"NAME=$(cat FILE)"`` does."""

    before: str
    file: Path

    def text(self) -> str:
        """The word, with what the file says now."""
        return self.before + self.file.read_text(encoding="utf-8").rstrip("\n")


Word = str | FromFile


class EngineCommand(msgspec.Struct, frozen=True):
    """One command: ``env`` is added to the environment; ``step`` is the index of the step that begins with it.

    ``told``: what it prints is for the person who builds. ``cached``: so many of the first steps were done before.
    """

    words: tuple[Word, ...]
    env: Mapping[str, str] = {}
    cwd: Path | None = None
    step: int | None = None
    told: bool = False
    cached: int = 0

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


class LeftImage(msgspec.Struct, frozen=True):
    """An image of a build in an engine's store that no user has named.

    ``name``: by which the engine removes it. ``bytes``: what that frees, if it is known. ``cache``: later builds start
    from it instead of running its steps.
    """

    name: str
    bytes: int | None = None
    cache: bool = False


class Target(msgspec.Struct, frozen=True):
    """Where the image goes: its kind, its file or name, and the file or name that it has until it is whole.

    ``is_file``: it is a file or folder; else it is in an engine's store.
    """

    kind: ImageKindName
    name: str
    temporary: str
    is_file: bool = True


class BuildFolder(msgspec.Struct, frozen=True):
    """A folder that a build writes to, what it holds, and how the user has something else used."""

    path: Path
    holds: str
    remedy: str


class BundledBase(msgspec.Struct, frozen=True):
    """A base image in a bundle: ``stored`` is its name in an engine's store, ``held`` the one in the OCI layout.

    ``identity``: what podman and buildah know it by, the digest of its configuration, without ``sha256:``.
    """

    stored: str
    held: str
    identity: str


class BundleFolder(msgspec.Struct, frozen=True):
    """A bundle that is open for a build."""

    folder: Path
    bases: list[BundledBase]

    def root_tar(self, base: BundledBase) -> Path:
        """The base's files as one archive, for ch-image."""
        name = f"{base.held}.root.tar"
        found = sorted((self.folder / FILES).glob(f"*/{name}"))
        if not found:
            raise InputError(
                f"{self.folder} has no {name}, which ch-image needs",
                remedy="use a bundle for a lock with the format charliecloud",
            )
        return found[0]


class Work(msgspec.Struct, frozen=True):
    """One build.

    kit: the kit's folder.
    recipe: the file that the engine reads.
    context: the folder that it is read with.
    token: what tells the temporary names of one build from another's.
    scratch: a folder for the engine's own temporary files, removed afterwards.
    cache: whether steps may be taken from the engine's cache.
    options: further words for the engine's build command.
    root: whether this is root.
    bundle: what everything is taken from, None if the steps have a network.
    bases: base images whose digest is to be checked once the engine has pulled them, where it does not do so itself.
    stored: base images that may have been imported, which the engine's cache has to be told.
    epoch: seconds since 1970 that the files of a locked build get as their time, None if there is no lock.
    kept: what an engine without a cache of steps need not do again.
    certificates: files of this machine that the recipe copies.
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
    bases: tuple[PulledBase, ...] = ()
    stored: tuple[StoredBase, ...] = ()
    kept: KeptPart | None = None
    certificates: tuple[Certificate, ...] = ()


def file_target(output: str, token: str, kinds: Mapping[str, ImageKindName]) -> Target:
    """A file or folder, with a temporary name beside it that has the same ending.

    ``kinds``: what the name's endings stand for; without one of them it is a folder. OutputError: its folder is not
    there or cannot be written, or something else has the name.
    """
    from hpcgen.core.support.placing import PARTIAL, refusal

    path = Path(output).absolute()
    kind: ImageKindName = next((kind for ending, kind in kinds.items() if path.name.endswith(ending)), "directory")
    if not path.parent.is_dir():
        raise refusal(path, f"the folder {path.parent} does not exist", f"make it: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refusal(path, f"the folder {path.parent} cannot be written", "write elsewhere with -o")
    if path.is_dir() and not _is_image(path):
        raise refusal(path, "this is a folder, not an image", "remove it, or write elsewhere with -o")
    return Target(kind, str(path), str(path.with_name(f"{PARTIAL}{token}-{path.name}")))


def _is_image(folder: Path) -> bool:
    """An empty folder, or one that a builder made: only these are replaced."""
    return any((folder / name).is_dir() for name in ("ch", ".singularity.d")) or not any(folder.iterdir())


def measured(kind: ImageKindName, path: Path) -> BuiltImage:
    """Size in bytes, and of a file its sha256; a folder is one, whatever its name says."""
    if not path.is_dir():
        from hpcgen.core.support.hashing import file_sha256

        return BuiltImage(kind=kind, name=str(path), bytes=path.stat().st_size, digest=f"sha256:{file_sha256(path)}")
    from hpcgen.core.support.placing import folder_bytes

    return BuiltImage(kind="directory", name=str(path), bytes=folder_bytes(path))


def query(
    argv: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = 60, warnings: bool = True
) -> tuple[int, str]:
    """Status and output of a command that answers soon; status 127 and why, if it cannot be started or does not.

    ``warnings``: with what it says beside its answer.
    """
    import subprocess

    try:
        done = subprocess.run(
            list(argv),
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if warnings else subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 127, f"{argv[0]} did not end within {timeout_s:.0f} s"
    except OSError as failure:
        return 127, str(failure)
    return done.returncode, done.stdout


def query_list(argv: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON list that a command answers with; [] where it fails."""
    import json

    status, text = query(argv, warnings=False)
    return json.loads(text) or [] if status == 0 else []


def version_in(text: str) -> str:
    """The first version number in a text."""
    found = re.search(r"\d+\.\d+[0-9A-Za-z.+~-]*", text)
    return found[0] if found is not None else ""
