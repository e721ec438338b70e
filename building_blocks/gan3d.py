"""A small 3DGAN on synthetic calorimeter showers: the workload that the stack 3dgan runs as a test."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Runtime, Test, TextFile, command, run

PROGRAMS = ("gan3d_step.py", "make_showers.py")
SHAPES = """\
import sys, tempfile
sys.path.insert(0, sys.argv[1])
import gan3d_step, h5py, make_showers, numpy, tensorflow
with tempfile.NamedTemporaryFile() as file:
    make_showers.write(file.name, 4, 1)
    with h5py.File(file.name, "r") as data:
        assert data["ECAL"].shape == (4, 25, 25, 25) and data["target"].shape == (4, 2)
        assert numpy.array_equal(data["ECAL"], make_showers.showers(4, 1)[0])
made = gan3d_step.generator()(tensorflow.zeros([2, gan3d_step.LATENT + 1]))
seems, energy = gan3d_step.discriminator()(made)
print("made", made.shape, "judged", seems.shape, energy.shape)"""


class Gan3d(Block):
    """Trains a three-dimensional GAN over Horovod on showers that it makes itself.  Source: hpcgen

    The data has the names and shapes of CERN's calorimeter showers (ECAL, target); the networks are small and written
    for this test. It reports showers per second for each rank and for the job, for weak scaling.
    """

    name = "gan3d"
    needs = (need("python"), need("tensorflow", ">=2.3"), need("horovod"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the programs are files of the kit, and h5py comes with TensorFlow."""
        return []

    def build(self, ctx: Context) -> Iterable[Run]:
        share = f"{ctx.prefix}/share"
        files = [TextFile(f"files/tests/{name}", f"{share}/{name}", ctx.text_file(name)) for name in PROGRAMS]
        yield run("training step", *files, TextFile("files/tests/gan3d_shapes.py", f"{share}/shapes.py", f"{SHAPES}\n"))

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """Showers are written and the same again, and both networks compute."""
        python, share = f"{ctx.use('python').prefix}/bin/python", f"{ctx.prefix}/share"
        return [
            Test("showers and networks", command(python, f"{share}/shapes.py", share), expect="made (2, 25, 25, 25, 1)")
        ]
