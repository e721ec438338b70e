"""Archives: one file from one address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.model.network import Mirrors

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component


class Archive(Input, frozen=True):
    """A file fetched over https whose sha256 is checked before use. ``name`` is the file's name."""

    url: str
    sha256: str
    key = "archive"

    @property
    def name(self) -> str:
        return unquote(self.url.rsplit("/", 1)[1])

    def mirrored(self, mirror: str) -> str:
        """Its address on a mirror, which has files by their names."""
        place = f"file://{mirror}" if mirror.startswith("/") else mirror
        return f"{place.rstrip('/')}/{quote(self.name)}"

    def fetched_from(self, mirror: str | None) -> str:
        """Where the steps of a build fetch it: they do not see a folder of the host."""
        return self.mirrored(mirror) if mirror is not None and mirror.startswith("https:") else self.url

    def entry(self) -> dict[str, Any]:
        return {self.key: self.url, "sha256": self.sha256}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("archive", self.name, self.url, f"sha256:{self.sha256}")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "source archives" if self.fetched_from(mirrors.files) == self.url else ""

    @classmethod
    def recorded(cls, entry: Mapping[str, Any]) -> list[str]:
        return [f"{entry[cls.key]} sha256:{entry['sha256']}"]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        from hpcgen.core.model.bundle import WantedFile

        mirror = fetcher.mirrors.files
        found = []
        for block, item in inputs:
            name, licence = item.name, fetcher.release(block).licence
            urls = [*([item.mirrored(mirror)] if mirror is not None else []), item.url]
            found.append(
                WantedFile(kind="archive", name=name, file=name, sha256=item.sha256, urls=urls, licence=licence)
            )
        return found

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl

        for block, item in inputs:
            count = sum(1 for other, _ in inputs if other is block)
            name, version = block.name if count == 1 else item.name, block.version
            if not any(row.sha256 == item.sha256 for row in view.release(block).archives.values()):
                # Of a stack's own source only its address and hash are known.
                name, version = item.name, item.sha256[:12]
            component = Component(
                f"software:{name}@{version}",
                "software",
                name,
                version,
                purl=purl.download(name, version, item.url, item.sha256),
                licence=view.licence(item.sha256, block),
                sha256=item.sha256,
                url=item.url,
                block=block.name,
                where=view.prefix(block.name),
                note="made from this archive while the image is built; the hash is the archive's",
            )
            yield component, not block.build_only
