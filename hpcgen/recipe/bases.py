"""Which base image a stage starts from, and what is said of it: the dated one of a release table, or another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpcgen.backends.hardware.mirrors import names_image, qualified
from hpcgen.blocks.inputs.image import Image
from hpcgen.core.model.plan import Plan

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins


def base_for(plan: Plan, image: Image) -> Image:
    """The image for the site's architecture; by its moving tag where that is asked for, or the site has its own.

    What a mirror of the site names for an image may be any build of it: the table's digest says nothing of that.
    """
    chosen = image.moving() if plan.latest_base or _own(plan, image) else image
    return chosen.on(plan.site.system.architecture)


def base_notes(plan: Plan, images: Iterable[Image], lockable: bool) -> list[str]:
    """One line for each base image that no digest pins.

    Parameters
    ----------
    lockable: ``hpcgen lock`` has locks for this distribution.
    """
    remedy = "; hpcgen lock pins it" if lockable else ""
    places = {image.name: _own(plan, image) for image in images if not image.digest}
    return [
        f"base image {name}{f', here {place}' if place else ''}: a tag that may move, no digest{remedy}"
        for name, place in places.items()
        if "@" not in place
    ]


def base_labels(plan: Plan, base: Image, pins: Pins | None) -> dict[str, str]:
    """Labels with name and digest of the image that another one starts from; none for an image of the site's own.

    Source: OCI image specification 1.1, annotations.md.
    """
    if plan.extends is not None:
        return {}
    # In a bundle it may have another digest; where it comes from, it has that of the lock.
    digest = pins.images[base.name].digest if pins is not None and base.name in pins.images else base.digest
    if not digest and _own(plan, base):
        return {}
    said = {"name": qualified(base.pulled), "digest": digest}
    return {f"org.opencontainers.image.base.{key}": value for key, value in said.items() if value}


def _own(plan: Plan, image: Image) -> str:
    return names_image(plan.site.network.mirrors, image.name, plan.format)
