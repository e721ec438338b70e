"""OS packages as zypper in the very base image would install them.

zypper says which packages it would install, but no addresses and no hashes: these are read here from the indexes that
it fetched. Each index is signed by a key of rpm's database, which is where zypper and rpm look for the keys they trust;
both go on trusting one whose time is over. Sources: zypper(8); zypper's doc/xmlout.rnc, Summary.cc (dumpAsXmlTo) and
installremove.cc; the description of openSUSE-build-key; rpm(8).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from xml.etree import ElementTree

import msgspec

from hpcgen.core.errors import FetchError, InputError, Problem
from hpcgen.core.model.lock import KeyPin
from hpcgen.images.archive import decompressed
from hpcgen.supply.pin.base_shell import OWN, failed, quoted
from hpcgen.supply.pin.index_signatures import SignedIndex, dearmoured, signers
from hpcgen.supply.pin.package_manager import ANOTHER, index_keys, unsigned
from hpcgen.supply.pin.repo_metadata import INDEX, MetadataError, RepoIndex, RepoPackage, read_index, read_packages
from hpcgen.supply.pin.rpm_packages import KEY, RpmManager, RpmPackage, edition

_ZYPPER = ("zypper", "--non-interactive")
_SOLVE = (*_ZYPPER, "--xmlout", "install", "--dry-run", "--no-recommends", "--")
_RAW = "/var/cache/zypp/raw"
_LARGEST = 1 << 30
_KEYS = r"rpm -qa gpg-pubkey --qf '= %{NAME}-%{VERSION}-%{RELEASE}\n%{DESCRIPTION}\n'"
_SAID = re.compile(
    r'(?<=<message type="error">).*?(?=</message>)|(?<=<description>)Problem: .*?(?=</description>)', re.S
)
_NOT_INSTALLED = ("to-remove", "_unsupported")
_SUM = re.compile(r"([0-9a-f]{64,128})  .*?([^/]+)")
_FETCHED = f"/{OWN}/packages"


class _Repository(msgspec.Struct, frozen=True):
    """An enabled repository; a lower ``priority`` goes first."""

    alias: str
    url: str
    priority: int

    def __str__(self) -> str:
        return f"{self.url} {self.alias}"


class Zypper(RpmManager):
    """zypper of openSUSE and SUSE Linux Enterprise."""

    program = "zypper"
    settings = ("etc/zypp", "etc/pki", "var/lib/ca-certificates")
    _indexes: Mapping[_Repository, bytes] = {}
    """repomd.xml of each enabled repository, as its signature was checked for."""

    def update(self) -> None:
        """Read the indexes of the enabled repositories, all of them; services may add some, as when it installs."""
        status, lines = self.shell.run(quoted([*_ZYPPER, "refresh", "--services"]))
        if status:
            raise failed(self.shell.image, "zypper refresh", lines, status)
        self._indexes = {each: self._raw(each, INDEX) for each in self._enabled()}

    def keys(self) -> tuple[list[KeyPin], int]:
        """The keys of the database that signed the indexes."""
        indexes = [self._index(each) for each in self._indexes]
        rings = self._rings()
        signed = [SignedIndex(text, self._raw(each, f"{INDEX}.asc"), rings) for each, text in self._indexes.items()]
        good = signers(self.shell, signed, expired=True)
        bad = [str(each) for each, found in zip(self._indexes, good, strict=True) if not found]
        if bad:
            remedy = "import its key into rpm's database of the base image (rpm --import), or disable it there"
            raise unsigned(self.shell.image, bad, remedy)
        pins = [
            pin
            for each, index, found in zip(self._indexes, indexes, good, strict=True)
            for pin in index_keys(str(each), index.date, found)
        ]
        return pins, max((each.date for each in indexes), default=0)

    def found(self, names: Sequence[str]) -> Sequence[RpmPackage]:
        """As zypper's own solver says, without what is only recommended."""
        chosen = self._chosen(names)
        offers = self._offers({name for name, _, _ in chosen})
        taken = [self._offered(offers, *each) for each in sorted(chosen)]
        others = [package for _, package in taken]
        return self._with_sha256([_package(repository, package, others) for repository, package in taken])

    def _chosen(self, names: Sequence[str]) -> set[tuple[str, str, str]]:
        """Name, version and architecture of what would be installed."""
        status, lines = self.shell.run(quoted([*_SOLVE, *names]))
        text = "\n".join(lines)
        if status:
            remedy = "check the package's name for this distribution"
            told = [" ".join(unescape(each).split()) for each in _SAID.findall(text)] or lines[-5:]
            raise InputError(Problem(f"{self.shell.image}: {each}", remedy=remedy) for each in told)
        summary = re.search(r"<install-summary\b.*</install-summary>", text, re.S)
        try:
            return {
                (each.attrib["name"], each.attrib["edition"].removeprefix("0:"), each.attrib["arch"])
                for section in _elements(summary)
                if section.tag not in _NOT_INSTALLED
                for each in section
                if each.get("type") == "package"
            }
        except (ElementTree.ParseError, KeyError) as failure:
            raise self._not_understood(failure) from failure

    def _enabled(self) -> list[_Repository]:
        lines = self.shell.check(quoted([*_ZYPPER, "--xmlout", "repos", "--uri"]), "listing the repositories")
        listed = re.search(r"<repo-list>.*</repo-list>", "\n".join(lines), re.S)
        try:
            return [
                _Repository(each.attrib["alias"], each.findtext("url", "").rstrip("/"), int(each.attrib["priority"]))
                for each in _elements(listed)
                if each.get("enabled") == "1"
            ]
        except (ElementTree.ParseError, KeyError, ValueError) as failure:
            raise self._not_understood(failure) from failure

    def _rings(self) -> dict[str, bytes]:
        """The keys of rpm's database by the names of their packages."""
        rings: dict[str, list[str]] = {}
        for line in self.shell.check(_KEYS, "listing the keys that rpm trusts"):
            if line.startswith(f"= {KEY}-"):
                rings[line[2:]] = []
            elif rings:
                rings[next(reversed(rings))].append(line)
        return {name: dearmoured("\n".join(lines).encode()) for name, lines in rings.items()}

    def _raw(self, repository: _Repository, file: str) -> bytes:
        """A file of the repository as zypper fetched it; empty where it is not there."""
        path = f"{_RAW}/{repository.alias.replace('/', '_')}/{file}"
        return self.shell.read([path], _LARGEST).get(path, b"")

    def _index(self, repository: _Repository) -> RepoIndex:
        try:
            return read_index(self._indexes[repository])
        except MetadataError as failure:
            raise self._unread(repository, failure) from failure

    def _offers(self, names: set[str]) -> list[tuple[_Repository, RepoPackage]]:
        """What the repositories have of these names, of the first in order of priority first."""
        found: list[tuple[_Repository, RepoPackage]] = []
        for each in sorted(self._indexes, key=lambda one: one.priority) if names else []:
            index = self._index(each)
            data = self._raw(each, index.primary)
            try:
                index.check(data)
                with decompressed(io.BytesIO(data), f"the index {each}") as stream:
                    found += ((each, package) for package in read_packages(stream, names))
            except MetadataError as failure:
                raise self._unread(each, failure) from failure
        return found

    def _offered(
        self, offers: Sequence[tuple[_Repository, RepoPackage]], name: str, version: str, architecture: str
    ) -> tuple[_Repository, RepoPackage]:
        """The package, which several repositories may have if it is the same file."""
        wanted = f"{name}-{version}.{architecture}"
        fitting = [
            (repository, each)
            for repository, each in offers
            if (each.name, edition(each.epoch, each.version), each.architecture) == (name, version, architecture)
        ]
        if not fitting:
            raise FetchError(f"{self.shell.image}: no repository's index has {wanted}", remedy=ANOTHER)
        first = fitting[0]
        others = [repository for repository, each in fitting if each.hash != first[1].hash]
        if any(other.priority == first[0].priority for other in others):
            raise InputError(
                f"{self.shell.image}: {wanted} is another file in {others[0].alias} than in {first[0].alias}",
                remedy="give one of them another priority in the base image, or disable it there",
            )
        return first

    def _with_sha256(self, packages: Sequence[RpmPackage]) -> list[RpmPackage]:
        """Where a repository has longer hashes, as Leap 16.0 seems to, the files are fetched and hashed."""
        longer = [each for each in packages if each.kind in ("SHA384", "SHA512")]
        if not longer:
            return list(packages)
        words = [f"{each.name}.{each.architecture}={each.edition}" for each in longer]
        fetch = quoted([*_ZYPPER, "--pkg-cache-dir", _FETCHED, "download", "--", *words])
        sums = (f"{kind.lower()}sum **/*.rpm" for kind in sorted({"SHA256", *(each.kind for each in longer)}))
        script = f"set -e\n{fetch}\ncd {_FETCHED}\nbash -O globstar -ec {quoted(['; '.join(sums)])}\nrm -rf {_FETCHED}"
        status, lines = self.shell.run(script)
        hashes: dict[str, set[str]] = {}
        for match in filter(None, map(_SUM.fullmatch, lines)):
            hashes.setdefault(match[2], set()).add(match[1])
        # Of a file that could not be fetched zypper says so, and ends well.
        if status or any(each.file not in hashes for each in longer):
            raise failed(
                self.shell.image, "zypper download", [each for each in lines if not _SUM.fullmatch(each)], status
            )
        return [self._hashed(each, hashes[each.file]) if each in longer else each for each in packages]

    def _hashed(self, package: RpmPackage, hashes: set[str]) -> RpmPackage:
        if package.hash not in hashes:
            wrong = f"{package.file} does not have the {package.kind.lower()} of its repository's index"
            raise FetchError(
                f"{self.shell.image}: {wrong}", remedy="try again later, or name another mirror in the image"
            )
        return msgspec.structs.replace(package, kind="SHA256", hash=next(each for each in hashes if len(each) == 64))

    def _unread(self, repository: _Repository, failure: Exception) -> FetchError:
        return FetchError(
            f"{self.shell.image}: the index {repository} is not understood: {failure}",
            remedy="only repositories with repodata are read: disable others in the base image",
        )

    def _not_understood(self, failure: Exception) -> FetchError:
        return FetchError(f"{self.shell.image}: zypper's output cannot be parsed: {failure}", remedy=ANOTHER)


def _elements(found: re.Match[str] | None) -> Iterable[ElementTree.Element]:
    """The elements of what was found in the answer, where anything was."""
    return ElementTree.fromstring(found[0]) if found is not None else ()


def _package(repository: _Repository, package: RepoPackage, others: Sequence[RepoPackage]) -> RpmPackage:
    needs = {each.name for each in others if each.provides & package.requires}
    return RpmPackage(
        name=package.name,
        epoch=package.epoch,
        version=package.version,
        architecture=package.architecture,
        kind=package.kind,
        hash=package.hash,
        size=package.size,
        url=f"{(package.base or repository.url).rstrip('/')}/{package.path}",
        needs=sorted(needs - {package.name}),
    )
