"""hpcgen: HPC container recipes from a site profile and a software stack.

    import hpcgen

    kit = hpcgen.render(hpcgen.plan("supermuc", "tf-horovod", nodes=8))
    hpcgen.write_kit(kit, "kit")

Names are loaded when they are first used, so that the command starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgen._version import __version__

if TYPE_CHECKING:
    from hpcgen.api import load_site, load_stack, lock, plan, render, write_kit
    from hpcgen.api.images import build, follow, run, submit, test
    from hpcgen.blocks.base import Block, BlockOptions, need
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.errors import (
        BuildFailedError,
        ConflictError,
        FetchError,
        HpcgenError,
        InputError,
        JobFailedError,
        MissingToolError,
        OutputError,
        PolicyError,
        Position,
        Problem,
        TestFailedError,
        UnknownNameError,
    )
    from hpcgen.core.model.job import JobRequest, Queueing
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import BuildRecord, TestRun
    from hpcgen.core.model.site import Site
    from hpcgen.core.model.stack import Stack
    from hpcgen.kit.kit import Kit
    from hpcgen.kit.lockfile.lock import read_lock

__all__ = [
    "Block",
    "BlockOptions",
    "BuildFailedError",
    "BuildRecord",
    "Catalog",
    "ConflictError",
    "FetchError",
    "HpcgenError",
    "InputError",
    "JobFailedError",
    "JobRequest",
    "Kit",
    "Lock",
    "MissingToolError",
    "OutputError",
    "Plan",
    "PolicyError",
    "Position",
    "Problem",
    "Queueing",
    "Site",
    "Stack",
    "TestFailedError",
    "TestRun",
    "UnknownNameError",
    "__version__",
    "build",
    "follow",
    "load_site",
    "load_stack",
    "lock",
    "need",
    "plan",
    "read_lock",
    "render",
    "run",
    "submit",
    "test",
    "write_kit",
]

_PLACES = {
    "hpcgen.api": ("load_site", "load_stack", "lock", "plan", "render", "write_kit"),
    "hpcgen.api.images": ("build", "follow", "run", "submit", "test"),
    "hpcgen.blocks.base": ("Block", "BlockOptions", "need"),
    "hpcgen.catalog.catalog": ("Catalog",),
    "hpcgen.core.errors": (*(name for name in __all__ if name.endswith("Error")), "Position", "Problem"),
    "hpcgen.kit.kit": ("Kit",),
    "hpcgen.kit.lockfile.lock": ("read_lock",),
    "hpcgen.core.model.job": ("JobRequest", "Queueing"),
    "hpcgen.core.model.lock": ("Lock",),
    "hpcgen.core.model.plan": ("Plan",),
    "hpcgen.core.model.record": ("BuildRecord", "TestRun"),
    "hpcgen.core.model.site": ("Site",),
    "hpcgen.core.model.stack": ("Stack",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hpcgen' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
