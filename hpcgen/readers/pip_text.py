"""Requirements in pip's form (PEP 508), as they stand in files of several kinds."""

from __future__ import annotations

import re

import packaging.requirements
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import GIT_REFERENCE
from hpcgen.core.model.project import GitRequirement, PackageRequirement
from hpcgen.core.secret_rules import public
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.quoting import command

LONGEST = 2000
"""Characters of one requirement without its hashes."""
_LONGEST_MARKER = 50_000
"""uv writes longer ones than people, where extras exclude each other."""
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
        raise Fault(f"{public(text, 60)!a}… is not a requirement", WRITE)
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
        raise Fault(f"{public(text, 120)!r} is not a requirement", WRITE) from None
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
        return len(text) <= _LONGEST_MARKER and bool(Marker(text))
    except (InvalidMarker, RecursionError):
        return False


_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*@\s*(?P<rest>git\+.*)")
_REPOSITORY = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*)+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PART = re.compile(r"[0-9a-f]{7,39}")
"""The beginning of a commit, which no server gives anything for."""
_FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def is_git(text: str) -> bool:
    """Whether a line names a package by a git repository."""
    return text.startswith("git+") or _NAMED.fullmatch(text) is not None


def git_requirement(text: str, where: Position) -> GitRequirement:
    """The package of ``NAME @ git+https://HOST/PATH@COMMIT``, or of ``git+https://…@COMMIT#egg=NAME``.

    Fault: another scheme than https, no name, or what is no branch, tag or whole commit.
    """
    named = _NAMED.fullmatch(text)
    rest, _, marker = (named["rest"] if named else text).partition(" ;")
    address, _, fragment = rest.strip().removeprefix("git+").partition("#")
    words = dict(word.partition("=")[::2] for word in fragment.split("&") if "=" in word)
    # GitHub's own addresses name the user git, who needs no password to read.
    url, _, reference = address.replace("://git@", "://", 1).partition("@")
    url = url.rstrip("/")
    name = named["name"] if named else words.get("egg", "")
    if not name:
        name = re.sub(r"\.git$", "", url.rpartition("/")[2])
    extras = named["extras"] or "" if named else ""
    return from_git(
        f"{name}[{extras}]" if extras else name,
        url,
        reference,
        words.get("subdirectory", ""),
        marker,
        where,
        moves=True,
    )


def from_git(
    named: str, url: str, reference: str, folder: str, marker: str, where: Position, *, moves: bool = False
) -> GitRequirement:
    """A package of a repository.

    named: its name with extras. url: of the repository. reference: what is taken of it; empty for its main branch.
    folder: of the package in the repository. marker: in which environments. moves: a branch or a tag will do.
    Fault: as :func:`git_requirement`.
    """
    if not _REPOSITORY.fullmatch(url):
        raise Fault(
            f"{public(url, 120)!r} is not the https address of a repository",
            "write NAME @ git+https://HOST/PATH@COMMIT, without a user or a password",
        )
    try:
        parsed = Requirement(f"{named} ; {marker}" if marker.strip() else named)
    except (InvalidRequirement, RecursionError):
        raise Fault(f"{public(named, 80)!r} is not a package name", f"write NAME @ git+{url}@COMMIT") from None
    if folder and not _FOLDER.fullmatch(folder):
        raise Fault(f"{public(folder, 80)!r} is not a folder of a repository", "write subdirectory=PATH, without ..")
    commit = reference if _COMMIT.fullmatch(reference) else None
    named_so = bool(re.search(GIT_REFERENCE, reference or "HEAD")) and not _PART.fullmatch(reference)
    if commit is None and not (moves and named_so):
        said = f"the branch or tag {public(reference, 60)!r}" if reference else "whatever its main branch has"
        raise Fault(
            f"{parsed.name} is {said} of a repository, which is other code whenever that moves",
            f"`{command('git', 'ls-remote', url, reference or 'HEAD')}` prints the commit; "
            f"write {parsed.name} @ git+{url}@COMMIT with all 40 digits",
        )
    return GitRequirement(
        name=normal_name(parsed.name),
        where=where,
        extras=sorted(normal_name(extra) for extra in parsed.extras),
        marker=str(parsed.marker) if parsed.marker is not None else "",
        url=url,
        commit=commit,
        folder=folder,
        reference=None if commit else reference or "HEAD",
    )
