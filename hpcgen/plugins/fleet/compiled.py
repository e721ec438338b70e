"""What members of a fleet compile: how much of it is the same, how much is kept, how long the rest takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.core.errors import HpcgenError
from hpcgen.core.support.units import counted, duration
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.recipe.artifact_recipes import keyed_blocks


def told_of_artifacts(loaded: LoadedFleet, todo: Sequence[MemberState], folder: Path) -> str:
    """A line on the blocks that members have compiled, for whoever waits; each is compiled once.

    Parameters
    ----------
    folder: the store of what was compiled before. How long its artifacts took says how long others of these blocks may.
    """
    # Members may share a plan.
    blocks = {state.content: _keyed(loaded, state) for state in {each.content: each for each in todo}.values()}
    found = dict(pair for pairs in blocks.values() for pair in pairs)
    asked = sum(len(blocks[state.content]) for state in todo)
    kept = {each.record.key: each.record for each in ArtifactStore(folder).records()}
    took = {record.block: record.seconds for record in sorted(kept.values(), key=lambda each: each.made)}
    missing = [block for key, block in found.items() if key not in kept]
    known = [took[block] for block in missing if block in took]
    after = "" if not known else f"; about {duration(sum(known))}" + (" for some" if len(known) < len(missing) else "")
    shared = f"{counted(asked, 'block')} of {counted(len(todo), 'image')} are {len(found)} different ones"
    return f"{shared}: {len(missing)} to compile, {len(found) - len(missing)} in {folder}{after}"


def _keyed(loaded: LoadedFleet, state: MemberState) -> list[tuple[str, str]]:
    """Key and block of what a member compiles; none where that cannot be said, which its build will say."""
    if state.plan is None:
        return []
    try:
        return [(each.key, each.name) for each in keyed_blocks(state.plan, loaded.catalog)]
    except HpcgenError:
        return []
