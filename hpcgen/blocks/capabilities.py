"""What blocks can do for a host, or ask of it; the contract holds it against the site's profile."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from hpcgen.core.model.caches import Cache
from hpcgen.core.model.nodes import CopyDevice


class Licence(msgspec.Struct, frozen=True):
    """A licence that the user must accept before a build.

    name: what is typed and recorded, such as ``intel-simplified``.
    title: its full name.
    url: where it can be read.
    """

    name: str
    title: str
    url: str


INTEL_SIMPLIFIED = Licence(
    "intel-simplified",
    "Intel Simplified Software License",
    "https://software.intel.com/en-us/license/intel-simplified-software-license",
)
INTEL_EULA = Licence(
    "intel-eula",
    "Intel End User License Agreement",
    "https://www.intel.com/content/www/us/en/developer/articles/license/end-user-license-agreement.html",
)


class GpuUnused(msgspec.Struct, frozen=True):
    """Why programs leave the GPUs of the node alone.

    ``reason``: for people, after "computes on the CPU: ". ``by_driver``: the node's driver is why, so that another one
    would change it.
    """

    reason: str
    by_driver: bool = False


COPY_DEVICES: dict[str, CopyDevice] = {"gdrcopy": "/dev/gdrdrv", "xpmem": "/dev/xpmem"}
"""The device by which a library of UCX copies, by the name of its block and of UCX's option."""


class Capabilities(msgspec.Struct, frozen=True):
    """Of one block as it was chosen; what is empty says nothing.

    mpi_abi: ``mpich`` or ``openmpi``, of a block that provides MPI. The image's launcher and its ranks are treated as
        those of MPICH or Open MPI accordingly. ``mpi5``: programs are linked with the standard's library; then they are
        treated by ``mpi_flavour``.
    linked_mpi: ``mpi5`` where all programs of a block that needs MPI are linked with the standard's library
        (:mod:`hpcgen.blocks.standard_mpi`); without it they are taken to be linked with the MPI's own.
    mpi_library: the name (SONAME) of the library that programs are linked with, such as ``libmpi.so.12``.
    pmi: how its ranks can be told about each other: ``pmi``, ``pmi2``, ``pmix``, ``hydra``.
    providers: fabric providers that work in the image, by libfabric's names; ``ucx`` for UCX. Said by the block
        that brings them, which need not be the one that provides MPI; a plan has those of all its blocks.
    licences: what must be accepted before it is built.
    gpu_vendors: whose GPUs its programs can compute on; said by the class's ``gpu_vendor`` where it is said there.
    gpu_runtime: the vendor of GPUs whose run-time library (CUDA's, HIP's) it puts where the loader finds it, as a
        host's MPI that sends memory of GPUs needs it; wheels of a framework keep theirs for themselves.
    gpu_memory: the vendor of GPUs from and to whose memory it sends, of MPI and of what that sends by.
    gpu_unused: why its programs leave the GPUs of the node alone, which others of its releases or options may use;
        None where they use them, or there are none. A notice of the image says it.
    gpu_collectives: the library of collectives between GPUs that it is, such as ``NCCL``, which does not go by MPI.
    gpu_networks: those of ``NCCL_NET`` by which it lets GPUs reach other nodes: ``IB`` with the libraries of verbs,
        ``AWS Libfabric`` for the plugin.
    cpu_collectives: the library by which its processes on several nodes compute together on CPUs, where that is neither
        MPI nor over it: ``Gloo``.
    private_mpi: the name (SONAME) of an MPI library that it brings for its own programs alone, and that no other may
        replace: what a host or another block has under that name has another binary interface.
    thread_variables: variables by which a framework is told the threads of its pools, where it does not read
        ``OMP_NUM_THREADS``; the job sets each to the threads of a rank.
    caches: what its programs keep beside their results; a job says where (:mod:`hpcgen.blocks.caches` has those of
        well-known software).
    kmp: it brings Intel's or LLVM's OpenMP, which reads variables ``KMP_…``, or may bring it: a conda environment.
    host_settings: of a block that provides MPI, variables by which a host's installation would have it look for its
        files in folders that are not the image's, or take plugins that it has not; they are kept out where the image's
        own MPI is used.
    malloc: the allocator that it puts before every program of the image, such as ``tcmalloc``.
    not_with_malloc: allocators before its programs with which these crash, and what they say then.
    mpi_flavour: which software an MPI is, in the words of a profile's ``mpi.flavour``: versions of the same compare.
    """

    mpi_abi: str = ""
    mpi_library: str = ""
    pmi: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    licences: tuple[Licence, ...] = ()
    mpi_flavour: str = ""
    gpu_vendors: tuple[str, ...] = ()
    gpu_runtime: str = ""
    gpu_memory: str = ""
    gpu_unused: GpuUnused | None = None
    gpu_collectives: str = ""
    gpu_networks: tuple[str, ...] = ()
    cpu_collectives: str = ""
    private_mpi: str = ""
    linked_mpi: str = ""
    thread_variables: tuple[str, ...] = ()
    caches: tuple[Cache, ...] = ()
    kmp: bool = False
    host_settings: tuple[str, ...] = ()
    malloc: str = ""
    not_with_malloc: Mapping[str, str] = MappingProxyType({})


UNDER_OLD_DRIVER = "CUDA_COMPAT_RUN"
"""The image's variable with the program that starts a command by a newer CUDA than the node's driver, if that is old.

It looks at the node when it runs; job scripts start the ranks by it.
"""
