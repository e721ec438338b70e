"""Requirements in pip's form (PEP 508), as they stand in files of several kinds."""

from __future__ import annotations

import re

import packaging.requirements
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from hpcgen.core.errors import Position
from hpcgen.core.model.project import PackageRequirement
from hpcgen.core.secret_rules import public
from hpcgen.core.support.package_names import normal_name

LONGEST = 2000
"""Characters of one requirement without its hashes."""
EXPECTED = "a package with its range of versions, such as numpy>=1.26,<3"
WRITE = "write the name of the package, with a range of versions where that matters"
"""What to do about a line that is no requirement."""
_ADDRESS = re.compile(r"^(git|hg|svn|bzr)\+|://|^[A-Za-z0-9._-]+\s*(\[[^\]]*\])?\s*@")
_LOCAL = re.compile(r"\+[A-Za-z0-9.]+")
_PATH = re.compile(r"^[./~]|^[A-Za-z]:\\|[/\\]|\.(whl|zip|tar\.gz|tgz|tar\.bz2)$")


class Fault(Exception):
    """What is wrong with a requirement, and what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


def requirement(text: str, where: Position, hashes: list[str] | None = None) -> PackageRequirement:
    """One requirement; :class:`Fault` where it is none, or names its package by an address or a path."""
    if len(text) > LONGEST or not text.isprintable():
        raise Fault(f"{public(text, 60)!a}… is no requirement", WRITE)
    if _ADDRESS.search(text):
        raise Fault(
            f"{public(text, 120)!r} names a package by an address",
            "name a release from the package index; `copy` in the stack brings your own code into the image",
        )
    try:
        parsed = packaging.requirements.Requirement(text)
    except (InvalidRequirement, RecursionError):
        if _PATH.search(text.split(";")[0].strip()):
            raise Fault(
                f"{public(text, 120)!r} is a path on this machine",
                "code of your own comes into the image by `copy` in the stack",
            ) from None
        raise Fault(f"{public(text, 120)!r} is no requirement", WRITE) from None
    return PackageRequirement(
        name=normal_name(parsed.name),
        where=where,
        extras=sorted(normal_name(extra) for extra in parsed.extras),
        specifier=str(parsed.specifier),
        version=only_version(parsed.specifier),
        marker=str(parsed.marker) if parsed.marker is not None else "",
        hashes=hashes or [],
    )


def refused_name(text: str) -> str:
    """The package that a line is about which is no requirement, in its normal form; empty where none is seen."""
    plain = text.split(" #")[0].strip()
    for pattern in (
        r"#.*\begg=([\w.-]+)",
        r"^([\w.-]+)(?:\[[^\]]*\])?\s*(?:@|[=<>~!]=|$)",
        r"/([\w.]+)-\d[\w.+%]*-[\w.]+-[\w.]+-[\w.]+\.whl",
        r"/([\w.-]+?)(?:\.git)?(?:@[^/]*)?/?$",
    ):
        if match := re.search(pattern, plain):
            return normal_name(match[1])
    return ""


def only_version(specifier: SpecifierSet) -> str:
    """The version that a range leaves where it names just one; empty otherwise."""
    exact = [each.version for each in specifier if each.operator in ("==", "===") and "*" not in each.version]
    return exact[0] if len(exact) == 1 and is_version(exact[0]) else ""


def public_range(specifier: str) -> str:
    """A range without the names of builds: ``==2.7.1`` of ``==2.7.1+cu126``, where somebody else chooses the build."""
    return _LOCAL.sub("", specifier).replace("===", "==")


def is_version(text: str) -> bool:
    """Whether this is a version (PEP 440)."""
    try:
        return bool(Version(text))
    except InvalidVersion:
        return False


def is_range(text: str) -> bool:
    """Whether this is a range of versions (PEP 440)."""
    try:
        return SpecifierSet(text) is not None and len(text) <= LONGEST
    except InvalidSpecifier:
        return False


def is_marker(text: str) -> bool:
    """Whether this is a marker of environments (PEP 508, and what PEP 751 adds)."""
    try:
        return len(text) <= LONGEST and bool(Marker(text))
    except (InvalidMarker, RecursionError):
        return False
