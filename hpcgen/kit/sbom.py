"""Bills of materials for the image that a lock builds: CycloneDX and SPDX, the same bytes for the same lock."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hpcgen._version import __version__
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.component import Component
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import sha256_of
from hpcgen.kit.contents import Contents, contents

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
    properties = {
        "hpcgen:block": component.block,
        "hpcgen:folder": component.where,
        "hpcgen:artifact": component.artifact,
    }
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
    remarks = [
        component.note,
        f"in {component.where}" if component.where else "",
        f"from the artifact {component.artifact}" if component.artifact else "",
    ]
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


def cyclonedx(
    lock: Lock,
    items: Sequence[BundleItem],
    catalog: Catalog | None = None,
    artifacts: Mapping[str, str] | None = None,
) -> str:
    """CycloneDX 1.6 JSON.

    items: what the bundle holds, for the licences that are known of it; may be empty.
    catalog: the collections that the lock was made with; the built-in one alone if None.
    artifacts: by block the key of what the bundle has in the place of its sources.
    """
    found = _contents(lock, items, catalog, artifacts or {})
    return _text(cyclonedx_document(lock, found, _serial(lock, "cyclonedx"), _time(lock)))


def spdx(
    lock: Lock,
    items: Sequence[BundleItem],
    catalog: Catalog | None = None,
    artifacts: Mapping[str, str] | None = None,
) -> str:
    """SPDX 2.3 JSON; the parameters are those of :func:`cyclonedx`."""
    found = _contents(lock, items, catalog, artifacts or {})
    return _text(spdx_document(lock, found, _serial(lock, "spdx"), _time(lock)))


def _contents(
    lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None, artifacts: Mapping[str, str]
) -> Contents:
    found = contents(lock, items, Catalog() if catalog is None else catalog)
    found.held = [replace(each, artifact=artifacts.get(each.block, "")) for each in found.held]
    return found


def _serial(lock: Lock, kind: str) -> str:
    """A UUID that is the lock's own: another lock has another, the same lock the same on every machine."""
    digest = sha256_of(lock.text)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:hpcgen:{kind}:{lock.content}:{digest}"))


def _time(lock: Lock) -> str:
    moment = datetime.datetime.fromtimestamp(lock.pins.epoch, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
