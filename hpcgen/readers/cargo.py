"""Cargo.toml: the programs of a project in Rust, and whether they are over MPI.

Form: https://doc.rust-lang.org/cargo/reference/manifest.html
"""

from __future__ import annotations

import re
from contextlib import suppress
from glob import escape
from typing import Any

from hpcgen.core.errors import HpcgenError, Position
from hpcgen.core.model.own_project import BuildFile, BuildOption, FileWord, WantedLibrary
from hpcgen.readers.built_programs import Built, in_order, program_files
from hpcgen.readers.data_files import TomlFile
from hpcgen.readers.folder import ProjectFolder

NAME = "Cargo.toml"
_TOOLS = ["cargo", "rustc"]
_BINDGEN = ["clang", "libclang-dev"]
_LIBRARIES = {"hdf5": "hdf5", "hdf5-metno": "hdf5", "netcdf": "netcdf", "fftw": "fftw3", "openblas-src": "openblas"}
"""Crates that link a library of the system, and its name in the table of libraries."""
# Source: The Cargo Book, "Source Replacement" and, for --config, "Configuration"; since 1.63. The project's own .cargo
# is a hidden folder, which no image has.
_VENDORED = ('--config=source.crates-io.replace-with="vendor"', '--config=source.vendor.directory="vendor"')
_CRATES = ("dependencies", "build-dependencies", "dev-dependencies", "target")


def read_cargo(folder: ProjectFolder, path: str = NAME) -> BuildFile:
    """What the manifest says, and those of the workspace's members; InputError where it cannot be read."""
    reading = _Cargo(folder, path)
    reading.package(path)
    lock = folder.holds(f"{reading.above}/Cargo.lock".lstrip("/"))
    vendored = folder.holds(f"{reading.above}/vendor".lstrip("/"))
    fetched = [FileWord("crates", Position(path, 1, 1))] if reading.crates and not vendored else []
    return BuildFile(
        path,
        "cargo",
        reading.above,
        reading.mpi,
        programs=program_files(in_order(reading.programs, reading.name)),
        libraries=list(reading.libraries.values()),
        options=[
            *reading.options,
            *([BuildOption("--locked", "Cargo.lock is there", Position(path, 1, 1))] if lock else []),
            *(BuildOption(each, "the crates are in vendor", Position(path, 1, 1)) for each in _VENDORED if vendored),
        ],
        tools=[*_TOOLS, *(_BINDGEN if reading.mpi is not None else [])],
        fetches=fetched,
        remarks=reading.remarks,
    )


class _Cargo:
    def __init__(self, folder: ProjectFolder, path: str) -> None:
        self.folder = folder
        self.above = path.rpartition("/")[0]
        self.name = ""
        self.mpi: FileWord | None = None
        self.programs: list[Built] = []
        self.options: list[BuildOption] = []
        self.libraries: dict[str, WantedLibrary] = {}
        self.remarks: list[FileWord] = []
        self.crates = False
        self._deep = 0

    def package(self, path: str) -> None:
        """One manifest, with those of its members."""
        file = TomlFile(self.folder, path)
        data = file.data
        package = _table(data, "package")
        here = path.rpartition("/")[0]
        where = file.key("package", "name") if "name" in package else Position(path, 1, 1)
        before = self.mpi
        self._needs(data, file)
        if isinstance(name := package.get("name"), str):
            self.name = self.name or name
            self._programs(data, name, here, where, self.mpi is not before)
        self.crates = self.crates or any(_table(data, each) for each in _CRATES)
        members = _table(data, "workspace").get("members", [])
        if members and self.name and path.rpartition("/")[0] == self.above:
            self.options.append(BuildOption("--workspace", "programs of the members, too", where))
        for pattern in members[:50] if isinstance(members, list) else []:
            if isinstance(pattern, str) and re.fullmatch(r"\w[\w/-]*(\*|\.\w+)?", pattern) and self._deep < 3:
                self._members(pattern)

    def _members(self, pattern: str) -> None:
        self._deep += 1
        for each in sorted(self.folder.top.glob(f"{escape(self.above)}/{pattern}/{NAME}".lstrip("/")))[:50]:
            with suppress(HpcgenError):
                self.package(str(each.relative_to(self.folder.top)))
        self._deep -= 1

    def _programs(self, data: dict[str, Any], name: str, here: str, where: Position, mpi: bool) -> None:
        top = self.folder.top / here
        bins = data.get("bin", [])
        named = [each.get("name") for each in bins if isinstance(each, dict)] if isinstance(bins, list) else []
        names = [each for each in named if isinstance(each, str)]
        if (top / "src/main.rs").is_file() and name not in names:
            names.append(name)
        if (top / "src/bin").is_dir():
            found = sorted(each.stem for each in (top / "src/bin").iterdir() if each.suffix == ".rs" or each.is_dir())
            names += [each for each in found if each not in names]
        release = f"{self.above}/target/release".lstrip("/")
        self.programs += [Built(f"{release}/{each}", where, here[len(self.above) :], mpi) for each in names]
        examples = sorted(each.stem for each in (top / "examples").glob("*.rs")) if not names else []
        if examples:
            self.options.append(BuildOption("--examples", "the programs of this library are its examples", where))
            self.programs += [Built(f"{release}/examples/{each}", where, "", "mpi" in each) for each in examples]
            self.remarks.append(FileWord("no program: its examples are compiled", where))

    def _needs(self, data: dict[str, Any], file: TomlFile) -> None:
        for name, value in _table(data, "dependencies").items():
            where = file.key("dependencies", name)
            optional = isinstance(value, dict) and value.get("optional") is True
            if name in ("mpi", "rsmpi", "mpi-sys"):
                if optional and not self._default(data, name):
                    self.options.append(BuildOption(f"--features={name}", "MPI is a feature", where))
                self.mpi = self.mpi or FileWord(f"the crate {name}", where)
            elif name in _LIBRARIES and not optional:
                self.libraries.setdefault(name, WantedLibrary(_LIBRARIES[name], f"the crate {name}", where, True))
        features = _table(data, "features")
        if any("openblas-system" in name and self._default(data, name) for name in features):
            where = file.key("features", "default")
            self.libraries.setdefault("openblas", WantedLibrary("openblas", "openblas-system", where, True))
        for name, parts in features.items():
            if name == "mpi" and self.mpi is None and isinstance(parts, list):
                where = file.key("features", name)
                self.mpi = FileWord("the feature mpi", where)
                if not self._default(data, name):
                    self.options.append(BuildOption("--features=mpi", "MPI is a feature", where))

    def _default(self, data: dict[str, Any], name: str) -> bool:
        default = _table(data, "features").get("default", [])
        return isinstance(default, list) and name in default


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    return value if isinstance(value, dict) else {}
