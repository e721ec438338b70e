"""What was read of an image that anybody may have built: each fact with the file of the image that shows it.

None of it was run, and all of it is a stranger's word. What is not known is None or absent, never guessed.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Shown(msgspec.Struct, frozen=True, order=True):
    """A fact, and what shows it: a file of the image, a package's name with its database, or its configuration."""

    value: str
    file: str


class ImagePackage(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """A package of an image.

    ``where``: the folder or database that says so; of a lock, its part. ``source``, ``source_version``: the source
    package that a package of the distribution is built from, and its version.
    """

    kind: Literal["os", "python", "conda"]
    name: str
    version: str
    where: str
    source: str = ""
    source_version: str = ""


class ImageSoftware(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of software by the file that it was known by. ``version`` is None where nothing shows it."""

    name: str
    file: str
    version: Shown | None = None


KMP_RUNTIMES = ("libiomp5", "libomp")
"""The runtimes of OpenMP that read variables ``KMP_…``: Intel's and LLVM's."""

MpiAbi = Literal["mpich", "openmpi", "mpi5"]
Variant = Literal["cuda", "rocm", "xpu", "cpu"]


class ImageMpi(ImageSoftware, frozen=True, kw_only=True):
    """A library of MPI; ``name`` is its family.

    ``abi``: whose binary interface it has, as profiles say it of hosts. ``pmi``: how its ranks can be told of each
    other, as far as a file shows it. ``header``: the version that an ``mpi.h`` beside it names. ``uses``: libraries of
    fabrics that it loads.
    """

    soname: str
    abi: MpiAbi
    pmi: list[Shown] = []
    header: Shown | None = None
    uses: list[Shown] = []


class ImageSystem(msgspec.Struct, frozen=True):
    """The distribution, for which processor it is, and its C library.

    ``c_library``: that which the image's shell asks for: ``glibc`` or ``musl``. ``cxx``: the newest symbol version of
    GCC's C++ library. ``cpu``: the levels of x86-64 that files ask for in their notes, above the baseline.
    """

    distribution: Shown | None = None
    release: Shown | None = None
    title: Shown | None = None
    architecture: Shown | None = None
    c_library: ImageSoftware | None = None
    cxx: Shown | None = None
    cpu: list[Shown] = []


class ImageSettings(msgspec.Struct, frozen=True):
    """What its configuration has a container do; variables that may be secrets have no value here.

    ``shown_by``: the configuration of the image, or the files that engines keep it in. Lists are None where nothing
    that was read would say it.
    """

    shown_by: list[str] = []
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    folder: str | None = None
    user: str | None = None
    ports: list[str] | None = None
    environment: dict[str, str] = {}
    labels: dict[str, str] = {}


class ImageFabric(msgspec.Struct, frozen=True):
    """What it brings for networks: libraries, libfabric's providers, UCX's transports, drivers of verbs."""

    libraries: list[ImageSoftware] = []
    providers: list[Shown] = []
    transports: list[Shown] = []
    verbs: list[Shown] = []


class GpuCode(msgspec.Struct, frozen=True):
    """For which GPUs a file has code.

    ``cubins``: compute capabilities (``9.0``) of machine code. ``ptx``: those of code that a newer driver translates.
    ``gfx``: targets of AMD. ``by``: ``code`` is the code itself, ``list`` a list that the software keeps of it.
    """

    file: str
    by: Literal["code", "list"]
    cubins: list[str] = []
    ptx: list[str] = []
    gfx: list[str] = []


class ImageGpu(msgspec.Struct, frozen=True):
    """What it brings for GPUs. ``libraries``: by product: ``cuda``, ``cudnn``, ``nccl``, ``compat``, ``rocm`` …"""

    libraries: list[ImageSoftware] = []
    code: list[GpuCode] = []


class ImageFramework(ImageSoftware, frozen=True, kw_only=True):
    """A framework; ``variant``: what it computes on, with the release of CUDA or ROCm that it was built with."""

    variant: Variant | None = None
    built_with: Shown | None = None


class FolderSize(msgspec.Struct, frozen=True):
    """Bytes and files below a folder of the image, before compression."""

    folder: str
    bytes: int
    files: int


class ImageFacts(msgspec.Struct, frozen=True):
    """All that was read of one image.

    ``unread``: what was there and could not be read, or was too large, in words. ``pmi``: libraries through which ranks
    can be told of each other. ``openmp``: its runtimes. ``folders``: the largest, which overlap.
    """

    system: ImageSystem
    settings: ImageSettings
    mpi: list[ImageMpi] = []
    pmi: list[ImageSoftware] = []
    fabric: ImageFabric = ImageFabric()
    gpu: ImageGpu = ImageGpu()
    openmp: list[ImageSoftware] = []
    python: list[ImageSoftware] = []
    frameworks: list[ImageFramework] = []
    compilers: list[ImageSoftware] = []
    jupyter: list[ImageSoftware] = []
    packages: list[ImagePackage] = []
    folders: list[FolderSize] = []
    unread: list[str] = []
