"""The plan: the resolved answer for one site and one stack. Pure data, serialisable, no I/O."""

from itertools import combinations
from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.caches import Cache
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.fields import (
    Digest,
    EngineName,
    EnvName,
    FileName,
    FormatName,
    Name,
    Record,
    Sha256,
    Text,
    Url,
    WholeNumber,
    matching,
)
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Fabric, GpuVendor
from hpcgen.core.model.project import GitPackage, Project
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.site import Site
from hpcgen.core.model.spack import PlannedSpack
from hpcgen.core.model.stack import CopyTarget, OptionValue, Stack
from hpcgen.core.support.units import counted, walltime_text


class PlannedMpi(Record, frozen=True):
    """The capabilities of an MPI that launching needs: its binary interface, and which software it is.

    ``host_settings``: variables of a host that would lead it to the files of another installation. ``folder``: where
    its library lies, in an image that hpcgen did not build; else it is below ``/opt``, by the name of its block.
    """

    abi: Text = ""
    flavour: Text = ""
    host_settings: list[EnvName] = []
    folder: Text = ""

    @property
    def family(self) -> str:
        """Whose launcher and PMI it has, ``mpich`` or ``openmpi``: the standard's interface, ``mpi5``, is anybody's."""
        if self.abi != "mpi5":
            return self.abi
        return "openmpi" if self.flavour == "openmpi" else "mpich"


class PlannedBlock(Record, frozen=True):
    """One chosen block.

    ``reasons`` say why it is there and why in this version (sentences in plans of hpcgen 0.1.0); ``needs`` maps what
    it asked for (a block or a virtual such as ``mpi``) to the block that was chosen for it; ``host`` is what the
    release asks of a node's GPU: ``driver``, ``capability``, ``target``; ``mpi``: of a block that provides it.
    ``gpu_collectives``: the library of collectives between GPUs that it is, such as ``NCCL``; ``gpu_networks``: names
    of ``NCCL_NET`` by which it lets GPUs reach other nodes; ``cpu_collectives``: the library between CPUs, such as
    ``Gloo``. ``caches``: those of its programs. ``thread_variables``: those that tell its pools their threads, where
    OMP_NUM_THREADS does not; ``kmp``: it has an OpenMP that reads variables KMP_….
    ``gpu_runtime``: whose GPUs it brings the run-time library for, where the loader finds it.
    """

    name: Text
    version: Text
    options: dict[Text, OptionValue] = {}
    provides: list[Text] = []
    needs: dict[Text, Text] = {}
    host: dict[Text, Text] = {}
    reasons: list[Reason | Text] = []
    mpi: PlannedMpi | None = None
    gpu_collectives: Text = ""
    gpu_networks: list[Text] = []
    cpu_collectives: Text = ""
    thread_variables: list[EnvName] = []
    caches: list[Cache] = []
    kmp: bool = False
    gpu_runtime: Text = ""
    build_only: bool = False
    origin: Text = ""

    @property
    def label(self) -> str:
        """Name and version, for people."""
        return f"{self.name} {self.version}"


Severity = Literal["error", "warning", "note", "detail"]
"""How much a finding matters, most first; a ``detail`` is shown only on request."""


class Finding(Record, frozen=True):
    """Something the user should know about the plan, with what to do."""

    name: Text
    severity: Severity
    message: Text
    remedy: Text = ""

    def __str__(self) -> str:
        return self.message + (f" ({self.remedy})" if self.remedy else "")


class PlannedLicence(Record, frozen=True):
    """A licence that the build accepts for somebody: ``accepted`` once the user did, which lock and build ask for."""

    name: Name
    title: Text
    url: Url
    accepted: bool = False


class PlannedCopy(Record, frozen=True):
    """The files that a stack copies to one place in the image.

    ``sha256``: of the list of its files (:mod:`hpcgen.core.support.hashing`), wherever they lie. ``files``, ``bytes``:
    how many, and their size together. ``single``: it is one file, not a folder.
    """

    to: CopyTarget
    sha256: Sha256
    files: WholeNumber
    bytes: WholeNumber
    single: bool = False


class PlannedConda(Record, frozen=True):
    """The conda request of a project's files and the stack's options, for the nodes' platform.

    files: sha256 of each file that was read, by path from the folder of the stack's file.
    subdir: the platform, by conda's name.
    channels: their addresses, in order of precedence.
    needs: what is asked for, in conda's form, where a solver is to choose.
    packages: where the files are a lock, all that it has.
    held: what a solver is held to if it chooses such a package: ``mpich=*=external_*``.
    virtual: what conda calls virtual packages, the properties of base and node: ``__glibc`` → ``2.36``.
    variables: that the environment sets.
    pip: what is asked of a Python package index for the environment, in pip's form; of a lock with hashes.
    from_git: packages of git repositories, which are installed after those.
    notes: lines of the files without an effect, and why.
    """

    files: dict[Text, Digest] = {}
    subdir: Text = ""
    channels: list[Url] = []
    needs: list[Text] = []
    packages: list[CondaPackage] = []
    held: list[Text] = []
    virtual: dict[Text, Text] = {}
    variables: dict[EnvName, Text] = {}
    pip: list[Text] = []
    from_git: list[GitPackage] = []
    notes: list[Text] = []


ImageName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._/:@+%-]{0,254}$(?!\n)",
        "the name of an image: letters, digits and . _ / : @ + % -",
        "localhost/mpi-hello:here",
    ),
]


class ExtendedImage(Record, frozen=True):
    """The finished image that a plan adds to; all that it holds stays as it is.

    ``image``: the recipe starts from it by this name. ``file``: that of the file or folder that it is, beside the kit
    while the image is built; "" in an engine's store. ``content``: the hash of the plan that it was built from.
    ``digest``: what tells it from another build of that plan, as far as its kind has one. ``blocks``, ``copied``: what
    that plan has.
    """

    image: ImageName
    content: Sha256
    blocks: list[PlannedBlock]
    copied: list[PlannedCopy] = []
    file: FileName = ""
    digest: Digest | None = None


class FoundImage(Record, frozen=True):
    """What a start has to know of an image that hpcgen did not build, beside the blocks that were seen in it.

    ``digest``: what tells it from every other, "" where that was not read. ``folders``: those for the host's that
    it has or the engine makes; ``made``: the latter. ``entry_point``: what would start its commands, and does not.
    ``python``: its interpreter, by which ranks are tried.
    """

    digest: Text = ""
    folders: list[Text] = []
    made: list[Text] = []
    entry_point: list[Text] = []
    python: Text = ""


class BasePython(Record, frozen=True):
    """The Python that an image's PATH finds: its program, ``3.11`` or so, and the packages that it has."""

    program: Text
    version: Text
    packages: dict[Text, Text] = {}


class BaseImage(Record, frozen=True):
    """An image of others that a plan's stages start from, as its own files said when it was planned.

    ``image``: the recipe starts from it by this name. ``kind``: that of an image of this machine, "" of a registry's.
    ``file``: that of the file or folder that it is, beside the kit while the image is built. ``digest``: in a registry
    that of the manifest, else what its kind has. ``os_id``, ``os_version``: of its os-release; ``block``, ``release``:
    the base block that stands for it. ``environment``: its variables, as far as every format can repeat them.
    """

    image: ImageName
    os_id: Name
    os_version: Text
    block: Name
    release: Text
    kind: Text = ""
    file: FileName = ""
    digest: Digest | None = None
    environment: dict[EnvName, Text] = {}
    python: BasePython | None = None


class Plan(Record, frozen=True, kw_only=True, rename={"number": "plan"}):
    """Everything that assembling and launching need. ``blocks`` are in build order, the base first.

    ``supply``: whether the build takes its inputs from the network or from a bundle. ``licences``: those that the user
    must accept; when they did is in the person's own config file. ``copied``: the stack's own files, by what is in
    them. ``project``: the Python packages that files of the user's project ask for; ``conda``: what is asked of conda;
    ``spack``: of Spack.
    ``latest_base``: base images are what their moving tags stand for on the day of the build, not the dated ones of the
    release tables. ``base``: the image of others that it starts from. ``extends``: the finished image that it adds to;
    what that has is not built again. ``found``: the image is one that hpcgen did not build, and ``blocks`` are what was
    seen in it. ``number``: the format in which it is written down (``support.file_formats.KIT``).
    """

    number: Annotated[int, msgspec.Meta(ge=1, description="the format of this plan")] = 1

    hpcgen: Text
    site: Site
    stack: Stack
    partition: Text
    format: FormatName
    engine: EngineName
    blocks: list[PlannedBlock]
    job: Job
    settings: dict[Text, Text] = {}
    command: Text = ""
    findings: list[Finding] = []
    supply: Literal["network", "bundle"] = "network"
    licences: list[PlannedLicence] = []
    copied: list[PlannedCopy] = []
    project: Project | None = None
    conda: PlannedConda | None = None
    spack: PlannedSpack | None = None
    latest_base: bool = False
    base: BaseImage | None = None
    extends: ExtendedImage | None = None
    found: FoundImage | None = None

    def __repr__(self) -> str:
        told = [self.format, counted(len(self.blocks), "block"), self.job.shape, *self._counts()]
        return f"<Plan {self.stack.name} for {self.site.name} ({self.partition}): {', '.join(told)}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is planned, as a small table."""
        from hpcgen.core.support.markup import table

        rows = [
            ("partition", self.partition),
            ("format", f"{self.format}, run by {self.engine}"),
            ("blocks", ", ".join(block.label for block in self.blocks)),
            ("job", f"{self.job.shape}, {walltime_text(self.job.walltime_s)}"),
            *((each.severity, str(each)) for each in self.findings if each.severity != "note"),
        ]
        return table(("plan", f"{self.stack.name} for {self.site.name}"), rows)

    def _counts(self) -> list[str]:
        """How many errors and warnings there are, where there are any."""
        kinds = {kind: sum(each.severity == kind for each in self.findings) for kind in ("error", "warning")}
        return [counted(number, kind) for kind, number in kinds.items() if number]

    @property
    def brought(self) -> list[PlannedCopy]:
        """Those of ``copied`` that the build brings: an image that is extended has its own already."""
        before = self.extends.copied if self.extends is not None else []
        return [each for each in self.copied if each not in before]

    def block(self, name: str) -> PlannedBlock | None:
        """The chosen block of that name, or the one that provides it; None if the plan has none."""
        for block in self.blocks:
            if block.name == name or name in block.provides:
                return block
        return None

    @property
    def job_name(self) -> str:
        """What the batch system calls the job."""
        return self.job.name or self.stack.name

    @property
    def fabric(self) -> Fabric:
        """The fabric of the nodes that are planned for."""
        return self.site.fabric_of(self.partition)

    @property
    def gpu_vendor(self) -> GpuVendor | None:
        """Whose run-time library of GPUs the host's MPI finds in the image, on the nodes that are planned for.

        None for an image without one, or with one inside a framework's wheels alone.
        """
        gpu = self.site.partitions[self.partition].gpu
        has = {block.gpu_runtime for block in self.in_image if not block.build_only}
        return gpu.vendor if gpu is not None and gpu.vendor in has else None

    @property
    def host_mpi(self) -> HostMpi | None:
        """The MPI of the profile as the job has it, with what belongs to GPUs where it uses some."""
        mpi = self.site.mpi
        return mpi.with_gpus(self.gpu_vendor if self.job.gpus_per_node != 0 else None) if mpi is not None else None

    def mpi_path(self, field: str, part: object) -> str:
        """Where the profile has a part of that MPI: ``mpi.binds.0`` or ``mpi.gpu.amd.environment.NAME``."""
        mpi, vendor = self.site.mpi, self.gpu_vendor
        own = mpi.gpu.get(vendor) if mpi is not None and vendor is not None else None
        for path, each in ((f"mpi.gpu.{vendor}.{field}", own), (f"mpi.{field}", mpi)):
            parts = getattr(each, field, [])
            if part in parts:
                return f"{path}.{part if isinstance(parts, dict) else parts.index(part)}"
        return f"mpi.{field}"

    @property
    def gpu_collectives(self) -> list[str]:
        """The libraries of the image by which GPUs of several nodes send each other data in this job."""
        if self.job.nodes == 1 or not self.job.gpus_per_node:
            return []
        return list(dict.fromkeys(block.gpu_collectives for block in self.blocks if block.gpu_collectives))

    @property
    def cpu_collectives(self) -> list[str]:
        """The libraries of the image by which processes of several nodes compute together in this job, besides MPI."""
        if self.job.nodes == 1:
            return []
        return list(dict.fromkeys(block.cpu_collectives for block in self.blocks if block.cpu_collectives))

    @property
    def overruled(self) -> bool:
        """Whether it was requested although it breaks the contract."""
        return "--allow-unsupported" in self.command.split()

    @property
    def in_image(self) -> list[PlannedBlock]:
        """All blocks of the image: those of the one that it extends, too."""
        return [*(self.extends.blocks if self.extends is not None else []), *self.blocks]

    @property
    def mpi(self) -> PlannedMpi:
        """The image's MPI; with empty fields if there is none, or if its block does not say."""
        block = self.block("mpi")
        if block is None or block.mpi is not None or self.number > 1:
            return (block.mpi if block is not None else None) or PlannedMpi()
        return _OLD_MPI.get(block.name, PlannedMpi())

    def contradiction(self) -> str:
        """A contradiction that no planner writes, such as a partition that the site lacks; "" if there is none."""
        known = self.site.partitions
        for name in (self.partition, self.site.default_partition):
            if name not in known:
                return f"`partition` must be one of its site's ({', '.join(known)}), not {name!r}"
        for one, other in combinations([each.to for each in self.copied], 2):
            if overlap(one, other):
                return f"`copied` has both {one} and {other}, one in the other"
        return ""


_OLD_MPI = {
    "openmpi": PlannedMpi(abi="openmpi", flavour="openmpi"),
    "mpich": PlannedMpi(abi="mpich", flavour="mpich"),
    "intel_mpi": PlannedMpi(abi="mpich", flavour="intel"),
}
"""hpcgen 0.1.0 knew these by their names, and its plans say no more."""
