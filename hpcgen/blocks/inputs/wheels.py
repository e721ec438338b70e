"""Lists of Python packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.blocks.inputs.base import INDEX, Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.model.network import Mirrors
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.support.package_names import normal_name

if TYPE_CHECKING:
    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component

LOOSE = "version"
"""What pins something that no hash is known of before a lock is made."""

SOURCE, TOOLS = "-source-{}", "-tools-{}"
"""How lists are called that a lock has beside one: packages that are taken as source, and what their builds require;
numbered from 1.
"""


def with_sources(name: str, lists: Iterable[str], *, tools: bool = False) -> list[str]:
    """Among the names of lists, that of one and of those of its packages that are taken as source.

    ``tools``: also of what their builds require.
    """
    kinds = [each.format("[0-9]+") for each in (SOURCE, *([TOOLS] if tools else []))]
    its = re.compile(f"{re.escape(name)}({'|'.join(kinds)})?")
    return [each for each in lists if its.fullmatch(each)]


def role_of(name: str) -> str:
    """What a list has by its name: ``source`` packages, ``tools`` that build them, or wheels (empty)."""
    found = re.search("-(source|tools)-[0-9]+$", name)
    return found[1] if found else ""


COMPILED = "compiled from its source package while the image is built; the hash is that package's"


class InstalledList(msgspec.Struct, frozen=True):
    """A wheel list that a step installs, by its name: into which folder, whether pip compiles it from source, and the
    prefix of the Python ``by`` which. Without a name it is a wheel that was made of something else.
    """

    name: str
    folder: str
    compiled: bool = False
    by: str = "/opt/python"


class Wheels(Input, frozen=True):
    """Python packages with exact versions.

    ``requirements`` are lines of pip's requirements format. ``hashed`` says that the list is complete
    with every dependency and a sha256 each, so that pip is told to accept nothing else. ``asked`` is what the block
    itself asks for, in pip's form: ``numpy<2``. ``places``: packages for which a line of the user's files asks, each
    with that line.
    """

    name: str
    requirements: tuple[str, ...]
    hashed: bool
    asked: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    key = "wheels"

    def without(self, *packages: str) -> Wheels:
        """What is left without some packages (``nvidia-*``: all of that beginning), which come in another way.

        The list is called ``NAME-needs``.
        """
        kept = tuple(line for line in self.requirements if not any(_is_of(line, each) for each in packages))
        return msgspec.structs.replace(self, name=f"{self.name}-needs", requirements=kept)

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
        kind = "source packages" if role_of(entry["wheels"]) == "source" else "wheels"
        return [f"{kind} {entry['wheels']}" + (" (hashed)" if entry.get("hashed") else "")]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        # All lists are asked for at once.
        lines = {line for _, item in inputs for line in item.requirements}
        mirror = fetcher.mirrors.pip
        return fetcher.find_files(sorted(lines), [mirror] if mirror is not None else None) if lines else []

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        """Those that steps install, by folder; the last of a name stays there, and it is held where the folder is."""
        lists = {item.name: (block, item) for block, item in inputs}
        found = {}
        for each in view.installs:
            if each.name not in lists:
                continue
            block, item = lists[each.name]
            for line in item.requirements:
                component = item._component(block, line, each, view)
                found[each.folder, normal_name(component.name)] = component
        for component in found.values():
            yield component, view.holds(component.where)

    def _component(self, of: PlannedBlock, line: str, installed: InstalledList, view: ImageView) -> Component:
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl

        name, version, hashes = parse_pin(line)
        known = [digest for digest in hashes if digest in view.licences] or (hashes if len(hashes) == 1 else [])
        sha256 = known[0] if known else ""
        block, folder = of.name, installed.folder
        # A list is named after the package that it is for; its other lines are what that needs.
        package = normal_name(name)
        leads = package.startswith(normal_name(block)) and self.name.startswith(f"{name}-{version}")
        own = leads or folder == f"/opt/{block}"
        return Component(
            f"python:{folder}:{package}@{version}",
            "python",
            name,
            version,
            purl=purl.python_package(name, version),
            licence=view.licence(sha256, of if own else None),
            sha256=sha256,
            block=block if own else "",
            where=folder,
            note=COMPILED if installed.compiled else "",
        )


def _is_of(line: str, package: str) -> bool:
    if package.endswith("*"):
        return line.startswith(package[:-1])
    return line.startswith(f"{package}==")


def parse_pin(line: str) -> tuple[str, str, list[str]]:
    """Name, version (empty if it is not one exact version) and hashes of a line of a wheel list."""
    requirement, *rest = line.split(" --hash=")
    name, _, version = requirement.split(";")[0].partition("==")
    name = name.split("[")[0].strip()
    if not version:
        name = name.rstrip("<>=!~.*0123456789, ")
    hashes = [word.split()[0].removeprefix("sha256:") for word in rest if word.startswith("sha256:")]
    return name, version.strip(), hashes
