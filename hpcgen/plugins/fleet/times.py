"""How long blocks and images of a fleet took before, from records: those of artifacts, and those of builds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.record import BuildRecord
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.recipe.artifact_recipes import KeyedBlock


class Times:
    """Seconds by what the newest records tell; None where none does.

    ``kept``: records of a store of artifacts. ``states``: members whose builds are looked up, by their site and stack.
    """

    def __init__(self, kept: Iterable[Artifact], states: Sequence[MemberState]) -> None:
        self._kept = {each.block: each.seconds for each in sorted(kept, key=lambda each: each.made)}
        self._builds = _newest(
            {(each.plan.site.name, each.plan.stack.name) for each in states if each.plan is not None}
        )

    def of_block(self, block: KeyedBlock) -> float | None:
        """Of compiling a block, in an image of its own or, where it never was, in an image of a stack."""
        if (kept := self._kept.get(block.name)) is not None:
            return kept
        found = (_compiling(build, block) for build in self._builds.values())
        return next((took for took in found if took), None)

    def of_image(self, state: MemberState, blocks: Sequence[KeyedBlock]) -> float | None:
        """Of building a member's image, but for what is compiled once."""
        assert state.plan is not None
        build = self._builds.get((state.plan.site.name, state.plan.stack.name))
        if build is None:
            return None
        return max(0.0, build.seconds - sum(_compiling(build, each) for each in blocks))


def _compiling(build: BuildRecord, block: KeyedBlock) -> float:
    """Seconds of a block's steps in a build that did not unpack it; 0 where any of them was not run."""
    steps = [each for each in build.steps if each.block == block.label]
    if block.name in build.artifacts or any(each.result != "done" for each in steps):
        return 0.0
    return sum(each.seconds for each in steps)


def _newest(wanted: set[tuple[str, str]]) -> dict[tuple[str, str], BuildRecord]:
    """The newest record of a build that succeeded, by site and stack."""
    from hpcgen.builders.records.store import entries, find

    newest: dict[tuple[str, str], str] = {}
    for head, _ in entries(lambda head: head.result == "built" and (head.site, head.stack) in wanted):
        newest.setdefault((head.site, head.stack), head.id)
    found: dict[tuple[str, str], BuildRecord] = {}
    for which, identity in newest.items():
        # What is no record any more tells nothing; `hpcgen records` says what is wrong with it.
        with suppress(HpcgenError):
            found[which] = find(identity)
    return found
