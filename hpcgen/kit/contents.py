"""What a lock says of its image: what is held in it, what built it, and what needs what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hpcgen.backends.hardware.mirrors import qualified
from hpcgen.blocks.inputs.base import ImageView, by_kind
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.component import Component
from hpcgen.core.model.lock import Lock, StageName
from hpcgen.core.support import purl
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.extension import PYTHON
from hpcgen.recipe.stages import Assembly

OWN_LICENCE = "Apache-2.0"
"""hpcgen's, of its scripts in the image."""


class Contents(msgspec.Struct):
    """``held`` is in the image, ``tools`` built it; ``inside`` are refs of what the base image brought itself.

    ``needs``: refs of what a thing needs at run time, by its ref, as far as blocks say.
    """

    held: list[Component]
    tools: list[Component]
    inside: list[str]
    needs: dict[str, list[str]]


def contents(lock: Lock, items: Sequence[BundleItem], catalog: Catalog) -> Contents:
    """Everything that the lock says of the image.

    ``items``: of the bundle, which know licences that lock and tables do not.
    """
    assembly = assemble(lock.plan, catalog, lock.pins)
    view = ImageView(
        installs=[each for stage in assembly.stages for _, step in stage.steps for each in step.installs],
        copies=[*assembly.final.copies, *([PYTHON] if lock.plan.extends is not None else [])],
        licences={item.sha256: item.licence for item in items},
        release=catalog.release,
    )
    maker = _Maker(lock, assembly, view)
    held: dict[str, Component] = {}
    tools: dict[str, Component] = {}
    inside = maker.packages("final", present=True)
    for part in (maker.base("final"), inside, maker.packages("final"), maker.own(), maker.copied()):
        held |= {component.ref: component for component in part}
    for part in (maker.base("builder"), maker.packages("builder", present=True), maker.packages("builder")):
        tools |= {component.ref: component for component in part}
    for kind, inputs in by_kind(assembly.inputs).items():
        for component, kept in kind.components(inputs, view):
            (held if kept else tools)[component.ref] = component
    return Contents(
        held=sorted(held.values(), key=_order),
        tools=sorted((each for ref, each in tools.items() if ref not in held), key=_order),
        inside=sorted(component.ref for component in inside if held[component.ref] == component),
        needs=maker.needs(held.values()),
    )


def _order(component: Component) -> tuple[str, str, str]:
    return component.kind, component.name, component.ref


class _Maker:
    """Makes the components of one lock."""

    def __init__(self, lock: Lock, assembly: Assembly, view: ImageView) -> None:
        self.lock, self.assembly, self.view = lock, assembly, view
        base = lock.plan.blocks[0]
        self.distribution, self.release = base.name, base.version
        values = view.release(base).values
        self.purl_of = purl.debian_package if values["package_manager"] == "apt" else purl.rpm_package
        self.vendor = str(values.get("os_id", self.distribution))

    def base(self, stage: StageName) -> list[Component]:
        """The image that a stage starts from, and the distribution in it."""
        image = (self.assembly.final if stage == "final" else self.assembly.builder).image
        pin = self.lock.pins.images.get(image.name)
        digest = pin.digest if pin is not None else image.digest
        address = purl.image(qualified(image.pulled), digest, self.lock.plan.site.system.architecture)
        system = Component(f"system:{self.distribution}", "system", self.distribution, self.release)
        where = Component(
            f"image:{image.name}",
            "image",
            image.pulled,
            digest or "not pinned",
            purl=address,
            sha256=digest.removeprefix("sha256:"),
            note="the base image; the digest is that of its manifest",
        )
        return [where, system]

    def packages(self, stage: StageName, present: bool = False) -> list[Component]:
        """OS packages: those of the base image, or those that the build adds."""
        pinned = self.lock.pins.packages.get(stage)
        if pinned is None:
            return []
        if present:
            kept = {name: version for name, version in pinned.present.items() if name not in pinned.added}
            return [self._package(name, version) for name, version in kept.items()]
        return [
            self._package(name, pin.version, pin.architecture, pin.sha256, pin.url)
            for name, pin in pinned.added.items()
        ]

    def _package(self, name: str, version: str, arch: str = "", sha256: str = "", url: str = "") -> Component:
        return Component(
            f"package:{name}@{version}",
            "package",
            name,
            version,
            purl=self.purl_of(self.vendor, self.release, name, version, arch),
            licence=self.view.licence(sha256),
            sha256=sha256,
            url=url,
        )

    def own(self) -> list[Component]:
        """hpcgen's scripts in every image, and programs whose text is in the recipe."""
        note = "self-test, kit and test programs, written by the recipe"
        kit = Component("program:hpcgen", "program", "hpcgen", self.lock.hpcgen, licence=OWN_LICENCE, note=note)
        sources = {block.name for block, _ in self.assembly.inputs}
        found = [kit]
        for planned in self.lock.plan.blocks:
            folder = self.view.prefix(planned.name)
            if planned.name not in sources and folder and not planned.build_only:
                name, version, licence = planned.name, planned.version, self.view.licence("", planned)
                ref, said = f"program:{name}@{version}", "its text is in the recipe"
                program = Component(ref, "program", name, version, "", licence, block=name, where=folder, note=said)
                found.append(program)
        return found

    def copied(self) -> list[Component]:
        """The stack's own files; what software they may be, nobody here knows."""
        note = "of the stack; the sha256 is that of their list in the image's kit"
        return [
            Component(f"file:{c.to}", "file", c.to, c.sha256[:12], sha256=c.sha256, where=c.to, note=note)
            for c in self.lock.plan.brought
        ]

    def needs(self, held: Iterable[Component]) -> dict[str, list[str]]:
        """Which block's software needs which other's, from the plan."""
        refs: dict[str, list[str]] = {}
        for component in held:
            if component.block:
                refs.setdefault(component.block, []).append(component.ref)
        result = {}
        for block in self.lock.plan.blocks:
            wanted = {ref for name in block.needs.values() for ref in refs.get(name, [])}
            for ref in refs.get(block.name, []):
                result[ref] = sorted(wanted - {ref})
        return {ref: wanted for ref, wanted in result.items() if wanted}
