"""What the block that installs Spack packages shares with what chooses them for a lock."""

from __future__ import annotations

import json

from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.spack import SpackPin

PLACE = f"{SCRATCH}/spack"
SPACK, PACKAGES, ENVIRONMENT, MIRROR_FOLDER = (f"{PLACE}/{name}" for name in ("spack", "packages", "env", "mirror"))
PROGRAM = f"{PLACE}/spack.sh"
"""Spack on that environment."""
ANSWER = f"{PLACE}/chosen.json"
"""What was chosen: Spack's lock and the sources."""
CHOOSE = "choose packages"
"""The step of a build without a lock that leaves :data:`ANSWER`; ``hpcgen lock`` does it in the unpacked base."""
BUILD_TOOLS = (
    *("autoconf", "automake", "bison", "cmake", "diffutils", "findutils", "gawk", "gmake", "libtool", "m4", "perl"),
    *("pkgconf", "tar"),
)
"""Packages that others are only compiled with, by Spack's names: the distribution's are taken where they do."""
MPI_NAMES = {"mpich": "mpich", "openmpi": "openmpi", "mvapich": "mvapich", "mvapich2": "mvapich2"}
"""What Spack calls the MPI of a block."""


def chosen_text(pin: SpackPin) -> str:
    """Spack's lock, for people too."""
    return json.dumps(json.loads(pin.lock), indent=1) + "\n"
