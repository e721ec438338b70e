"""hpcgen: HPC container recipes from a site profile and a software stack.

    from hpcgen import load_site, load_stack, plan, render

    kit = render(plan(load_site("supermuc"), load_stack("tf-horovod")))
    print(kit.recipe)

Names are loaded when they are first used, so that the command starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgen._version import __version__

if TYPE_CHECKING:
    from hpcgen.api import load_site, load_stack, plan, render
    from hpcgen.blocks.base import Block, BlockOptions, need
    from hpcgen.errors import HpcgenError

__all__ = ["Block", "BlockOptions", "HpcgenError", "__version__", "load_site", "load_stack", "need", "plan", "render"]

_PLACES = {
    "load_site": "hpcgen.api",
    "load_stack": "hpcgen.api",
    "plan": "hpcgen.api",
    "render": "hpcgen.api",
    "Block": "hpcgen.blocks.base",
    "BlockOptions": "hpcgen.blocks.base",
    "need": "hpcgen.blocks.base",
    "HpcgenError": "hpcgen.errors",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        import importlib

        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'hpcgen' has no attribute {name!r}")
