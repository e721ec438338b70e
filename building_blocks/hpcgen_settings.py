"""A module that programs import so that variables can switch what PyTorch only offers in code."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.steps import Input, Run, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH

_MODULE = "hpcgen_settings.py"
_AT_START = "hpcgen_settings.pth"
_FOLDER = "import sysconfig; print(sysconfig.get_path('purelib'))"


class HpcgenSettings(Block):
    """``import hpcgen_settings``: channels last, compile mode, freezing, precision, each by a variable.  Source: hpcgen

    The program calls ``prepared(model)``, ``laid_out(batch)`` and ``lower()``, which do nothing until a variable
    ``HPCGEN_…`` is set, as in ``run.environment``. So one program can be measured with each setting, and nothing
    happens unasked. What holds for a whole process (precision, TF32, freezing) also works in programs that cannot be
    changed, if the image's Python imports the module by itself.
    """

    name = "hpcgen_settings"
    needs = (need("python"), need("pytorch"))

    class Options(BlockOptions, frozen=True):
        """``automatic``: every start of the image's Python imports it, which does nothing before torch is imported."""

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
        """A switch does what it says, and nothing happens without one."""
        made = "import torch, hpcgen_settings as s; w = s.prepared(torch.nn.Conv2d(3, 8, 3)).weight; "
        made += "print('channels last:', w.is_contiguous(memory_format=torch.channels_last))"
        words = _python(ctx, made)
        switched = command("env", "HPCGEN_CHANNELS_LAST=1", *words)
        plain = command("env", "-u", "HPCGEN_CHANNELS_LAST", *words)
        return [
            Test("a switch", switched, expect="channels last: True"),
            Test("no switch", plain, expect="channels last: False"),
            *self._automatic(ctx),
        ]

    def _automatic(self, ctx: Context) -> list[Test]:
        """A program that knows nothing of the module has the precision that a variable says."""
        if not ctx.options.automatic:
            return []
        asked = "import torch; print('products:', torch.get_float32_matmul_precision())"
        switched = command("env", "HPCGEN_MATMUL_PRECISION=high", *_python(ctx, asked))
        return [Test("automatic", switched, expect="products: high")]


def _python(ctx: Context, code: str) -> list[str]:
    """The image's Python with something to run."""
    return [f"{ctx.use('python').prefix}/bin/python", "-c", code]
