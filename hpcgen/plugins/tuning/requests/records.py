"""The request of `hpcgen optimise`: a workload, a target, limits, and the permitted choices."""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.batch import SchedulerName
from hpcgen.core.model.fields import (
    Commit,
    Count,
    EnvName,
    Gigabytes,
    Name,
    Record,
    Reference,
    Sha256,
    Text,
    Url,
    VersionRange,
    WholeNumber,
    matching,
)
from hpcgen.core.model.host_mpi import MpiFlavour
from hpcgen.core.model.job import JobName

Kind = Literal["ai_training", "ai_inference", "hpc", "mpi", "python"]
Framework = Literal[
    "tensorflow",
    "pytorch",
    "jax",
    "mxnet",
    "cntk",
    "keras",
    "onnxruntime",
    "openvino",
    "tvm",
    "deepspeed",
    "vllm",
]
GraphCompiler = Literal["xla", "torch.compile", "ngraph", "glow", "tvm", "openvino", "tensorrt", "migraphx"]
Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
Event = Literal["begin", "end", "fail", "requeue", "time_limit"]

Efficiency = Annotated[float, msgspec.Meta(gt=0, le=1, description="a share: more than 0, at most 1")]
RequestedTime = Annotated[
    str,
    matching(
        r"^((\d{1,3}-)?\d{1,4}:[0-5]\d:[0-5]\d|\d{1,6}[smhd])$(?!\n)",
        "a time: 36h, 90m, hours:minutes:seconds or days-hours:minutes:seconds",
        "36:00:00",
    ),
]
JobFile = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9._/%][A-Za-z0-9._/+@%:=~-]*$(?!\n)",
        "a file's path without spaces, quotes or $",
        "job.%j.out",
    ),
]
Email = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$(?!\n)", "an e-mail address", "user@example.org"
    ),
]
ShellLines = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]*$",
        description="lines of shell, without control characters",
        examples=["make -j {{BUILD_PARALLELISM}}"],
    ),
]
NamedImage = Annotated[
    str,
    matching(
        r"^((docker|library|oras|shub)://)?[A-Za-z0-9._/][A-Za-z0-9._/:+\x40-]{0,254}$(?!\n)",
        "an image: docker://NAME:TAG, NAME:TAG or a file such as /shared/solver.sif",
        "docker://ethcscs/mpich:ub1804_cuda101_mpi314_gnugprof",
    ),
]
WaitsFor = Annotated[
    str,
    matching(
        r"^(after|afterok|afternotok|afterany)(:[A-Za-z0-9._\[\]-]{1,64}){1,16}$(?!\n)",
        "afterok, afterany, afternotok or after, and ids of jobs after colons",
        "afterok:1234",
    ),
]
ArrayTasks = Annotated[
    str,
    matching(
        r"^\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?){0,63}(%\d{1,6})?$(?!\n)",
        "numbers of tasks and ranges of them, and after % how many run at a time",
        "1-10%2",
    ),
]
HeaderWord = Annotated[
    str,
    matching(r"^[A-Za-z0-9][A-Za-z0-9._:+,\[\]=/-]{0,255}$(?!\n)", "a word without spaces, quotes or $", "ssd"),
]
PARALLELISM = "{{BUILD_PARALLELISM}}"
"""The one thing in a build command that is replaced; all other text stays as it is."""

# A target system described in a request itself, where no site profile of it is there. Its fields are those of the
# infrastructure descriptions of MODAK (SODALITE-EU/application-optimisation).

MemorySize = Annotated[
    str, matching(r"^\d{1,16}(\.\d{1,6})? ?([kKMGTP]i?)?[bB]?$(?!\n)", "bytes, or a number with a unit", "512GiB")
]
"""Of units that end in ``iB`` a step is 1024, of the others 1000."""

StorageUrl = Annotated[
    str,
    matching(r"^[a-z][a-z0-9+.-]*://[A-Za-z0-9._~/+@%:,=-]*$(?!\n)", "the URL of a place for files", "file:///scratch"),
]
StorageClass = Literal["default-common", "default-high", "default-ssd", "default-ultra_high"]


class NodeCpu(Record, frozen=True):
    """One CPU, that is, socket. ``nthreads``: per core. ``arch`` and ``microarch`` are archspec's names."""

    arch: Name
    ncores: Count
    microarch: Name | None = None
    nthreads: Count = 1


class Accelerator(Record, frozen=True):
    """One accelerator."""

    type: Literal["gpu", "fpga", "tpu"]
    model: Text


class InfrastructureNode(Record, frozen=True):
    """One node: ``ncpus`` sockets, ``naccel`` accelerators."""

    ncpus: Count
    cpu: NodeCpu
    memory: MemorySize
    naccel: Count | None = None
    accel: Accelerator | None = None
    storage: dict[StorageUrl, StorageClass] = {}


class InfrastructurePartition(Record, frozen=True):
    """``nnodes`` nodes of one kind."""

    nnodes: Count
    node: InfrastructureNode
    default: bool = False
    storage: dict[StorageUrl, StorageClass] = {}


PartitionName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^([a-z0-9][a-z0-9._-]{0,63}|\*)$(?!\n)", description="a name, or * for the only one", examples=["gpu"]
    ),
]


class Infrastructure(Record, frozen=True):
    """The system, as far as the request knows it. ``name`` is what its new profile is called."""

    partitions: dict[PartitionName, InfrastructurePartition]
    name: Name = "described"
    description: Text = ""
    scheduler: SchedulerName | None = None
    storage: dict[StorageUrl, StorageClass] = {}


# the request


class Data(Record, frozen=True):
    """What the workload reads. ``samples``: how many; ``prefetch``: batches that are loaded ahead."""

    name: Text = ""
    location: Text = ""
    format: Text = ""
    size_gb: Gigabytes | None = None
    samples: Count | None = None
    prefetch: WholeNumber | None = None
    cache: bool | None = None


class RequestedWorkload(Record, frozen=True):
    """What is computed. ``batch``: of one rank; ``shape``: of one sample; ``task``: such as image_classification."""

    name: Text = ""
    task: Text = ""
    parameters: Count | None = None
    layers: Count | None = None
    batch: Count | None = None
    shape: list[Count] = []
    precision: Precision | None = None
    epochs: Count | None = None
    distributed: bool | None = None
    data: Data = Data()


class RequestedHardware(Record, frozen=True):
    """What the node must be, whichever partition is chosen. ``none``: jobs without an accelerator."""

    architecture: Literal["x86_64", "aarch64"] | None = None
    cpu_vendor: Literal["intel", "amd", "arm"] | None = None
    accelerator: Literal["nvidia", "amd", "intel", "none"] | None = None


class Limits(Record, frozen=True):
    """What a job must not exceed; ``efficiency`` is the least parallel efficiency.

    ``ranks``: over all nodes; ``threads``: of a rank; ``memory_gb``: of a node.
    """

    nodes: Count | None = None
    ranks: Count | None = None
    ranks_per_node: Count | None = None
    threads: Count | None = None
    gpus_per_node: WholeNumber | None = None
    walltime: RequestedTime | None = None
    memory_gb: Gigabytes | None = None
    memory_per_rank_gb: Gigabytes | None = None
    efficiency: Efficiency | None = None


class Compilers(Record, frozen=True):
    """Graph compilers: the one to ``use`` whatever is measured, those that may be chosen, those that may not.

    Without ``use`` and ``allow`` all that fit may be chosen, and none.
    """

    use: GraphCompiler | None = None
    allow: list[GraphCompiler] | None = None
    without: list[GraphCompiler] = []


class Mpi(Record, frozen=True):
    """The MPI that the program wants, where that is not left to the site; the nearest that works there is taken."""

    library: Literal["openmpi", "mpich", "intel_mpi", "mvapich", "mvapich2"] | None = None
    version: VersionRange = ""

    @property
    def flavour(self) -> MpiFlavour | None:
        """What profiles call it; None where none is named."""
        if self.library == "intel_mpi":
            return "intel"
        return "mvapich2" if self.library == "mvapich" else self.library


class JobWishes(Record, frozen=True):
    """What the job is called, where it queues, and whom it tells. Without ``error`` errors go to ``output``.

    ``after``: jobs that it waits for; ``array``: it is an array of these tasks; ``begin``: not before, as the batch
    system writes a time; ``nodes``: these alone, a property of nodes to Torque. ``exclusive``: nobody else is on its
    nodes. ``environment``: that of the submission is copied, all of it or these variables. ``before``, ``afterwards``:
    commands that the job runs once, on its first node and outside of the image, before the program and after it.
    ``storage``: the class of the file system that the program is to see.
    """

    name: JobName | None = None
    queue: Text = ""
    account: Text = ""
    output: JobFile | None = None
    error: JobFile | None = None
    email: Email | None = None
    notify: list[Event] = []
    qos: HeaderWord | None = None
    after: WaitsFor | None = None
    array: ArrayTasks | None = None
    begin: HeaderWord | None = None
    nodes: HeaderWord | None = None
    exclusive: bool = False
    environment: bool | list[EnvName] = False
    before: list[Text] = []
    afterwards: list[Text] = []
    storage: StorageClass | None = None


class RequestedRun(Record, frozen=True):
    """The program and its arguments, word for word. ``mpi``: whether it is started as MPI ranks."""

    command: list[Text] = []
    arguments: list[Text] = []
    mpi: bool | None = None


class Build(Record, frozen=True):
    """The program's own source, and how it is built in the image.

    ``src``: a git repository, pinned by ``commit`` or as ``URL@COMMIT``, or a file such as a tar archive, pinned by
    ``sha256`` or as ``URL#sha256=HASH``.
    """

    src: Url
    build_command: ShellLines
    commit: Commit | None = None
    sha256: Sha256 | None = None
    parallelism: Count = 1

    @property
    def text(self) -> str:
        """The build command with ``{{BUILD_PARALLELISM}}`` replaced, and nothing else."""
        return self.build_command.replace(PARALLELISM, str(self.parallelism))


class OptimiseRequest(Record, frozen=True):
    """A request. ``framework`` or ``stack`` says what is run; ``site`` or ``infrastructure`` where.

    ``version``: a range of the framework's; a bare ``2.1`` is read as ``==2.1.*``. ``backend``: what Keras computes
    with. ``install``: the ways that may be chosen, all where none is named. ``tune``: runs may try settings out.
    ``container``: an image that is there already and is started as it is. ``compile``: false where nothing may be
    compiled but the request's own program.
    """

    kind: Kind
    framework: Framework | None = None
    version: VersionRange = ""
    backend: Framework | None = None
    stack: Reference | None = None
    container: NamedImage | None = None
    mpi: Mpi = Mpi()
    site: Reference | None = None
    partition: Name | None = None
    scheduler: SchedulerName | None = None
    hardware: RequestedHardware = RequestedHardware()
    infrastructure: Infrastructure | None = None
    goal: Literal["time", "throughput", "efficiency"] = "time"
    workload: RequestedWorkload = RequestedWorkload()
    limits: Limits = Limits()
    compilers: Compilers = Compilers()
    install: list[Literal["hub", "pip", "source"]] = []
    compile: bool = True
    tune: bool = False
    job: JobWishes = JobWishes()
    run: RequestedRun = RequestedRun()
    build: Build | None = None
