"""What the locks of several tools have in common, and which of their packages one environment gets."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from packaging.markers import Marker

from hpcgen.core.errors import Position
from hpcgen.core.model.project import KnownWheel, Needed, PackageFile, PackageRequirement
from hpcgen.core.support.wheel_tags import minor_of
from hpcgen.readers.data_files import Reader
from hpcgen.readers.pip_text import is_marker, is_version

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+!-]*")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
MADE_ANEW = "regenerate the lock with the tool that wrote it"


def file_name(address: str) -> str:
    """The name of the file at an address or path."""
    return urllib.parse.unquote(address.split("#")[0].split("?")[0].rpartition("/")[2])


def not_from_index(reader: Reader, name: str, source: str, where: Position) -> None:
    """One more problem: a package that no index has. ``source``: ``an address``, ``a path``."""
    reader.wrong(
        f"{name} is from {source}, not from a package index",
        where,
        remedy="lock a release; `copy` in the stack brings your own code into the image",
    )


def known_file(name: str, sha256: str) -> KnownWheel:
    """A file of a package; of its hash, ``sha256:…``, nothing is known where it is none."""
    return KnownWheel(file=name, sha256=sha256 if _SHA256.fullmatch(sha256) else None)


def locked_package(
    reader: Reader,
    name: str,
    where: Position,
    wheels: list[KnownWheel],
    sdist: KnownWheel | None,
    *,
    version: str,
    marker: str = "",
    needs: Sequence[Needed] = (),
) -> PackageRequirement:
    """A package of a lock in its one version; what is wrong with it is a problem of the reader."""
    package = PackageRequirement(
        name=name,
        where=where,
        specifier=f"=={version}",
        version=version,
        marker=marker,
        hashes=_hashes_of(wheels, sdist),
        wheels=wheels,
        sdist=sdist,
        needs=list(needs),
    )
    _check(reader, package)
    return package


def _hashes_of(wheels: Sequence[KnownWheel], sdist: KnownWheel | None) -> list[str]:
    """The hashes of all files; none where one file has none, since the list would then rule it out."""
    files = [*wheels, *([sdist] if sdist is not None else [])]
    return sorted({each.sha256 for each in files if each.sha256 is not None}) if all(f.sha256 for f in files) else []


def _check(reader: Reader, package: PackageRequirement) -> None:
    """That name, version, marker and names of files are what they should be; what is not is a problem of the reader."""
    if not _NAME.fullmatch(package.name):
        reader.wrong(f"{package.name!r} is not a package name", package.where, "such as numpy", MADE_ANEW)
    if not is_version(package.version):
        reader.wrong(
            f"{package.version!r} is not a version of {package.name}", package.where, "such as 1.26.4", MADE_ANEW
        )
    if package.marker and not is_marker(package.marker):
        message = f"the marker of {package.name} cannot be read: {package.marker[:120]!r}"
        reader.wrong(message, package.where, "such as python_version < '3.12'", MADE_ANEW)
    for each in [*package.wheels, *([package.sdist] if package.sdist is not None else [])]:
        if not _FILE.fullmatch(each.file):
            reader.wrong(
                f"{each.file[:120]!r} is not the name of a file of {package.name}", package.where, "", MADE_ANEW
            )


def environment(python: str, architecture: str) -> dict[str, str]:
    """The variables of markers (PEP 508) in an image: CPython on Linux.

    ``python``: its version, ``3.11.2``, or ``3.11``, which counts as its first release. ``architecture``: ``x86_64`` or
    ``aarch64``.
    """
    full = python if python.count(".") > 1 else f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": architecture,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": minor_of(full),
        "sys_platform": "linux",
    }


def selected(
    file: PackageFile, python: str, architecture: str, groups: Iterable[str] = (), brought: Collection[str] = ()
) -> list[PackageRequirement]:
    """The packages that are wanted there, sorted by name; of each place of the file one.

    python, architecture: as for :func:`environment`.
    groups: names of groups and extras.
    brought: packages that somebody else brings, with all that they need.
    """
    fixed = environment(python, architecture)
    chosen = _Groups(tuple(sorted(groups)), tuple(file.default_groups))
    if file.roots:
        return _reached(file, fixed, chosen, brought)
    listed = [*file.requirements, *(each for name in chosen.named for each in file.groups.get(name, []))]
    unique = {(each.name, each.where): each for each in listed if chosen.holds(each.marker, fixed)}
    return [unique[key] for key in sorted(unique)]


class _Groups:
    """Groups that are wanted, for markers that speak of them."""

    def __init__(self, named: tuple[str, ...], default: tuple[str, ...]) -> None:
        self.named = named
        self._all = frozenset({*named, *default})

    def holds(self, marker: str, fixed: Mapping[str, str], extras: Iterable[str] = ()) -> bool:
        """Whether a marker is true there."""
        if not marker:
            return True
        sets = {"extras": frozenset(self.named), "dependency_groups": self._all}
        return any(
            _marker(marker).evaluate({**fixed, **sets, "extra": extra}, "lock_file")
            for extra in ("", *self.named, *extras)
        )


@lru_cache(maxsize=4096)
def _marker(text: str) -> Marker:
    return Marker(text)


def _reached(
    file: PackageFile, fixed: Mapping[str, str], chosen: _Groups, brought: Collection[str]
) -> list[PackageRequirement]:
    """What a graph leads to from the project on, and not only through what others bring."""
    packages: dict[str, list[PackageRequirement]] = {}
    for each in file.requirements:
        packages.setdefault(each.name, []).append(each)
    found: dict[tuple[str, str], tuple[PackageRequirement, set[str]]] = {}
    waiting = [each for each in file.roots if not each.extra or each.extra in chosen.named]
    while waiting:
        need = waiting.pop()
        if not chosen.holds(need.marker, fixed):
            continue
        for package in packages.get(need.name, []):
            if need.version not in ("", package.version):
                continue
            _, extras = found.setdefault((package.name, package.version), (package, {"-"}))
            new = {*need.extras, ""} - extras
            extras |= new
            if package.name not in brought:
                waiting += [each for each in package.needs if each.extra in new]
    return [found[key][0] for key in sorted(found)]
