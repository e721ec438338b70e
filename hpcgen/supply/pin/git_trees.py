"""The files of a git repository at a commit: fetched with git where there is a network, as one archive in a bundle.

A commit is a hash over its files, so it alone says what must arrive; here that hash is computed again from the archive.
The archive is ``git archive``'s, and its bytes are the same for the same commit as long as git writes tar as it does;
so its sha256 is pinned when it is first made.

Both ways give the same files: those that the commit holds, byte for byte. Attributes of the repository that change
files on their way out (line ends, ``$Id$``, ``export-ignore``, filters such as Git LFS) are switched off. Submodules
stay empty folders: each is a tree of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hpcgen.blocks.inputs.git_tree import HTTPS_ALONE, PLAIN, GitTree
from hpcgen.core.errors import FetchError
from hpcgen.core.support.git import GitFailure, git_output
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.processes import require_program

TIMEOUT_S = 1800.0
"""How long one git command may take."""
ASKING_S = 60.0
"""How long a server may take to name its branches."""


def fetch_tree(tree: GitTree, folder: Path) -> str:
    """Make the tree's archive in a folder, named as :attr:`GitTree.file` says; what was there before is replaced.

    Returns the archive's sha256.

    InputError: as :func:`online_commands`. MissingToolError: git is not here.
    FetchError: the repository does not answer, does not have the commit, or its files do not fit it.
    """
    tree.check()
    require_program("git", f"fetch {tree.url}", "install git")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / tree.file
    with tempfile.TemporaryDirectory(prefix=".tree-", dir=folder, ignore_cleanup_errors=True) as scratch:
        repository = Path(scratch, "repository")
        _git(tree, None, "init", "-q", "--bare", str(repository))
        (repository / "info").mkdir(exist_ok=True)
        (repository / "info" / "attributes").write_text(PLAIN + "\n")
        _fetch(tree, repository)
        archive = Path(scratch, "tree.tar")
        _git(tree, repository, "-c", "tar.umask=0022", "archive", "--format=tar", f"--output={archive}", tree.commit)
        _verify(tree, repository, archive)
        archive.replace(target)
    return file_sha256(target)


def commit_of(url: str, reference: str) -> str:
    """The commit that a branch or tag has now.

    FetchError: the server does not answer, or has no such branch or tag. MissingToolError: there is no git.
    """
    require_program("git", f"find the commit of {reference} of {url}", "install git")
    tree = GitTree(url, reference)
    # As git resolves a name; of an annotated tag the commit is asked for beside it.
    names = [f"refs/tags/{reference}^{{}}", f"refs/tags/{reference}", f"refs/heads/{reference}", reference]
    words = (*HTTPS_ALONE, "-c", "credential.helper=", "ls-remote", "--", url, *names)
    said = _git(tree, None, *words, timeout_s=ASKING_S).decode("utf-8", "replace")
    found = {name: commit for commit, _, name in (line.partition("\t") for line in said.splitlines())}
    commit = next((found[name] for name in names if name in found), "")
    if not re.fullmatch("[0-9a-f]{40}", commit):
        raise _unfit(tree, "it has no branch or tag with that name")
    return commit


def _fetch(tree: GitTree, repository: Path) -> None:
    """The commit alone, or all branches and tags where a server gives nothing but what they name."""
    try:
        _git(tree, repository, *HTTPS_ALONE, "fetch", "-q", "--no-tags", "--depth", "1", tree.url, tree.commit)
    except FetchError as first:
        try:
            _git(tree, repository, *HTTPS_ALONE, "fetch", "-q", tree.url, "+refs/*:refs/fetched/*")
            _git(tree, repository, "cat-file", "-e", f"{tree.commit}^{{commit}}")
        except FetchError:
            # The first failure says what is wrong; the second only that it is wrong in general too.
            raise first from None


def _verify(tree: GitTree, repository: Path, archive: Path) -> None:
    """Compute the commit's hash from the archive's files, as git would."""
    listed = _git(tree, repository, "ls-tree", "-r", "-z", "--full-tree", tree.commit)
    modes: dict[str, tuple[bytes, bytes, str]] = {}
    for line in listed.split(b"\0")[:-1]:
        meta, _, name = line.partition(b"\t")
        mode, kind, digest = meta.split()
        modes[name.decode("utf-8", "surrogateescape")] = (mode, kind, digest.decode())
    entries: dict[str, tuple[bytes, str]] = {
        name: (mode, digest) for name, (mode, kind, digest) in modes.items() if kind == b"commit"
    }
    with tarfile.open(archive, errors="surrogateescape") as tar:
        for member in tar:
            if member.isdir():
                continue
            if member.name not in modes or not (member.isfile() or member.issym()):
                raise _unfit(tree, f"its archive has {member.name!r}, which is not in the commit")
            entries[member.name] = (modes[member.name][0], _blob(tar, member))
    body = _git(tree, repository, "cat-file", "commit", tree.commit)
    if _object("commit", body) != tree.commit or body.split(b"\n", 1)[0] != f"tree {tree_hash(entries)}".encode():
        raise _unfit(tree, "the files that arrived are not those of the commit")


def _blob(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    if member.issym():
        return _object("blob", member.linkname.encode("utf-8", "surrogateescape"))
    stream = tar.extractfile(member)
    assert stream is not None
    digest = hashlib.sha1(f"blob {member.size}\0".encode(), usedforsecurity=False)
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def tree_hash(entries: Mapping[str, tuple[bytes, str]]) -> str:
    """git's hash of a folder: entries are path → mode and hash of every file below it (gitformat: tree objects)."""
    here: list[tuple[bytes, bytes, bytes]] = []
    below: dict[str, dict[str, tuple[bytes, str]]] = {}
    for path, (mode, digest) in entries.items():
        first, slash, rest = path.partition("/")
        if slash:
            below.setdefault(first, {})[rest] = (mode, digest)
        else:
            name = first.encode("utf-8", "surrogateescape")
            here.append((name, mode.lstrip(b"0") + b" " + name + b"\0", bytes.fromhex(digest)))
    for first, inside in below.items():
        name = first.encode("utf-8", "surrogateescape")
        # git sorts a folder as if its name ended with a slash.
        here.append((name + b"/", b"40000 " + name + b"\0", bytes.fromhex(tree_hash(inside))))
    return _object("tree", b"".join(start + digest for _, start, digest in sorted(here)))


def _object(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def _git(tree: GitTree, repository: Path | None, *words: str, timeout_s: float = TIMEOUT_S) -> bytes:
    place = [] if repository is None else [f"--git-dir={repository}"]
    # A git command may run inside a hook of another repository.
    environment = {name: value for name, value in os.environ.items() if not _LOCAL.fullmatch(name)}
    try:
        return git_output(["git", *place, *words], environment, timeout_s)
    except GitFailure as failure:
        why = f"git did not finish within {timeout_s:.0f} s" if failure.timed_out else f"git says: {failure.line(-1)}"
        raise _unfit(tree, why) from None


_LOCAL = re.compile("GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|PREFIX)")


def _unfit(tree: GitTree, why: str) -> FetchError:
    return FetchError(
        f"{tree.url} at {tree.commit} could not be fetched: {why}",
        remedy="check the address and the commit, and git's own settings for a proxy or certificates",
    )
