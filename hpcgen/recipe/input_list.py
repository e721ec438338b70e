"""The inputs of a build, one line each: for people who must approve them, and for those who carry them."""

from __future__ import annotations

from typing import NamedTuple

from hpcgen.recipe.stages import Assembly


class InputRow(NamedTuple):
    """One input: the block that needs it, its kind, its name, where it is fetched from, and what pins it."""

    block: str
    kind: str
    name: str
    origin: str
    pinned_by: str


def input_list(assembly: Assembly) -> list[InputRow]:
    """Base images, OS packages, then the inputs of each block in build order."""
    rows = []
    for stage in (assembly.builder, assembly.final):
        rows += [InputRow(stage.name, *each) for each in stage.image.pinned()]
    for stage_name, names in assembly.packages.items():
        rows += [InputRow(stage_name, "package", name, "the distribution", "name") for name in names]
    for block, item in assembly.inputs:
        rows += [InputRow(block.label, *each) for each in item.pinned()]
    return list(dict.fromkeys(rows))
