"""Archives, which no engine starts, as images that one does: unpacked once, into hpcgen's cache, by their hash."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from hpcgen.backends.engines import runners
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.errors import MissingToolError
from hpcgen.core.support.refusals import explained
from hpcgen.images.convert import convert
from hpcgen.images.identity import identity_of
from hpcgen.images.kinds import kind_for
from hpcgen.images.reference import ImageReference


def startable(image: ImageReference, tell: Callable[[str], None] = lambda text: None) -> ImageReference:
    """An image in a form that an engine starts: itself, or what an archive was unpacked to.

    tell: told of an archive that is unpacked.
    HpcgenError: as :func:`~hpcgen.images.convert.convert`.
    MissingToolError: no engine is here that starts what an archive can become.
    """
    form = image.image_kind.start_form(image.name)
    if any(form in each.starts for each in runners().values()):
        return image
    kind = _kind_here(image)
    ending = next(iter(kind_for(kind).endings), "")
    place = cache_folder("images") / f"unpacked-{identity_of(image).removeprefix('sha256:')[:12]}{ending}"
    made = ImageReference(kind, str(place))
    if not place.exists():
        with explained(place.parent):
            place.parent.mkdir(parents=True, exist_ok=True)
        tell(f"unpacks {image} to {place}, once; `hpcgen clean` removes it")
        convert(image, made)
    return made


def _kind_here(image: ImageReference) -> str:
    """The first kind of file or folder that an engine which is here starts, and which an archive becomes."""
    kinds = {"charliecloud": "directory", "apptainer": "sif", "singularity": "sif"}
    for name, kind in kinds.items():
        if shutil.which(runners()[name].command_name()) is not None:
            return kind
    raise MissingToolError(
        f"no engine here can start the archive {image}",
        expected=" or ".join(kinds),
        remedy=f"load it into the store of an engine: hpcgen convert {image} podman:NAME",
    )
