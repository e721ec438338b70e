"""A change between two locks or plans, and those between two plans: what was asked, site, stack, blocks and job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import msgspec

from hpcgen.core.model.fields import Record
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.reasons import JOB_WORDS, JobReason, Reason

# One difference between two locks.

What = Literal[
    "hpcgen",
    "command",
    "site",
    "stack",
    "copied",
    "block",
    "option",
    "job",
    "image",
    "package",
    "index",
    "key",
    "wheel",
    "archive",
    "tree",
    "bazel",
    "input",
    "collection",
    "result",
]


class Change(Record, frozen=True):
    """What is another now: ``old`` is empty if it is new, ``new`` if it is gone; ``why`` as far as locks tell."""

    what: What
    name: str
    old: str
    new: str
    why: str = ""


_NO_FACTS = ("sources", "notes", "links")
"""Parts of a profile or recipe that decide nothing."""


def plan_changes(before: Plan, after: Plan, tables: Collection[str] = ()) -> Iterator[Change]:
    """From the cause to its effects. ``tables``: names of blocks whose release table is known to be another now."""
    if before.hpcgen != after.hpcgen:
        why = "another release writes it"
        yield Change(what="hpcgen", name="hpcgen", old=before.hpcgen, new=after.hpcgen, why=why)
    for name in ("partition", "format", "engine", "supply"):
        yield from _field(
            "command", name, getattr(before, name), getattr(after, name), "requested, or from the profile"
        )
    for name in sorted(before.settings.keys() | after.settings.keys()):
        was, now = before.settings.get(name, ""), after.settings.get(name, "")
        yield from _field("command", f"--set {name}", was, now, "asked for")
    yield from _facts("site", before.site, after.site, f"the profile {after.site.name} changed")
    yield from _facts("stack", before.stack, after.stack, f"the recipe {after.stack.name} changed")
    yield from _copied(before, after)
    yield from _blocks(before, after, tables)
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


def _copied(before: Plan, after: Plan) -> Iterator[Change]:
    """The stack's own files, an entry a line."""
    one, other = ({each.to: each for each in plan.copied} for plan in (before, after))
    for target in sorted(one.keys() | other.keys()):
        was, now = (f"sha256 {each.sha256}" if (each := side.get(target)) else "" for side in (one, other))
        why = "the files changed" if was and now else "the recipe's `copy` changed"
        yield from _field("copied", target, was, now, why)


# blocks


def _blocks(old: Plan, new: Plan, tables: Collection[str]) -> Iterator[Change]:
    before, after = ({block.name: block for block in plan.blocks} for plan in (old, new))
    # What other blocks are bounded by comes before them; what is gone comes last.
    for name in [*after, *(name for name in before if name not in after)]:
        one, other = before.get(name), after.get(name)
        if one is None and other is not None:
            yield Change(what="block", name=name, old="", new=other.version, why=_asked(other))
        elif other is None and one is not None:
            yield Change(what="block", name=name, old=one.version, new="", why=_gone(one, new))
        elif one is not None and other is not None:
            yield from _block(old, new, one, other, one.name in tables)


def _block(old: Plan, new: Plan, one: PlannedBlock, other: PlannedBlock, table_changed: bool) -> Iterator[Change]:
    if one.version != other.version:
        why = _why_moved(one, other, table_changed)
        yield Change(what="block", name=one.name, old=one.version, new=other.version, why=why)
    yield from _field("block", f"{one.name}: only to build", one.build_only, other.build_only, "its dependents changed")
    if not _lies_there(one.origin, other.origin):
        yield from _field("block", f"{one.name}: file", one.origin, other.origin, "another collection takes precedence")
    for option in sorted(one.options.keys() | other.options.keys()):
        path = f"{one.name}.{option}"
        missing = "(no such option)"
        was, now = (_shown(b.options[option]) if option in b.options else missing for b in (one, other))
        yield from _field("option", path, was, now, _why_option(old, new, one.name, option))


def _lies_there(old: str, new: str) -> bool:
    """Whether an older plan, which has the folder of its author's collection, may mean the same file."""
    _, named, file = new.partition(":")
    return old.startswith("/") and bool(named) and old.endswith(f"/{file}")


def _asked(block: PlannedBlock) -> str:
    said = [reason for reason in _records(block) if reason.rule in ("asked", "always")]
    return "; ".join(map(str, said[:2]))


def _gone(block: PlannedBlock, plan: Plan) -> str:
    for virtual in block.provides:
        other = plan.block(virtual)
        if other is not None:
            return f"{other.name} is the {virtual} now"
    return "nothing requires it any more"


def _why_moved(one: PlannedBlock, other: PlannedBlock, table_changed: bool) -> str:
    """What the reasons of both plans say; a constraint counts as new if its range is, not its asker's version."""
    from hpcgen.blocks.requirements import version

    known, now = ([_essence(reason) for reason in _records(block) if reason.bounds] for block in (one, other))
    fresh = [reason for reason in _records(other) if reason.bounds and _essence(reason) not in known]
    if fresh and _records(one):
        return "; ".join(map(str, fresh[:2]))
    old, new = (next((str(reason) for reason in _records(block) if reason.newer), "") for block in (one, other))
    if version(other.version) < version(one.version):
        return new or "its release table has no newer row any more"
    if table_changed:
        return "its release table changed"
    gone = [str(reason) for reason in _records(one) if reason.bounds and _essence(reason) not in now]
    held = gone[0] if gone else old
    return f"no longer so: {held}" if held else "its release table has a newer row"


def _records(block: PlannedBlock) -> list[Reason]:
    """Its reasons; those of a plan of hpcgen 0.1.0 are sentences, of which nothing can be told."""
    return [reason for reason in block.reasons if isinstance(reason, Reason)]


def _essence(reason: Reason) -> Reason:
    """What makes a reason another: not the version of who asks, nor how a block speaks of a fact of the site."""
    by = "" if reason.rule == "site" else reason.by
    return msgspec.structs.replace(reason, by=by, by_version="")


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
    return "its default changed, or the site that determines it"


# job


def _job(before: Plan, after: Plan) -> Iterator[Change]:
    one, other = msgspec.to_builtins(before.job), msgspec.to_builtins(after.job)
    for name in sorted((one.keys() | other.keys()) - {"reasons"}):
        said = [each for each in after.job.reasons if isinstance(each, JobReason) and each.field == name]
        why = str(said[0]) if said else "the recipe or the command"
        yield from _field("job", JOB_WORDS.get(name, name), one.get(name), other.get(name), why)
