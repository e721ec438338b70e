"""CycloneDX 1.6 as JSON.

Source: CycloneDX/specification, schema/bom-1.6.schema.json. What builds the image and is not in it is under
``formulation``, which scanners do not take for content.
"""

from __future__ import annotations

from typing import Any

from hpcgen.core.model.component import Component
from hpcgen.core.model.lock import Lock
from hpcgen.kit.sbom.components import Contents

IMAGE = "image"
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
        "bom-ref": IMAGE,
        "name": f"{lock.plan.stack.name}-{lock.plan.site.name}",
        "version": lock.content,
        "description": f"{lock.plan.stack.title}, for {lock.plan.site.title}",
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
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
        "compositions": [{"aggregate": "incomplete", "assemblies": [IMAGE]}],
        "formulation": [{"bom-ref": "build", "components": [_component(component) for component in contents.tools]}],
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
    edges = {IMAGE: [component.ref for component in contents.held if component.ref not in inside]}
    if base:
        edges[base] = list(contents.inside)
    edges |= contents.needs
    return [{"ref": ref, "dependsOn": sorted(wanted)} for ref, wanted in sorted(edges.items()) if wanted]
