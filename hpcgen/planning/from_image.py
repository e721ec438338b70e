"""A stack that starts from an image of others: what that settles of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from hpcgen.backends.engines import builders
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import BaseImage, Plan
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.planning.question import PlanRequest

PYTHON = "python"


def _on_base(stack: Stack, base: BaseImage) -> Stack:
    """The stack with the distribution of the image that it starts from, and the image's own Python.

    InputError where it asks for another distribution.
    """
    asked = stack.blocks.get(base.block, StackBlock())
    if asked.version not in ("", f"=={base.release}", base.release):
        raise InputError(
            f"the stack asks for {base.block} {asked.version}, and its image is {base.os_id} {base.os_version}",
            f"blocks.{base.block}.version",
            remedy="leave the distribution out of the stack: its image has one",
        )
    blocks = {base.block: replace(asked, version=f"=={base.release}"), **stack.blocks}
    blocks[base.block] = replace(asked, version=f"=={base.release}")
    python, own = base.python, blocks.get(PYTHON, StackBlock())
    if python is not None and not own.version and "obtain" not in own.options:
        options = {**own.options, "obtain": "image"}
        blocks[PYTHON] = StackBlock(version=f"=={python.version}.*", options=options)
    return replace(stack, blocks=blocks)


def planned_on(base: BaseImage | None, asked: PlanRequest, plan: Callable[[PlanRequest], Plan]) -> Plan:
    """The plan of what is asked, without an environment for Python packages where only the image has a Python.

    InputError where the image was not read.
    """
    stack = asked.stack
    if base is None:
        raise InputError("the image that the stack starts from was not read", "from", remedy="plan it by its file")
    asked = replace(asked, stack=_on_base(stack, base))
    found = plan(asked)
    if PYTHON in stack.blocks or any(PYTHON in each.needs.values() for each in found.blocks):
        return found
    blocks = {name: block for name, block in asked.stack.blocks.items() if name != PYTHON}
    return plan(replace(asked, stack=replace(asked.stack, blocks=blocks)))


def check_starts_from(base: BaseImage, format: FormatName) -> None:
    """InputError where no engine that builds recipes of this format starts from an image of this kind."""
    if not base.kind:
        return
    able = [each for each in builders().values() if starts_from(each.adds_to, each.archive_by, base.kind)]
    if any(each.format == format for each in able):
        return
    others = sorted({each.format for each in able})
    kinds = {kind for each in builders().values() if each.format == format for kind in each.adds_to}
    remedy = f"hpcgen convert makes one of the kind {' or '.join(sorted(kinds))} of it"
    raise InputError(
        f"a recipe of the format {format} cannot start from {base.file or base.image}, a {base.kind} image",
        "from",
        remedy=f"{remedy}; or --format {' or '.join(others)}" if others else remedy,
    )


def starts_from(kinds: Iterable[str], archive_by: str, kind: str) -> bool:
    """Whether an engine's builds start from an image of a kind."""
    return kind in kinds or (bool(archive_by) and kind == "oci-archive")
