"""conda-lock.yml, the lock of conda-lock for several platforms (version 1): https://conda.github.io/conda-lock/."""

from __future__ import annotations

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.conda import CondaFile, CondaPackage, CondaPlatform, CondaWheel
from hpcgen.readers.conda_text import Locked, conda_package
from hpcgen.readers.data_files import YamlFile
from hpcgen.readers.folder import ProjectFolder

DEFAULT = "main"
"""The category of what is wanted anyhow."""
_AGAIN = "regenerate it: conda-lock"


class _Hash(msgspec.Struct):
    sha256: str | None = None


class _Channel(msgspec.Struct):
    url: str


class _Metadata(msgspec.Struct):
    channels: list[_Channel] = []


class _Package(msgspec.Struct):
    name: str
    version: str
    manager: str
    platform: str
    url: str
    hash: _Hash
    dependencies: dict[str, str] = {}
    category: str | None = None


class _Lock(msgspec.Struct):
    metadata: _Metadata
    package: list[_Package]


def read_conda_lock(folder: ProjectFolder, path: str) -> CondaFile:
    """What such a lock has, its categories as environments; InputError with all that is wrong with it.

    The category ``main`` is in each of the others too: those add to it.
    """
    file = YamlFile(folder, path)
    if file.version() != "1":
        file.wrong(f"the lock has version {file.version() or 'none'}", ["version"], "1", f"{_AGAIN} with conda-lock")
        file.problems.raise_as(InputError)
    said = file.record(_Lock)
    packages: dict[tuple[str, str], list[CondaPackage]] = {}
    wheels: dict[tuple[str, str], list[CondaWheel]] = {}
    for number, each in enumerate(said.package):
        if not each.platform.startswith("linux"):
            continue
        key = (each.category or DEFAULT, each.platform)
        if each.manager == "pip":
            wheels.setdefault(key, []).append(_wheel(each))
            continue
        needs = [f"{name} {versions}".strip() for name, versions in sorted(each.dependencies.items())]
        locked = Locked(each.url, each.hash.sha256, depends=needs)
        if (package := conda_package(file.at("package", number), locked, _AGAIN)) is not None:
            packages.setdefault(key, []).append(package)
    file.problems.raise_as(InputError)
    keys = sorted({*packages, *wheels})
    platforms = sorted({platform for _, platform in keys})
    environments = {
        category: {
            platform: CondaPlatform(
                packages=[each for one in _with(category) for each in packages.get((one, platform), [])],
                wheels=[each for one in _with(category) for each in wheels.get((one, platform), [])],
            )
            for platform in platforms
        }
        for category in dict.fromkeys([DEFAULT, *(category for category, _ in keys)])
    }
    return CondaFile(
        file=path,
        kind="conda-lock",
        channels=[each.url.rstrip("/") for each in said.metadata.channels],
        environments=environments,
        read=dict(folder.read),
    )


def _with(category: str) -> list[str]:
    return [DEFAULT] if category == DEFAULT else [DEFAULT, category]


def _wheel(said: _Package) -> CondaWheel:
    return CondaWheel(name=said.name, version=said.version, url=said.url, sha256=said.hash.sha256)
