"""The packages of an image by the records that lie in it: of dpkg, rpm and apk, of pip and conda. Nothing of it is run.

Of Python and conda the names of the records say name and version, so that none of them is opened.
Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/ (NAME-VERSION.dist-info),
conda's ``conda-meta/NAME-VERSION-BUILD.json``; for dpkg, dpkg-query(1) and the stanzas of its status file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.image_facts import ImagePackage
from hpcgen.core.support.package_names import normal_name
from hpcgen.images.reference import ImageReference
from hpcgen.images.rpm_database import DATABASES, MOST_PACKAGES, rpm_packages

DATABASE_BYTES = 128 * 1024 * 1024
_STATUS, _STANZAS = "/var/lib/dpkg/status", "/var/lib/dpkg/status.d/"
_APK = ("/lib/apk/db/installed", "/usr/lib/apk/db/installed")
RECORD = re.compile(
    r"(?P<where>/.*)/(?:"
    r"(?P<name>[^/-]+)-(?P<version>[^/-]+)\.dist-info/METADATA"
    r"|(?P<egg>[^/-]+)-(?P<egg_version>[^/-]+)(?:-py[0-9.]+)?\.egg-info(?:/PKG-INFO)?"
    r"|conda-meta/(?P<conda>[^/]+)-(?P<conda_version>[^/-]+)-[^/-]+\.json"
    r")"
)


class ImagePackages(msgspec.Struct, frozen=True):
    """What an image has by its own records, and what could not be read."""

    found: list[ImagePackage]
    unread: list[str]


SYSTEM_RECORDS = rf"{'|'.join(map(re.escape, (_STATUS, *_APK, *DATABASES)))}|{re.escape(_STANZAS)}[^/]+(?<!\.md5sums)"
"""Paths of what a distribution's package manager writes down, which is read."""


def is_record(path: str) -> bool:
    """Whether a path of an image says something of its packages."""
    return named_record(path) is not None or re.fullmatch(SYSTEM_RECORDS, path) is not None


def packages_in(image: ImageReference) -> ImagePackages:
    """Everything that its records name, sorted; an image that cannot be listed has none, and a word why."""
    unread: list[str] = []
    try:
        paths = image.image_kind.listed(image.name, is_record)
        if paths is None:
            why = f"the files of {image} cannot be listed where it is; convert it to a file with hpcgen convert"
            return ImagePackages([], [why])
        records = sorted(path for path in paths if re.fullmatch(SYSTEM_RECORDS, path))
        # In one call: each may unpack the whole image.
        data = image.read(records, DATABASE_BYTES) if records else {}
        found = set(filter(None, map(named_record, paths))) | set(recorded_packages(data, unread))
    except HpcgenError as failure:
        return ImagePackages([], [failure.problems[0].message])
    if len(found) > MOST_PACKAGES:
        return ImagePackages([], [f"{image} has records of more than {MOST_PACKAGES} packages"])
    return ImagePackages(sorted(found), unread)


def named_record(path: str) -> ImagePackage | None:
    """A package of Python or conda by the path of its record."""
    match = RECORD.fullmatch(path)
    if match is None:
        return None
    if match["conda"]:
        return ImagePackage("conda", match["conda"], match["conda_version"], f"{match['where']}/conda-meta")
    name, version = match["name"] or match["egg"], match["version"] or match["egg_version"]
    return ImagePackage("python", normal_name(name), version, match["where"])


def recorded_packages(records: Mapping[str, bytes], unread: list[str]) -> Iterator[ImagePackage]:
    """The packages of the distribution by the records of its package manager; adds what cannot be read."""
    first = next((path for path in DATABASES if path in records), None)
    for path, data in records.items():
        if path in _APK:
            yield from _of_apk(data.decode("utf-8", "replace"), path)
        elif path not in DATABASES:
            yield from _of_dpkg(data.decode("utf-8", "replace"), path, path != _STATUS)
        elif path == first:
            try:
                known = rpm_packages(data, path)
            except InputError as failure:
                unread.append(failure.problems[0].message)
            else:
                yield from (
                    ImagePackage("os", each.name, each.version, path, each.source, each.source_version)
                    for each in known
                )


def _of_apk(text: str, where: str) -> Iterator[ImagePackage]:
    """Of Alpine, whose lines begin with a letter: ``P:`` the name, ``V:`` the version."""
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^([PV]):(\S+)$", stanza, re.MULTILINE))
        if "P" in fields and "V" in fields:
            yield ImagePackage("os", fields["P"], fields["V"], where)


def _of_dpkg(text: str, where: str, all_installed: bool) -> Iterator[ImagePackage]:
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status|Source): *(\S.*?) *$", stanza, re.MULTILINE))
        installed = all_installed or fields.get("Status", "").endswith(" installed")
        if installed and "Package" in fields and "Version" in fields:
            # "NAME (VERSION)", each part where it differs from the package's own. Source: deb-control(5), Source.
            source, _, version = (fields.get("Source") or fields["Package"]).partition(" ")
            versions = fields["Version"], version.strip("()") or fields["Version"]
            yield ImagePackage("os", fields["Package"], versions[0], where, source, versions[1])


def packages_pinned(lock: dict[str, Any]) -> list[ImagePackage]:
    """What the lock in an image pins of it, whoever wrote that; what has an unexpected shape is left out."""
    found = set()
    final = _mapping(_mapping(lock.get("pinned_packages")).get("final"))
    added = {name: _mapping(each).get("version") for name, each in _mapping(final.get("added")).items()}
    for name, version in {**_mapping(final.get("present")), **added}.items():
        found.add(ImagePackage("os", str(name), str(version), "hpcgen.lock"))
    for each in lock.get("inputs") or () if isinstance(lock.get("inputs"), list) else ():
        lines = _mapping(each).get("requirements")
        for line in lines if isinstance(lines, list) else ():
            name, _, version = str(line).partition(" ")[0].partition("==")
            if version:
                found.add(ImagePackage("python", normal_name(name), version, "hpcgen.lock"))
    return sorted(found)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
