"""Nodes of a site and the network between them: CPUs, memory, GPUs, fabric."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import AbsolutePath, Count, Gigabytes, Name, Record, Text, Version, matching


class Cpu(Record, frozen=True):
    """CPUs of one node. ``target`` is archspec's name; ``cores`` counts the whole node.

    ``system_cores``: those of them that the batch system keeps for the system, so that no job gets them.
    """

    target: Name
    cores: Count
    model: Text = ""
    sockets: Count = 1
    numa_domains: Count | None = None
    threads_per_core: Count = 1
    system_cores: Count | None = None

    @property
    def for_jobs(self) -> int:
        """The cores that jobs get."""
        return max(1, self.cores - (self.system_cores or 0))


class Memory(Record, frozen=True):
    """Memory of one node in GB; ``usable_gb`` is what a job may take before the node suffers.

    ``shared_gb``: the size of /dev/shm. ``locked_gb``: what a process of a job may lock in its place (``ulimit -l``),
    or ``unlimited``.
    """

    total_gb: Gigabytes
    usable_gb: Gigabytes | None = None
    shared_gb: Gigabytes | None = None
    locked_gb: Gigabytes | Literal["unlimited"] | None = None


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


CopyDevice = Literal["/dev/gdrdrv", "/dev/xpmem"]
"""A device of a kernel module that copies without a detour: gdrdrv of NVIDIA's gdrcopy from and to the memory of GPUs,
XPMEM between the ranks of a node."""


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
    ``tiles``: the parts of each that programs may take for devices of their own (two of Intel's Max 1550).
    """

    vendor: GpuVendor
    model: Text
    count: Count = 1
    tiles: Count = 1
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


InterfaceName = Annotated[
    str, matching(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$(?!\n)", "a network interface as `ip link` has it", "ib0")
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
