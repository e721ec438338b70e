"""pixi.lock, in the versions 5 to 7 that pixi and rattler write.

5 has the fields of a package beside its kind; from 6 on its name, version and build are those of its file. 7 tells the
platforms apart, which it may name freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.conda import CondaFile, CondaPackage, CondaPlatform, CondaWheel
from hpcgen.readers.conda_text import Locked, conda_package
from hpcgen.readers.data_files import YamlFile
from hpcgen.readers.folder import ProjectFolder

VERSIONS = ("5", "6", "7")
_AGAIN = "regenerate it: pixi lock"


class _Channel(msgspec.Struct):
    url: str


class _Environment(msgspec.Struct):
    channels: list[_Channel] = []
    packages: dict[str, list[dict[str, Any]]] = {}


class _Package(msgspec.Struct):
    """One of version 5 has ``url``; later it has its kind as a key whose value is the address."""

    conda: str | None = None
    pypi: str | None = None
    url: str | None = None
    name: str | None = None
    version: str | None = None
    sha256: str | None = None
    size: int | None = None
    license: str | None = None
    depends: list[str] | None = None
    subdir: str | None = None

    @property
    def address(self) -> str:
        return self.conda or self.pypi or self.url or ""


class _Platform(msgspec.Struct):
    name: str
    subdir: str | None = None


class _Lock(msgspec.Struct):
    environments: dict[str, _Environment] = {}
    packages: list[_Package] = []
    platforms: list[_Platform] = []


def read_pixi_lock(folder: ProjectFolder, path: str) -> CondaFile:
    """What a lock of pixi has, by environment and platform; InputError with all that is wrong with it."""
    file = YamlFile(folder, path)
    if file.version() not in VERSIONS:
        file.wrong(
            f"the lock has version {file.version() or 'none'}",
            ["version"],
            " or ".join(VERSIONS),
            f"{_AGAIN} with pixi",
        )
        file.problems.raise_as(InputError)
    said = file.record(_Lock)
    known = {each.address: (number, each) for number, each in enumerate(said.packages)}
    used = _Used(file, known, {each.name: each.subdir or each.name for each in said.platforms})
    environments = {name: used.environment(name, each.packages) for name, each in said.environments.items()}
    file.problems.raise_as(InputError)
    channels = [each.url.rstrip("/") for _, environment in said.environments.items() for each in environment.channels]
    return CondaFile(
        file=path,
        kind="pixi",
        channels=list(dict.fromkeys(channels)),
        environments=environments,
        read=dict(folder.read),
    )


class _Used:
    """The packages of a lock that its environments name; those of other systems than Linux are not looked at."""

    def __init__(self, file: YamlFile, known: Mapping[str, tuple[int, _Package]], subdirs: Mapping[str, str]) -> None:
        self._file = file
        self._known = known
        self._subdirs = subdirs
        self._made: dict[str, CondaPackage | None] = {}

    def environment(self, name: str, platforms: Mapping[str, list[dict[str, Any]]]) -> dict[str, CondaPlatform]:
        """What an environment has, by the platform's name in conda; the first of several that it has for one."""
        found: dict[str, CondaPlatform] = {}
        for platform, listed in platforms.items():
            subdir = self._subdirs.get(platform, platform)
            if subdir not in found:
                wanted = listed if subdir.startswith("linux") else []
                found[subdir] = self._platform(["environments", name, "packages", platform], wanted)
        return found

    def _platform(self, place: list[str | int], listed: list[dict[str, Any]]) -> CondaPlatform:
        packages: list[CondaPackage] = []
        wheels: list[CondaWheel] = []
        for number, each in enumerate(listed):
            at = [*place, number]
            kind = next(iter(each), "")
            entry = self._known.get(str(each.get(kind)))
            if kind == "pypi" and entry is not None:
                found = entry[1]
                wheels.append(_wheel(found))
            elif kind == "conda" and entry is not None:
                package = self._package(*entry)
                packages += [package] if package is not None else []
            else:
                self._file.wrong("this package is not in the list `packages` of the lock", at, remedy=_AGAIN)
        return CondaPlatform(packages=packages, wheels=wheels)

    def _package(self, number: int, said: _Package) -> CondaPackage | None:
        if said.address not in self._made:
            locked = Locked(said.address, said.sha256, said.size, said.license, said.depends or [], said.subdir)
            self._made[said.address] = conda_package(self._file.at("packages", number), locked, _AGAIN)
        return self._made[said.address]


def _wheel(said: _Package) -> CondaWheel:
    return CondaWheel(name=said.name or "", version=said.version or "", url=said.address, sha256=said.sha256)
