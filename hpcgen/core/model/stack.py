"""A stack: one set of software and how it is started."""

from typing import Annotated, Literal

from msgspec.structs import replace

from hpcgen.core.model.fields import (
    Commit,
    Count,
    EnvName,
    Gigabytes,
    Name,
    PlanDefaults,
    RankGpus,
    Record,
    SourceAddress,
    Text,
    VersionRange,
    WholeNumber,
    matching,
)
from hpcgen.core.model.image_paths import COPY_TARGET
from hpcgen.core.model.job import JobStep
from hpcgen.core.model.models import Model

OptionValue = str | int | bool | list[str] | None


class StackBlock(Record, frozen=True):
    """What a stack asks of one block or virtual: versions, options, and for a virtual the provider."""

    version: VersionRange = ""
    options: dict[Name, OptionValue] = {}
    provider: Name | None = None


Staging = Literal["auto", "node", "none"]


class RunSpec(Record, frozen=True):
    """How the stack is started. ``memory_per_rank_gb`` is checked against the partition's usable memory.

    ``command``: the program and its arguments; without one and without steps, each job has to name its own.
    ``steps``: commands that a job starts one after the other, each on all its ranks, in the place of ``command``.
    ``checkpoint``: run in the image, once and on the job's first node, when the time limit is near; it returns when the
    program's state is written.
    ``gpus_per_node``: how many GPUs of a node the program uses; 0: none, so that the job asks for none.
    ``rank_gpus``: what each rank sees, its ``own`` GPUs, or ``all`` of the node where the program chooses by itself.
    ``binds``: data of the host that the program sees inside, which is no part of the image.
    ``models``: models and data sets that are fetched before the job, once for all its ranks.
    ``stage``: whether the image's file is copied to each node before the start: ``auto`` decides by its size and the
    number of nodes.
    """

    command: list[Text] = []
    steps: list[JobStep] = []
    mpi: bool = True
    environment: dict[EnvName, Text] = {}
    memory_per_rank_gb: Gigabytes | None = None
    ranks_per_node: Count | None = None
    gpus_per_node: WholeNumber | None = None
    rank_gpus: RankGpus = "own"
    checkpoint: list[Text] = []
    binds: list[Text] = []
    models: list[Model] = []
    stage: Staging = "auto"


CopyTarget = Annotated[
    str,
    matching(
        rf"^{COPY_TARGET}$(?!\n)",
        "a path in the image, /app, /data or below /opt (not /opt/hpcgen), of letters, digits and . _ + -",
        "/opt/models",
    ),
]


CopySource = Annotated[
    str,
    matching(
        r"^(?!/)[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$(?!\n)",
        "a path from the folder of the stack's file, without control characters",
        "models",
    ),
]


class Copied(Record, frozen=True, rename={"from_": "from"}):
    """A file or folder that goes into the image.

    ``from_``: its path from the folder of the stack's file. ``to``: what it becomes in the image, a folder's content
    below it. ``ignore``: patterns of what stays behind, with ``*``, ``?`` and ``[…]``, each held against the path from
    ``from_`` and against the name alone; of a folder all that is in it. ``.git``, ``__pycache__`` and images
    of hpcgen's always stay, and what the folder's own ``.hpcgenignore`` names, a pattern a line.
    ``not_secret``: patterns of files of a folder that are copied although files of such names may hold secrets.
    """

    from_: CopySource
    to: CopyTarget
    ignore: list[Text] = []
    not_secret: list[Text] = []


class GitSource(Record, frozen=True, rename={"from_": "from"}):
    """A git repository whose files go into the image, as they are at ``commit``, without its submodules."""

    from_: SourceAddress
    commit: Commit
    to: CopyTarget


class BuildSpec(Record, frozen=True, rename={"in_": "in"}):
    """How code that ``copy`` and ``git`` bring is compiled, in the builder stage, after all blocks.

    ``in_``: the folder where the commands run, which the image keeps as they leave it; by default the one place that
    ``copy`` and ``git`` fill. ``commands``: each a whole command of bash on one line. ``mpi``: the program is linked
    with the image's MPI. ``fast_math``: with ``-ffast-math``, which gives other results. ``flags``: more words for the
    compilers, after those for the CPU.
    """

    commands: list[Text]
    in_: CopyTarget | None = None
    mpi: bool = False
    fast_math: bool = False
    flags: list[Text] = []


class Suited(Record, frozen=True):
    """What ``hpcgen optimise`` may take a stack for: programs of these kinds that use the framework.

    ``compiler``: the graph compiler that computes then; ``settings``: what ``--set`` says for that. ``takes``: other
    frameworks whose models it runs once these are converted to ONNX.
    """

    kinds: list[Literal["ai_training", "ai_inference", "hpc", "mpi", "python"]]
    framework: Name | None = None
    compiler: Text = ""
    settings: list[Text] = []
    takes: list[Name] = []


Program = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}(=/[A-Za-z0-9._/+@%:,-]+)?$(?!\n)",
        "a program's name of letters, digits and . _ + -, or NAME=/PATH/IN/THE/IMAGE",
        "train=/app/bin/train",
    ),
]
"""A command that an image gives the host: its name, and where the program is if the image does not find it by that."""


CompletedWord = Annotated[
    str,
    matching(
        r"^-{0,2}[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$(?!\n)",
        "a subcommand or an option: letters, digits and . _ + -, without spaces and =",
        "--epochs",
    ),
]


class OfferedCommand(Record, frozen=True):
    """A command with what shells complete after it: ``words`` are its subcommands and options, beside files."""

    program: Program
    words: list[CompletedWord] = []


class Stack(PlanDefaults, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A stack recipe: blocks in order of importance, the newest that fits is chosen in that order.

    ``copy``, ``git``: local files and repositories that go into the image; ``build``: how they are compiled.
    ``commands``: programs that ``hpcgen install`` makes commands of; by default what ``run`` starts.
    ``open``: what the image still lacks, in words; each plan warns of it.
    ``from_``: an image of others that the stages start from, in the place of a distribution's: one of a registry, by
    ``docker://``, its name and its digest, or one of this machine.
    ``memory``: ``measured``, so that malloc is set where that was measured to gain, or ``plain``.
    ``extends``: the recipe that this one is laid over. ``suits``: what it may be chosen for; no plan has it, nor the
    defaults, which count where the stack is a file of the user's.
    """

    name: Name
    title: Text
    blocks: dict[Name, StackBlock]
    run: RunSpec
    from_: Text | None = None
    copy: list[Copied] = []
    git: list[GitSource] = []
    build: BuildSpec | None = None
    commands: list[Program | OfferedCommand] = []
    memory: Literal["measured", "plain"] = "measured"
    notes: list[Text] = []
    open: list[Text] = []
    extends: Name | None = None
    suits: list[Suited] = []

    def as_planned(self) -> "Stack":
        """The stack as plans have it: without what says nothing of the image and its start."""
        return replace(self, suits=[], open=[], site=None, partition=None, engine=None, account=None)

    @property
    def code_places(self) -> list[tuple[str, int, str]]:
        """Where in the image ``copy`` and ``git`` put what they bring: the field, the number in it, the place."""
        copied = [("copy", number, each.to) for number, each in enumerate(self.copy)]
        return [*copied, *(("git", number, each.to) for number, each in enumerate(self.git))]
