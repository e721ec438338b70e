"""What a build takes from outside: one class for each kind, with all that is known of it without a network.

Another kind is a class here, which :data:`KINDS` names, and beside it how a bundle gets its files
(``hpcgen.locking.wanted``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

if TYPE_CHECKING:
    from hpcgen.model.site import Mirrors

INDEX = "the Python package index"
LOOSE = "version"
"""What pins something that no hash is known of before a lock is made."""


class Pinned(NamedTuple):
    """One thing of an input for people: its kind, its name, where it is fetched from, and what pins it."""

    kind: str
    name: str
    origin: str
    by: str


class Input(msgspec.Struct, frozen=True):
    """Base of the kinds. ``key``: what an entry of it is called in a lock's list of inputs."""

    key: ClassVar[str]

    def entry(self) -> dict[str, Any]:
        """What a lock lists; its first name is :attr:`key`."""
        raise NotImplementedError

    def pinned(self) -> Iterator[Pinned]:
        """Every single thing that it consists of."""
        raise NotImplementedError

    def unmirrored(self, mirrors: Mirrors) -> str:
        """What it is called where no mirror of the site has it; empty if one has."""
        raise NotImplementedError

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        """Lines for the record of a build, from a lock's entry."""
        raise NotImplementedError


class Archive(Input, frozen=True):
    """A file fetched over https whose sha256 is checked before use. ``name`` is the file's name."""

    url: str
    sha256: str
    key = "archive"

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]

    def entry(self) -> dict[str, Any]:
        return {self.key: self.url, "sha256": self.sha256}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("archive", self.name, self.url, f"sha256:{self.sha256}")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "source archives" if mirrors.files is None else ""

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"{entry['archive']} sha256:{entry['sha256']}"]


class Image(Input, frozen=True):
    """A base image: ``name`` with its tag, and the digest if it is known."""

    name: str
    digest: str = ""
    key = "image"

    def entry(self) -> dict[str, Any]:
        return {"name": self.name, "digest": self.digest or "not pinned"}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("image", self.name, "a registry", self.digest or "name")

    def unmirrored(self, mirrors: Mirrors) -> str:
        from hpcgen.platform.mirrors import image_mirror

        return f"the base image {self.name}" if image_mirror(mirrors, self.name) is None else ""

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"image {entry['name']} {entry['digest']}"]


def image(reference: str) -> Image:
    """An :class:`Image` from ``name:tag`` or ``name:tag@sha256:…``, as release rows write it."""
    name, _, digest = reference.partition("@")
    return Image(name, digest)


class Wheels(Input, frozen=True):
    """Python packages with exact versions.

    ``requirements`` are lines of pip's requirements format. ``hashed`` says that the list is complete
    with every dependency and a sha256 each, so that pip is told to accept nothing else.
    """

    name: str
    requirements: tuple[str, ...]
    hashed: bool
    key = "wheels"

    def without(self, package: str) -> Wheels:
        """What a package needs, where it is compiled itself; the list is called ``NAME-needs``."""
        kept = tuple(line for line in self.requirements if not line.startswith(f"{package}=="))
        return Wheels(f"{self.name}-needs", kept, self.hashed)

    def entry(self) -> dict[str, Any]:
        return {self.key: self.name, "hashed": self.hashed, "requirements": list(self.requirements)}

    def pinned(self) -> Iterator[Pinned]:
        for line in self.requirements:
            name, _, hashes = line.partition(" --hash=")
            yield Pinned("python", name, INDEX, hashes or LOOSE)

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "Python packages" if mirrors.pip is None else ""

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"wheels {entry['wheels']}" + (" (hashed)" if entry.get("hashed") else "")]


class BazelFile(msgspec.Struct, frozen=True):
    """A file that Bazel fetches by its sha256, and the repository that it makes of it.

    The last part of the first url is the file's name. A file of the Python package index has no urls, but ``file``
    and ``package`` (``six==1.16.0``).
    """

    name: str
    sha256: str
    urls: tuple[str, ...] = ()
    file: str = ""
    package: str = ""


class BazelFiles(Input, frozen=True):
    """What Bazel fetches by itself while it builds; ``files`` is empty where nobody has made the list ``name``."""

    name: str
    files: tuple[BazelFile, ...]
    key = "bazel"

    def entry(self) -> dict[str, Any]:
        return {self.key: self.name, "files": {file.sha256: file.name for file in self.files}}

    def pinned(self) -> Iterator[Pinned]:
        for file in self.files:
            yield Pinned("bazel", file.name, file.urls[0] if file.urls else INDEX, f"sha256:{file.sha256}")
        if not self.files:
            yield Pinned("bazel", self.name, "what its workspace names", "sha256, inside the source")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "what Bazel fetches"

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"bazel {name} sha256:{sha256}" for sha256, name in entry["files"].items()]


class GitTree(Input, frozen=True):
    """The files of a git repository at a commit (40 hexadecimal digits), without its history."""

    url: str
    commit: str
    key = "tree"

    def entry(self) -> dict[str, Any]:
        return {self.key: self.url, "commit": self.commit}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("git tree", self.url, self.url, f"commit {self.commit}")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "git repositories"

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"{entry['tree']} commit:{entry['commit']}"]


KINDS: dict[str, type[Input]] = {kind.key: kind for kind in (Archive, Wheels, GitTree, BazelFiles)}
"""The kinds that blocks name as inputs, by what a lock calls them; base images have a place of their own there."""
