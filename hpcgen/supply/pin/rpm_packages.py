"""RPM packages in a base image, and the pin of one that a repository has.

A pin is of the file alone. What the package is called stands in it, as repositories name their files: where one of
them does otherwise, the recipe would not find it. Sources: rpm(8), "QUERY OPTIONS"; rpm's doc, "Package naming".
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from hpcgen.core.errors import FetchError
from hpcgen.core.model.lock import PackagePin
from hpcgen.supply.pin.base_shell import BaseShell
from hpcgen.supply.pin.package_manager import ANOTHER, check_file

# A key that rpm trusts is a package of this name in its database, and there may be several.
_KEY = "gpg-pubkey"
_PRESENT = r"rpm -qa --qf '%{NAME}|%{EPOCHNUM}|%{VERSION}-%{RELEASE}\n'"


def edition(epoch: str, version: str) -> str:
    """A version as dnf and zypper take it: without an epoch of 0."""
    return version if epoch in ("", "0") else f"{epoch}:{version}"


def present(shell: BaseShell) -> dict[str, str]:
    """Packages of the image; of several versions of one, the last in order of their text."""
    rows = [line.split("|") for line in shell.check(_PRESENT, "listing the packages")]
    return {row[0]: edition(row[1], row[2]) for row in sorted(rows) if len(row) == 3 and row[0] != _KEY}


def rpm_pin(
    image: str, name: str, version: str, architecture: str, kind: str, sha256: str, size: int, url: str
) -> PackagePin:
    """The pin of a package in a repository.

    version: with its epoch, as :func:`edition` makes it.
    kind: of the hash, in upper case.
    FetchError: it has another address than one that it can be fetched from, or a file of another name.
    InputError: it has no sha256.
    """
    pin = PackagePin(version=version, architecture=architecture, sha256=sha256.lower(), size=size, url=url)
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    check_file(image, file, url, kind)
    if not pin.is_rpm or file != pin.file(name):
        raise FetchError(f"{image}: the package {name} {version} is in the file {file}", pin.file(name), remedy=ANOTHER)
    return pin
