"""What differs between two builds."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hpcgen.core.model.record import BuildRecord, BuiltStep

_FACTS = ("site", "stack", "partition", "format", "engine", "engine_version", "machine", "hpcgen", "result", "content")


Pair = tuple[str | None, str | None]


class InputDifference(msgspec.Struct, frozen=True):
    """Inputs that only one of two builds has."""

    only_first: list[str]
    only_second: list[str]


class StepPair(msgspec.Struct, frozen=True):
    """One step of two builds; None where one of them does not have it."""

    block: str
    about: str
    seconds: tuple[float | None, float | None]
    result: Pair


class BuildDifference(msgspec.Struct, frozen=True):
    """Two builds: facts, blocks, inputs and tests that are not the same; times, size and tests of both.

    Every pair is in the order of the builds; None stands for what one of them does not have.
    """

    records: tuple[str, str]
    facts: dict[str, Pair]
    blocks: dict[str, Pair]
    inputs: InputDifference
    seconds: tuple[float, float]
    bytes: tuple[int | None, int | None]
    steps: list[StepPair]
    tests: dict[str, Pair]
    tests_passed: tuple[str, str]


def compare(one: BuildRecord, two: BuildRecord) -> BuildDifference:
    """What differs between two builds."""
    first, second = ({name: str(getattr(each, name)) for name in _FACTS} for each in (one, two))
    return BuildDifference(
        records=(one.id, two.id),
        facts=_differences(first, second),
        blocks=_differences(one.blocks, two.blocks),
        inputs=InputDifference(
            sorted(set(one.inputs) - set(two.inputs)),
            sorted(set(two.inputs) - set(one.inputs)),
        ),
        seconds=(one.seconds, two.seconds),
        bytes=(_bytes(one), _bytes(two)),
        steps=_steps(one, two),
        tests=_differences(_tests(one), _tests(two)),
        tests_passed=(tests_passed(one), tests_passed(two)),
    )


def tests_passed(record: BuildRecord) -> str:
    """``7/7`` of the latest test run, without what was skipped; empty if there was none."""
    if not record.tests:
        return ""
    last = record.tests[-1]
    passed = last.count("passed")
    return f"{passed}/{passed + last.count('failed')}"


def _bytes(record: BuildRecord) -> int | None:
    return record.image.bytes if record.image is not None else None


def _differences(one: Mapping[str, str], two: Mapping[str, str]) -> dict[str, Pair]:
    names = [*one, *(name for name in two if name not in one)]
    return {name: (one.get(name), two.get(name)) for name in names if one.get(name) != two.get(name)}


def _steps(one: BuildRecord, two: BuildRecord) -> list[StepPair]:
    """Steps side by side: by block, what they do, and how often that came before."""
    first, second = _numbered(one), _numbered(two)
    rows = []
    for key in [*first, *(key for key in second if key not in first)]:
        left, right = first.get(key), second.get(key)
        seconds = (left.seconds if left else None, right.seconds if right else None)
        rows.append(StepPair(*key[:2], seconds, (left.result if left else None, right.result if right else None)))
    return rows


def _numbered(record: BuildRecord) -> dict[tuple[str, str, int], BuiltStep]:
    names = _names(record)
    found: dict[tuple[str, str, int], BuiltStep] = {}
    for step in record.steps:
        name = names.get(step.block, step.block)
        number = sum(key[:2] == (name, step.about) for key in found)
        found[(name, step.about, number)] = step
    return found


def _tests(record: BuildRecord) -> dict[str, str]:
    results = record.tests[-1].results if record.tests else []
    names = _names(record)
    return {f"{names.get(each.group, each.group)}: {each.name}": each.result for each in results}


def _names(record: BuildRecord) -> dict[str, str]:
    """Blocks by their labels: steps and tests of another version of a block are still the same."""
    return {f"{name} {version}": name for name, version in record.blocks.items()}
