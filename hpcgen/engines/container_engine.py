"""The Container Engine of CSCS: Slurm starts the container that an environment definition file (EDF) describes.

The file names image, mounts and working folder; hooks of the site bring the GPU driver and, with the annotation
``com.hooks.cxi.enabled``, the host's libfabric for Slingshot in place of the image's; with ``com.hooks.aws_ofi_nccl``
NCCL's plugin over it, of the variant that finds the image's CUDA by ``libcudart.so``. The host's variables come in, the
image's go before them. ``$`` is expanded in every value of the file, so paths with one are refused.
Source: github.com/eth-cscs/cscs-docs@80abed13, docs/software/container-engine/{edf,run,resource-hook}.md,
docs/build-install/containers.md.
"""

from __future__ import annotations

from hpcgen.engines.base import Call, Engine, environment_words, file_system_words
from hpcgen.errors import InputError
from hpcgen.model.image_paths import SUBMIT_FOLDER
from hpcgen.support.quoting import sh
from hpcgen.support.shell_words import Shell, joined


class ContainerEngine(Engine):
    """An option of srun; the job script writes the file beside the job's other files."""

    name = "container-engine"
    format = "docker"
    builds = False
    built_by = "podman"
    program = "srun"
    starts = ("squashfs",)
    launcher = "srun"
    brings_fabrics = ("slingshot",)
    brings_collectives = {"slingshot": ("NCCL",)}

    def image_names(self, stack: str, site: str) -> list[str]:
        """The squashfs file that ``enroot import`` makes."""
        return [f"{stack}.sqsh"]

    def bind_in_place(self) -> str:
        """A line of the file."""
        return r'"  \"$path:$path\","'

    def definition(self, call: Call) -> list[str]:
        lines = [
            joined('image = "', call.image, '"'),
            joined(f'workdir = "{SUBMIT_FOLDER}"'),
            "mounts = [",
            joined('  "', call.folder, f':{SUBMIT_FOLDER}",'),
            *(f'  "{_plain(bind.source)}:{_plain(bind.target)}",' for bind in call.binds),
            *(word for words in file_system_words(call) for word in words),
            "]",
        ]
        if call.fabric == "slingshot":
            lines += ["[annotations]", 'com.hooks.cxi.enabled = "true"']
            if call.gpu_collectives:
                lines += ['com.hooks.aws_ofi_nccl.enabled = "true"', 'com.hooks.aws_ofi_nccl.variant = "cuda-dl"']
        return lines

    def words(self, call: Call) -> list[list[str]]:
        """The option of srun, then the variables inside; the driver's libraries come by hooks."""
        return [[Shell('--environment="$edf"')], *environment_words(call, call.unset)]

    def after_build(self, stack: str) -> str:
        """The file, of the image in Podman's store."""
        file = sh(f"{stack}.sqsh")
        where = "# On a machine other than the one where it runs, copy the file over."
        return f'{where}\nenroot import -x mount -o {file} "podman://$tag"\n'


def _plain(path: str) -> str:
    if any(sign in path for sign in ':"\\$'):
        raise InputError(f"{path!r} cannot be mounted: the definition file reads ':' and '$'", "mpi.binds")
    return path
