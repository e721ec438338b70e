"""Releases that are tags of a git repository, and the archives that git makes of them.

A repository is a stranger's. What is asked of it goes into a fresh one of this process, by https alone or from a clone
that the user named; no hook, setting or attribute of the stranger's makes git start a program. The archives are those
of GitHub's ``/archive/TAG.tar.gz``: ``git archive`` with the folder REPOSITORY-VERSION, through ``gzip -n``.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpcgen.blocks.inputs.git_tree import HTTPS_ALONE
from hpcgen.core.errors import FetchError
from hpcgen.core.model.release import UpstreamGit
from hpcgen.core.support.git import GitFailure, git_output
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.processes import require_program
from hpcgen.plugins.tables.upstream import Known, Releases, pattern_of, plain_version

_TIMEOUT_S, _LIST_TIMEOUT_S = 600.0, 60.0
_CLONE_ALONE = ("-c", "protocol.allow=never", "-c", "protocol.file.allow=always")
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_AS_GITHUB = ("-c", "tar.tar.gz.command=gzip -cn", "-c", "tar.umask=0002")
_NOBODYS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
"""No settings of this machine's: an archive has the same bytes everywhere, and no filter of its attributes is known."""

_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK", "GIT_INDEX", "GIT_OBJECT", "GIT_ALTERNATE", "GIT_COMMON", "GIT_PREFIX")
"""Beginnings of variables that a hook of another repository may run with."""


class Repository(msgspec.Struct, frozen=True):
    """Where the repository of a table is read: at its address, or in a clone of it that the user named."""

    git: UpstreamGit
    clone: Path | None = None

    @property
    def address(self) -> str:
        """What git is given."""
        return self.clone.absolute().as_uri() if self.clone else self.git.url

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.git.url.rstrip("/").rpartition("/")[2].removesuffix(".git")


def clone_of(url: str, clones: Mapping[str, Path]) -> Path | None:
    """The clone that was named, by ``OWNER/NAME``, for the repository at an address."""
    name = "/".join(url.rstrip("/").removesuffix(".git").split("/")[-2:]).lower()
    return next((folder for each, folder in clones.items() if each.lower() == name), None)


def tag_releases(repository: Repository) -> Releases:
    """The releases among a repository's tags, each with its commit.

    FetchError: the repository does not answer. InputError: the pattern of its tags is no regular expression.
    MissingToolError: git is not here.
    """
    pattern = pattern_of(repository.git.tags)
    words = ("ls-remote", "--tags", "--", repository.address)
    listed = _git(repository, *words, timeout_s=_LIST_TIMEOUT_S).decode("utf-8", "replace")
    found: Releases = {}
    for commit, tag in re.findall(r"(?m)^([0-9a-f]{40})\trefs/tags/(\S+?)(?:\^\{\})?$", listed):
        match = pattern.fullmatch(tag)
        if match and (version := plain_version(match["version"])):
            # Of an annotated tag there are two lines, and the second has the commit.
            found[version] = Known(commits=frozenset({commit}), places=(tag,))
    return found


def archive_hash(repository: Repository, tag: str) -> str:
    """The sha256 of the archive that git makes of a tag.

    FetchError: the repository does not answer, or does not have the tag. MissingToolError: git or gzip is not here.
    """
    require_program("gzip", f"pack the archive of {tag}", "install gzip")
    version = re.sub(r"^v(?=\d)", "", tag)
    with _fetched(repository, f"refs/tags/{tag}") as folder:
        archive = folder / "archive.tar.gz"
        named = ("--format=tar.gz", f"--prefix={repository.name}-{version}/", f"--output={archive}")
        _git(repository, f"--git-dir={folder}", *_AS_GITHUB, "archive", *named, "refs/tags/it", more=_NOBODYS)
        return file_sha256(archive)


def file_in(repository: Repository, path: str) -> bytes:
    """A file of the newest commit.

    FetchError: the repository does not answer, or does not have the file. MissingToolError: git is not here.
    """
    with _fetched(repository, "HEAD") as folder:
        return _git(repository, f"--git-dir={folder}", "cat-file", "blob", f"refs/tags/it:{path}")


@contextmanager
def _fetched(repository: Repository, ref: str) -> Iterator[Path]:
    """A new repository with nothing but one commit of another, as the tag ``it``."""
    with tempfile.TemporaryDirectory(prefix="hpcgen-tag-", ignore_cleanup_errors=True) as folder:
        _git(repository, "init", "-q", "--bare", "--template=", folder)
        asked = ("--no-tags", "--depth", "1", "--", repository.address, f"+{ref}:refs/tags/it")
        _git(repository, f"--git-dir={folder}", "fetch", "-q", *asked)
        yield Path(folder)


def _git(
    repository: Repository, *words: str, more: Mapping[str, str] | None = None, timeout_s: float = _TIMEOUT_S
) -> bytes:
    """What git prints.

    ``more``: of the environment. Without it the user's own settings count, such as those for a proxy or certificates.
    """
    git = require_program("git", f"read the tags of {repository.git.url}", "install git")
    only = _CLONE_ALONE if repository.clone else HTTPS_ALONE
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OF_A_REPOSITORY)}
    environment |= {"GIT_ASKPASS": "true", **(more or {})}
    try:
        return git_output([git, *only, *_NO_HOOKS, *words], environment, timeout_s)
    except GitFailure as failure:
        late = f"it did not answer within {timeout_s:.0f} s"
        raise _failed(repository, late if failure.timed_out else failure.line(0)) from None


def _failed(repository: Repository, why: str) -> FetchError:
    remedy = "try again later, or name a clone of it: --clone OWNER/NAME=FOLDER"
    return FetchError(f"{repository.address}: {why}", remedy=remedy)
