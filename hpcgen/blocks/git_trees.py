"""Commands that bring the files of a git repository at a commit into a build: from the network, or from a bundle.

Both give those that the commit holds, byte for byte. Attributes of the repository that change files on their way out
(line ends, ``$Id$``, ``export-ignore``, filters such as Git LFS) are switched off. Submodules stay empty folders: each
is a tree of its own.
"""

from __future__ import annotations

import re

from hpcgen.blocks.steps import GitTree, command
from hpcgen.errors import InputError, Problem
from hpcgen.model.bundle_paths import MOUNT, file_path
from hpcgen.model.image_paths import SCRATCH
from hpcgen.support.quoting import URL_PATTERN

PLAIN = "* -text -ident -filter -working-tree-encoding -export-ignore -export-subst"
"""A line of ``.git/info/attributes``, which comes before the repository's own: nothing is changed on its way out."""

HTTPS_ALONE = ("-c", "protocol.allow=never", "-c", "protocol.https.allow=always")
"""No other protocol, also not after a redirect (gitprotocol: protocol.<name>.allow)."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(URL_PATTERN)


def tree_file(tree: GitTree) -> str:
    """The name of its archive: ``REPOSITORY-COMMIT.tar`` with the first 12 digits."""
    name = tree.url.rstrip("/").rsplit("/", 1)[1].removesuffix(".git")
    return f"{re.sub('[^A-Za-z0-9._+-]', '-', name).lstrip('.-') or 'tree'}-{tree.commit[:12]}.tar"


def online_commands(tree: GitTree, into: str) -> list[str]:
    """Commands that fetch exactly that commit into a new folder; git alone is needed.

    Raises
    ------
    InputError: the address is not https, or the commit is not 40 hexadecimal digits.
    """
    check_tree(tree)
    git = ("git", "-C", into)
    return [
        command("git", "init", "-q", into),
        command("mkdir", "-p", f"{into}/.git/info"),
        f"printf '%s\\n' {command(PLAIN)} > {command(into + '/.git/info/attributes')}",
        command("git", *HTTPS_ALONE, "-C", into, "fetch", "-q", "--depth", "1", tree.url, tree.commit),
        command(*git, "checkout", "-q", "--detach", "FETCH_HEAD"),
        f'test "$({command(*git, "rev-parse", "HEAD")})" = {tree.commit}',
        command("rm", "-rf", f"{into}/.git"),
    ]


def bundled_commands(tree: GitTree, sha256: str, into: str) -> list[str]:
    """Commands that check and unpack the tree's archive of a bundle; ``sha256`` as the lock pins it.

    Raises
    ------
    InputError: as :func:`online_commands`, or the lock does not pin the tree.
    """
    check_tree(tree)
    if not sha256:
        raise InputError(
            f"the lock does not pin the archive of {tree.url} at {tree.commit}",
            remedy="make the lock again with hpcgen lock, and the bundle from it",
        )
    held = f"{MOUNT}/{file_path(sha256, tree_file(tree))}"
    listing = f"{SCRATCH}/{tree_file(tree)}.sha256"
    return [
        command("mkdir", "-p", SCRATCH, into),
        f"printf '%s  %s\\n' {sha256} {command(held)} > {command(listing)}",
        command("sha256sum", "-c", "--quiet", listing),
        command("tar", "-xf", held, "-C", into, "--no-same-owner"),
    ]


def check_tree(tree: GitTree) -> None:
    problems = []
    if not _URL.search(tree.url) or tree.url.rstrip("/").count("/") < 3:
        problems.append(Problem(f"{tree.url!r} is not the address of a git repository", expected="https://HOST/PATH"))
    if not _COMMIT.fullmatch(tree.commit):
        problems.append(Problem(f"{tree.commit!r} is not a commit", expected="40 hexadecimal digits"))
    if problems:
        raise InputError(problems)
