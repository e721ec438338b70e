"""A site profile: what is known of one system. Data only; a profile is never executed."""

from collections.abc import Sequence
from typing import Annotated, Literal

from hpcgen.core.errors import UnknownNameError, did_you_mean
from hpcgen.core.model.batch import BatchSystem, ChunkResource, Directive, Queue, Resource
from hpcgen.core.model.fields import (
    AbsolutePath,
    Count,
    EngineName,
    EnvName,
    Gigabytes,
    ImageRules,
    ModuleName,
    Name,
    PartialDate,
    Record,
    Source,
    Text,
    Url,
    Version,
    matching,
)
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.network import Network
from hpcgen.core.model.nodes import CopyDevice, Cpu, Fabric, FabricKind, Gpu, Memory
from hpcgen.core.model.performance import Measure, PerformanceFact
from hpcgen.core.support.quoting import sh

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


class Partition(Record, frozen=True):
    """One kind of node. ``slots`` is what the scheduler counts per node (PBS ``ppn``), the cores unless given.

    ``directives`` are header options of jobs on these nodes, such as how the site asks for its GPUs. ``chunk``: how PBS
    Pro's ``select`` names such a node, instead of by its numbers of cores and GPUs; for Torque properties of the nodes.
    ``parallel_environment``: Grid Engine's for these nodes, in the place of the site's. ``fabric`` takes the place of
    the site's on these nodes, ``environment`` is set there beside the site's and wins over it. ``performance``: what
    benchmarks reach there, against which ``hpcgen test --nodes`` holds what they measure. ``copy_devices``: those of
    gdrdrv and XPMEM, where every node has the module.
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
    performance: dict[Measure, PerformanceFact] = {}
    copy_devices: list[CopyDevice] = []


SquashfsCompressor = Literal["gzip", "zstd"]


class SiteEngine(Record, frozen=True):
    """A container engine at the site. Without ``version`` only what every supported release has is used.

    ``fakeroot``: images are built with ``--fakeroot``. ``setuid``: it is installed with setuid, and starts containers
    without user namespaces. ``run_options``: what it is given at every start of a job there.
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
    setuid: bool = False
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


FileSystemRole = Literal["node", "scratch", "home"]
UserFolder = Annotated[
    str,
    matching(
        r"^(?=[/$])([A-Za-z0-9._/+-]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+$(?!\n)",
        "an absolute path in which variables of a job may stand as ${NAME}",
        "/scratch/${SLURM_JOB_ACCOUNT}/${USER}",
    ),
]


class FileSystem(Record, frozen=True):
    """A file system of the site: its ``path`` or the ``variable`` that names it, and what it is for.

    ``images``: whether it is a good place for images; folders of many small files are bad for most parallel ones.
    ``bind``: containers of jobs see it in its own place, where the node has it. ``role``: what jobs take it for by
    themselves: ``node`` is each node's own (of kind tmpfs it is a RAM disk), where compiled code goes, ``scratch`` is
    for downloads, and ``home`` for neither. ``folder``: the user's own in it, where its path is not that.
    ``limit_gb``, ``limit_files``: what fits in for one user, or on one node.
    """

    kind: Literal["lustre", "gpfs", "nfs", "daos", "beegfs", "vast", "cephfs", "tmpfs", "local", "other"]
    path: AbsolutePath | None = None
    variable: EnvName | None = None
    use: Text = ""
    images: bool | None = None
    bind: bool = False
    role: FileSystemRole | None = None
    folder: UserFolder | None = None
    limit_gb: Gigabytes | None = None
    limit_files: Count | None = None

    @property
    def place(self) -> str:
        """Where a user's files go in it, with variables as they are written; "" where the profile does not say."""
        return self.folder or (f"${{{self.variable}}}" if self.variable is not None else self.path or "")


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
    images: ImageRules = ImageRules()
    aliases: list[Text] = []
    operator: Text = ""
    archived: Text = ""
    closed: PartialDate | None = None
    links: list[Url] = []
    notes: list[Text] = []
    sources: dict[str, Source] = {}
    extends: Name | None = None
    abstract: bool = False

    def file_system(self, role: FileSystemRole) -> FileSystem | None:
        """The first that jobs take for this."""
        return next((each for each in self.file_systems.values() if each.role == role), None)

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

    def source_of(self, path: str) -> Source | None:
        """What a fact rests on: the source of the longest path that covers it."""
        covering = [each for each in self.sources if f"{path}.".startswith(f"{each}.")]
        return self.sources[max(covering, key=len)] if covering else None

    def known_partition(self, name: str) -> str:
        """The name itself; UnknownNameError where no partition is called so."""
        if name not in self.partitions:
            known = list(self.partitions)
            raise UnknownNameError(
                f"{self.name} has no partition {name!r}", "--partition", "", did_you_mean(name, known)
            )
        return name
