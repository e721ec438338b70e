"""Git trees: the files of a repository at a commit, from the network or from a bundle.

Both give those that the commit holds, byte for byte. Attributes of the repository that change files on their way out
(line ends, ``$Id$``, ``export-ignore``, filters such as Git LFS) are switched off. Submodules stay empty folders: each
is a tree of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.errors import InputError, Problem
from hpcgen.core.model.fields import GIT_REFERENCE
from hpcgen.core.model.image_paths import MOUNT, SCRATCH, file_path
from hpcgen.core.model.network import Mirrors
from hpcgen.core.support.quoting import URL_PATTERN, command

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component

PLAIN = "* -text -ident -filter -working-tree-encoding -export-ignore -export-subst"
"""A line of ``.git/info/attributes``, which comes before the repository's own: nothing is changed on its way out."""

HTTPS_ALONE = ("-c", "protocol.allow=never", "-c", "protocol.https.allow=always")
"""No other protocol, also not after a redirect (gitprotocol: protocol.<name>.allow)."""


class GitTree(Input, frozen=True):
    """The files of a git repository at a commit (40 hexadecimal digits), without its history.

    ``moves``: of a branch or a tag in its place they are what that has on the day of the build; a lock has the commit.
    """

    url: str
    commit: str
    moves: bool = False
    key = "tree"

    @property
    def file(self) -> str:
        """The name of its archive: ``REPOSITORY-COMMIT.tar`` with the first 12 digits."""
        return f"{re.sub('[^A-Za-z0-9._+-]', '-', self.name).lstrip('.-') or 'tree'}-{self.commit[:12]}.tar"

    @property
    def name(self) -> str:
        """The repository's own name, also where the address is that of the folder ``.git`` in it."""
        return self.url.rstrip("/").removesuffix("/.git").rsplit("/", 1)[-1].removesuffix(".git")

    @property
    def fixed(self) -> bool:
        """Whether it is at a commit."""
        return re.fullmatch("[0-9a-f]{40}", self.commit) is not None

    def entry(self) -> dict[str, Any]:
        return {self.key: self.url, "commit": self.commit}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("git tree", self.url, self.url, f"commit {self.commit}" if self.fixed else f"moves: {self.commit}")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "git repositories"

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"{entry['tree']} commit:{entry['commit']}"]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        from hpcgen.core.model.bundle import WantedFile

        found = []
        for _, item in inputs:
            file, name = item.file, f"{item.url}@{item.commit}"
            sha256, pinned = fetcher.make_tree(item, fetcher.folder), fetcher.pins.trees.get(name)
            if sha256 != pinned:
                raise InputError(
                    f"the git tree {name} gives an archive other than the one in the lock",
                    expected=f"sha256 {pinned}, not {sha256}",
                    remedy="write the lock again",
                )
            urls = [(fetcher.folder / file).absolute().as_uri()]
            found.append(WantedFile(kind="archive", name=name, file=file, sha256=sha256, urls=urls))
        return found

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl
        from hpcgen.core.support.package_names import licence_expression

        for block, item in inputs:
            rows = view.release(block).trees.values()
            own = next((row.licence for row in rows if (row.url, row.commit) == (item.url, item.commit)), "")
            name, address = item.name, f"git+{item.url}@{item.commit}"
            component = Component(
                f"software:{name}@{item.commit}",
                "software",
                name,
                item.commit,
                purl=purl.purl("generic", name, item.commit, vcs_url=address),
                licence=licence_expression(own) or view.licence("", block),
                url=address,
                block=block.name,
                where=view.prefix(block.name),
                note="made from this git tree while the image is built",
            )
            yield component, not block.build_only

    def online_commands(self, into: str) -> list[str]:
        """Commands that fetch exactly that commit into a new folder; git alone is needed.

        InputError: the address is not https, or the commit is neither one nor the name of a branch or tag.
        """
        self.check()
        git = ("git", "-C", into)
        return [
            command("git", "init", "-q", into),
            command("mkdir", "-p", f"{into}/.git/info"),
            f"printf '%s\\n' {command(PLAIN)} > {command(into + '/.git/info/attributes')}",
            command("git", *HTTPS_ALONE, "-C", into, "fetch", "-q", "--depth", "1", self.url, self.commit),
            command(*git, "checkout", "-q", "--detach", "FETCH_HEAD"),
            *([f'test "$({command(*git, "rev-parse", "HEAD")})" = {self.commit}'] if self.fixed else []),
            command("rm", "-rf", f"{into}/.git"),
        ]

    def bundled_commands(self, sha256: str, into: str) -> list[str]:
        """Commands that check and unpack the tree's archive of a bundle; ``sha256`` as the lock pins it.

        InputError: as :meth:`online_commands`, or the lock does not pin the tree.
        """
        self.check()
        if not sha256:
            raise InputError(
                f"the lock does not pin the archive of {self.url} at {self.commit}",
                remedy="regenerate the lock with hpcgen lock, and the bundle from it",
            )
        held = f"{MOUNT}/{file_path(sha256, self.file)}"
        listing = f"{SCRATCH}/{self.file}.sha256"
        return [
            command("mkdir", "-p", SCRATCH, into),
            f"printf '%s  %s\\n' {sha256} {command(held)} > {command(listing)}",
            command("sha256sum", "-c", "--quiet", listing),
            command("tar", "-xf", held, "-C", into, "--no-same-owner"),
        ]

    def check(self) -> None:
        """InputError where the address or the commit is none."""
        problems = []
        if not re.search(URL_PATTERN, self.url) or self.url.rstrip("/").count("/") < 3:
            message = f"{self.url!r} is not the address of a git repository"
            problems.append(Problem(message, expected="https://HOST/PATH"))
        if not self.fixed and not (self.moves and re.search(GIT_REFERENCE, self.commit)):
            problems.append(Problem(f"{self.commit!r} is not a commit", expected="40 hexadecimal digits"))
        if problems:
            raise InputError(problems)
