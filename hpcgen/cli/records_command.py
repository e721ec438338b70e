"""``hpcgen records``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import print_json, say
from hpcgen.cli.numbers import COUNT
from hpcgen.cli.tables import table
from hpcgen.support.units import duration, size

if TYPE_CHECKING:
    from hpcgen.model.record import BuildRecord


@click.group("records", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@click.option("--limit", type=COUNT, metavar="N", help="Show only the newest N.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, limit: int | None) -> None:
    """List the records of builds on this machine, newest first; show or compare some.

    They are in $HPCGEN_RECORDS, else in hpcgen/records of the user's state folder. The beginning of an id is enough.
    """
    if ctx.invoked_subcommand is not None:
        return
    from hpcgen.records.store import load_all, records_folder

    records = load_all()[:limit]
    if as_json:
        print_json(records)
        return
    if not records:
        say(f"there are no records yet in {records_folder()}")
        return
    head = ["id", "when (UTC)", "stack", "site", "engine", "result", "time", "size", "tests"]
    click.echo(table(head, [_row(record) for record in records], sys.stdout))


def _row(record: BuildRecord) -> list[str]:
    from hpcgen.records.compare import tests_passed

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
    from hpcgen.records.store import find

    record = find(record_id)
    if as_json:
        print_json(record)
        return
    from hpcgen.cli.describe_record import described

    click.echo(described(record, sys.stdout))


@command.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print what differs as JSON.")
def compare_two(first: str, second: str, as_json: bool) -> None:
    """Show what differs between two builds: versions, inputs, times of the steps, size, tests."""
    from hpcgen.records.compare import compare
    from hpcgen.records.store import find

    told: dict[str, Any] = compare(find(first), find(second))
    if as_json:
        print_json(told)
        return
    from hpcgen.cli.describe_record import compared

    click.echo(compared(told, sys.stdout))
