"""A module that programs import so that variables can switch what PyTorch and SciPy only offer in code."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.steps import Input, Run, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH

_MODULE = "hpcgen_settings.py"
_AT_START = "hpcgen_settings.pth"
_TORCH = "import importlib.util as found; torch = __import__('torch') if found.find_spec('torch') else None"
_FOLDER = "import sysconfig; print(sysconfig.get_path('purelib'))"


class HpcgenSettings(Block):
    """``import hpcgen_settings``: what PyTorch and SciPy only offer in code, each by a variable.  Source: hpcgen

    The program calls ``prepared(model)``, ``laid_out(batch)`` and ``lower()``, which do nothing until a variable
    ``HPCGEN_…`` is set, as in ``run.environment``. So one program can be measured with each setting, and nothing
    happens unasked. What holds for a whole process (precision, TF32, freezing, the threads of scipy.fft) also works in
    programs that cannot be changed, if the image's Python imports the module by itself.
    """

    name = "hpcgen_settings"
    needs = (need("python"),)

    class Options(BlockOptions, frozen=True):
        """``automatic``: every start of the image's Python imports it; it does nothing before torch or scipy.fft is."""

        automatic: bool = False

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the module is a file of the kit."""
        return []

    def build(self, ctx: Context) -> Iterable[Run]:
        """The module, among those of the image's Python, and what imports it."""
        files = [TextFile(f"files/{_MODULE}", f"{SCRATCH}/{_MODULE}", ctx.text_file(_MODULE))]
        if ctx.options.automatic:
            files.append(TextFile(f"files/{_AT_START}", f"{SCRATCH}/{_AT_START}", "import hpcgen_settings\n"))
        names = " ".join(each.target for each in files)
        yield run("hpcgen_settings", *files, f'cp {names} "$({command(*_python(ctx, _FOLDER))})/"')

    def test(self, ctx: Context) -> list[Test]:
        """A switch does what it says, and nothing happens without one; without PyTorch that it is read."""
        made = f"{_TORCH}; import hpcgen_settings as s; "
        made += "last = torch and s.prepared(torch.nn.Conv2d(3, 8, 3)).weight.is_contiguous(memory_format="
        made += "torch.channels_last); print('channels last:', last if torch else 'HPCGEN_CHANNELS_LAST' in s.SWITCHES)"
        words = _python(ctx, made)
        switched = command("env", "HPCGEN_CHANNELS_LAST=1", *words)
        plain = command("env", "-u", "HPCGEN_CHANNELS_LAST", *words)
        return [
            Test("a switch", switched, expect="channels last: True"),
            Test("no switch", plain, expect="channels last: False"),
            *self._automatic(ctx),
        ]

    def _automatic(self, ctx: Context) -> list[Test]:
        """A program that knows nothing of the module has what a variable says."""
        if not ctx.options.automatic:
            return []
        asked = f"{_TORCH}; import sys; read = sys.modules['hpcgen_settings'].SWITCHES['HPCGEN_MATMUL_PRECISION']; "
        asked += "print('products:', torch.get_float32_matmul_precision() if torch else read)"
        switched = command("env", "HPCGEN_MATMUL_PRECISION=high", *_python(ctx, asked))
        return [Test("automatic", switched, expect="products: high")]


def _python(ctx: Context, code: str) -> list[str]:
    """The image's Python with something to run."""
    return [f"{ctx.use('python').prefix}/bin/python", "-c", code]
