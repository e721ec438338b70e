"""What dnf and zypper have in common: RPM packages in a base image, and the pins of those that a repository has.

A pin is of the file alone. What the package is called stands in it, as repositories name their files: where one of
them does otherwise, the recipe would not find it. Sources: rpm(8), "QUERY OPTIONS"; rpm's doc, "Package naming".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import msgspec

from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.model.lock import PackagePin
from hpcgen.supply.pin.package_manager import ANOTHER, PackageManager, check_file

KEY = "gpg-pubkey"
"""A key that rpm trusts is a package of this name in its database, and there may be several."""
_PRESENT = r"rpm -qa --qf '%{NAME}|%{EPOCHNUM}|%{VERSION}-%{RELEASE}\n'"


class RpmPackage(msgspec.Struct, frozen=True):
    """A package that would be installed.

    ``kind``, ``hash``: of its file; ``needs``: names of the others that it requires.
    """

    name: str
    epoch: str
    version: str
    architecture: str
    kind: str
    hash: str
    size: int
    url: str
    needs: list[str] = []

    @property
    def edition(self) -> str:
        """The version as dnf and zypper take it: without an epoch of 0."""
        return edition(self.epoch, self.version)

    @property
    def file(self) -> str:
        """The name of its file."""
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


class RpmManager(PackageManager):
    """dnf or zypper."""

    program: ClassVar[str]
    _packages: Sequence[RpmPackage] = ()

    @abstractmethod
    def found(self, names: Sequence[str]) -> Sequence[RpmPackage]:
        """What would be installed, without what is only recommended; InputError for names that are not to be had."""

    def present(self) -> dict[str, str]:
        """As rpm lists them; of several versions of one, the last in order of their text."""
        rows = [line.split("|") for line in self.shell.check(_PRESENT, "listing the packages")]
        return {row[0]: edition(row[1], row[2]) for row in sorted(rows) if len(row) == 3 and row[0] != KEY}

    def added(self, names: Sequence[str]) -> dict[str, PackagePin]:
        """What the package manager would download."""
        added: dict[str, PackagePin] = {}
        self._packages = self.found(names)
        for each in self._packages:
            pin = _pin(self.shell.image, each)
            if each.name in added:
                raise InputError(
                    f"{self.shell.image}: {self.program} would install {each.name} twice: "
                    f"{added[each.name].version}.{added[each.name].architecture} and {pin.version}.{pin.architecture}",
                    expected="one version of a package, of one architecture",
                    remedy="request packages without another architecture, such as .i686",
                )
            added[each.name] = pin
        return {name: added[name] for name in sorted(added)}

    def depends(self, names: Collection[str]) -> Mapping[str, Collection[str]]:
        """As the packages' own requirements say."""
        return {each.name: each.needs for each in self._packages}


def edition(epoch: str, version: str) -> str:
    """A version without an epoch of 0."""
    return version if epoch in ("", "0") else f"{epoch}:{version}"


def _pin(image: str, package: RpmPackage) -> PackagePin:
    """The pin of a package in a repository.

    FetchError: it has another address than one that it can be fetched from, or a file of another name.
    InputError: it has no sha256.
    """
    pin = PackagePin(
        version=package.edition,
        architecture=package.architecture,
        sha256=package.hash.lower(),
        size=package.size,
        url=package.url,
    )
    check_file(image, package.file, package.url, package.kind.upper())
    named = pin.file(package.name)
    if not pin.is_rpm or package.file != named:
        found = f"{image}: the package {package.name} {pin.version} is in the file {package.file}"
        raise FetchError(found, expected=named, remedy=ANOTHER)
    return pin
