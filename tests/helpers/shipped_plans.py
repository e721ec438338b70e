"""Questions over the shipped collection, their plans, and how plans of changed questions are compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import OptionValue, Stack

USED = "used"
"""What a rule says where the change took part in the new plan, which then need not be the old one."""

Settings = Mapping[str, OptionValue]


@dataclass(frozen=True)
class Asked:
    """A question by the names in it."""

    site: str
    stack: str
    partition: str | None
    settings: tuple[tuple[str, OptionValue], ...] = ()

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self.settings]
        return " ".join([self.site, self.stack, self.partition or "", *said])

    def saying(self, more: Settings) -> Asked:
        """The same with further settings, which come after those that it has."""
        return replace(self, settings=tuple({**dict(self.settings), **more}.items()))


@cache
def catalog() -> Catalog:
    """The shipped collection alone."""
    return Catalog()


def sites() -> list[str]:
    """The sites that can be planned for."""
    named = ((name, catalog().site_document(name).data) for name in catalog().names("site"))
    return [name for name, data in named if data.get("abstract") in (None, False, "false")]


def plain_questions() -> list[Asked]:
    """Each stack for each partition of each site."""
    stacks = catalog().names("stack")
    return [Asked(site, stack, p) for site in sites() for p in catalog().site(site).partitions for stack in stacks]


@cache
def all_questions() -> tuple[Asked, ...]:
    """Each of them as it is, with each provider of each virtual, and with each way to install its first block."""
    found = []
    for plain in plain_questions():
        first = next(iter(catalog().stack(plain.stack).blocks))
        said: list[dict[str, OptionValue]] = [{}]
        said += [{f"{v}.provider": name} for v in ("base", "mpi") for name in catalog().virtuals[v]]
        said += [{f"{first}.{field.name}": value} for field, value in _values(first)]
        found += [plain.saying(each) for each in said]
    return tuple(found)


def _values(block: str) -> Iterator[tuple[msgspec.structs.FieldInfo, OptionValue]]:
    for field in msgspec.structs.fields(catalog().block(block).Options):
        yield from ((field, value) for value in getattr(field.type, "__args__", ()) if isinstance(value, str | bool))


def answer(asked: Asked, known: Catalog | None = None, stack: Stack | None = None) -> Plan | str:
    """The plan, or the error without its positions."""
    try:
        return hpcgen.plan(
            asked.site,
            stack or asked.stack,
            partition=asked.partition,
            settings=dict(asked.settings),
            allow_unsupported=True,
            catalog=known or catalog(),
        )
    except HpcgenError as error:
        return re.sub(r":\d+:\d+", "", f"{type(error).__name__}: {error}")


# what is compared


def whole(plan: Plan | str) -> str:
    """All of a plan. A mapping that it has from a file is in the order of the file, which is no matter here."""
    return plan if isinstance(plan, str) else msgspec.json.encode(plan, order="deterministic").decode()


def choice(plan: Plan | str) -> str:
    """All but why, and how it was asked; of an error that it is one."""
    if isinstance(plan, str):
        return plan.partition(":")[0]
    blocks = [msgspec.structs.replace(block, reasons=[]) for block in plan.blocks]
    stack = msgspec.structs.replace(plan.stack, blocks={})
    # That a default gave way is said where nobody set the option.
    findings = [each for each in plan.findings if each.name != "default"]
    return whole(msgspec.structs.replace(plan, blocks=blocks, settings={}, command="", stack=stack, findings=findings))


def differs(one: str, other: str) -> str:
    """Where two texts part."""
    if one == other:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, at - 120) : at + 120]!r} became {other[max(0, at - 120) : at + 120]!r}"


Rule = Callable[[Asked, Plan | str], str]
"""A change of a question: what differs between its plan and that of the changed one; nothing, or ``USED``."""


unchanged_answer = cache(answer)
"""Each question's own answer is compared by every rule."""


def differences(rule: Rule, questions: Sequence[Asked]) -> tuple[dict[str, str], int]:
    """What differs by question, and how many questions the rule said something of."""
    said = {str(asked): rule(asked, unchanged_answer(asked)) for asked in questions}
    held = {asked: text for asked, text in said.items() if text != USED}
    return {asked: text for asked, text in held.items() if text}, len(held)
