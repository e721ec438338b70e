"""What the index of an RPM repository says: repodata/repomd.xml, which is signed, and the primary list that it names.

The primary list of a distribution has some 300 MB, and a lock wants a few hundred packages of it, so it is cut at the
packages' own tags and only those that are wanted are read as XML. No declaration of entities is in what is cut out.
Sources: openSUSE's wiki, "Standards Rpm Metadata"; createrepo_c's xml_dump_primary.c.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import IO
from xml.etree import ElementTree

import msgspec

from hpcgen.core.support.hashing import CHUNK

INDEX = "repodata/repomd.xml"
_KINDS = ("sha256", "sha384", "sha512")
_END = b"</package>"
_LOCAL = re.compile(r"^\{[^}]*\}")


class MetadataError(Exception):
    """Why an index is not understood."""


class RepoIndex(msgspec.Struct, frozen=True):
    """What repomd.xml says of the primary list, and the newest date of all lists in seconds since 1970.

    ``primary``: its path in the repository; ``kind``, ``hash``: its own.
    """

    primary: str
    kind: str
    hash: str
    date: int

    def check(self, data: bytes) -> None:
        """MetadataError for another list than the one that is named."""
        if hashlib.new(self.kind, data).hexdigest() != self.hash:
            raise MetadataError(f"{self.primary} does not have the {self.kind} that {INDEX} names")


class RepoPackage(msgspec.Struct, frozen=True):
    """A package as the primary list has it; ``path`` in the repository, ``base`` another address of that, or empty.

    ``provides``, ``requires``: names of capabilities, the paths of some files among what is provided.
    """

    name: str
    epoch: str
    version: str
    architecture: str
    kind: str
    hash: str
    size: int
    path: str
    base: str
    provides: frozenset[str]
    requires: frozenset[str]


def read_index(data: bytes) -> RepoIndex:
    """Read repomd.xml; MetadataError where it is none, or names no primary list with a hash that counts."""
    start = data.find(b"<repomd")
    try:
        root = ElementTree.fromstring(data[max(start, 0) :])
    except ElementTree.ParseError as failure:
        raise MetadataError(f"{INDEX} is not XML: {failure}") from failure
    lists = {each.get("type"): each for each in _children(root, "data")}
    if "primary" not in lists:
        raise MetadataError(f"{INDEX} names no primary list")
    primary = lists["primary"]
    checksum, place = _child(primary, "checksum"), _child(primary, "location").get("href", "")
    kind = checksum.get("type", "")
    if kind not in _KINDS:
        raise MetadataError(f"{INDEX} gives a hash of kind {kind!r}, and {', '.join(_KINDS)} count")
    dates = [(each.text or "").partition(".")[0] for data in lists.values() for each in _children(data, "timestamp")]
    newest = max((int(date) for date in dates if date.isdecimal()), default=0)
    return RepoIndex(place, kind, (checksum.text or "").strip().lower(), newest)


def read_packages(stream: IO[bytes], names: Collection[str]) -> Iterator[RepoPackage]:
    """The packages of these names in an unpacked primary list; MetadataError where one is not understood."""
    wanted = {name.encode() for name in names}
    opening = b""
    for each in _cut(stream):
        start = each.find(b"<package ")
        if not opening:
            opening = each[max(each.find(b"<metadata"), 0) : start]
        name = re.search(rb"<name>([^<]*)</name>", each[start:])
        if start >= 0 and name is not None and name[1].strip() in wanted:
            yield _package(opening + each[start:] + b"</metadata>")


def _cut(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while data := stream.read(CHUNK):
        *whole, rest = (rest + data).split(_END)
        yield from (each + _END for each in whole)


def _package(data: bytes) -> RepoPackage:
    try:
        root = next(iter(ElementTree.fromstring(data)))
        version, checksum, place = _child(root, "version"), _child(root, "checksum"), _child(root, "location")
        details = _child(root, "format")
        files = {(each.text or "") for each in _children(details, "file")}
        return RepoPackage(
            name=(_child(root, "name").text or "").strip(),
            epoch=version.get("epoch", "0"),
            version=f"{version.get('ver')}-{version.get('rel')}",
            architecture=(_child(root, "arch").text or "").strip(),
            kind=checksum.get("type", "").upper(),
            hash=(checksum.text or "").strip().lower(),
            size=int(_child(root, "size").get("package", "0")),
            path=place.get("href", ""),
            base=next((value for key, value in place.items() if _LOCAL.sub("", key) == "base"), ""),
            provides=frozenset(_capabilities(details, "provides") | files),
            requires=frozenset(_capabilities(details, "requires")),
        )
    except (ElementTree.ParseError, ValueError, StopIteration) as failure:
        raise MetadataError(f"a package of the primary list is not understood: {failure}") from failure


def _capabilities(details: ElementTree.Element, kind: str) -> set[str]:
    return {each.get("name", "") for found in _children(details, kind) for each in _children(found, "entry")}


def _children(element: ElementTree.Element, name: str) -> Iterable[ElementTree.Element]:
    """Without regard to the namespace, for which programs have several prefixes."""
    return (each for each in element if _LOCAL.sub("", each.tag) == name)


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element:
    found = next(iter(_children(element, name)), None)
    if found is None:
        raise MetadataError(f"{_LOCAL.sub('', element.tag)} has no {name}")
    return found
