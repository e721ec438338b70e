"""Base images: what a stage starts from. A lock has them, and their bundle's layout, in places of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.model.network import Mirrors

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.model.bundle import Wanted
    from hpcgen.model.component import Component


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

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[Wanted]:
        return []

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        return iter(())


def image(reference: str) -> Image:
    """An :class:`Image` from ``name:tag`` or ``name:tag@sha256:…``, as release rows write it."""
    name, _, digest = reference.partition("@")
    return Image(name, digest)
