"""The image's MPI sends from the memory of GPUs by default, where the image has CUDA or ROCm for its programs anyway.

Which blocks are there is known once they are chosen: then those that can are chosen again with that option, and the
plan is kept where nothing else of it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from packaging.version import Version

from hpcgen.blocks.base import Facts
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.planning.agreement import Settings


def with_gpu_memory(
    resolve: Callable[[Settings], list[PlannedBlock]],
    catalog: Catalog,
    facts: Facts,
    stack: Stack,
    said: Settings,
    blocks: list[PlannedBlock],
) -> list[PlannedBlock]:
    """The blocks, of which MPI and what it sends by know the GPUs' memory.

    They stay as they are where the host's MPI takes the place of the image's, where the stack or ``--set`` says such an
    option of any of them, and where another block or release would have to change.

    ``resolve``: chooses the blocks, with settings beside those of the stack. ``said``: what ``--set`` says.
    """
    options = _options(catalog, blocks)
    replaced = facts.mpi is not None and facts.mpi.shown_inside
    if replaced or not stack.run.mpi or any(_is_said(catalog, stack, said, each) for each in options):
        return blocks
    more = {name: dict(values) for name, values in said.items()}
    for name, option in options.items():
        more.setdefault(name, {})[option] = "true"
    try:
        found = resolve(more) if options else blocks
    except HpcgenError:
        return blocks
    there = {each.name: each for each in found}
    same = [each.name in there and there[each.name].version == each.version for each in blocks]
    kept = [there[each.name].options == each.options for each in blocks if each.name not in options and all(same)]
    return found if all(same) and all(kept) else blocks


def _options(catalog: Catalog, blocks: Sequence[PlannedBlock]) -> dict[str, str]:
    """By block the option with which it knows the memory of the GPUs whose run time is among the blocks.

    Programs over MPI have use for it where their MPI does.
    """
    versions = {each.name: each.version for each in blocks if catalog.has_block(each.name)}
    found = {
        name: option
        for name, version in versions.items()
        for runtime, (option, since) in catalog.block(name).gpu_memory.items()
        if runtime in versions and Version(version) >= Version(since)
    }
    able = any("mpi" in catalog.block(name).provides for name in found)
    over_mpi = [name for name in found if any(each.name == "mpi" for each in catalog.block(name).needs)]
    return {name: option for name, option in found.items() if able or name not in over_mpi}


def _is_said(catalog: Catalog, stack: Stack, said: Settings, name: str) -> bool:
    """Whether somebody decided; an image that is added to says all its options."""
    own = {option for option, _ in catalog.block(name).gpu_memory.values()}
    return bool(own & {*said.get(name, {}), *stack.blocks.get(name, StackBlock()).options})
