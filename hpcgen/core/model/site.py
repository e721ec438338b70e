"""A site profile: what is known of one system. Data only; a profile is never executed."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from hpcgen.core.errors import UnknownNameError, did_you_mean
from hpcgen.core.model.fields import (
    NAMES_OF,
    AbsolutePath,
    Count,
    EngineName,
    EnvName,
    Gigabytes,
    ModuleName,
    Name,
    PartialDate,
    Record,
    Source,
    Text,
    Url,
    Version,
    VersionRange,
    matching,
)
from hpcgen.core.model.network import Network
from hpcgen.core.support.quoting import NAME_PATTERN, sh

Directive = Annotated[
    str,
    matching(
        r"^--?[A-Za-z0-9][^\x00-\x20\x7f-\xa0\u2028\u2029'\"`$\\;|<>]*( [A-Za-z0-9./%_=:,@+-]+)?$(?!\n)",
        "one option, without quotes, $ or line breaks",
        "--ear=off",
    ),
]


SchedulerName = Annotated[str, matching(NAME_PATTERN, "a batch system, or none", "slurm", {NAMES_OF: "schedulers"})]
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

WallTime = Annotated[str, matching(r"^\d{1,4}:[0-5]\d:[0-5]\d$(?!\n)", "a time: hours:minutes:seconds", "36:00:00")]


_WORD = "[A-Za-z0-9._+/=:@%-]+"
SetupLine = Annotated[
    str,
    matching(
        rf"^(module (use|unuse|load|unload|swap|purge|reset|restore)( {_WORD})*|source /{_WORD}( {_WORD})*"
        rf"|ulimit -[A-Za-z] (unlimited|\d{{1,20}})|umask 0\d{{2,3}})$(?!\n)",
        "module, source of an absolute path, ulimit or umask, with words of letters, digits and . _ + / = : @ % -",
        "module reset",
    ),
]


class System(Record, frozen=True):
    """Operating system of the nodes. ``glibc`` bounds what host libraries need of the image's C library.

    ``user_namespaces``: whether users without rights may make them. ``modules``: how software is put on PATH there, by
    ``module load`` or by VALET's ``vpkg_require``. ``module_paths``: folders of modules that are not looked through by
    themselves (``module use``). ``setup``: lines of every job before that, in their order.
    """

    os: Name
    os_version: Version | None = None
    kernel: Version | None = None
    glibc: Version | None = None
    user_namespaces: bool | None = None
    architecture: Literal["x86_64", "aarch64"] = "x86_64"
    modules: Literal["module", "valet"] = "module"
    module_paths: list[AbsolutePath] = []
    setup: list[SetupLine] = []

    def preparing(self, modules: Sequence[str]) -> list[tuple[str, str]]:
        """Lines of shell before a site's modules can be loaded, each with what of the profile says so."""
        lines = [(line, "system.setup") for line in self.setup]
        paths = self.module_paths if modules and self.modules == "module" else []
        return lines + [(f"module use {sh(path)}", "system.module_paths") for path in paths]

    def loading(self, modules: Sequence[str]) -> list[str]:
        """Lines of shell that put modules on PATH with the site's tool, and what they need before."""
        verb = "vpkg_require" if self.modules == "valet" else "module load"
        return [*(line for line, _ in self.preparing(modules)), *(f"{verb} {sh(module)}" for module in modules)]


class Cpu(Record, frozen=True):
    """CPUs of one node. ``target`` is archspec's name; ``cores`` counts the whole node."""

    target: Name
    cores: Count
    model: Text = ""
    sockets: Count = 1
    numa_domains: Count | None = None
    threads_per_core: Count = 1


class Memory(Record, frozen=True):
    """Memory of one node in GB; ``usable_gb`` is what a job may take before the node suffers."""

    total_gb: Gigabytes
    usable_gb: Gigabytes | None = None


CpuList = Annotated[
    str,
    matching(r"^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$(?!\n)", "numbers of CPUs as Linux lists them", "48-55,112"),
]


CdiName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9.-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}=[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$(?!\n)",
        "a device as CDI names it: VENDOR/CLASS=NAME",
        "amd.com/gpu=all",
    ),
]


FabricKind = Literal["none", "omni-path", "infiniband", "slingshot", "efa", "ethernet"]


GpuVendor = Literal["nvidia", "amd", "intel"]


class Gpu(Record, frozen=True):
    """GPUs of one node. ``capability`` is NVIDIA's compute capability.

    ``driver``: the version of NVIDIA's driver, or the release of AMD's (6.3, 30.10), not its kernel module's version.
    ``driver_assumed``: nobody has looked that driver up; plans say so, and how to name the real one.
    ``target``: AMD's name of the instruction set, such as ``gfx90a``. ``data_center``: NVIDIA counts it among its
    data-centre GPUs, which alone can run a newer CUDA than their driver's with NVIDIA's compatibility package.
    ``cpus``: for each GPU, in the order of their numbers, the CPUs next to it that a rank may use: one hardware thread
    of each core, as Linux numbers them. ``fabric``: the network by which they reach those of other nodes, where that is
    another than the node's. ``cdi``: the name of the Container Device Interface by which Podman and its like show all
    of them, such as ``amd.com/gpu=all``; without one it is NVIDIA's usual name, and of AMD and Intel the device files.
    """

    vendor: GpuVendor
    model: Text
    count: Count = 1
    memory_gb: Gigabytes | None = None
    capability: Version | None = None
    driver: Version | None = None
    driver_assumed: bool = False
    target: Name | None = None
    data_center: bool | None = None
    cpus: list[CpuList] = []
    fabric: FabricKind | None = None
    cdi: CdiName | None = None

    @property
    def driver_label(self) -> str:
        """The driver, and that it is assumed where it is."""
        return f"{self.driver} (assumed)" if self.driver_assumed else str(self.driver)


class TimeLimit(Record, frozen=True):
    """How long jobs of a queue may take that have no more than so many nodes."""

    max_nodes: Count
    max_time: WallTime


MemoryUnit = Literal["node", "cpu", "gpu"]


class Queue(Record, frozen=True):
    """A scheduler partition or queue, and the job sizes (nodes) and times it takes. The first that fits is used.

    ``times``: limits that go by the number of nodes, the smallest number first; ``max_time`` holds for jobs of
    more nodes than all of them. ``by_account``: each account has its own limits, which may be narrower.
    ``debug``: it is for trying things out, and used where it is asked for, or where no other takes the job.
    ``directives``: the header options that ask for it, where that is not Slurm's ``--partition`` or PBS's ``-q`` with
    its name, such as ``--qos``. ``default_memory``: GB that a job gets there for each node, CPU or GPU unless it asks
    for memory; ``max_memory``: GB that it may ask for.
    """

    name: Text
    min_nodes: Count = 1
    max_nodes: Count | None = None
    min_time: WallTime | None = None
    max_time: WallTime | None = None
    times: list[TimeLimit] = []
    by_account: bool = False
    debug: bool = False
    directives: list[Directive] = []
    default_memory: dict[MemoryUnit, Gigabytes] = {}
    max_memory: dict[MemoryUnit, Gigabytes] = {}

    def time_limit(self, nodes: int) -> str | None:
        """How long a job of so many nodes may take; None where that is not known."""
        return next((each.max_time for each in self.times if nodes <= each.max_nodes), self.max_time)

    @property
    def most_nodes(self) -> int | None:
        """The most nodes that it takes; None where that is not known."""
        return (
            self.times[-1].max_nodes if self.max_nodes is None and self.times and not self.max_time else self.max_nodes
        )


ChunkResource = Annotated[
    str, matching(r"^[a-z][a-z0-9_]*=[A-Za-z0-9._-]+$(?!\n)", "a resource and its value", "node_type=rome")
]


InterfaceName = Annotated[
    str, matching(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$(?!\n)", "a network interface as `ip link` has it", "ib0")
]

Resource = Annotated[
    str, matching(r"^[A-Za-z_][A-Za-z0-9_.+-]{0,63}$(?!\n)", "a name that the batch system knows", "h_vmem")
]


class Fabric(Record, frozen=True):
    """The network between nodes. ``provider`` is libfabric's name of the provider that drives it.

    ``libraries``: folders of the host with the libraries that drive it, where the image cannot bring its own
    (Slingshot's cxi); the MPI's binds have to show them inside. ``libfabric``: the release of the host's libfabric that
    an engine puts in the place of the image's. ``interface``: the network interface with an address on it that every
    node has, such as ``hsn0``: what speaks IP between nodes (NCCL's start, Gloo) takes that.
    """

    kind: FabricKind
    provider: Name | None = None
    devices: list[AbsolutePath] = []
    libraries: list[AbsolutePath] = []
    libfabric: Version | None = None
    interface: InterfaceName | None = None


class Partition(Record, frozen=True):
    """One kind of node. ``slots`` is what the scheduler counts per node (PBS ``ppn``), the cores unless given.

    ``directives`` are header options of jobs on these nodes, such as how the site asks for its GPUs. ``chunk``: how PBS
    Pro's ``select`` names such a node, instead of by its numbers of cores and GPUs; for Torque properties of the nodes.
    ``parallel_environment``: Grid Engine's for these nodes, in the place of the site's. ``fabric`` takes the place of
    the site's on these nodes, ``environment`` is set there beside the site's and wins over it.
    """

    cpu: Cpu
    memory: Memory
    nodes: Count | None = None
    gpu: Gpu | None = None
    queues: list[Queue] = []
    slots: Count | None = None
    directives: list[Directive] = []
    chunk: list[ChunkResource] = []
    parallel_environment: Resource | None = None
    fabric: Fabric | None = None
    environment: dict[EnvName, Text] = {}


class Bind(Record, frozen=True):
    """A host path shown inside the container. ``source`` may end in ``/.`` to follow a symbolic link.

    ``file``: it is a file or a socket, so that the image needs a file to bind it onto, not a folder.
    """

    source: AbsolutePath
    target: AbsolutePath
    file: bool = False


MpiFlavour = Literal["intel", "mpich", "cray-mpich", "mvapich2", "parastation", "openmpi"]


class GpuMpi(Record, frozen=True):
    """What a host's MPI takes besides, where it is to send memory of GPUs: for images with software for them alone.

    Without that software inside, Cray's MPI ends as it starts. ``runtime``: the releases of CUDA or ROCm that its
    library is linked with, which bounds those of the image. The other fields are those of :class:`HostMpi`, which come
    after these.
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


SquashfsCompressor = Literal["gzip", "zstd"]


class SiteEngine(Record, frozen=True):
    """A container engine at the site. Without ``version`` only what every supported release has is used.

    ``fakeroot``: images are built with ``--fakeroot``. ``run_options``: what it is given at every start of a job there.
    ``reason`` and ``decided``: why and when the site allowed or forbade it. ``squashfs``: what its squashfs and SIF
    files are compressed by; ``zstd`` is written much faster, and has to be known to whatever mounts them there: the
    kernel (CONFIG_SQUASHFS_ZSTD) or the squashfuse that the engine uses. Without it gzip, which all know.
    """

    version: Version | None = None
    allowed: bool = True
    reason: Text = ""
    decided: PartialDate | None = None
    modules: list[ModuleName] = []
    fakeroot: bool = False
    run_options: list[Directive] = []
    squashfs: SquashfsCompressor | None = None


class Containers(Record, frozen=True):
    """Engines of the site; ``preferred`` is the one that jobs use.

    ``build_on`` says on which nodes images may be built; empty where that is not known. ``unprivileged_build``: whether
    users can build there at all. ``image_formats``: the kinds of image that the site's engines start.
    """

    preferred: EngineName
    engines: dict[EngineName, SiteEngine]
    image_directory: AbsolutePath | None = None
    build_on: list[Literal["login", "compute"]] = []
    unprivileged_build: bool | None = None
    image_formats: list[Literal["sif", "squashfs", "folder", "oci"]] = []


class FileSystem(Record, frozen=True):
    """A file system of the site: its ``path`` or the ``variable`` that names it, and what it is for.

    ``images``: whether it is a good place for images; folders of many small files are bad for most parallel ones.
    ``bind``: containers of jobs see it in its own place, where the node has it.
    """

    kind: Literal["lustre", "gpfs", "nfs", "daos", "beegfs", "vast", "cephfs", "tmpfs", "local", "other"]
    path: AbsolutePath | None = None
    variable: EnvName | None = None
    use: Text = ""
    images: bool | None = None
    bind: bool = False


class BatchSystem(Record, frozen=True):
    """What jobs say to the site's batch system. ``directives`` are header options of every job, ``output`` the pattern.

    ``gpu_request``: the option of Slurm that asks for a node's GPUs; ``none`` where they come with the node.
    ``gpu_bind``: how each rank gets its own GPU: by a ``variable`` that the start line sets, such as
    CUDA_VISIBLE_DEVICES, or by the batch system's own ``launcher``, as with Slurm's ``--gpus-per-task``.
    ``max_array_size``: tasks that an array may have, such as Slurm's MaxArraySize; where it is not known, the batch
    system's default.
    ``parallel_environment``: Grid Engine's that gives a job's slots on whole nodes (``qconf -spl``);
    ``one_node_environment``: another one for jobs of one node. ``memory_request``: how jobs ask for the memory of their
    ranks: of Slurm ``mem`` (its default), ``mem-per-cpu``, ``mem-per-gpu``; of PBS Pro ``mem``, of Torque ``pmem``, of
    LSF ``rusage`` or ``M``, of PJM ``node-mem``; ``none`` where they must not. For Grid Engine it is the resource by
    which every job asks for memory, which counts per slot, such as h_vmem.
    ``resources``: those that every job has to name, such as PBS's ``filesystems`` at ALCF, with their values.
    ``before_submitting``: what the user does first in the shell that submits, usually a command.
    """

    kind: SchedulerName
    directives: list[Directive] = []
    modules: list[ModuleName] = []
    resources: dict[Resource, Text] = {}
    account: Literal["required", "optional", "none"] = "optional"
    gpu_request: Literal["gres", "gpus-per-node", "none"] = "gres"
    gpu_bind: Literal["variable", "launcher"] = "variable"
    before_submitting: Text = ""
    output: Text = ""
    error: Text = ""
    default_time: WallTime = "01:00:00"
    max_array_size: Count | None = None
    parallel_environment: Resource | None = None
    one_node_environment: Resource | None = None
    memory_request: Resource | None = None


class Layout(Record, frozen=True):
    """A recommended job layout; ``measured`` says by which measurement."""

    partition: Name
    ranks_per_node: Count
    threads_per_rank: Count
    nodes: Count = 1
    measured: Text = ""


class ImageDefaults(Record, frozen=True):
    """What the site prefers for its images: the distribution to build on."""

    distribution: Name | None = None


class Site(Record, frozen=True):
    """A site profile, parents merged in.

    ``aliases``: what people call it besides, which is suggested to those who type it; no plan has them. ``operator``:
    who runs it. ``archived``: why the profile is kept though nobody new needs it, so that lists leave it out; plans are
    made as ever. ``closed``: since when no job can run there.
    ``sources`` maps the path of a fact (``mpi.version``; a path covers everything below it) to where it is from.
    """

    name: Name
    title: Text
    system: System
    partitions: dict[Name, Partition]
    default_partition: Name
    containers: Containers
    scheduler: BatchSystem
    network: Network
    fabric: Fabric = Fabric(kind="none")
    mpi: HostMpi | None = None
    layouts: list[Layout] = []
    file_systems: dict[Name, FileSystem] = {}
    environment: dict[EnvName, Text] = {}
    unset_environment: list[EnvName] = []
    image: ImageDefaults = ImageDefaults()
    aliases: list[Text] = []
    operator: Text = ""
    archived: Text = ""
    closed: PartialDate | None = None
    links: list[Url] = []
    notes: list[Text] = []
    sources: dict[str, Source] = {}
    extends: Name | None = None
    abstract: bool = False

    def fabric_of(self, partition: str) -> Fabric:
        """The fabric of a kind of node: its own, or the site's."""
        return self.partitions[partition].fabric or self.fabric

    def gpu_fabric_of(self, partition: str) -> FabricKind:
        """The kind of network between GPUs of several nodes."""
        gpu = self.partitions[partition].gpu
        return (gpu.fabric if gpu is not None else None) or self.fabric_of(partition).kind

    def environment_of(self, partition: str) -> dict[str, str]:
        """The variables of jobs on a kind of node: the site's, and its own."""
        return {**self.environment, **self.partitions[partition].environment}

    def fabric_path(self, partition: str, field: str) -> str:
        """Where the profile says a fact of that fabric, such as ``fabric.kind``."""
        own = self.partitions[partition].fabric is not None
        return f"partitions.{partition}.fabric.{field}" if own else f"fabric.{field}"

    def known_partition(self, name: str) -> str:
        """The name itself; UnknownNameError where no partition is called so."""
        if name not in self.partitions:
            known = list(self.partitions)
            raise UnknownNameError(
                f"{self.name} has no partition {name!r}", "--partition", "", did_you_mean(name, known)
            )
        return name
