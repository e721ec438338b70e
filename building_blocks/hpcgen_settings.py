"""A module that programs import so that variables can switch what PyTorch only offers in code."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH

_MODULE = "hpcgen_settings.py"
_FOLDER = "import sysconfig; print(sysconfig.get_path('purelib'))"


class HpcgenSettings(Block):
    """``import hpcgen_settings``: channels last, compile mode, freezing, precision, each by a variable.  Source: hpcgen

    The program calls ``prepared(model)``, ``laid_out(batch)`` and ``lower()``, which do nothing until a variable
    ``HPCGEN_…`` is set, as in ``run.environment``. So one program can be measured with each setting, and nothing
    happens unasked.
    """

    name = "hpcgen_settings"
    needs = (need("python"), need("pytorch"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the module is a file of the kit."""
        return []

    def build(self, ctx: Context) -> Iterable[Run]:
        """The module, among those of the image's Python."""
        python = f"{ctx.use('python').prefix}/bin/python"
        text = TextFile(f"files/{_MODULE}", f"{SCRATCH}/{_MODULE}", ctx.text_file(_MODULE))
        yield run("hpcgen_settings", text, f'cp {SCRATCH}/{_MODULE} "$({command(python, "-c", _FOLDER)})/"')

    def test(self, ctx: Context) -> list[Test]:
        """A switch does what it says, and nothing happens without one."""
        made = "import torch, hpcgen_settings as s; w = s.prepared(torch.nn.Conv2d(3, 8, 3)).weight; "
        made += "print('channels last:', w.is_contiguous(memory_format=torch.channels_last))"
        words = [f"{ctx.use('python').prefix}/bin/python", "-c", made]
        switched = command("env", "HPCGEN_CHANNELS_LAST=1", *words)
        plain = command("env", "-u", "HPCGEN_CHANNELS_LAST", *words)
        return [
            Test("a switch", switched, expect="channels last: True"),
            Test("no switch", plain, expect="channels last: False"),
        ]
