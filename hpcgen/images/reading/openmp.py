"""Runtimes of OpenMP in an image: whose they are decides which variables its programs read."""

from __future__ import annotations

import posixpath
import re

from hpcgen.core.model.image_facts import ImageSoftware
from hpcgen.images.reading.files import Look, SeenImage
from hpcgen.images.reading.owners import Owners

# Wheels have a part of a hash in such a name. Where conda has LLVM's in the place of GCC's, libgomp is a link to it.
_NAME = r"(libgomp|libomp|libiomp5)(?:-[0-9a-f]{6,})?\.so(?:\.[0-9.]+)?"
RUNTIMES = Look(rf"/.*/{_NAME}")
LOOKS = (RUNTIMES,)


def openmp_facts(view: SeenImage, owners: Owners) -> list[ImageSoftware]:
    """Each once, by its own file: ``libgomp`` (GCC's), ``libomp`` (LLVM's), ``libiomp5`` (Intel's)."""
    files = ((re.fullmatch(_NAME, posixpath.basename(path)), path) for path in set(view.named(RUNTIMES).values()))
    named = sorted((match[1], path) for match, path in files if match is not None)
    return [ImageSoftware(name=name, file=path, version=owners.release(name, path)) for name, path in named]
