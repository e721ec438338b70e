"""How a user's project is compiled and started, by its files, each fact with its place."""

from __future__ import annotations

from typing import Literal

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Record, Text, WholeNumber

BuildKind = Literal["cmake", "make", "autotools", "meson", "cargo"]
JobField = Literal[
    "nodes",
    "ranks",
    "ranks_per_node",
    "threads",
    "gpus_per_node",
    "gpus_per_rank",
    "gpus",
    "time",
    "queue",
    "account",
    "name",
    "array",
]


class FileWord(Record, frozen=True):
    """A word of a file and its place; the file by its path from the folder of the project."""

    text: Text
    where: Position


class ProgramFile(Record, frozen=True):
    """A program that a build makes: its path from the project's folder, or below ``$PREFIX/`` where it is installed.

    ``likely``: the same number for those of which nothing in the build says which is the project's; less is likelier.
    """

    path: Text
    where: Position
    likely: WholeNumber = 0

    @property
    def name(self) -> str:
        """Of the file alone."""
        return self.path.rpartition("/")[2]


class WantedLibrary(Record, frozen=True):
    """A library that a build looks for.

    ``asked``: the words of the file: ``find_package(Kokkos 3.0 REQUIRED)``, ``-lfftw3``. ``required``: the build fails
    without it, as far as can be seen. ``parts``: of it, by the file's own names. ``inside``: the libraries that a
    module of the project looks for under its name.
    """

    name: Text
    asked: Text
    where: Position
    required: bool = False
    parts: list[Text] = []
    inside: list[Text] = []


class BuildOption(Record, frozen=True):
    """A switch of a build that is off by default, and that the stack turns on.

    ``word``: what turns it on, a word of the build's command line. ``said``: what the file says of it.
    """

    word: Text
    said: Text
    where: Position


class CompilerFlag(Record, frozen=True):
    """An option of a compiler that code needs.

    ``language``: by CMake's names: CXX, Fortran. ``said``: why it needs it.
    """

    language: Literal["CXX", "Fortran"]
    word: Text
    said: Text
    where: Position


class BuildFile(Record, frozen=True):
    """The programs, options and needs in the files of one build system: CMakeLists.txt, a Makefile, configure.ac, ….

    folder: where the build starts, from the project's folder; empty for that itself.
    mpi, fortran, gpus: what asks for MPI, for a Fortran compiler, and for one of code for GPUs.
    gpu_block: the block that has that compiler, where the build cannot do without.
    programs: that which most likely is the project's first.
    libraries: what is looked for, MPI left out.
    parallel_hdf5: what asks for an HDF5 that is itself over MPI.
    installs: where something is installed.
    minimum: the oldest CMake that it takes.
    options: that are off by default and needed for MPI or threads. ``gpu_option``: one that would compute on GPUs.
    weak: variables of make that the environment or the command line sets (``CC ?= mpicc``), with their values.
    before: commands that come before the build: a configuration that is copied, ``autoreconf -i``.
    tools: packages that the build itself needs, by Debian's names.
    fetches: what is downloaded while it builds.
    stops: what keeps it from being built as the project is now. remarks: what else the user should know.
    fortran_mpi: a source that calls MPI in Fortran.
    flags: options of compilers, which variables of make in ``weak`` have already.
    wrappers: nothing in the files says where MPI's headers are, so that its compilers have to be those of the build.
    target: of make, where its first makes no program.
    """

    file: Text
    kind: BuildKind
    folder: Text = ""
    mpi: FileWord | None = None
    fortran: FileWord | None = None
    gpus: FileWord | None = None
    gpu_block: Text = ""
    programs: list[ProgramFile] = []
    libraries: list[WantedLibrary] = []
    parallel_hdf5: FileWord | None = None
    installs: Position | None = None
    minimum: FileWord | None = None
    options: list[BuildOption] = []
    gpu_option: BuildOption | None = None
    weak: dict[Text, FileWord] = {}
    before: list[FileWord] = []
    tools: list[Text] = []
    fetches: list[FileWord] = []
    stops: list[FileWord] = []
    remarks: list[FileWord] = []
    fortran_mpi: FileWord | None = None
    flags: list[CompilerFlag] = []
    wrappers: bool = False
    target: Text = ""


class JobFact(Record, frozen=True):
    """The request of a directive of a job script, in hpcgen's own words; ``said``: its text."""

    field: JobField
    value: Text
    said: Text
    where: Position


class Launched(Record, frozen=True):
    """A command line that a job script starts.

    words: without the launcher and a container's runtime; variables of the script that are known are put in. Others
        stand there as in a shell, and where the sign itself is meant, ``\\$`` does.
    launcher: what starts its ranks; empty where nothing does.
    facts: what the launcher's options say.
    container, image: the runtime that stood before it, and the image's name.
    before, dropped: other words that stood before it, and what stood behind it, such as a redirection.
    repeated: it stands in a loop, a function or a condition.
    secrets: names of options and variables that are not among the words, because their values may be secret.
    strange: options of the launcher or the runtime that are not known, or whose values are not.
    folder: where the script has gone before (``cd``), from its own folder.
    doubts: variables among the words that have another value if some condition holds.
    unquoted: words that are one such variable without quotes, which is several words, or none, if its value is.
    patterns: words for which a shell would put names of files.
    """

    words: list[Text]
    where: Position
    launcher: Text = ""
    facts: list[JobFact] = []
    container: Text = ""
    image: Text = ""
    before: Text = ""
    dropped: Text = ""
    repeated: bool = False
    secrets: list[Text] = []
    strange: list[Text] = []
    folder: Text = ""
    doubts: list[Text] = []
    unquoted: list[Text] = []
    patterns: list[Text] = []


class JobFile(Record, frozen=True):
    """A job script, or another that starts programs: what it asks of the batch system, and what it starts.

    batch: the batch system by its name in profiles; empty for what is no job script.
    other: directives that say nothing of a job's size.
    variables: that it exports, with plain values. ``secrets``: the names of variables that may be secret.
    sourced: scripts that it reads in. scripts: that it starts and nothing here goes into.
    unclosed: the quote or bracket that is never closed, so that what follows is not read.
    """

    file: Text
    batch: Text
    where: Position
    facts: list[JobFact] = []
    other: list[FileWord] = []
    launched: list[Launched] = []
    variables: list[FileWord] = []
    secrets: list[FileWord] = []
    modules: list[FileWord] = []
    sourced: list[FileWord] = []
    scripts: list[FileWord] = []
    unclosed: Position | None = None


class ImportedName(Record, frozen=True):
    """A module that a Python file imports, or a name in one; relative ones begin with dots.

    ``sure``: the file cannot do without it; not in a function, a condition or where its absence is caught. ``late``: it
    stands in a function or a condition, and its absence is not caught.
    """

    name: Text
    where: Position
    sure: bool = True
    late: bool = False

    @property
    def package(self) -> str:
        """Its first part; empty for a relative one."""
        return self.name.partition(".")[0]


class PythonSource(Record, frozen=True):
    """A Python file.

    program: where it asks whether it is the program.
    parallel: what says that it computes on several ranks. spawns: what starts them by itself.
    runs: where it does something as it is read, without a function.
    interface: what reads its command line. old: a name that TensorFlow 1 alone has.
    compiles: what compiles CUDA code when it runs.
    """

    file: Text
    program: Position | None = None
    imports: list[ImportedName] = []
    parallel: FileWord | None = None
    spawns: FileWord | None = None
    runs: Position | None = None
    interface: FileWord | None = None
    old: FileWord | None = None
    compiles: FileWord | None = None


class Readme(Record, frozen=True):
    """What a README shows: programs of the project that it starts, and packages in one version that it installs.

    ``groups``: extras with which it installs the project first, those for tests and the like left out. ``system``:
    packages that it installs by apt. ``environments``: files, by their paths from the project's folder, of which it
    makes environments of conda.
    """

    programs: list[FileWord] = []
    installed: list[FileWord] = []
    groups: list[FileWord] = []
    system: list[FileWord] = []
    environments: list[FileWord] = []


class ProjectTable(Record, frozen=True):
    """The table [project] of pyproject.toml: its name, its line for people, and its commands (``module:function``)."""

    name: FileWord | None = None
    description: FileWord | None = None
    scripts: dict[Text, FileWord] = {}


class BuildBackend(Record, frozen=True):
    """What builds a Python project from pyproject.toml, by its module, and the packages that it asks for then.

    ``of_history``: the version is worked out from the history of the repository, which an image does not have.
    """

    module: FileWord
    requires: list[Text] = []
    of_history: bool = False


class CompiledModules(Record, frozen=True):
    """What setup.py compiles: the modules, what it imports for that, and the first that is for NVIDIA's GPUs."""

    modules: list[FileWord]
    imports: list[FileWord] = []
    cuda: FileWord | None = None
