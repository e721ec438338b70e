"""Base images: what a stage starts from. A lock has them, and their bundle's layout, in places of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.model.network import Mirrors
from hpcgen.core.model.release import PLATFORMS, DatedImage

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component


class Image(Input, frozen=True):
    """A base image: ``name`` with its tag, and the digest if it is known.

    ``dated``: the tag of that very digest, where there is one beside the tag of ``name``, which moves.
    ``platforms``: digests by architecture, as registries call them, until :meth:`on` has chosen one. ``in_registry``:
    the digest is what a registry knows the image by.
    """

    name: str
    digest: str = ""
    dated: str = ""
    platforms: Mapping[str, str] = {}
    in_registry: bool = True
    key = "image"

    @property
    def pulled(self) -> str:
        """The name that it is pulled by: with the dated tag, if it has one."""
        repository, _, _ = self.name.rpartition(":")
        return f"{repository}:{self.dated}" if self.dated else self.name

    def on(self, architecture: str) -> Image:
        """The same for one architecture, such as ``x86_64``."""
        return Image(self.name, self.platforms.get(PLATFORMS.get(architecture, ""), self.digest), self.dated)

    def moving(self) -> Image:
        """What its moving tag stands for on the day of the build, or the same if it has no dated one."""
        return Image(self.name) if self.dated else self

    def entry(self) -> dict[str, Any]:
        return {"name": self.pulled, "digest": self.digest or "not pinned"}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("image", self.pulled, "a registry", self.digest or "name")

    def unmirrored(self, mirrors: Mirrors) -> str:
        from hpcgen.backends.hardware.mirrors import image_mirror

        return f"the base image {self.name}" if image_mirror(mirrors, self.name) is None else ""

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"image {entry['name']} {entry['digest']}"]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        return []

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        return iter(())


def image(reference: str | DatedImage) -> Image:
    """An :class:`Image` from what a release row has: ``name:tag``, ``name:tag@sha256:…``, or one with its date."""
    if isinstance(reference, DatedImage):
        return Image(
            reference.name,
            reference.digest,
            reference.dated,
            {str(name): digest for name, digest in reference.platforms.items()},
        )
    name, _, digest = reference.partition("@")
    return Image(name, digest)
