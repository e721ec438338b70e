"""The record of what was installed below a prefix for one image: its files with their hashes."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import Name, Record, Sha256, Text, matching
from hpcgen.core.support.below import BELOW
from hpcgen.core.support.file_formats import INSTALL
from hpcgen.core.support.hashing import read_plain

SHARE = "share/hpcgen"
MANIFEST = "installed.json"
MAX_BYTES = 16 * 1024 * 1024

Below = Annotated[
    str,
    matching(
        rf"^{BELOW}$(?!\n)",
        "a path below the prefix",
        "bin/train",
    ),
]
FolderBelow = Annotated[str, matching(rf"^(\.|{BELOW})$(?!\n)", "a folder below the prefix, or '.'", "share/man")]
Devcontainer = Annotated[
    str,
    matching(
        rf"^/({BELOW}/)?\.devcontainer/[^/\x00-\x1f\x7f-\x9f\u2028\u2029]+/devcontainer\.json$(?!\n)",
        "the absolute path of a devcontainer.json",
        "/home/ada/code/.devcontainer/train/devcontainer.json",
    ),
]


class InstalledFile(Record, frozen=True):
    """A file that was written, by its path below the prefix."""

    path: Below
    sha256: Sha256


class InstallRecord(Record, frozen=True, kw_only=True, rename={"number": "install"}):
    """What was installed for one image.

    ``name``: what it is called below the prefix and as a module, ``version`` the module's. ``image``: its absolute
    path, or its name in a store. ``content``: its plan hash. ``folders``: those that were made for it, the deepest
    first; ``.`` is the prefix. ``outside``: files for editors that lie elsewhere, by their absolute paths.
    """

    number: Annotated[int, msgspec.Meta(ge=1, description="the format of this file")] = INSTALL.newest
    hpcgen: Text
    name: Name
    version: Text
    stack: Text
    site: Text
    engine: Text
    image: Text
    commands: list[Text]
    files: list[InstalledFile]
    folders: list[FolderBelow] = []
    outside: dict[Devcontainer, Sha256] = {}


def manifest_path(name: str) -> str:
    """Where the record of a name lies below its prefix."""
    return f"{SHARE}/{name}/{MANIFEST}"


def manifest_data(installed: InstallRecord) -> dict[str, Any]:
    """A record as plain data, its number first, which is said though it is the default."""
    return {"install": installed.number, **msgspec.to_builtins(installed)}


def manifest_text(installed: InstallRecord) -> str:
    """A record as JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest_data(installed)), indent=1).decode() + "\n"


def read_manifest(path: Path) -> InstallRecord:
    """A record that ``hpcgen install`` wrote.

    InputError: it cannot be read, is none, is of another name than its folder's, or a newer hpcgen wrote it.
    """
    remedy = f"write it again with: {INSTALL.command}"
    try:
        data = read_plain(path, MAX_BYTES)
        plain = msgspec.json.decode(data[:MAX_BYTES])
    except OSError as failure:
        raise InputError(f"{path} cannot be read: {failure.strerror}", remedy=remedy) from failure
    except (msgspec.DecodeError, RecursionError) as failure:
        raise InputError(f"{path} is not a record of hpcgen install: {failure}", remedy=remedy) from failure
    INSTALL.check(plain, str(path))
    try:
        found = record_from(plain, InstallRecord)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise INSTALL.not_understood(plain, str(path), failure) from failure
    if found.name != path.parent.name:
        raise InputError(f"{path} is the record of {found.name}, but is in another's folder", remedy=remedy)
    return found


def names_in(prefix: Path) -> list[str]:
    """The names of all that is installed below a prefix."""
    return sorted(path.parent.name for path in (prefix / SHARE).glob(f"*/{MANIFEST}"))


def installed_as(prefix: Path, name: str | None) -> InstallRecord:
    """What is installed under a name, or all there is.

    UnknownNameError: nothing is, or several things are and no name was given.
    """
    names = names_in(prefix)
    if not names:
        raise UnknownNameError(
            f"nothing is installed in {prefix}", remedy=f"name another --prefix, or: {INSTALL.command}"
        )
    if name is None and len(names) > 1:
        raise UnknownNameError(f"several are installed in {prefix}", expected=f"a NAME: {', '.join(names)}")
    chosen = name or names[0]
    if chosen not in names:
        raise UnknownNameError(f"no {chosen} is installed in {prefix}", remedy=did_you_mean(chosen, names))
    return read_manifest(prefix / manifest_path(chosen))


def folders_above(paths: list[str]) -> list[str]:
    """All folders that files below a prefix lie in, the prefix last, the deepest first."""
    above = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return sorted(above, key=lambda path: (-len(PurePosixPath(path).parts), path))
