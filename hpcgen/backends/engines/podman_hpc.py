"""podman-hpc, Podman with modules for the host's MPI and GPUs.

Its options are those of the modules that a site has put into ``/etc/podman_hpc/modules.d``; ``--gpu``, ``--mpi`` and
``--openmpi-pmix`` come with it (and ``--openmpi-pmi2``, for an Open MPI with PMI-2, which images here have not).
``--mpi`` shows the host's MPICH inside and lets ``SLURM_*``, ``PALS_*`` and ``PMI_*`` in. ``--nccl`` copies NCCL's
plugin for Slingshot and the host's libfabric inside, names their folders in ``LD_LIBRARY_PATH``, and sets variables of
both; a kit that sets that path itself has to name them too.

With ``--mpi`` and ``--cuda-mpi`` the ranks of a node share one container by themselves: ``run`` becomes ``shared-run``,
which gives the options ``-e`` and ``-w`` to each rank once more, so what a kit sets wins over what modules set.
``--cuda-mpi`` in the place of ``--mpi``, with ``--gpu``, preloads Cray's library for GPU memory; nothing here knows
whether a program needs it.

An image has to be made ready for compute nodes: ``podman-hpc migrate NAME``. They see the store of such images with
``run`` and ``images`` alone; ``image inspect`` finds nothing there.
Source: github.com/NERSC/podman-hpc@01b02d6, etc/modules.d, podman_hpc/{podman_hpc,siteconfig}.py.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import NO_IMAGE, Call
from hpcgen.backends.engines.building import EngineCommand, Work
from hpcgen.backends.engines.podman import Podman

NCCL_PLUGIN = "/opt/udiImage/modules/nccl-plugin"
MODULES = {"mpich": "--mpi", "openmpi": "--openmpi-pmix"}


class PodmanHpc(Podman):
    """As Podman, but a launcher on the host can start one container per rank."""

    name = "podman-hpc"
    started_by_launcher = True
    dev_containers = False
    brings_mpi = ("mpich",)
    brings_fabrics = ("slingshot",)
    brings_collectives = {"slingshot": ("NCCL",)}
    collectives_folders = (f"{NCCL_PLUGIN}/lib", f"{NCCL_PLUGIN}/deps/lib")

    def unsupported_reason(self, gpu: str) -> str:
        """Modules for other GPUs than NVIDIA's."""
        return f"it has no module for {gpu} GPUs" if gpu not in ("", "nvidia") else ""

    def ranks_together(self, mpi: str) -> bool:
        """With ``--mpi`` alone; ``--openmpi-pmix`` has ``shared_run: False``. Source: etc/modules.d, as above."""
        return mpi == "mpich"

    def unsealed_reason(self) -> str:
        return "its modules show parts of the host inside"

    def missing_image(self, named: bool) -> tuple[str, str]:
        """By ``images``, which sees migrated ones too."""
        return f'[ -z "$({self.name} images -q "$image" 2> /dev/null)" ]', NO_IMAGE

    def words(self, call: Call) -> list[list[str]]:
        """run, with the modules that the job needs and the folder of the job at /mnt/0."""
        if reason := self.unsupported_reason(call.gpu):
            raise self.refuse(reason, "use another engine of the site")
        groups: list[list[str]] = [[self.name, "run", "--rm"]]
        if call.mpi:
            groups.append([MODULES[call.mpi]])
        if call.gpu:
            groups.append(["--gpu"])
        if call.gpu_collectives:
            groups.append(["--nccl"])
        if call.shared_memory and not call.mpi:  # the modules of MPI bring it
            groups.append(["--ipc=host"])
        return [*groups, *self._attached_words(call), *self._job_words(call)]

    def publish(self, work: Work) -> list[EngineCommand]:
        """The final name, and the copy that compute nodes read."""
        return [*super().publish(work), EngineCommand((self.name, "migrate", work.target.name))]

    def after_build(self, stack: str) -> str:
        """The copy that compute nodes read."""
        return 'if [ "$(basename "$engine")" = podman-hpc ]; then\n    "$engine" migrate "$tag"\nfi\n'
