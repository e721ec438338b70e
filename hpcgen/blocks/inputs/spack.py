"""The sources of a Spack environment: what a lock has chosen, each file by its hash, as Spack's mirrors have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.model.image_paths import MOUNT, file_path
from hpcgen.core.model.network import Mirrors
from hpcgen.core.model.spack import SpackSource
from hpcgen.core.support.quoting import command

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component

MIRROR = "https://mirror.spack.io"
"""Spack's public mirror. Source: etc/spack/defaults/base/mirrors.yaml of spack/spack at v1.1.0."""
ARCHIVES = "_source-cache/archive"
"""Where mirrors have files by their sha256. Source: lib/spack/spack/mirrors/layout.py of spack/spack at v1.1.0."""
LOOSE = "a range of versions"
"""What pins a package before a lock is made."""


class SpackSources(Input, frozen=True):
    """What the packages of one environment are made from.

    folder: of the installed packages in the image.
    specs: what is asked for.
    sources: of all that is compiled; None where nothing has been chosen yet.
    """

    folder: str
    specs: tuple[str, ...]
    sources: tuple[SpackSource, ...] | None = None
    key = "spack"

    def entry(self) -> dict[str, Any]:
        hashes = {each.file: each.sha256 for each in self.sources or ()}
        return {self.key: self.folder, "specs": list(self.specs), "sources": hashes}

    def pinned(self) -> Iterator[Pinned]:
        for each in self.sources or ():
            yield Pinned("Spack source", each.package, each.url or MIRROR, f"sha256:{each.sha256}")
        if self.sources is None:
            for spec in self.specs:
                yield Pinned("Spack", spec, MIRROR, LOOSE)

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "sources of Spack packages"

    @classmethod
    def recorded(cls, entry: Mapping[str, Any]) -> list[str]:
        return [f"spack {name} sha256:{sha256}" for name, sha256 in entry["sources"].items()] or [
            f"spack {spec}" for spec in entry["specs"]
        ]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        from hpcgen.core.model.bundle import WantedFile

        return [
            WantedFile(
                kind="archive",
                name=each.package,
                file=each.file,
                sha256=each.sha256,
                urls=[f"{MIRROR}/{ARCHIVES}/{each.path}", *([each.url] if each.url else [])],
            )
            for _, item in inputs
            for each in item.sources or ()
        ]

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl

        for block, item in inputs:
            for each in item.sources or ():
                name, _, version = each.package.partition("@")
                address = each.url or f"{MIRROR}/{ARCHIVES}/{each.path}"
                component = Component(
                    f"software:{each.package}/{each.sha256[:12]}",
                    "software",
                    name,
                    version,
                    purl=purl.download(name, version, address, each.sha256),
                    licence=view.licence(each.sha256, block),
                    sha256=each.sha256,
                    url=address,
                    block=block.name,
                    where=item.folder,
                    note="a source of a package that Spack compiled, or of one that it was compiled with",
                )
                yield component, view.holds(item.folder)

    def bundled_commands(self, into: str) -> list[str]:
        """Commands that lay the files of a bundle out as a mirror of Spack, which checks each hash as it fetches."""
        places = {f"{into}/{ARCHIVES}/{each.path}": each for each in self.sources or ()}
        folders = sorted({place.rpartition("/")[0] for place in places})
        links = [
            command("ln", "-sf", f"{MOUNT}/{file_path(each.sha256, each.file)}", place)
            for place, each in sorted(places.items())
        ]
        return [*([command("mkdir", "-p", *folders)] if folders else []), *links]
