"""The lock of what was added to a finished image: versions and hashes as apt and pip told them while it was built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError
from hpcgen.core.model.lock import Lock, Pins
from hpcgen.core.model.plan import Plan
from hpcgen.images.reference import ImageReference
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.extension import PACKAGES, added_blocks, report_of
from hpcgen.supply.pin.apt_packages import read_uri
from hpcgen.supply.pin.locking import collection_files


def lock_of_added(plan: Plan, catalog: Catalog, image: ImageReference, content: str) -> Lock:
    """Everything that the build of an extended image brought.

    plan: that of the image, which says what it was added to.
    image: it is read and not started.
    content: the hash of its plan.
    InputError: what apt and pip said is not in the image, or is not understood.
    """
    reports = {block.name: report_of(block) for block in added_blocks(plan)}
    found = image.read([PACKAGES, *reports.values()])
    assembly = assemble(plan, catalog)
    pins: dict[str, Any] = {"wheels": {}}
    try:
        if PACKAGES in found:
            lines = found[PACKAGES].decode().splitlines()
            added = dict(read_uri(line, str(image)) for line in lines if line.startswith("'"))
            pins["packages"] = {"final": {"added": msgspec.to_builtins(dict(sorted(added.items())))}}
        for name, path in reports.items():
            lists = [each for each in assembly.loose if each == name or each.startswith(f"{name}-")]
            if path in found and lists:
                pins["wheels"][lists[-1]] = sorted(_lines(msgspec.json.decode(found[path])))
        checked = record_from(pins, Pins)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise InputError(
            f"the output of apt and pip on the additions to {image} is not understood: {failure}",
            remedy="the image is as it was; build the whole stack instead of extending",
        ) from failure
    text = sealed_text(plan, assemble(plan, catalog, checked, content), checked, collection_files(plan, catalog))
    return parse_lock(text, "the lock of the additions")


def _lines(report: Any) -> Iterator[str]:
    """A line for each package that pip installed. Source: pip's documentation, "Installation Report"."""
    for each in report["install"]:
        about, sha256 = each["metadata"], each["download_info"]["archive_info"]["hashes"]["sha256"]
        yield f"{about['name']}=={about['version']} --hash=sha256:{sha256}"
