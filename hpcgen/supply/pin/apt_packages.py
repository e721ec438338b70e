"""OS packages as apt in the very base image would install them: versions, hashes, addresses, keys.

Sources: apt-get(8), apt.conf(5), dpkg-query(1); apt's private-install.cc for the format of
``--print-uris``, acquire-item.cc for file names, and update.cc: ``APT::Update::Error-Mode`` is known from 2.1.15
on, and before it ``apt-get update`` ends well although an index could not be reached, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote

from hpcgen.core.errors import FetchError, InputError, Problem
from hpcgen.core.model.lock import KeyPin, PackagePin
from hpcgen.supply.pin.apt_keys import APT_GET, key_pins
from hpcgen.supply.pin.base_shell import failed, quoted
from hpcgen.supply.pin.brought_by import apt_depends
from hpcgen.supply.pin.package_manager import ANOTHER, PackageManager, check_file

_UPDATE = [
    *APT_GET,
    *("-o", "APT::Sandbox::User=root"),  # there is no other user in the namespace
    *("-o", "APT::Update::Error-Mode=any"),
    *("-o", "Acquire::Languages=none"),
    *("-o", "Acquire::Retries=3"),
    "update",
]
_INSTALL = [
    *APT_GET,
    *("-o", "APT::Sandbox::User=root"),
    *("-o", "Acquire::ForceHash=SHA256"),
    *("install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--"),
]
_TROUBLE = re.compile(r"E: |W: (Failed to fetch|Some index files failed|GPG error|An error occurred during the sign)")
_URI = re.compile(r"'([^' ]+)' (\S+) (\d+) (\S*)")
_PRESENT = r"dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\n'"


class Apt(PackageManager):
    """apt and dpkg of Debian and Ubuntu."""

    settings = ("etc/apt", "usr/share/keyrings", "etc/ssl/certs")

    def update(self) -> None:
        """Read the indexes anew."""
        # Without packages that lie in the image already, all that apt would install has an address.
        status, lines = self.shell.run(f"apt-get clean\n{quoted(_UPDATE)}")
        if status or any(_TROUBLE.match(line) for line in lines):
            raise failed(self.shell.image, "apt-get update", lines, status)

    def keys(self) -> tuple[list[KeyPin], int]:
        """The keys that signed the indexes."""
        return key_pins(self.shell)

    def present(self) -> dict[str, str]:
        """As dpkg lists them."""
        lines = self.shell.check(_PRESENT, "listing the packages")
        rows = [line.split("|") for line in lines]
        return {row[1]: row[2] for row in sorted(rows) if len(row) == 3 and row[0][1:2] == "i"}

    def added(self, names: Sequence[str]) -> dict[str, PackagePin]:
        """What apt says that it would download."""
        status, lines = self.shell.run(quoted([*_INSTALL, *names]))
        if status:
            said = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")] or lines[-5:]
            remedy = "check the package's name for this distribution"
            raise InputError(Problem(f"{self.shell.image}: {line}", remedy=remedy) for line in said)
        found = dict(read_uri(line, self.shell.image) for line in lines if line.startswith("'"))
        return {name: found[name] for name in sorted(found)}

    def depends(self, names: Collection[str]) -> Mapping[str, Collection[str]]:
        """As apt-cache says."""
        return apt_depends(self.shell, names)


def read_uri(line: str, image: str) -> tuple[str, PackagePin]:
    """One line of ``--print-uris``: address, NAME_VERSION_ARCHITECTURE.deb with ``:`` as ``%3a``, size, hash."""
    match = _URI.fullmatch(line)
    if match is None:
        raise FetchError(f"{image}: apt's output cannot be parsed: {line[:200]}", remedy=ANOTHER)
    url, file, size, hashed = match.groups()
    kind, _, value = hashed.partition(":")
    parts = [unquote(part) for part in file.removesuffix(".deb").split("_")]
    check_file(image, file, url, kind if len(parts) == 3 else "")
    name, version, architecture = parts
    return name, PackagePin(version=version, architecture=architecture, sha256=value.lower(), size=int(size), url=url)
