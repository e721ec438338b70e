"""pyxis, NVIDIA's plugin by which srun starts containers with enroot: ``srun --container-image=FILE.sqsh``.

The image's variables come before those of the job, so what a job sets is set again inside, by ``env``; the ranks of a
node share one container. enroot's hooks bring NVIDIA's driver where ``NVIDIA_VISIBLE_DEVICES`` is set, and a PMIx
server's folder where the site has the hook 50-slurm-pmi; PMI-2 comes through an open file and needs none.
Source: github.com/NVIDIA/pyxis@1075199 (0.24.0), README.md and args.c; github.com/NVIDIA/enroot@8ea147d (4.1.2),
conf/hooks. Both were compiled from source and run with Slurm 22.05 and PMI-2; the hooks for NVIDIA's driver and for
PMIx are known from their text alone.
"""

from __future__ import annotations

from hpcgen.engines.base import Call, Engine, environment_words, file_system_words, refuse_separators
from hpcgen.engines.container_engine import ContainerEngine
from hpcgen.model.image_paths import SUBMIT_FOLDER
from hpcgen.support.shell_words import joined


class Pyxis(Engine):
    """Options of srun; the image is enroot's squashfs file, of which enroot makes a folder on each node."""

    name = "pyxis"
    format = "docker"
    builds = False
    built_by = "podman"
    program = "srun"
    starts = ("squashfs",)
    launcher = "srun"

    def image_names(self, stack: str, site: str) -> list[str]:
        """The squashfs file that ``enroot import`` makes."""
        return [f"{stack}.sqsh"]

    def unsupported_reason(self, gpu: str) -> str:
        """enroot has a hook for NVIDIA's driver alone."""
        return f"enroot has no hook for GPUs of {gpu}" if gpu not in ("", "nvidia") else ""

    def bind_in_place(self) -> str:
        return '"--container-mounts=$path:$path"'

    def words(self, call: Call) -> list[list[str]]:
        """Options of srun, then the variables inside; devices come with the host's /dev, which enroot shows."""
        if reason := self.unsupported_reason(call.gpu):
            raise self.refuse(reason, "use another engine of the site")
        groups: list[list[str]] = [["--no-container-mount-home", "--no-container-entrypoint"]]
        if call.gpu:
            # enroot's hook goes by these. The last --export of srun counts, and a value may have no comma.
            groups.append(["--export=ALL,NVIDIA_VISIBLE_DEVICES=all,NVIDIA_DRIVER_CAPABILITIES=all"])
        groups += [
            [joined("--container-image=", call.image)],
            [joined("--container-mounts=", call.folder, f":{SUBMIT_FOLDER}"), f"--container-workdir={SUBMIT_FOLDER}"],
            *([f"--container-mounts={_plain(bind.source)}:{_plain(bind.target)}"] for bind in call.binds),
            *file_system_words(call),
        ]
        return [*groups, *environment_words(call, call.unset)]

    def after_build(self, stack: str) -> str:
        """The file, of the image in Podman's store."""
        return ContainerEngine().after_build(stack)


def _plain(path: str) -> str:
    refuse_separators(path, "mpi.binds")
    return path
