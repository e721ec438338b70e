"""Bills of materials for the image that a lock builds: CycloneDX and SPDX, the same bytes for the same lock."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Sequence
from typing import Any

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import sha256_of
from hpcgen.kit.sbom.components import Contents, contents


def cyclonedx(lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None = None) -> str:
    """CycloneDX 1.6 JSON.

    Parameters
    ----------
    items: what the bundle holds, for the licences that are known of it; may be empty.
    catalog: the collections that the lock was made with; the built-in one alone if None.
    """
    from hpcgen.kit.sbom.cyclonedx import cyclonedx_document

    found = _contents(lock, items, catalog)
    return _text(cyclonedx_document(lock, found, _serial(lock, "cyclonedx"), _time(lock)))


def spdx(lock: Lock, items: Sequence[BundleItem], catalog: Catalog | None = None) -> str:
    """SPDX 2.3 JSON; the parameters are those of :func:`cyclonedx`."""
    from hpcgen.kit.sbom.spdx import spdx_document

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
