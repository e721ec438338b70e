"""OS and conda packages that bring an MPI, by the names that they have in each package manager."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import Name, Record, Source, Text

_WILD = re.compile(r"\*|\[[^]]*\]")
PackageManager = Literal["apt", "dnf", "zypper", "conda"]
PackagePattern = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9*][A-Za-z0-9.+_*\[\]-]{0,127}\Z",
        description="the name of a package, or a pattern with * and [0-9]",
        examples=["libopenmpi[0-9]*"],
    ),
]


class MpiPackages(Record, frozen=True):
    """The packages of one package manager that bring one MPI.

    ``mpi``: its name, for people. ``library``: by what name (SONAME) programs find it. ``itself``: the packages with
    the MPI's own files. ``others``: those that depend on these.
    """

    manager: PackageManager
    mpi: Text
    library: Text
    source: Source
    itself: list[PackagePattern]
    others: list[PackagePattern] = []


class MpiAlternative(Record, frozen=True):
    """What serves in place of packages that bring an MPI.

    ``packages``: the same without MPI. ``blocks``: the same over the image's MPI.
    """

    manager: PackageManager
    names: list[PackagePattern]
    packages: list[Text] = []
    blocks: list[Name] = []


class NoMpi(Record, frozen=True):
    """Packages that bring no MPI, although a pattern of the other rows has their names."""

    manager: PackageManager
    names: list[PackagePattern]


class MpiPackageTable(Record, frozen=True):
    """The file ``building_blocks/mpi_packages.yaml``; of its rows the first counts that has a name."""

    mpi_packages: list[MpiPackages] = []
    instead: list[MpiAlternative] = []
    without: list[NoMpi] = []

    def mpi_of(self, manager: str, name: str) -> MpiPackages | None:
        """The row of the MPI that a package brings; None where it is not known to bring any."""
        if any(row.manager == manager and _among(name, row.names) for row in self.without):
            return None
        mine = (row for row in self.mpi_packages if row.manager == manager)
        return next((row for row in mine if _among(name, [*row.itself, *row.others])), None)

    def is_mpi(self, manager: str, name: str) -> bool:
        """Whether a package has files of an MPI itself."""
        row = self.mpi_of(manager, name)
        return row is not None and _among(name, row.itself)

    def instead_of(self, manager: str, name: str, blocks: Collection[str]) -> str:
        """What serves in place of a package, for people; empty where nothing is known to.

        ``blocks``: those that the collections have; no other is named.
        """
        mine = (row for row in self.instead if row.manager == manager and _among(name, row.names))
        row = next(mine, None)
        if row is None:
            return ""
        over = [f"the block {each} (over the image's MPI)" for each in row.blocks if each in blocks]
        return " or ".join([*(f"{each} (without MPI)" for each in row.packages), *over])


def _among(name: str, patterns: Collection[str]) -> bool:
    # apt's names may say an architecture: libopenmpi-dev:amd64.
    plain = name.partition(":")[0]
    return any(_may_be(plain, pattern) and fnmatchcase(plain, pattern) for pattern in patterns)


def _may_be(name: str, pattern: str) -> bool:
    """Whether a name has all that is plain text in a pattern; nearly none has, and each pattern is an expression."""
    return all(part in name for part in _WILD.split(pattern))
