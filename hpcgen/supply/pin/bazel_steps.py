"""Which steps of a builder stage call Bazel, and on what rests what it fetches."""

from __future__ import annotations

import msgspec

from hpcgen.blocks.inputs.bazel import BazelCall
from hpcgen.blocks.steps import Run, command
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import sha256_of
from hpcgen.planning.resolver.question import ALWAYS
from hpcgen.recipe.stages import Assembly


class BazelStep(msgspec.Struct, frozen=True):
    """A step of the builder that calls Bazel, and the steps that must come before it, each with its block's label."""

    label: str
    call: BazelCall
    before: tuple[tuple[str, Run], ...]

    @property
    def hash(self) -> str:
        """Of all that decides what is fetched, but the distribution's packages."""
        own = [(label, step.commands) for label, step in self.before if label != "distribution"]
        return sha256_of(msgspec.json.encode([own, msgspec.structs.asdict(self.call)]))


def bazel_steps(plan: Plan, assembly: Assembly) -> list[BazelStep]:
    """The calls of Bazel in a builder stage."""
    stage = assembly.builder
    found = []
    for number, (label, step) in enumerate(stage.steps):
        for call in step.calls:
            needed = _required(plan, label)
            before = [
                (other, each)
                for place, (other, each) in enumerate(stage.steps[:number])
                if not each.checks and (place < stage.prepared or other in needed)
            ]
            # In the same step, what comes before Bazel.
            own = command(*call.program, "build")
            at = next(n for n, line in enumerate(step.commands) if line.startswith(own))
            before.append((label, msgspec.structs.replace(step, commands=step.commands[:at], calls=())))
            found.append(BazelStep(label, call, tuple(before)))
    return found


def _required(plan: Plan, label: str) -> set[str]:
    """Labels of a block and all that it requires, of what every image has, and of what is no block's."""
    by_name = {block.name: block for block in plan.blocks}
    todo = [plan.blocks[0].name, *ALWAYS, *(block.name for block in plan.blocks if block.label == label)]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            todo += by_name[name].needs.values()
    return {by_name[name].label for name in seen} | {"distribution"}
