"""Wheels that no package index has: one file from one address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpcgen.blocks.inputs.archive import Archive
from hpcgen.blocks.inputs.base import ImageView, OfBlocks

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.component import Component


class WheelFile(Archive, frozen=True):
    """A wheel by its address, fetched and checked as an archive is, and installed into the Python environment."""

    key = "wheel_file"

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl

        for block, item in inputs:
            name, version = item.name.split("-")[:2]
            yield (
                Component(
                    f"python:{ENVIRONMENT}:{name}@{version}",
                    "python",
                    name,
                    version,
                    purl=purl.download(name, version, item.url, item.sha256),
                    licence=view.licence(item.sha256, block),
                    sha256=item.sha256,
                    url=item.url,
                    block=block.name,
                    where=ENVIRONMENT,
                ),
                not block.build_only and view.holds(ENVIRONMENT),
            )


ENVIRONMENT = "/opt/python"
"""The environment that it is installed into."""
