"""Build records as text for people."""

from __future__ import annotations

from typing import TextIO

from hpcgen.builders.records.compare import BuildDifference, StepPair, tests_passed
from hpcgen.cli.tables import table, word
from hpcgen.core.model.record import BuildRecord, TestRun
from hpcgen.core.support.units import duration, size


def described(record: BuildRecord, out: TextIO) -> str:
    """One record: facts, steps, tests, failure."""
    facts = [
        ["id", record.id],
        ["started", f"{record.started}, {duration(record.seconds)}"],
        ["result", record.result],
        ["stack", record.stack],
        ["site", f"{record.site}, partition {record.partition}"],
        ["engine", f"{record.engine} {record.engine_version}".strip() + f", format {record.format}"],
        ["machine", record.machine or "-"],
        ["hpcgen", record.hpcgen],
        ["command", record.command or "-"],
        ["content", record.content],
        *([["lock signed by", record.lock_signer]] if record.lock_signer else []),
        ["image", _image(record)],
        *([["self-test", "left out of the build (--notest)"]] if record.notest else []),
        ["tests", tests_passed(record) or "none run"],
        ["log", record.log or "-"],
    ]
    parts = [table(["what", "value"], facts, out)]
    if record.blocks:
        parts.append(table(["block", "version"], [[name, version] for name, version in record.blocks.items()], out))
    if record.inputs:
        parts.append(table(["input"], [[each] for each in record.inputs], out))
    if record.steps:
        rows = [[duration(each.seconds), each.result, each.block, each.about] for each in record.steps]
        parts.append(table(["time", "step", "block", "description"], rows, out))
    parts += [_tests(run, out) for run in record.tests]
    if record.failure is not None:
        parts.append(_failure(record))
    return "\n\n".join(parts)


def _image(record: BuildRecord) -> str:
    image = record.image
    if image is None:
        return "none"
    return f"{image.name} ({image.kind}, {size(image.bytes)}{', ' + image.digest if image.digest else ''})"


def _tests(run: TestRun, out: TextIO) -> str:
    rows = [[duration(each.seconds), each.result, each.group, each.name] for each in run.results]
    return f"tested {run.started} on {run.site} by {run.engine}\n" + table(["time", "test", "of", "name"], rows, out)


def _failure(record: BuildRecord) -> str:
    failure = record.failure
    assert failure is not None
    lines = [f"failed in {failure.step}: {failure.message}", *(f"  | {line}" for line in failure.tail)]
    lines += [f"cause: {failure.cause}"] if failure.cause else []
    return "\n".join(lines + ([f"remedy: {failure.remedy}"] if failure.remedy else []))


def compared(told: BuildDifference, out: TextIO) -> str:
    """What :func:`hpcgen.builders.records.compare.compare` found."""
    first, second = told.records
    rows = [[name, word(one), word(two)] for name, (one, two) in told.facts.items()]
    rows += [[f"block {name}", word(one), word(two)] for name, (one, two) in told.blocks.items()]
    rows.append(["time", *(duration(each) for each in told.seconds)])
    rows.append(["size", *(size(each) for each in told.bytes)])
    rows.append(["tests passed", *(each or "none run" for each in told.tests_passed)])
    rows += [[f"test {name}", word(one), word(two)] for name, (one, two) in told.tests.items()]
    parts = [table(["what", first, second], rows, out)]
    inputs = [["-", each] for each in told.inputs.only_first]
    inputs += [["+", each] for each in told.inputs.only_second]
    if inputs:
        parts.append(table(["", "input"], inputs, out))
    if told.steps:
        rows = [[_time(each, 0), _time(each, 1), f"{each.block}: {each.about}"] for each in told.steps]
        parts.append(table([first.split("-")[0], second.split("-")[0], "step"], rows, out))
    return "\n\n".join(parts)


def _time(step: StepPair, side: int) -> str:
    seconds, result = step.seconds[side], step.result[side]
    if seconds is None:
        return "-"
    return result if result == "cached" else duration(seconds)
