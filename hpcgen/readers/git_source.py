"""Packages from git repositories, as pip and Poetry name them: at a commit, or at what a branch or a tag has.

https://pip.pypa.io/en/stable/topics/vcs-support/. A branch or a tag names other code tomorrow; a commit does not. So a
lock of packages needs one, and `hpcgen lock` finds it for other files.
"""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import GIT_REFERENCE
from hpcgen.core.model.project import GitRequirement
from hpcgen.core.secret_rules import public
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.quoting import command
from hpcgen.readers.pip_text import Fault

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*@\s*(?P<rest>git\+.*)")
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*)+")
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

    Parameters
    ----------
    named: its name with extras. url: of the repository. reference: what is taken of it; empty for its main branch.
    folder: of the package in the repository. marker: in which environments. moves: a branch or a tag will do.

    Raises
    ------
    Fault: as :func:`git_requirement`.
    """
    if not _ADDRESS.fullmatch(url):
        raise Fault(
            f"{public(url, 120)!r} is no https address of a repository",
            "write NAME @ git+https://HOST/PATH@COMMIT, without a user or a password",
        )
    try:
        parsed = Requirement(f"{named} ; {marker}" if marker.strip() else named)
    except (InvalidRequirement, RecursionError):
        raise Fault(f"{public(named, 80)!r} is no name of a package", f"write NAME @ git+{url}@COMMIT") from None
    if folder and not _FOLDER.fullmatch(folder):
        raise Fault(f"{public(folder, 80)!r} is no folder of a repository", "write subdirectory=PATH, without ..")
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
