"""Why a block is in a plan and in this version, what was refused, and the origin of each option."""

from __future__ import annotations

from hpcgen.blocks.base import Facts
from hpcgen.blocks.options import literal_words, option_fields
from hpcgen.core.config.provenance import shown_value
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.stack import StackBlock
from hpcgen.planning.agreement import passed_on
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, Refused
from hpcgen.planning.memory import gained, measured_row
from hpcgen.planning.resolver.node import node_of


def block(case: ExplainCase, name: str) -> Explanation:
    """A block of the plan, or a virtual by the block that provides it."""
    planned = case.plan.block(name)
    assert planned is not None
    about = (case.catalog.block(planned.name).__doc__ or "").strip().split("\n")[0]
    grounds = [Ground(kind="rule", text=f"it provides {name} here")] if name != planned.name else []
    grounds += [
        _ground(case, planned, each) for each in planned.reasons if not (isinstance(each, Reason) and each.newer)
    ]
    grounds += _measured(case, planned)
    row = case.release(planned.name, planned.version)
    grounds.append(Ground(kind="release", text=f"{planned.label}: {about}", place=row))
    if (origin := case.artifacts.get(planned.name)) is not None:
        grounds.append(Ground(kind="image", text=f"not built for this image, but {origin}: artifact {origin.key}"))
    newer = [each for each in planned.reasons if isinstance(each, Reason) and each.newer]
    refused = [
        Refused(what=f"{planned.name} {each.newer}", why=each.cause, place=_place(case, planned, each))
        for each in newer
    ]
    refused += _other_providers(case, planned)
    options = [f"{planned.name}.{option}" for option in planned.options]
    stage = "builder" if planned.build_only else ""
    see = [*options, *dict.fromkeys(planned.needs.values())]
    return Explanation(
        kind="block", name=planned.name, value=planned.version, stage=stage, grounds=grounds, refused=refused, see=see
    )


def _measured(case: ExplainCase, planned: PlannedBlock) -> list[Ground]:
    row = measured_row(case.catalog, case.plan)
    return [Ground(kind="rule", text=gained(row), source=row.source)] if row and row.adds == planned.name else []


def _ground(case: ExplainCase, planned: PlannedBlock, reason: Reason | str) -> Ground:
    if not isinstance(reason, Reason):
        return Ground(kind="rule", text=reason)
    text, where = str(reason), _place(case, planned, reason)
    if reason.rule in ("site", "fact", "vendor") and reason.place:
        fact = case.fact(reason.place)
        return Ground(kind="site", text=f"{text} ({fact.text})", place=fact.place, source=fact.source)
    if reason.rule == "asked" and reason.place.startswith("blocks."):
        return Ground(kind="stack", text=text, place=where)
    if reason.by.startswith("--"):
        return Ground(kind="command", text=text)
    return Ground(kind="block" if reason.by_version else "rule", text=text, place=where)


def _place(case: ExplainCase, planned: PlannedBlock, reason: Reason) -> str:
    """The place of a request or refusal: in the stack, a release table or the profile."""
    if reason.place.startswith("blocks."):
        return case.said_by_stack(reason.place).place
    if reason.place:
        return case.fact(reason.place).place
    if reason.by_version and case.catalog.has_block(reason.by):
        return case.release(reason.by, reason.by_version, "accepts", *list(reason.requires or {reason.of: ""})[:1])
    if reason.rule == "needs" and reason.newer:
        return case.release(planned.name, reason.newer)
    return ""


def _other_providers(case: ExplainCase, planned: PlannedBlock) -> list[Refused]:
    """Blocks that could stand for the same virtual, and why they do not."""
    facts = Facts.of(case.plan.site, case.plan.partition)
    found = []
    for virtual, names in case.catalog.virtuals.items():
        if planned.name not in names:
            continue
        own = case.catalog.block(planned.name).preference(facts)
        for other in (name for name in names if name != planned.name):
            rank = case.catalog.block(other).preference(facts)
            if rank is None:
                why = f"as {virtual} it cannot work on {case.plan.site.name}"
            elif own is not None and rank > own:
                why = f"as {virtual} it suits {case.plan.site.name} less"
            else:
                why = f"it was not requested as {virtual}, or does not meet the requirements of others"
            found.append(Refused(what=other, why=why))
    return found


def option(case: ExplainCase, path: str) -> Explanation:
    """An option of a block: the origin of its value, and the other values."""
    name, _, key = path.partition(".")
    planned = case.plan.block(name)
    assert planned is not None
    cls, value = case.catalog.block(planned.name), planned.options[key]
    names = (planned.name, case.catalog.identifier(planned.name))
    said = next((each for each in names if key in case.plan.stack.blocks.get(each, StackBlock()).options), None)
    defaults = cls.defaults(Facts.of(case.plan.site, case.plan.partition))
    if path in case.plan.settings:
        grounds = [Ground(kind="command", text=f"--set {path}={case.plan.settings[path]}")]
    elif said is not None:
        grounds = [case.said_by_stack(f"blocks.{said}.options.{key}")]
    elif key in defaults and defaults[key] == value:
        grounds = [case.method(planned.name, "defaults", f"{name}'s default for this site")]
    else:
        origin = case.catalog.block_origin(planned.name)
        default = Ground(kind="block", text="its own default, or the smaller form that is enough here", place=origin)
        grounds = next(
            (found for why in (_gave_way, _agreed, _passed_on) if (found := why(case, planned, key))), [default]
        )
    kind = next(each.type for each in option_fields(cls.Options) if each.encode_name == key)
    others = [word for word in literal_words(kind) if word != value]
    refused = [Refused(what=word, why=f"not requested: --set {path}={word}") for word in others]
    shown = shown_value(value)
    return Explanation(kind="option", name=path, value=shown, grounds=grounds, refused=refused, see=[planned.name])


def _gave_way(case: ExplainCase, planned: PlannedBlock, key: str) -> list[Ground]:
    """The release that cannot be had with the default of an option, and who asks for that release."""
    here = node_of(case.catalog, case.plan.site, case.plan.partition).usual(planned.name, ())
    if here.gives_way(planned.version) != key:
        return []
    usual = here.choice.as_data()[key]
    default = f"{planned.name}.{key}={shown_value(usual)}"
    text = f"{planned.label} cannot be had here with {default}, the default, which gives way"
    asked = [
        each for each in planned.reasons if not (isinstance(each, Reason) and (each.newer or each.requires is None))
    ]
    row = case.release(planned.name, planned.version)
    return [Ground(kind="release", text=text, place=row), *(_ground(case, planned, each) for each in asked)]


def _agreed(case: ExplainCase, planned: PlannedBlock, key: str) -> list[Ground]:
    """The block that one is built for, or that is built for it, in which the option has to be the same."""
    for each in case.plan.blocks:
        of_mine = case.catalog.block(planned.name).agrees.get(each.name)
        of_other = case.catalog.block(each.name).agrees.get(planned.name) if case.catalog.has_block(each.name) else None
        if key in (of_mine, of_other) and _gave_way(case, each, key):
            text = f"as {each.name}.{key}: one is built for the other"
            return [
                Ground(kind="block", text=text, place=case.catalog.block_origin(each.name)),
                *_gave_way(case, each, key),
            ]
    return []


def _passed_on(case: ExplainCase, planned: PlannedBlock, key: str) -> list[Ground]:
    """The blocks with that option which are compiled with this one."""
    return [
        Ground(
            kind="block",
            text=f"as {one.name}.{key}: it is compiled with {planned.name}",
            place=case.catalog.block_origin(one.name),
        )
        for one, other, option in passed_on(case.catalog, case.plan.blocks)
        if (other.name, option) == (planned.name, key)
    ]
