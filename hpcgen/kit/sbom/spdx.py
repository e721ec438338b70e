"""SPDX 2.3 as JSON.

Source: spdx/spdx-spec v2.3, chapters 6 (document), 7 (packages), 10 (other licences) and 11 (relationships). The image
CONTAINS what it holds; what only builds it is BUILD_TOOL_OF the image, what Bazel takes BUILD_DEPENDENCY_OF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hpcgen.core.model.component import Component
from hpcgen.core.model.lock import Lock
from hpcgen.kit.sbom.components import Contents

DOCUMENT = "SPDXRef-DOCUMENT"
IMAGE = "SPDXRef-image"
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
        "SPDXID": IMAGE,
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

    yield relation(DOCUMENT, "DESCRIBES", IMAGE)
    base = next((ids[component.ref] for component in contents.held if component.kind == "image"), None)
    for component in contents.held:
        own = ids[component.ref]
        yield relation(IMAGE, "DESCENDANT_OF" if own == base else "CONTAINS", own)
    for ref in contents.inside if base is not None else []:
        yield relation(str(base), "CONTAINS", ids[ref])
    for component in contents.tools:
        kind = "BUILD_DEPENDENCY_OF" if component.kind == "file" else "BUILD_TOOL_OF"
        yield relation(ids[component.ref], kind, IMAGE)
    for ref, wanted in sorted(contents.needs.items()):
        for other in wanted:
            yield relation(ids[ref], "DEPENDS_ON", ids[other])


def _ids(components: Iterable[Component]) -> dict[str, str]:
    """Identifiers of letters, digits, dots and dashes; two names that only differ in others get a number."""
    taken = {DOCUMENT, IMAGE}
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
