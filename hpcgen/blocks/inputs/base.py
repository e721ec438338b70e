"""What every kind of input answers, and what it may ask while it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import msgspec

from hpcgen.core.model.network import Mirrors
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.release import Release

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.blocks.inputs.git_tree import GitTree
    from hpcgen.blocks.inputs.wheels import InstalledList
    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component
    from hpcgen.core.model.lock import Pins

T = TypeVar("T")
OfBlocks = Sequence[tuple[PlannedBlock, T]]
"""Inputs, each with its block."""

INDEX = "the Python package index"


class Pinned(NamedTuple):
    """One thing of an input for people: its kind, its name, where it is fetched from, and what pins it."""

    kind: str
    name: str
    origin: str
    by: str


class Fetcher(msgspec.Struct, frozen=True):
    """What a kind may ask for the files of a bundle; behind the functions is the network.

    mirrors: of the site. pins: of the lock. folder: where files may be made that are no downloads.
    release: a block's row of its release table.
    find_files: the files of hashed lines of wheel lists, by the addresses of indexes; None: those of pip's settings.
    make_tree: makes the archive of a git tree in a folder, and says its sha256.
    """

    mirrors: Mirrors
    pins: Pins
    folder: Path
    release: Callable[[PlannedBlock], Release]
    find_files: Callable[[Sequence[str], Sequence[str] | None], list[WantedFile]]
    make_tree: Callable[[GitTree, Path], str]


class ImageView(msgspec.Struct, frozen=True):
    """What a kind may ask of the image of a lock for a bill of materials.

    installs: the wheel lists that the builder's steps install, in their order.
    copies: paths that the final stage takes from the builder.
    licences: of the bundle's files, by their sha256; no bundle, no files.
    release: a block's row of its release table.
    """

    installs: Sequence[InstalledList]
    copies: Sequence[str]
    licences: Mapping[str, str]
    release: Callable[[PlannedBlock], Release]

    def holds(self, folder: str) -> bool:
        """Whether the final stage has something of a folder of the builder."""
        place = PurePosixPath(folder)
        return any(place.is_relative_to(copy) or PurePosixPath(copy).is_relative_to(place) for copy in self.copies)

    def prefix(self, block: str) -> str:
        """The folder of a block's own in the image, empty where it has none."""
        folder = f"/opt/{block}"
        return folder if self.holds(folder) else ""

    def licence(self, sha256: str, block: PlannedBlock | None = None) -> str:
        """Of a file of the bundle, else of a block's release, as an SPDX expression; empty where it is not known."""
        from hpcgen.core.support.package_names import licence_expression

        known = licence_expression(self.licences.get(sha256, ""))
        return known or (licence_expression(self.release(block).licence) if block is not None else "")


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

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        """What a bundle holds of all inputs of the kind, with the size in bytes where somebody says it.

        FetchError: it is not to be had. InputError: it cannot be bundled.
        """
        raise NotImplementedError

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        """What a bill of materials says of all inputs of the kind, each with whether the image holds it."""
        raise NotImplementedError


def by_kind(inputs: OfBlocks[Input]) -> dict[type[Input], list[tuple[PlannedBlock, Input]]]:
    """The inputs of each kind together."""
    found: dict[type[Input], list[tuple[PlannedBlock, Input]]] = {}
    for block, item in inputs:
        found.setdefault(type(item), []).append((block, item))
    return found
