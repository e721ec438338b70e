"""``hpcgen site doctor``."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.described_sites import KINDS, read_files, sources_option
from hpcgen.cli.fact_ages import TODAY, say_old
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import PARTITION, SITE
from hpcgen.core.errors import TestFailedError
from hpcgen.core.support.units import shortened, some

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.machine.doctor.rules import Drift, Report

_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
_SHOWN = 6
_WIDE = 100


@click.command("doctor")
@click.argument("name", required=False, type=SITE)
@click.option("--site", "named", type=SITE, help="The same as NAME.")
@click.option("--root", type=_FOLDER, metavar="DIR", help="Examine a captured tree, not this machine.")
@click.option("--partition", type=PARTITION, help="Which kind of node this is; detected by default.")
@click.option("--login", is_flag=True, help="This is a login node: skip facts on compute nodes.")
@click.option(
    "--locks", type=_FOLDER, metavar="DIR", help="A folder with locks and kits: name those that are affected."
)
@click.option(
    "--unseen", is_flag=True, help="Also list facts that were not detected, and facts that the profile lacks."
)
@sources_option(f"Compare it with a file, not with this machine: {', '.join(KINDS)}, and its path.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
@TODAY
@click.pass_context
def command(
    ctx: click.Context,
    name: str | None,
    named: str | None,
    root: Path | None,
    partition: str | None,
    login: bool,
    locks: Path | None,
    unseen: bool,
    sources: tuple[tuple[str, Path], ...],
    as_json: bool,
    today: date,
) -> None:
    """Compare a profile with the machine that this runs on, or with files, and report what has drifted.

    Reads only, without rights and without the network. Ends with 9 if something is wrong that breaks images or jobs.
    """
    if (name is None) == (named is None):
        raise click.UsageError("name one site: `hpcgen site doctor NAME`, or --site NAME")
    name = name or named
    assert name is not None
    if login and partition is not None:
        raise click.UsageError("--partition and --login exclude each other: login nodes belong to no partition")
    if sources and (root is not None or login):
        raise click.UsageError("--from compares with files only: omit --root and --login")
    from hpcgen.core.config.provenance import sourced_of
    from hpcgen.machine.ages import old_facts

    catalog = catalog_of(ctx)
    if sources:
        from hpcgen.machine.detect.detection import combine
        from hpcgen.machine.doctor import report_on_files

        seen = combine(read_files(sources, catalog.site(name).name))
        report = report_on_files(catalog, name, seen, partition)
    else:
        report = _of_machine(catalog, name, root, partition, login)
        if root is None and report.partition:
            report = _with_figures(catalog, name, report)
    if report.drift:
        report = _with_dependents(catalog, name, report, locks)
    facts = sourced_of(catalog.site_document(name))
    old = old_facts((each for each in facts if each.path not in report.agree), today)
    if as_json:
        print_json({**_data(report), "today": today.isoformat(), "old": old})
    else:
        _print(report, unseen)
    say_old(name, old)
    errors, warnings = report.count("error"), report.count("warning")
    where = f"compared as a node of {report.partition} ({report.chosen})" if report.partition else "a login node"
    say(f"{name}: {where}: {len(report.agree)} facts hold, {len(report.unseen)} could not be detected")
    say(f"{name}: {errors} errors, {warnings} warnings" if errors or warnings else f"{name}: no drift")
    if errors:
        ctx.exit(TestFailedError.exit_code)


def _of_machine(catalog: Catalog, name: str, root: Path | None, partition: str | None, login: bool) -> Report:
    from hpcgen.backends.schedulers import scheduler_for
    from hpcgen.machine.detect.machine import Machine
    from hpcgen.machine.doctor import report_on

    machine = Machine.live() if root is None else Machine.captured(root)
    variable = scheduler_for(catalog.site(name).scheduler).queue_variable
    queue = os.environ.get(variable, "") if root is None else ""
    return report_on(catalog, name, machine, partition=partition, queue=queue, login=login)


def _with_figures(catalog: Catalog, name: str, report: Report) -> Report:
    """With what recorded tests measured here."""
    from hpcgen.builders.records.store import load_all
    from hpcgen.running.verify.recorded_figures import with_figures

    site = catalog.site(name)
    has_figures = site.partitions[report.partition].performance
    return with_figures(report, site, catalog.site_document(name), load_all()) if has_figures else report


def _with_dependents(catalog: Catalog, name: str, report: Report, locks: Path | None) -> Report:
    from hpcgen.machine.doctor.dependents import kept_in, stacks_of, with_dependents

    found = list(stacks_of(catalog, name, report.partition))
    if locks is not None:
        kept, unread = kept_in(locks, catalog, report.site)
        found += kept
        for line in unread:
            say(f"warning: skipped: {line}")
    return with_dependents(report, found)


def _print(report: Report, unseen: bool) -> None:
    from hpcgen.core.config.provenance import shown_value

    for each in report.drift:
        echo(_drift_text(each))
    if not unseen:
        return
    for lost in report.unseen:
        echo(f"note: {lost.fact} ({lost.where.file}:{lost.where.line}) could not be detected: {lost.why}")
    for path, value in report.unsaid.items():
        echo(f"note: the profile does not state {path}; here it is {shown_value(value)}")


def _drift_text(drift: Drift) -> str:
    from hpcgen.core.config.provenance import shown_value

    place = f"{drift.where.file}:{drift.where.line}"
    seen = drift.how if drift.seen is None else f"{shown_value(drift.seen)} ({drift.how})"
    lines = [
        f"{drift.severity}: {drift.fact}: {drift.means}",
        f"  profile: {'(nothing)' if drift.said is None else shortened(shown_value(drift.said), _WIDE)} ({place})",
        f"  machine: {seen}",
    ]
    if drift.depends:
        lines.append(f"  depends on it: {some(drift.depends, _SHOWN)}")
    return "\n".join([*lines, f"  remedy: {drift.remedy}"])


def _data(report: Report) -> dict[str, object]:
    from hpcgen.machine.doctor.rules import ORDER

    data: dict[str, object] = msgspec.to_builtins(report)
    return {"counts": {name: report.count(name) for name in ORDER}, **data}
