"""What members of a fleet compile: the different blocks in an order to compile them, and how long all of it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.core.errors import BuildFailedError, HpcgenError, UnknownNameError, did_you_mean
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.record import BuildRecord
from hpcgen.core.support.units import counted, duration
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.recipe.artifact_recipes import KeyedBlock, keyed_blocks


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


class ArtifactJob(msgspec.Struct, frozen=True):
    """A block that is compiled once for all members that have it.

    state: the member whose plan it is compiled by.
    level: 0 where it needs none of the others, else one more than the highest of those that it needs.
    seconds: that it took before; None where nothing tells.
    """

    block: KeyedBlock
    state: MemberState
    level: int
    seconds: float | None

    @property
    def builder(self) -> tuple[str, str | None]:
        """The format of its recipe, and the engine that is asked for."""
        return _builder(self.state)

    @property
    def row(self) -> dict[str, object]:
        """The same for programs, with the options of `hpcgen build` that compile it."""
        block, options = self.block, ["--member", self.state.member.name, "--artifact", self.block.name]
        row = {"key": block.key, "block": block.label, "level": self.level, "needs": sorted(block.needs.values())}
        return {**row, "seconds": self.seconds, "options": options}


class FleetWork(msgspec.Struct, frozen=True):
    """What there is to do before images are built, and with them.

    states: the members that are built.
    wanted: what each of them has compiled, by its name.
    jobs: what is to be compiled, by key, each after all that it needs.
    kept: keys that the store has.
    lost: keys that no member can have compiled here.
    images: seconds of each build that is possible here, without what is compiled; None where nothing tells.
    """

    folder: Path
    states: Sequence[MemberState]
    wanted: dict[str, list[KeyedBlock]]
    jobs: dict[str, ArtifactJob]
    kept: frozenset[str]
    lost: frozenset[str]
    images: dict[str, float | None]

    def only(self, names: Sequence[str]) -> list[ArtifactJob]:
        """The jobs of blocks of these names, or all; UnknownNameError where no member has such a block."""
        known = {block.name for blocks in self.wanted.values() for block in blocks}
        for name in names:
            if name not in known:
                message = f"no image to be built compiles {name!r} in a way that can be stored"
                raise UnknownNameError(message, "--artifact", remedy=did_you_mean(name, sorted(known)))
        return [each for each in self.jobs.values() if not names or each.block.name in names]

    def uncompiled(self, but: Sequence[str]) -> dict[str, HpcgenError]:
        """What an earlier job was to compile and did not, by key: compiled again it would fail again, hours later.

        ``but``: names of blocks that are compiled now.
        """
        remedy = "see the log of the job that compiles it; to compile it here, omit --compiled-before"
        return {
            key: BuildFailedError(
                f"{job.block.label} should have been compiled before, but is not in {self.folder}", remedy=remedy
            )
            for key, job in self.jobs.items()
            if job.block.name not in but
        }

    def lacking(self, failed: Mapping[str, HpcgenError]) -> dict[str, HpcgenError]:
        """The members whose blocks could not be compiled, and why: of those that another engine builds nobody knows.

        ``failed``: what went wrong, by key.
        """
        found: dict[str, HpcgenError] = {}
        for state in self.states:
            for block in self.wanted.get(state.member.name, ()):
                error, job = failed.get(block.key), self.jobs.get(block.key)
                if error is not None and job is not None and job.builder == _builder(state):
                    found.setdefault(state.member.name, error)
        return found

    @property
    def told(self) -> list[str]:
        """What is to be done, how long that takes one after the other, and at the least, for whoever waits."""
        asked = sum(map(len, self.wanted.values()))
        if not asked:
            return []
        different = len(self.jobs) + len(self.kept) + len(self.lost)
        shared = f"{counted(asked, 'block')} of {counted(len(self.states), 'image')} are {different} different ones"
        lost = f", {len(self.lost)} for other machines" if self.lost else ""
        counts = f"{len(self.jobs)} to compile, {len(self.kept)} in {self.folder}{lost}"
        times = [*(each.seconds for each in self.jobs.values()), *self.images.values()]
        lines = [f"{shared}: {counts}; {_all_of(times)}"]
        if self.jobs:
            steps = self.longest
            path = ", then ".join(name for name, _ in steps)
            lines.append(f"critical path: {path}; {_all_of([took for _, took in steps])}")
        return lines

    @property
    def longest(self) -> list[tuple[str, float | None]]:
        """The chain that takes longest, however many machines there are: what is done, and its seconds."""
        ends: dict[str, list[tuple[str, float | None]]] = {}

        def before(needs: Iterable[str]) -> list[tuple[str, float | None]]:
            return max((ends[key] for key in needs if key in ends), key=_length, default=[])

        for key, job in self.jobs.items():
            ends[key] = [*before(job.block.needs.values()), (job.block.label, job.seconds)]
        chains = (
            [*before(block.key for block in self.wanted[name]), (f"the image {name}", took)]
            for name, took in self.images.items()
        )
        return max(chains, key=_length, default=[])


def in_levels(jobs: Sequence[ArtifactJob]) -> list[list[ArtifactJob]]:
    """Jobs that may run at the same time, those of one level after those of the one before."""
    levels = sorted({each.level for each in jobs})
    return [[each for each in jobs if each.level == level] for level in levels]


def _builder(state: MemberState) -> tuple[str, str | None]:
    return state.format, state.member.engine


def _length(chain: Sequence[tuple[str, float | None]]) -> tuple[float, int]:
    """Known seconds, and how much there is of it."""
    return sum(took or 0.0 for _, took in chain), len(chain)


def _all_of(times: Sequence[float | None]) -> str:
    known = [each for each in times if each is not None]
    if not known:
        return "the duration is unknown"
    missing = len(times) - len(known)
    return f"about {duration(sum(known))}" + (f", not counting {missing} of unknown duration" if missing else "")


def fleet_work(
    loaded: LoadedFleet, todo: Sequence[MemberState], folder: Path, able: Callable[[MemberState], bool]
) -> FleetWork:
    """What members have compiled, which of it a store lacks, and who compiles that; each is compiled once.

    ``folder``: the store. How long its artifacts took says how long others of these blocks may. ``able``: whether what
    a member has can be compiled where it is built.
    """
    # Members may share a plan.
    of_plans = {state.content: _keyed(loaded, state) for state in {each.content: each for each in todo}.values()}
    wanted = {state.member.name: of_plans[state.content] for state in todo if state.plan is not None}
    kept = {each.record.key: each.record for each in ArtifactStore(folder).records()}
    times = Times(kept.values(), todo)
    jobs: dict[str, ArtifactJob] = {}
    seen: set[str] = set()
    for state in todo:
        for block in of_plans[state.content]:
            seen.add(block.key)
            if block.key in kept or block.key in jobs or not able(state):
                continue
            level = max((jobs[key].level + 1 for key in block.needs.values() if key in jobs), default=0)
            jobs[block.key] = ArtifactJob(block, state, level, times.of_block(block))
    there = seen & kept.keys()
    images = {state.member.name: times.of_image(state, of_plans[state.content]) for state in todo if able(state)}
    return FleetWork(folder, todo, wanted, jobs, frozenset(there), frozenset(seen - there - jobs.keys()), images)


def _keyed(loaded: LoadedFleet, state: MemberState) -> list[KeyedBlock]:
    """What a member has compiled; none where that cannot be said, which its build will say."""
    if state.plan is None:
        return []
    try:
        return keyed_blocks(state.plan, loaded.catalog)
    except HpcgenError:
        return []
