"""pyxis, NVIDIA's plugin by which srun starts containers with enroot: ``srun --container-image=FILE.sqsh``.

The image's variables come before those of the job, so what a job sets is set again inside, by ``env``; the ranks of a
node share one container. enroot's hooks bring NVIDIA's driver where ``NVIDIA_VISIBLE_DEVICES`` is set, and a PMIx
server's folder where the site has the hook 50-slurm-pmi; PMI-2 comes through an open file and needs none. AMD's GPUs
need no hook.
Source: github.com/NVIDIA/pyxis@1075199 (0.24.0), README.md and args.c; github.com/NVIDIA/enroot@8ea147d (4.1.2),
conf/hooks; github.com/ROCm/container-toolkit@192fe8e, docs/container-runtime/enroot-pyxis-installation.md. pyxis and
enroot were compiled from source and run with Slurm 22.05 and PMI-2; the hooks for NVIDIA's driver and for PMIx, and
AMD's GPUs, are known from texts alone.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import Call, bound, environment_words, file_system_words
from hpcgen.backends.engines.common import Enroot
from hpcgen.core.model.image_paths import SUBMIT_FOLDER
from hpcgen.core.support.quoting import joined


class Pyxis(Enroot):
    """Options of srun; of the image's file enroot makes a folder on each node."""

    name = "pyxis"
    sees_mounts = True
    # Source: github.com/NVIDIA/enroot, doc/requirements.md.
    user_namespaces = True

    def unsupported_reason(self, gpu: str) -> str:
        """NVIDIA's driver has a hook; AMD's devices are in the host's /dev, and its libraries in the image."""
        return f"enroot has no hook for {gpu} GPUs" if gpu not in ("", "nvidia", "amd") else ""

    def ranks_together(self, mpi: str) -> bool:
        """They share one container."""
        return True

    def bind_in_place(self) -> str:
        return '"--container-mounts=$path:$path"'

    def words(self, call: Call) -> list[list[str]]:
        """Options of srun, then the variables inside; devices come with the host's /dev, which enroot shows."""
        if reason := self.unsupported_reason(call.gpu):
            raise self.refuse(reason, "use another engine of the site")
        groups: list[list[str]] = [["--no-container-mount-home", "--no-container-entrypoint"]]
        if call.gpu == "nvidia":
            # enroot's hook goes by these. The last --export of srun counts, and a value may have no comma.
            groups.append(["--export=ALL,NVIDIA_VISIBLE_DEVICES=all,NVIDIA_DRIVER_CAPABILITIES=all"])
        mounts: list[list[str]] = [[joined("--container-mounts=", bound(bind))] for bind in call.binds]
        groups += [
            [joined("--container-image=", call.image)],
            [joined("--container-mounts=", call.folder, f":{SUBMIT_FOLDER}"), f"--container-workdir={SUBMIT_FOLDER}"],
            *mounts,
            *file_system_words(call),
        ]
        return [*groups, *environment_words(call, call.unset)]
