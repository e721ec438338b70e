"""``hpcgen records``."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click
from msgspec import convert

from hpcgen.cli.common import PATH, option_group, print_json, print_json_list, say
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.tables import table, word
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import COUNT, DAYS, WHOLE
from hpcgen.core.support.units import counted, duration, size

if TYPE_CHECKING:
    from hpcgen.builders.records.compare import BuildDifference, StepPair
    from hpcgen.core.model.record import BuildRecord, TestRun


class RecordFilters(Options, frozen=True, kw_only=True):
    """Which records, as :class:`hpcgen.builders.records.store.Selection` has it."""

    site: str | None = None
    stack: str | None = None
    result: str | None = None
    older_than: float | None = None
    newer_than: float | None = None


_filters = option_group(
    click.option("--site", metavar="NAME", help="Only builds for this site."),
    click.option("--stack", metavar="NAME", help="Only builds of this stack."),
    click.option(
        "--result", type=click.Choice(["built", "failed", "interrupted"]), help="Only builds with this result."
    ),
    click.option("--older-than", type=DAYS, metavar="DAYS", help="Only builds started before that."),
    click.option("--newer-than", type=DAYS, metavar="DAYS", help="Only builds started since then."),
    in_record(RecordFilters, "filters"),
)


@click.group("records", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@click.option("--limit", type=COUNT, metavar="N", help="Show only the newest N.")
@_filters
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, limit: int | None, filters: RecordFilters) -> None:
    """List the records of builds on this machine, newest first; show, compare or remove some.

    They are in $HPCGEN_RECORDS, else in hpcgen/records of the user's state folder. The beginning of an id is enough.
    """
    if ctx.invoked_subcommand is not None:
        return
    from hpcgen.builders.records.store import Selection, load_all, records_folder

    records = islice(load_all(convert(filters, Selection, from_attributes=True).has), limit)
    if as_json:
        print_json_list(records)
        return
    rows = [_row(record) for record in records]
    if not rows:
        say(
            f"no record in {records_folder()} matches"
            if filters.given()
            else f"no builds recorded in {records_folder()} yet"
        )
        return
    head = ["id", "when (UTC)", "stack", "site", "engine", "result", "time", "size", "tests"]
    echo(table(head, rows, sys.stdout))


def _row(record: BuildRecord) -> list[str]:
    from hpcgen.builders.records.compare import tests_passed

    taken = size(record.image.bytes) if record.image is not None and record.image.bytes is not None else "-"
    when = record.started[:19].replace("T", " ")
    engine = f"{record.engine} {record.engine_version}".strip()
    row = [record.id, when, record.stack, record.site, engine, record.result, duration(record.seconds), taken]
    return [*row, tests_passed(record) or "-"]


@command.command("show")
@click.argument("record_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print the record as it is stored.")
def show(record_id: str, as_json: bool) -> None:
    """Show one record: what was requested, each step's time, the image, the tests, why it failed."""
    from hpcgen.builders.records.store import find, stored

    if as_json:
        print_json(stored(record_id))
        return
    record = find(record_id)
    echo(described(record, sys.stdout))


@command.command("provenance")
@click.argument("record_id", metavar="ID")
@click.option("-o", "--output", metavar="FILE", type=PATH, help="The file; by default stdout.")
@click.option("--sign", metavar="KEY", type=PATH, help="With -o: sign it with this SSH key, as FILE.sig.")
def provenance(record_id: str, output: Path | None, sign: Path | None) -> None:
    """Write where the image of one build comes from, as an in-toto statement with SLSA's provenance."""
    from hpcgen.builders.records.provenance import provenance_text
    from hpcgen.builders.records.store import find
    from hpcgen.cli.provenance import check_statement, write_provenance

    if sign is not None and output is None:
        raise click.UsageError("--sign requires -o FILE")
    check_statement(output, sign)
    record = find(record_id)
    if output is None:
        click.echo(provenance_text(record), nl=False)
    else:
        write_provenance(record, output, sign)


@command.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
def compare_two(first: str, second: str, as_json: bool) -> None:
    """Show what differs between two builds: versions, inputs, times of the steps, size, tests."""
    from hpcgen.builders.records.compare import compare
    from hpcgen.builders.records.store import find

    told = compare(find(first), find(second))
    if as_json:
        print_json(told)
        return
    echo(compared(told, sys.stdout))


@command.command("prune")
@_filters
@click.option("--keep", type=WHOLE, metavar="N", help="Keep the newest N of them.")
@click.option("--dry-run", is_flag=True, help="Only list the records that would be removed.")
def prune(keep: int | None, dry_run: bool, filters: RecordFilters) -> None:
    """Remove records, with the logs beside them, and say which; images stay.

    The options choose which: all of them have to hold, and at least one has to be given.
    """
    from hpcgen.builders.records.store import Selection
    from hpcgen.builders.records.store import prune as remove

    if keep is None and not filters.given():
        raise click.UsageError("this would remove all records: say which, such as --older-than 365 or --keep 100")
    count = freed = 0
    for head, taken in remove(convert(filters, Selection, from_attributes=True), keep or 0, dry_run=dry_run):
        echo(f"{head.id}  {head.started[:10]}  {head.stack}  {head.site}  {head.result}")
        count, freed = count + 1, freed + taken
    done = "would be removed" if dry_run else "removed"
    say(f"{counted(count, 'record')} {done}, {size(freed)}" if count else "no records to remove")


def described(record: BuildRecord, out: TextIO) -> str:
    """One record as text: facts, steps, tests, failure."""
    from hpcgen.builders.records.compare import tests_passed

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
    if record.artifacts:
        rows = [[name, each.key[:12], str(each), each.place] for name, each in record.artifacts.items()]
        parts.append(table(["block", "artifact", "who made it", "taken from"], rows, out))
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
    """What :func:`hpcgen.builders.records.compare.compare` found, as text."""
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
