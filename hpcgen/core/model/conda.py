"""Conda packages: what a user's own files ask for, and what is installed, each with its address and its hash."""

from __future__ import annotations

from typing import Annotated, Literal

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Digest, Record, Sha256, Text, WholeNumber, matching
from hpcgen.core.model.project import FileNote, PackageRequirement

CondaKind = Literal["environment", "pixi", "conda-lock", "explicit"]
CondaName = Annotated[
    str, matching(r"^[a-z0-9_][a-z0-9._-]*$(?!\n)", "the name of a conda package, in lower case", "numpy")
]
CondaWord = Annotated[
    str, matching(r"^[A-Za-z0-9_.!+-]+$(?!\n)", "the version or build of a conda package", "py312h58c1407_0")
]
CondaUrl = Annotated[
    str,
    matching(
        r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~+!%-]+)+(\.conda|\.tar\.bz2)$(?!\n)",
        "the https address of a file that ends with .conda or .tar.bz2",
        "https://example.org/conda-forge/linux-64/zlib-1.3.1-hb9d3cd8_2.conda",
    ),
]

SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
"""What conda calls the platforms of sites."""
PIP_LIST = "conda-pip"
"""The wheel list of what a conda environment has of a Python package index."""
INDEPENDENT = "noarch"
"""What it calls packages for every platform."""


class CondaPackage(Record, frozen=True):
    """One package in one build.

    subdir: the folder of its channel: ``linux-64``, ``noarch``.
    size: of the file, in bytes, where it is known.
    depends: what it says that it needs, in conda's form: ``libzlib >=1.3.1,<2.0a0``.
    """

    name: CondaName
    version: CondaWord
    build: CondaWord
    subdir: CondaWord
    url: CondaUrl
    sha256: Sha256
    size: WholeNumber | None = None
    licence: Text = ""
    depends: list[Text] = []

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.url.rpartition("/")[2]

    @property
    def channel(self) -> str:
        """The address of the channel that its folder lies in."""
        return self.url.rsplit("/", 2)[0]

    @property
    def exact(self) -> str:
        """Name, version and build, as conda writes them."""
        return f"{self.name}={self.version}={self.build}"


class CondaNeed(Record, frozen=True):
    """One package that a file asks for.

    spec: as conda writes it: ``numpy >=1.26,<3``, ``conda-forge::mpich=4.*=external_*``.
    name: of the package alone.
    where: file, line and column that say so; the file by its path from the folder of the project.
    """

    spec: Text
    name: CondaName
    where: Position


class CondaWheel(Record, frozen=True):
    """A Python package that a lock has beside its conda packages, from a package index."""

    name: Text
    version: Text
    url: Text
    sha256: Sha256 | None = None


class CondaPlatform(Record, frozen=True):
    """One platform of one environment of a lock: conda packages, and packages of a Python package index."""

    packages: list[CondaPackage] = []
    wheels: list[CondaWheel] = []


class CondaFile(Record, frozen=True):
    """The conda packages of one file of a user's project.

    file: its path from the project's folder.
    kind: what it is; all but an ``environment`` are locks.
    name: of the environment, where it has one.
    channels: in their order, as the file names them.
    needs: what an ``environment`` asks for; versions are still to be chosen.
    pip: what it asks of a Python package index.
    variables: that it sets whenever the environment is active.
    environments: of a lock, by the environment's name and the platform's.
    notes: lines of it without an effect here. refused: names of packages of an index that are refused.
    read: sha256 of each file that was read, by path from the project's folder.
    """

    file: Text
    kind: CondaKind
    name: Text = ""
    channels: list[Text] = []
    needs: list[CondaNeed] = []
    pip: list[PackageRequirement] = []
    variables: dict[Text, Text] = {}
    environments: dict[Text, dict[Text, CondaPlatform]] = {}
    notes: list[FileNote] = []
    refused: list[FileNote] = []
    read: dict[Text, Digest] = {}

    @property
    def locked(self) -> bool:
        """Whether it has every package in one build, with its address."""
        return self.kind != "environment"
