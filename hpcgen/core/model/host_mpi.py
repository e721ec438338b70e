"""The MPI of a host, which takes the place of an image's or starts its ranks."""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import (
    NAMES_OF,
    AbsolutePath,
    EnvName,
    ModuleName,
    Record,
    Text,
    Version,
    VersionRange,
    matching,
)
from hpcgen.core.model.nodes import GpuVendor
from hpcgen.core.support.quoting import NAME_PATTERN

LauncherName = Annotated[
    str,
    matching(
        NAME_PATTERN,
        "what starts ranks: mpiexec, mpirun, hydra, prte, pals, ibrun, jsrun or a batch system's own",
        "srun",
        {NAMES_OF: "launchers"},
    ),
]


MPI_PROGRAMS = ("mpiexec", "mpirun")
"""What most MPIs call their launcher: a profile that names the program alone means the MPI's own."""


class Bind(Record, frozen=True):
    """A host path shown inside the container. ``source`` may end in ``/.`` to follow a symbolic link.

    ``file``: it is a file or a socket, so that the image needs a file to bind it onto, not a folder.
    ``read_only``: nothing inside can change it.
    """

    source: AbsolutePath
    target: AbsolutePath
    file: bool = False
    read_only: bool = False


MpiFlavour = Literal["intel", "mpich", "cray-mpich", "mvapich2", "parastation", "openmpi"]


class GpuMpi(Record, frozen=True):
    """What a host's MPI takes besides, where it is to send memory of GPUs: for images with software for them alone.

    Without that software inside, Cray's MPI ends as it starts, and Intel's in MPI_Init. ``runtime``: the releases of
    CUDA or ROCm that its library is linked with, which bounds those of the image. The other fields are those of
    :class:`HostMpi`, which come after these.
    """

    environment: dict[EnvName, Text] = {}
    preload: list[AbsolutePath] = []
    libraries: list[AbsolutePath] = []
    binds: list[Bind] = []
    modules: list[ModuleName] = []
    bind_modules: list[ModuleName] = []
    runtime: VersionRange = ""


class HostMpi(Record, frozen=True, kw_only=True):
    """The MPI of the host that the image's MPI is matched to and replaced by at run time.

    ``libraries`` are searched before the image's own; ``environment`` holds only while the host's MPI is used, for its
    launcher and its ranks.
    Without ``libraries`` and ``binds`` it only starts the image's own MPI, and needs no ``root``, which is its prefix.
    ``launcher``: ``mpiexec`` and ``mpirun`` are the MPI's own; whose launcher they are says its kind (``hydra``,
    ``prte``, ``pals``), where that is not the MPI's. ``ibrun`` is TACC's. ``pmi``: what it offers to ranks.
    ``abi``: its family's binary interface, or ``mpi5``, the standard's, where it has the library of that too.
    ``glibc``: the newest C library version that its libraries ask for, where somebody looked; else the host's own is
    assumed. ``preload``: libraries as they are seen inside, which ranks load before all others. ``gpu``: by the vendor
    of a node's GPUs, what holds besides for images that use them. ``bind_modules``: modules by which the site itself
    shows its MPI in containers, as they set the engine's variables for binds and library paths; with an engine that
    reads these they take the place of ``libraries`` and ``binds``, and what they show lies below ``root``.
    """

    flavour: MpiFlavour
    version: Version
    abi: Literal["mpich", "openmpi", "mpi5"]
    root: AbsolutePath | None = None
    launcher: LauncherName
    libraries: list[AbsolutePath] = []
    binds: list[Bind] = []
    modules: list[ModuleName] = []
    bind_modules: list[ModuleName] = []
    bootstrap: Literal["slurm", "ssh", "fork", "pbs", "sge"] | None = None
    pmi: list[Literal["pmi", "pmi2", "pmix", "hydra"]] = []
    environment: dict[EnvName, Text] = {}
    preload: list[AbsolutePath] = []
    gpu: dict[GpuVendor, GpuMpi] = {}
    glibc: Version | None = None

    @property
    def shown_inside(self) -> bool:
        """Whether its libraries are seen in the container, where they take the place of the image's."""
        return bool(self.binds or self.libraries or self.bind_modules)

    def with_gpus(self, vendor: GpuVendor | None) -> "HostMpi":
        """The MPI as ranks have it that use GPUs of a vendor; None for ranks that use none."""
        own = self.gpu.get(vendor) if vendor is not None else None
        if own is None:
            return self
        return msgspec.structs.replace(
            self,
            environment={**self.environment, **own.environment},
            preload=[*own.preload, *self.preload],
            libraries=[*own.libraries, *self.libraries],
            binds=[*own.binds, *(bind for bind in self.binds if bind.target not in {b.target for b in own.binds})],
            modules=[*self.modules, *own.modules],
            bind_modules=[*self.bind_modules, *own.bind_modules],
        )
