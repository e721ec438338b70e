"""What differs between two builds."""

from __future__ import annotations

from typing import Any

from hpcgen.core.model.record import BuildRecord

_FACTS = ("site", "stack", "partition", "format", "engine", "engine_version", "machine", "hpcgen", "result", "content")


def compare(one: BuildRecord, two: BuildRecord) -> dict[str, Any]:
    """What differs, as plain data: facts, blocks and inputs that are not the same; times, size and tests of both.

    Every pair is in the order of the arguments; None stands for what one of them does not have.
    """
    return {
        "records": [one.id, two.id],
        "facts": _differences(*({name: getattr(each, name) for name in _FACTS} for each in (one, two))),
        "blocks": _differences(one.blocks, two.blocks),
        "inputs": {
            "only_first": sorted(set(one.inputs) - set(two.inputs)),
            "only_second": sorted(set(two.inputs) - set(one.inputs)),
        },
        "seconds": [one.seconds, two.seconds],
        "bytes": [_bytes(one), _bytes(two)],
        "steps": _steps(one, two),
        "tests": _differences(_tests(one), _tests(two)),
        "tests_passed": [tests_passed(one), tests_passed(two)],
    }


def tests_passed(record: BuildRecord) -> str:
    """``7/7`` of the latest test run, without what was skipped; empty if there was none."""
    if not record.tests:
        return ""
    last = record.tests[-1]
    passed = last.count("passed")
    return f"{passed}/{passed + last.count('failed')}"


def _bytes(record: BuildRecord) -> int | None:
    return record.image.bytes if record.image is not None else None


def _differences(one: dict[str, Any], two: dict[str, Any]) -> dict[str, list[Any]]:
    names = [*one, *(name for name in two if name not in one)]
    return {name: [one.get(name), two.get(name)] for name in names if one.get(name) != two.get(name)}


def _steps(one: BuildRecord, two: BuildRecord) -> list[dict[str, Any]]:
    """Steps side by side: by block, what they do, and how often that came before."""
    first, second = _numbered(one), _numbered(two)
    keys = [*first, *(key for key in second if key not in first)]
    rows = []
    for block, about, number in keys:
        steps = [side.get((block, about, number)) for side in (first, second)]
        rows.append(
            {
                "block": block,
                "about": about,
                "seconds": [None if step is None else step.seconds for step in steps],
                "result": [None if step is None else step.result for step in steps],
            }
        )
    return rows


def _numbered(record: BuildRecord) -> dict[tuple[str, str, int], Any]:
    names = _names(record)
    found: dict[tuple[str, str, int], Any] = {}
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
