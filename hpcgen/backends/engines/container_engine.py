"""The Container Engine of CSCS: Slurm starts the container that an environment definition file (EDF) describes.

The file names image, mounts and working folder; hooks of the site bring the GPU driver and, with the annotation
``com.hooks.cxi.enabled``, the host's libfabric for Slingshot in place of the image's; with ``com.hooks.aws_ofi_nccl``
NCCL's plugin over it, of the variant that finds the image's CUDA by ``libcudart.so``. The host's variables come in, the
image's go before them.
Source: github.com/eth-cscs/cscs-docs@80abed13, docs/software/container-engine/{run,resource-hook}.md,
docs/build-install/containers.md.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import Call, environment_words
from hpcgen.backends.engines.common import Enroot
from hpcgen.backends.engines.edf import BIND_IN_PLACE, edf
from hpcgen.core.support.quoting import Shell


class ContainerEngine(Enroot):
    """An option of srun; the job script writes the file beside the job's other files."""

    name = "container-engine"
    brings_fabrics = ("slingshot",)
    brings_collectives = {"slingshot": ("NCCL",)}
    definition_reads = '"\\$:'

    def bind_in_place(self) -> str:
        """A line of the file."""
        return BIND_IN_PLACE

    def definition(self, call: Call) -> list[str]:
        hooks = {"com.hooks.cxi.enabled": "true"} if call.fabric == "slingshot" else {}
        if hooks and call.gpu_collectives:
            hooks["com.hooks.aws_ofi_nccl.enabled"] = "true"
            hooks["com.hooks.aws_ofi_nccl.variant"] = "cuda-dl"
        return edf(call, hooks, self.definition_reads)

    def words(self, call: Call) -> list[list[str]]:
        """The option of srun, then the variables inside; the driver's libraries come by hooks."""
        return [[Shell('--environment="$edf"')], *environment_words(call, call.unset)]
