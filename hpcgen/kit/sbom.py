"""Bills of materials for the image that a lock builds: CycloneDX and SPDX, the same bytes for the same lock."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.backends.hardware.mirrors import qualified
from hpcgen.blocks.inputs.base import ImageView, by_kind
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.component import Component
from hpcgen.core.model.lock import Lock, StageName
from hpcgen.core.support import purl
from hpcgen.core.support.hashing import sha256_of
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.extension import PYTHON
from hpcgen.recipe.stages import Assembly

# CycloneDX 1.6 as JSON.
#
# Source: CycloneDX/specification, schema/bom-1.6.schema.json. What builds the image and is not in it is under
# ``formulation``, which scanners do not take for content.

_IMAGE = "image"
_TYPES = {
    "image": "container",
    "system": "operating-system",
    "package": "library",
    "python": "library",
    "conda": "library",
    "software": "library",
    "program": "application",
    "file": "file",
}


def cyclonedx_document(lock: Lock, contents: Contents, serial: str, created: str) -> dict[str, Any]:
    """The document as plain data; ``serial`` is a UUID, ``created`` a time of ISO 8601."""
    image: dict[str, Any] = {
        "type": "container",
        "bom-ref": _IMAGE,
        "name": f"{lock.plan.stack.name}-{lock.plan.site.name}",
        "version": lock.content,
        "description": f"{lock.plan.stack.title}, for {lock.plan.site.title}",
    }
    return {
        **_cyclonedx_head(serial),
        "metadata": {
            "timestamp": created,
            # Nothing is built yet: it says what the build will put in.
            "lifecycles": [{"phase": "pre-build"}],
            "tools": {"components": [{"type": "application", "name": "hpcgen", "version": lock.hpcgen}]},
            "component": image,
        },
        "components": [_component(component) for component in contents.held],
        "dependencies": _dependencies(contents),
        # Sources bundle parts of other projects, which are not listed.
        "compositions": [{"aggregate": "incomplete", "assemblies": [_IMAGE]}],
        "formulation": [{"bom-ref": "build", "components": [_component(component) for component in contents.tools]}],
    }


def cyclonedx_of_image(name: str, components: Sequence[Component]) -> str:
    """CycloneDX 1.6 JSON of what was found in a finished image; the same bytes for the same components."""
    listed = [_component(component) for component in components]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:hpcgen:image:{sha256_of(_text({'components': listed}))}")
    return _text(
        {
            **_cyclonedx_head(str(serial)),
            "metadata": {
                "lifecycles": [{"phase": "discovery"}],
                "tools": {"components": [{"type": "application", "name": "hpcgen", "version": __version__}]},
                "component": {"type": "container", "bom-ref": _IMAGE, "name": name},
            },
            "components": listed,
            # What no record names was looked for by name.
            "compositions": [{"aggregate": "incomplete", "assemblies": [_IMAGE]}],
        }
    )


def _cyclonedx_head(serial: str) -> dict[str, Any]:
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
    }


def _component(component: Component) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": component.sha256}] if component.sha256 else []
    # The hash of an archive is not that of what is made from it.
    of_source = component.kind in ("software", "image")
    reference = {"type": "source-distribution" if of_source else "distribution", "url": component.url}
    properties = {"hpcgen:block": component.block, "hpcgen:folder": component.where}
    data: dict[str, Any] = {
        "type": _TYPES[component.kind],
        "bom-ref": component.ref,
        "name": component.name,
        "version": component.version,
        "description": component.note,
        "hashes": [] if of_source else hashes,
        "licenses": [{"expression": component.licence}] if component.licence else [],
        "purl": component.purl,
        "externalReferences": [reference | ({"hashes": hashes} if hashes else {})] if component.url else [],
        "properties": [{"name": name, "value": value} for name, value in properties.items() if value],
    }
    return {key: value for key, value in data.items() if value}


def _dependencies(contents: Contents) -> list[dict[str, Any]]:
    inside = set(contents.inside)
    base = next((component.ref for component in contents.held if component.kind == "image"), "")
    edges = {_IMAGE: [component.ref for component in contents.held if component.ref not in inside]}
    if base:
        edges[base] = list(contents.inside)
    edges |= contents.needs
    return [{"ref": ref, "dependsOn": sorted(wanted)} for ref, wanted in sorted(edges.items()) if wanted]


# SPDX 2.3 as JSON.
#
# Source: spdx/spdx-spec v2.3, chapters 6 (document), 7 (packages), 10 (other licences) and 11 (relationships). The
# image CONTAINS what it holds; what only builds it is BUILD_TOOL_OF the image, what Bazel takes BUILD_DEPENDENCY_OF.

DOCUMENT = "SPDXRef-DOCUMENT"
_SPDX_IMAGE = "SPDXRef-image"
UNKNOWN = "NOASSERTION"
_PURPOSES = {
    "image": "CONTAINER",
    "system": "OPERATING-SYSTEM",
    "package": "LIBRARY",
    "python": "LIBRARY",
    "conda": "LIBRARY",
    "software": "LIBRARY",
    "program": "APPLICATION",
    "file": "SOURCE",
}


def spdx_document(lock: Lock, contents: Contents, serial: str, created: str) -> dict[str, Any]:
    """The document as plain data; ``serial`` is a UUID, ``created`` a time of ISO 8601."""
    everything = [*contents.held, *contents.tools]
    ids = _ids(everything)
    name = f"{lock.plan.stack.name}-{lock.plan.site.name}"
    image = {
        "SPDXID": _SPDX_IMAGE,
        "name": name,
        "versionInfo": lock.content,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
        "summary": f"{lock.plan.stack.title}, for {lock.plan.site.title}",
        "primaryPackagePurpose": "CONTAINER",
    }
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": name,
        "documentNamespace": f"urn:uuid:{serial}",
        "comment": "What the build puts into the image; code of other projects that sources bundle is not listed.",
        "creationInfo": {"created": created, "creators": [f"Tool: hpcgen-{lock.hpcgen}"]},
        "packages": [image, *(_package(component, ids[component.ref]) for component in everything)],
        "relationships": list(_relationships(contents, ids)),
    }
    others = _other_licences(everything)
    return document | ({"hasExtractedLicensingInfos": others} if others else {})


def _package(component: Component, spdx_id: str) -> dict[str, Any]:
    purl = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": component.purl}
    remarks = [component.note, f"in {component.where}" if component.where else ""]
    data: dict[str, Any] = {
        "SPDXID": spdx_id,
        "name": component.name,
        "versionInfo": component.version,
        "downloadLocation": component.url or UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": component.sha256}] if component.sha256 else [],
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": component.licence or UNKNOWN,
        "copyrightText": UNKNOWN,
        "sourceInfo": "; ".join(remark for remark in remarks if remark),
        "primaryPackagePurpose": _PURPOSES[component.kind],
        "externalRefs": [purl] if component.purl else [],
    }
    return {key: value for key, value in data.items() if value not in ("", [])}


def _relationships(contents: Contents, ids: dict[str, str]) -> Iterable[dict[str, str]]:
    def relation(first: str, kind: str, second: str) -> dict[str, str]:
        return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}

    yield relation(DOCUMENT, "DESCRIBES", _SPDX_IMAGE)
    base = next((ids[component.ref] for component in contents.held if component.kind == "image"), None)
    for component in contents.held:
        own = ids[component.ref]
        yield relation(_SPDX_IMAGE, "DESCENDANT_OF" if own == base else "CONTAINS", own)
    for ref in contents.inside if base is not None else []:
        yield relation(str(base), "CONTAINS", ids[ref])
    for component in contents.tools:
        kind = "BUILD_DEPENDENCY_OF" if component.kind == "file" else "BUILD_TOOL_OF"
        yield relation(ids[component.ref], kind, _SPDX_IMAGE)
    for ref, wanted in sorted(contents.needs.items()):
        for other in wanted:
            yield relation(ids[ref], "DEPENDS_ON", ids[other])


def _ids(components: Iterable[Component]) -> dict[str, str]:
    """Identifiers of letters, digits, dots and dashes; two names that only differ in others get a number."""
    taken = {DOCUMENT, _SPDX_IMAGE}
    ids = {}
    for component in components:
        plain = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", component.ref).strip("-")
        number, spdx_id = 2, plain
        while spdx_id in taken:
            number, spdx_id = number + 1, f"{plain}-{number}"
        taken.add(spdx_id)
        ids[component.ref] = spdx_id
    return ids


def _other_licences(components: Iterable[Component]) -> list[dict[str, str]]:
    """Licences that SPDX's list has not; their text comes with the software."""
    found = {ref for component in components for ref in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", component.licence)}
    text = "The text of this licence comes with the software."
    return [{"licenseId": ref, "name": ref.removeprefix("LicenseRef-"), "extractedText": text} for ref in sorted(found)]


def cyclonedx(lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None = None) -> str:
    """CycloneDX 1.6 JSON.

    Parameters
    ----------
    items: what the bundle holds, for the licences that are known of it; may be empty.
    catalog: the collections that the lock was made with; the built-in one alone if None.
    """
    found = _contents(lock, items, catalog)
    return _text(cyclonedx_document(lock, found, _serial(lock, "cyclonedx"), _time(lock)))


def spdx(lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None = None) -> str:
    """SPDX 2.3 JSON; the parameters are those of :func:`cyclonedx`."""
    found = _contents(lock, items, catalog)
    return _text(spdx_document(lock, found, _serial(lock, "spdx"), _time(lock)))


def _contents(lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None) -> Contents:
    return contents(lock, items, Catalog() if catalog is None else catalog)


def _serial(lock: Lock, kind: str) -> str:
    """A UUID that is the lock's own: another lock has another, the same lock the same on every machine."""
    digest = sha256_of(lock.text)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:hpcgen:{kind}:{lock.content}:{digest}"))


def _time(lock: Lock) -> str:
    moment = datetime.datetime.fromtimestamp(lock.pins.epoch, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


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

    Parameters
    ----------
    items: of the bundle, which know licences that lock and tables do not.
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
            purl=purl.debian_package(self.distribution, self.release, name, version, arch),
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
        note = "of the stack, whose own files they are; the sha256 is that of their list in the image's kit"
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
