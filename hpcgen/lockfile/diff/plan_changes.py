"""Differences between the plans of two locks: what was asked, the site, the stack, blocks and job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hpcgen.lockfile.diff.change import Change, What
from hpcgen.model.lock import Lock
from hpcgen.model.plan import Plan, PlannedBlock

_NO_FACTS = ("sources", "notes", "links")
"""Parts of a profile or recipe that decide nothing."""

_JOB_WORDS = {
    "nodes": "nodes",
    "ranks_per_node": "ranks per node",
    "threads_per_rank": "threads per rank",
    "walltime_s": "time",
    "queue": "queue",
    "memory_per_rank_gb": "memory per rank",
}
"""How the reasons of a job call its fields."""


def plan_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """From the cause to its effects."""
    before, after = old.plan, new.plan
    if old.hpcgen != new.hpcgen:
        yield Change(what="hpcgen", name="hpcgen", old=old.hpcgen, new=new.hpcgen, why="another release writes it")
    for name in ("partition", "format", "engine", "supply"):
        yield from _field("command", name, getattr(before, name), getattr(after, name), "asked for, or of the profile")
    for name in sorted(before.settings.keys() | after.settings.keys()):
        was, now = before.settings.get(name, ""), after.settings.get(name, "")
        yield from _field("command", f"--set {name}", was, now, "asked for")
    yield from _facts("site", before.site, after.site, f"the profile {after.site.name} changed")
    yield from _facts("stack", before.stack, after.stack, f"the recipe {after.stack.name} changed")
    yield from _blocks(old, new)
    yield from _job(before, after)


def _field(what: What, name: str, old: Any, new: Any, why: str) -> Iterator[Change]:
    if old != new:
        yield Change(what=what, name=name, old=_shown(old), new=_shown(new), why=why)


def _facts(what: What, old: Any, new: Any, why: str) -> Iterator[Change]:
    if old.name != new.name:
        # Another one differs in nearly all, which helps nobody.
        yield Change(what=what, name="name", old=old.name, new=new.name, why="asked for")
        return
    before, after = _flat(msgspec.to_builtins(old)), _flat(msgspec.to_builtins(new))
    for path in sorted(before.keys() | after.keys()):
        if path.split(".")[0] not in _NO_FACTS and before.get(path) != after.get(path):
            yield Change(what=what, name=path, old=before.get(path, ""), new=after.get(path, ""), why=why)


def _flat(data: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Leaves by their path; a list is one leaf."""
    leaves: dict[str, str] = {}
    for key, value in data.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            leaves |= _flat(value, f"{path}.")
        else:
            leaves[path] = _shown(value)
    return leaves


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return " ".join(str(item) for item in value) or "none"
    return "none" if value is None or value == {} else msgspec.json.encode(value).decode()


# blocks


def _blocks(old: Lock, new: Lock) -> Iterator[Change]:
    before, after = ({block.name: block for block in lock.plan.blocks} for lock in (old, new))
    # What other blocks are bounded by comes before them; what is gone comes last.
    for name in [*after, *(name for name in before if name not in after)]:
        one, other = before.get(name), after.get(name)
        if one is None and other is not None:
            yield Change(what="block", name=name, old="", new=other.version, why=_asked(other))
        elif other is None and one is not None:
            yield Change(what="block", name=name, old=one.version, new="", why=_gone(one, new.plan))
        elif one is not None and other is not None:
            yield from _block(old, new, one, other)


def _block(old: Lock, new: Lock, one: PlannedBlock, other: PlannedBlock) -> Iterator[Change]:
    if one.version != other.version:
        why = _why_moved(one, other, _table_changed(old, new, one.name))
        yield Change(what="block", name=one.name, old=one.version, new=other.version, why=why)
    yield from _field("block", f"{one.name}: only to build", one.build_only, other.build_only, "who needs it changed")
    yield from _field("block", f"{one.name}: file", one.origin, other.origin, "another collection has it first")
    for option in sorted(one.options.keys() | other.options.keys()):
        path = f"{one.name}.{option}"
        missing = "(no such option)"
        was, now = (_shown(b.options[option]) if option in b.options else missing for b in (one, other))
        yield from _field("option", path, was, now, _why_option(old.plan, new.plan, one.name, option))


def _asked(block: PlannedBlock) -> str:
    said = [reason for reason in block.reasons if " asks for " in reason or reason.startswith("every image")]
    return "; ".join(said[:2])


def _gone(block: PlannedBlock, plan: Plan) -> str:
    for virtual in block.provides:
        other = plan.block(virtual)
        if other is not None:
            return f"{other.name} is the {virtual} now"
    return "nothing asks for it any more"


def _why_moved(one: PlannedBlock, other: PlannedBlock, table_changed: bool) -> str:
    """What the reasons of both plans say; a constraint counts as new if its range is, not its asker's version."""
    from hpcgen.blocks.requirements import version

    known, now = ({_plain(reason): reason for reason in block.reasons} for block in (one, other))
    fresh = [text for key, text in now.items() if key not in known and _bounds(text)]
    if fresh:
        return "; ".join(fresh[:2])
    last = {name: next((r for r in block.reasons if r.startswith("not ")), "") for name, block in _both(one, other)}
    if version(other.version) < version(one.version):
        return last["new"] or "its release table has no newer row any more"
    if table_changed:
        return "its release table changed"
    gone = [text for key, text in known.items() if key not in now and _bounds(text)]
    if gone:
        return f"no longer so: {gone[0]}"
    return f"no longer so: {last['old']}" if last["old"] else "its release table has a newer row"


def _both(one: PlannedBlock, other: PlannedBlock) -> tuple[tuple[str, PlannedBlock], tuple[str, PlannedBlock]]:
    return ("old", one), ("new", other)


def _bounds(reason: str) -> bool:
    """Whether a reason rules versions out."""
    return reason.startswith("bounded by ") or re.search(r" asks for \S+ [<>=!~]", reason) is not None


def _plain(reason: str) -> str:
    return re.sub(r"^(\S+) \S+ asks for ", r"\1 asks for ", reason)


def _table_changed(old: Lock, new: Lock, name: str) -> bool:
    path = f"building_blocks/{name}.yaml"
    return old.collections.get(path) != new.collections.get(path)


def _why_option(before: Plan, after: Plan, block: str, option: str) -> str:
    path = f"{block}.{option}"
    if before.settings.get(path) != after.settings.get(path):
        value = after.settings.get(path)
        return f"--set {path}={value}" if value is not None else f"no longer --set {path}"
    asked = [
        plan.stack.blocks[block].options.get(option) if block in plan.stack.blocks else None for plan in (before, after)
    ]
    if asked[0] != asked[1]:
        return f"the recipe {after.stack.name} changed"
    return "its default changed, or the site that it follows"


# job


def _job(before: Plan, after: Plan) -> Iterator[Change]:
    one, other = msgspec.to_builtins(before.job), msgspec.to_builtins(after.job)
    for name in sorted((one.keys() | other.keys()) - {"reasons"}):
        word = _JOB_WORDS.get(name, name)
        said = next((reason for reason in after.job.reasons if reason.startswith(f"{word} ")), "")
        why = said.partition(": ")[2] or "the recipe or the command"
        yield from _field("job", word, one.get(name), other.get(name), why)
