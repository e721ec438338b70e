"""The smallest form of a block that is enough for all that need it, such as CUDA's libraries without its compiler.

Who needs a block is known only when versions are chosen, but a block's options decide what it needs itself. So a
plan is resolved with the blocks' own defaults first; what then turns out to be enough is made the default, and the
plan is resolved once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcgen.blocks.base import Facts, Situation
from hpcgen.blocks.options import BlockChoice
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.plan import PlannedBlock


def sufficient_options(
    catalog: Catalog,
    facts: Facts,
    choices: Mapping[str, BlockChoice],
    blocks: Iterable[PlannedBlock],
    asked: Iterable[str],
) -> dict[str, dict[str, str]]:
    """Option values that are enough for all that need a block, by the block's name.

    Parameters
    ----------
    blocks: the blocks of a plan. asked: blocks that the stack itself names; those are wanted as a whole.
    """
    said: dict[str, list[Mapping[str, str]]] = {}
    for planned in blocks:
        situation = Situation(facts, choices[planned.name].options)
        for need in catalog.block(planned.name).needs:
            if need.name in planned.needs and (need.when is None or need.when(situation)):
                said.setdefault(planned.needs[need.name], []).append(need.enough)
    common = {
        name: {option: value for option, value in first.items() if all(w.get(option) == value for w in others)}
        for name, (first, *others) in said.items()
        if name not in set(asked)
    }
    return {name: values for name, values in common.items() if values}
