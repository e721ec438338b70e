"""hwloc, which tells MPI and PMIx where cores and caches are."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Test


class Hwloc(AutotoolsBlock):
    """Portable Hardware Locality, from the information in Linux itself.  Source: https://www.open-mpi.org/projects/hwloc

    Without libraries for PCI, XML, graphics and GPUs: devices are found in sysfs, and its own XML reader is enough for
    MPI.
    """

    name = "hwloc"
    needs = (need("gnu", build_only=True),)

    def settings(self, ctx: Context) -> list[str]:
        without = ("cairo", "libxml2", "pci", "libudev", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl")
        disabled = [f"--disable-{name}" for name in without]
        return [*disabled, "--without-x", "--disable-static", "--disable-dependency-tracking"]

    def test(self, ctx: Context) -> list[Test]:
        """It is this version and sees the machine."""
        return [
            Test("version", "lstopo-no-graphics --version", expect=ctx.version),
            Test("machine", "hwloc-info", expect="Machine"),
        ]
