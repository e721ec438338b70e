"""hwloc, which tells MPI and PMIx where cores and caches are."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Run, Runtime, Test, command, run
from hpcgen.model.image_paths import SCRATCH


class Hwloc(Block):
    """Portable Hardware Locality, from what Linux itself says.  Source: https://www.open-mpi.org/projects/hwloc

    Without the libraries of PCI, XML, pictures and GPUs: devices are found in sysfs, and its own reader of XML is
    enough for MPI.
    """

    name = "hwloc"
    needs = (need("gnu", build_only=True),)

    def environment(self, ctx: Context) -> Environment:
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/hwloc"
        without = ("cairo", "libxml2", "pci", "libudev", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl")
        settings = [f"--disable-{name}" for name in without]
        settings += ["--without-x", "--disable-static", "--disable-dependency-tracking"]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cd", source),
            command("./configure", f"--prefix={ctx.prefix}", *settings),
            f'make -C {source} -j "$(nproc)"',
        )
        yield run("install", command("make", "-C", source, "install"), command("rm", "-rf", source))

    def runtime(self, ctx: Context) -> Runtime:
        """Everything: ``hwloc-bind --get`` shows where a rank really runs."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It is this version and sees the machine."""
        return [
            Test("version", "lstopo-no-graphics --version", expect=ctx.version),
            Test("machine", "hwloc-info", expect="Machine"),
        ]
