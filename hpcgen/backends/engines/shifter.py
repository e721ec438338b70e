"""Shifter, NERSC's engine: it starts images that a gateway of the site has pulled from a registry and unpacked.

``shifterimg pull REFERENCE`` has the gateway pull; a start looks the reference up there. The working folder stays, so
the job's folder is in its own place: the site shows its file systems inside (``siteFs`` of its udiRoot.conf), and a
further volume for it would make every rank mount the image anew. Volumes need a folder in the image, and none below
/etc, /var, /dev, /proc and /opt/udiImage.

The host's variables come in but ``LD_*`` and ``TMPDIR``, the image's go before them, those of modules before both.
Modules are the site's own: ``mpich`` is the example of Shifter's documentation, and on Perlmutter has the folder that
podman-hpc's module shows, with the libraries for Slingshot (NERSC/podman-hpc@01b02d6 etc/modules.d/mpich.yaml). ``gpu``
is what users there write; NERSC's own pages could not be read. No documented module brings NCCL's plugin.

Where Slurm has Shifter's plugin, options of the job's header have each node set up the image once, if the start line
says the same; else each rank mounts it for itself, with a loop device for each, of which a node may have too few.
Source: github.com/NERSC/shifter@84b7d349, src/{shifter,VolumeMap}.c, wlm_integration/slurm/wrapper.c, doc/modules.rst,
doc/mpi/mpich_abi.rst, doc/wlm/slurm.rst, doc/bestpractices.rst. Read, and never run.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import Call, bound, environment_words
from hpcgen.backends.engines.common import ByReference
from hpcgen.core.errors import InputError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.image_paths import EVERY_IMAGE_HAS
from hpcgen.core.support.quoting import Shell, joined

MPI_MODULES = {"mpich": "mpich"}
GPU_MODULE = "gpu"
_CLOSED = ("/etc", "/var", "/dev", "/proc", "/opt/udiImage")

_PULL = """\
echo "build.sh: Shifter takes it from a registry: push $tag to REGISTRY/NAME:TAG, run" >&2
echo "build.sh: shifterimg pull REGISTRY/NAME:TAG, and set HPCGEN_IMAGE to that name" >&2
"""


class Shifter(ByReference):
    """A program that the launcher starts once for each rank."""

    name = "shifter"
    targets_in_image = True
    mount_points = (EVERY_IMAGE_HAS,)
    brings_mpi = ("mpich",)
    brings_fabrics = ("slingshot",)
    image_todo = "push it to a registry, run shifterimg pull REGISTRY/NAME:TAG, and set HPCGEN_IMAGE to that name"

    def image_names(self, stack: str, site: str) -> list[str]:
        """As the build script tags it; in a registry it has another name, which only the user knows."""
        return [f"{stack}:{site}"]

    def unsupported_reason(self, gpu: str) -> str:
        """What is known of modules is for NVIDIA's GPUs."""
        return f"it has no known module for {gpu} GPUs" if gpu not in ("", "nvidia") else ""

    def header_options(self, call: Call, image: str) -> list[tuple[str, str]]:
        """What the start line says, for Slurm's plugin."""
        return [
            ("--image", image),
            ("--module", self._modules(call)),
            # Slurm expands nothing in a header.
            *(("--volume", _volume(bind)) for bind in call.binds if not isinstance(bound(bind), Shell)),
        ]

    def words(self, call: Call) -> list[list[str]]:
        """Image, modules and volumes, then the variables inside, which so come after those of modules."""
        if reason := self.unsupported_reason(call.gpu):
            raise self.refuse(reason, "use another engine of the site")
        volumes: list[list[str]] = [[joined("--volume=", _volume(bind))] for bind in call.binds]
        return [
            [self.name, joined("--image=", call.image)],
            [f"--module={self._modules(call)}"],
            *volumes,
            *environment_words(call, call.unset),
        ]

    def _modules(self, call: Call) -> str:
        """``none`` keeps out those that the site has by default."""
        found = [MPI_MODULES[call.mpi]] if call.mpi in MPI_MODULES else []
        return ",".join([*found, *([GPU_MODULE] if call.gpu else [])]) or "none"

    def after_build(self, stack: str) -> str:
        """What the user has to do, who alone knows the registry."""
        return _PULL


def _volume(bind: Bind) -> str:
    inside = f"{bind.target.rstrip('/')}/"
    closed = inside == "/opt/" or any(inside.startswith(f"{folder}/") for folder in _CLOSED)
    if closed and inside != "/var/tmp/":
        raise InputError(
            f"Shifter shows nothing of the host at {bind.target}",
            "a bind",
            expected=f"a target outside {', '.join(_CLOSED)}",
            remedy="have the site bring it by a module, and leave the bind out",
        )
    return bound(bind)
