"""Sarus Suite: Podman for many nodes, started by Slurm's plugin Skybox with an environment definition file (EDF).

CSCS has it on Alps beside the Container Engine, for early access. What differs from that one:

- Images are named by references, never by a path, and lie as squashfs in a store that only its own tools fill
  (Parallax): ``sarusctl pull`` from a registry, which a start does by itself, ``sarusctl migrate`` from Podman's store.
  An image keeps the name that it was migrated by, so one of ``localhost/`` is never asked of a registry.
- No hook is on by default. NCCL's hook does not enable that of Slingshot, and takes no variant: its plugin finds the
  image's CUDA by ``libcudart.so``. Both have one fixed release, in place of the image's libfabric.
- Podman shows no device that is not named: ``devices`` has CDI names and device files. NVIDIA's GPUs and those of
  Slingshot come by default where they were found when it was installed; the GPUs are named all the same, as CSCS's
  examples do. Nobody has said how it shows AMD's there, whose groups Podman would have to keep.
- The image's entry point runs unless the file says no.
- A space in a mount becomes an octal escape that Podman does not read; what bash would run is refused.

The ranks of a node share one container. The host's variables come in, the image's go before them; /tmp is the host's.
Source: github.com/eth-cscs/cscs-docs@80abed13, docs/software/container-engine/sarus-suite/{index,user-guide}.md;
github.com/sarus-suite: skybox@e8bd5479 src/{podman,container}.rs, raster@20f75bd3 src/{mount,common,lib}.rs,
parallax@17b46bea cmd/migration.go, podman-driver@d2d294be src/lib.rs, sarus-suite@b781b3bf runtime/etc/containers.
Read, and never run.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import Call, environment_words
from hpcgen.backends.engines.common import ByReference, gpu_devices
from hpcgen.backends.engines.edf import BIND_IN_PLACE, edf
from hpcgen.core.support.quoting import Shell

_MIGRATE = """\
# Jobs read it from the store of Sarus Suite, by the name that Podman has given it.
case $tag in
    localhost/* | *.*/* | *:*/*) stored=$tag ;;
    *) stored=localhost/$tag ;;
esac
if command -v sarusctl > /dev/null; then
    sarusctl migrate "$stored"
else
    echo "build.sh: no sarusctl here: push $stored to a registry, and set HPCGEN_IMAGE to its name there" >&2
fi
"""


class SarusSuite(ByReference):
    """An option of srun; the job script writes the file beside the job's other files."""

    name = "sarus-suite"
    program = "srun"
    starts = ("registry", "podman")
    launcher = "srun"
    image_todo = "build with Podman and run sarusctl migrate NAME; or push it to a registry, and set HPCGEN_IMAGE"
    brings_fabrics = ("slingshot",)
    brings_collectives = {"slingshot": ("NCCL",)}
    definition_reads = '"\\$:`; '

    def image_names(self, stack: str, site: str) -> list[str]:
        """What Podman calls the image that the build script makes."""
        return [f"localhost/{stack}:{site}"]

    def bind_in_place(self) -> str:
        """A line of the file."""
        return BIND_IN_PLACE

    def definition(self, call: Call) -> list[str]:
        hooks = {"com.hooks.cxi.enabled": "true"} if call.fabric == "slingshot" else {}
        if hooks and call.gpu_collectives:
            hooks["com.hooks.aws_ofi_nccl.enabled"] = "true"
        devices = [*gpu_devices(call), *call.devices]
        named = ", ".join(f'"{each}"' for each in devices)
        more = ["entrypoint = false", *([f"devices = [{named}]"] if devices else [])]
        return edf(call, hooks, self.definition_reads, more)

    def words(self, call: Call) -> list[list[str]]:
        """The option of srun, then the variables inside."""
        return [[Shell('--edf="$edf"')], *environment_words(call, call.unset)]

    def after_build(self, stack: str) -> str:
        """The image in the store that jobs read."""
        return _MIGRATE
