"""What a lock asks of a package manager, in an unpacked base image. Nothing is installed there."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import ClassVar

from hpcgen.core.errors import FetchError, InputError, PolicyError, Problem
from hpcgen.core.model.lock import KeyPin, PackagePin
from hpcgen.supply.pin.base_shell import BaseShell

ANOTHER = "the base differs from its distribution's own: name another with --image NAME=REFERENCE"


class PackageManager(ABC):
    """A package manager in a base image."""

    settings: ClassVar[tuple[str, ...]]
    """Folders of the image whose files say where it looks and whom it trusts."""

    def __init__(self, shell: BaseShell) -> None:
        self.shell = shell

    @abstractmethod
    def update(self) -> None:
        """Read the package indexes; FetchError if one cannot be read or vouched for."""

    @abstractmethod
    def keys(self) -> tuple[list[KeyPin], int]:
        """Who vouches for the indexes, and the newest date among them, in seconds since 1970.

        PolicyError: an index for which nobody vouches.
        """

    @abstractmethod
    def present(self) -> dict[str, str]:
        """Packages in the image with their versions."""

    @abstractmethod
    def added(self, names: Sequence[str]) -> dict[str, PackagePin]:
        """What an installation of these names would fetch; InputError for names that are not to be had."""

    @abstractmethod
    def depends(self, names: Collection[str]) -> Mapping[str, Collection[str]]:
        """On which of the others each package depends, of those that :meth:`added` gave last."""


def unsigned(image: str, indexes: Iterable[str], remedy: str) -> PolicyError:
    """The error for indexes, each with its address, for which no key vouches."""
    return PolicyError(
        Problem(f"the package index {each} is not signed by any key that {image} trusts", remedy=remedy)
        for each in indexes
    )


def index_keys(index: str, seconds: int, good: Mapping[str, str]) -> list[KeyPin]:
    """The keys that vouch for one index.

    ``seconds``: its date, since 1970. ``good``: key rings, by the fingerprints of the keys.
    """
    date = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        KeyPin(fingerprint=fingerprint, keyring=ring, index=index, date=date)
        for fingerprint, ring in sorted(good.items())
    ]


def check_file(image: str, file: str, url: str, kind: str) -> None:
    """Raise unless a package file has a sha256 and an address that it can be fetched from again.

    kind: of its hash.
    FetchError: the address is of another kind.
    InputError: there is no sha256.
    """
    if kind != "SHA256":
        raise InputError(
            f"{image}: the repository gives {file} no sha256, only {kind or 'nothing'}",
            remedy="ask the repository's maintainers to add SHA256 to its index",
        )
    if not re.match(r"(https?|file|copy):", url):
        raise FetchError(
            f"{image}: {file} is at {url}",
            expected="an address of http, https or file",
            remedy="name a mirror of such an address: network.mirrors of the profile",
        )
