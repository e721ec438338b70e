"""Conda packages: what a solver or a user's lock has chosen, each file by its address and its hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.network import Mirrors

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component

LOOSE = "range of versions"
"""What pins a package before a lock is made."""


class CondaFiles(Input, frozen=True):
    """The packages of one environment.

    folder: the environment's folder in the image.
    channels: their addresses, in order of precedence.
    asked: what is asked for, in conda's form.
    packages: all that is installed; none where nothing has been solved yet.
    """

    folder: str
    channels: tuple[str, ...]
    asked: tuple[str, ...] = ()
    packages: tuple[CondaPackage, ...] = ()
    key = "conda"

    @property
    def hashed(self) -> bool:
        """Whether it is known what is installed."""
        return bool(self.packages) or not self.asked

    def entry(self) -> dict[str, Any]:
        hashes = {each.file: each.sha256 for each in self.packages}
        asked = {} if self.packages else {"asked": list(self.asked)}
        return {self.key: self.folder, "channels": list(self.channels), **asked, "packages": hashes}

    def pinned(self) -> Iterator[Pinned]:
        for package in self.packages:
            yield Pinned("conda", package.exact, package.channel, f"sha256:{package.sha256}")
        if not self.packages:
            for spec in self.asked:
                yield Pinned("conda", spec, ", ".join(self.channels), LOOSE)

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "conda packages" if mirrors.conda is None else ""

    @classmethod
    def recorded(cls, entry: Mapping[str, Any]) -> list[str]:
        return [f"conda {name} sha256:{sha256}" for name, sha256 in entry["packages"].items()] or [
            f"conda {spec}" for spec in entry.get("asked", [])
        ]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        from hpcgen.backends.hardware.mirrors import conda_mirror
        from hpcgen.core.model.bundle import WantedFile
        from hpcgen.core.support.package_names import licence_expression

        return [
            WantedFile(
                kind="conda",
                name=f"{each.name} {each.version}",
                file=each.file,
                sha256=each.sha256,
                urls=list(dict.fromkeys([conda_mirror(fetcher.mirrors, each.url), each.url])),
                size=each.size,
                licence=licence_expression(each.licence),
            )
            for _, item in inputs
            for each in item.packages
        ]

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl
        from hpcgen.core.support.package_names import licence_expression

        for _, item in inputs:
            for each in item.packages:
                component = Component(
                    f"conda:{each.name}@{each.version}-{each.build}",
                    "conda",
                    each.name,
                    each.version,
                    purl=purl.conda_package(each.name, each.version, each.build, each.channel, each.subdir, each.file),
                    licence=licence_expression(each.licence) or view.licence(each.sha256),
                    sha256=each.sha256,
                    url=each.url,
                    where=item.folder,
                )
                yield component, view.holds(item.folder)
