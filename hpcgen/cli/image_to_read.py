"""An image that a command only reads: one of this machine, or of a registry."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from hpcgen.cli.common import say

if TYPE_CHECKING:
    from hpcgen.images.reference import ImageReference


def image_to_read(text: str, start: bool, architecture: str = "") -> AbstractContextManager[ImageReference]:
    """The image that the user names, for as long as it is read; one of a registry is fetched for it.

    ``start``: it may be started where it cannot be read otherwise. ``architecture``: which one of a registry is meant;
    this machine's by default.
    """
    if text.startswith("docker://"):
        from hpcgen.supply.pin.foreign_base import fetched_image

        return fetched_image(text.removeprefix("docker://"), architecture or os.uname().machine, say)
    from hpcgen.images.reference import parse_image

    return nullcontext(parse_image(text, start))
