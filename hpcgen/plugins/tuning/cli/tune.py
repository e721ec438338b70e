"""``hpcgen tune``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.options import in_record
from hpcgen.cli.own_job_options import SubmissionOptions, submit_array, submit_own_call, submitted_options
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import COUNT, IMAGE, SECONDS, WHOLE
from hpcgen.plugins.tuning.cli.bench import own_file, rows_today, warn_if_busy, write_page
from hpcgen.plugins.tuning.cli.bench_cases import cases_of, job_of
from hpcgen.plugins.tuning.cli.measuring import MeasuringOptions, measuring_options

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.plugins.tuning.bench import BenchCase, BenchOutcome, BenchWorkload
    from hpcgen.plugins.tuning.bench.comparison import Compared
    from hpcgen.plugins.tuning.tune import TuneStudy
    from hpcgen.plugins.tuning.tune.profile import LayoutEntry
    from hpcgen.plugins.tuning.tune.study import RunningTrial, Trial

EXAMPLES = {
    "tune": (
        "hpcgen tune image.sif --workload mlp",
        "hpcgen tune image.sif --command 'python3 train.py' --figure 'json:seconds' --lower --timeout 30m",
        "hpcgen tune image.sif --workload mlp --layout 1x8 --layout 2x4 --vary compiler=torch.compile --trials 12",
        "hpcgen tune image.sif --workload resnet50 --trials 64 --submit --tasks 8 --study mine.study",
        "hpcgen tune o3.sif fast.sif --command 'solver input.dat' --figure 'steps/s: ([0-9.]+)'",
    ),
}


class TuneOptions(MeasuringOptions, frozen=True, kw_only=True):
    """What is searched and how long: ``timeout`` in all as written, ``start_timeout`` for each start in seconds."""

    layouts: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    trials: int = 30
    timeout: str | None = None
    rounds: int = 3
    compare_rounds: int = 7
    seconds: float = 1.0
    start_timeout: float = 900.0
    seed: int = 0
    study: Path | None = None
    search_only: bool = False
    write: Path | None = None


@click.command("tune")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=IMAGE)
@click.option("--workload", metavar="NAME", default="", help="The workload: see `hpcgen bench`.")
@click.option("--layout", "layouts", metavar="RANKSxTHREADS", multiple=True, help="Instead of the usual ones.")
@click.option(
    "--vary",
    metavar="NAME=VALUE,VALUE",
    multiple=True,
    help="Values besides the default's, as for `hpcgen bench`; NAME= keeps the default.",
)
@click.option("--trials", type=COUNT, default=30, show_default=True, metavar="N", help="Measured in all, by everybody.")
@click.option("--timeout", metavar="TIME", help="End the search after it, such as 90m.")
@click.option("--rounds", type=COUNT, default=3, show_default=True, metavar="N", help="Pairs of each trial.")
@click.option(
    "--compare-rounds", type=COUNT, default=7, show_default=True, metavar="N", help="Of the default and the best."
)
@click.option(
    "--seconds", type=SECONDS, default=1.0, show_default=True, metavar="SECONDS", help="As for `hpcgen bench`."
)
@click.option(
    "--start-timeout", type=SECONDS, default=900.0, show_default=True, metavar="SECONDS", help="Limit for each start."
)
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Of the choice of settings.")
@click.option("--study", metavar="FILE", type=PATH, help="Kept here, and gone on with; by default tune-WORKLOAD.study.")
@click.option("--search-only", is_flag=True, help="Without the comparison at the end, and without waiting for others.")
@click.option(
    "--write",
    metavar="FILE.yaml",
    type=PATH,
    help="Add the result to this profile as a layout, or its variables to this stack.",
)
@measuring_options
@click.option("--tasks", type=COUNT, metavar="N", help="With --submit: search in an array of so many tasks.")
@in_record(TuneOptions)
@submitted_options
def command(
    ctx: click.Context, images: tuple[str, ...], workload: str, options: TuneOptions, submission: SubmissionOptions
) -> None:
    """Search for the settings with which IMAGE runs a workload fastest right here, and compare them with the default.

    Further images are tried in its place, such as the same program compiled with other flags. The same command goes on
    with a search that was interrupted.
    """
    from hpcgen.core.support.units import parse_walltime
    from hpcgen.plugins.tuning.bench import workload_named
    from hpcgen.plugins.tuning.cli.tune_report import best_text

    own = options.workload()
    if (own is None) == (not workload):
        raise click.UsageError("give --workload, or your own program by --command, and not both")
    chosen, catalog = own or workload_named(workload), catalog_of(ctx)
    until = time.monotonic() + parse_walltime(options.timeout, "--timeout") if options.timeout else None
    submission.check()
    if options.write is not None:
        from hpcgen.core.config.yamlfile import load

        load(options.write)
    path = options.study or Path(f"tune-{chosen.name}.study")
    case, *others = [replace(each, cache=f"{path}.compiled") for each in cases_of(images, catalog, options)]
    study = _study(case, chosen, path, catalog, options, others)
    if submission.submit:
        _submit(images[0], catalog, options, submission)
        return
    warn_if_busy()
    try:
        _search(case, chosen, study, until, options, others)
        if not options.search_only:
            outcomes = _compared(case, chosen, study, options, others)
            _finish(outcomes, study, options.to or own_file(catalog), options)
            return
    except KeyboardInterrupt:
        say(f"warning: interrupted: {best_text(study.best()) or 'no measurements yet'}")
        say("the same command continues")
        raise
    if options.as_json:
        print_json({"trials": study.trials()})
    say(best_text(study.best()) or "no measurements yet")


def _study(
    case: BenchCase,
    workload: BenchWorkload,
    path: Path,
    catalog: Catalog,
    options: TuneOptions,
    others: Sequence[BenchCase],
) -> TuneStudy:
    from hpcgen.backends.schedulers import scheduler_for
    from hpcgen.plugins.tuning.measurements.collection import load_measurements
    from hpcgen.plugins.tuning.tune import cell_of, open_study, space_for
    from hpcgen.plugins.tuning.tune.before import gained_before
    from hpcgen.running.submission import task_number

    space = space_for(case, workload, options.vary, options.layouts, others)
    plan = case.job.plan
    about = {
        "image": ", ".join(each.content or each.image for each in (case, *others)),
        "workload": workload.name,
        "site": plan.site.name,
        "partition": plan.partition,
    }
    task = task_number(scheduler_for(plan.site.scheduler), os.environ) or 0
    before = gained_before(load_measurements(catalog.folders), cell_of(case, workload, {}), space)
    return open_study(path, about, space, options.seed, task, before)


def _submit(image: str, catalog: Catalog, options: TuneOptions, submission: SubmissionOptions) -> None:
    """The same command as a job; with tasks an array that searches, and a job after it that compares."""
    from hpcgen.images.reference import parse_image

    job = job_of(parse_image(image, start=False), catalog, options, submission)
    about = f"Search for settings on {job.plan.site.name} by hpcgen"
    if not submission.tasks:
        submit_own_call(job, f"{about}.", submission)
        return
    submit_array(job, about, submission, each=["--search-only"], end=[], at_end="the comparison at the end")


def _search(
    case: BenchCase,
    workload: BenchWorkload,
    study: TuneStudy,
    until: float | None,
    options: TuneOptions,
    others: Sequence[BenchCase],
) -> None:
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.tuning.tune import Search

    with interruptible(), _progress(study, options) as tell:
        search = Search(
            case,
            workload,
            trials=options.trials,
            rounds=options.rounds,
            seconds=options.seconds,
            timeout_s=options.start_timeout,
            until=until,
            on_begin=tell,
            on_wait=_told_once(),
            others=others,
        )
        search.run(study, wait=not options.search_only)


def _told_once() -> Callable[[Sequence[Trial]], None]:
    """Says whom it waits for, when that changes."""
    said: set[str] = set()

    def tell(trials: Sequence[Trial]) -> None:
        text = ", ".join(f"trial {each.number} ({each.where})" for each in trials)
        if text not in said:
            said.add(text)
            say(f"waits for {text}")

    return tell


def _finish(outcomes: list[BenchOutcome], study: TuneStudy, to: Path | None, options: TuneOptions) -> None:
    """Say what came of the comparison of the default with the best."""
    from hpcgen.core.errors import JobFailedError
    from hpcgen.plugins.tuning.bench.comparison import compare
    from hpcgen.plugins.tuning.cli.tune_report import data, report, verdict

    default = outcomes[0]
    rows = rows_today(outcomes)
    if to is not None and rows:
        from hpcgen.plugins.tuning.measurements.lines import append

        append(to, rows)
    compared, trials = compare(outcomes), study.trials()
    write_page(options.html, compared, verdict(compared))
    entry = _entry(compared)
    if options.as_json:
        print_json({**data(trials, compared), "measurements": rows, "layout": entry})
    else:
        echo(report(trials, compared, sys.stdout))
        if entry is not None and options.write is None:
            site = default.case.job.plan.site.name
            echo(f"\nFor the profile ({site}), by hand or by --write:\n\n{entry.text}", nl=False)
    if to is not None and rows:
        say(f"{len(rows)} measurements added to {to}")
    if not any(each.rates for each in outcomes):
        raise JobFailedError(
            f"neither the default nor the best could be measured: {default.reason}",
            default.workload.name,
            remedy="hpcgen test IMAGE looks at the image itself",
        )
    if options.write is None:
        return
    if entry is None:
        say(f"warning: nothing is added to {options.write}: nothing is faster than the default by more than the noise")
        return
    _add(options.write, compared[0], compared[1], entry)


def _add(file: Path, default: Compared, winner: Compared, entry: LayoutEntry) -> None:
    """Put what was found into a stack or a profile, and say what."""
    from hpcgen.plugins.tuning.cli.tune_report import settings_text
    from hpcgen.plugins.tuning.tune.profile import add_to
    from hpcgen.plugins.tuning.tune.stack_entry import add_to_stack, is_stack, stack_entry

    by_hand = "; what keeps memory is asked for there: take it out by hand"
    hint = by_hand if winner.outcome.variant.memory == "plain" else ""
    if not is_stack(file):
        add_to(file, entry)
        say(f"the layout was added to {file}, before the others")
    elif (found := stack_entry(winner, entry)) is None:
        best = settings_text(default, winner)
        say(f"warning: nothing is added to {file}: {best} is nothing that a stack could have{hint}")
    else:
        add_to_stack(file, found)
        old = f"an image of before takes {'only the variables' if found.memory else 'them'} by --stack {file}"
        if found.memory and not found.variables:
            old = "build the image again for it"
        say(f"{', '.join(found.words)} added to {file}; {old}")


def _compared(
    case: BenchCase, workload: BenchWorkload, study: TuneStudy, options: TuneOptions, others: Sequence[BenchCase]
) -> list[BenchOutcome]:
    """The default and the best, measured in fresh pairs: what seems to be faster has to show it twice."""
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.tuning.tune import cell_of, confirm, finalist, finalists

    found = finalists(study)
    times = (options.seconds, options.start_timeout)
    outcomes = [cell_of(case, workload, {})]
    try:
        with interruptible():
            if len(found) > 1:
                say(f"measures {len(found)} of the fastest anew, to choose one of them")
            if found:
                best = finalist(case, workload, found, others, options.rounds, *times)
                outcomes.append(cell_of(case, workload, best, others))
                say(f"compares the best with the default in {options.compare_rounds} rounds")
            else:
                say("no other settings could be measured")
            confirm(outcomes, options.compare_rounds, *times)
    except KeyboardInterrupt:
        say("warning: interrupted; the comparison has fewer rounds")
        if not all(each.rates for each in outcomes):
            raise
    return outcomes


def _entry(compared: list[Compared]) -> LayoutEntry | None:
    """A layout for the profile, if there is something faster than the default."""
    from datetime import date

    from hpcgen.plugins.tuning.tune.profile import entry_for

    if len(compared) < 2 or not compared[1].is_confirmed:
        return None
    return entry_for(compared[1], compared[0], date.today().isoformat())


@contextmanager
def _progress(study: TuneStudy, options: TuneOptions) -> Iterator[Callable[[RunningTrial, int], None]]:
    """What runs now and the best so far: every round on a terminal, every trial in a log."""
    from hpcgen.plugins.tuning.cli.tune_report import best_text
    from hpcgen.plugins.tuning.tune.space import text_of

    def text(trial: RunningTrial) -> str:
        best = best_text(study.best())
        return f"trial {trial.number}: {text_of(trial.settings)}" + (f"; {best}" if best else "")

    with status_line() as show:
        if show is None:
            yield lambda trial, number: say(text(trial)) if not number else None
        else:
            yield lambda trial, number: show(f"{text(trial)}; round {number + 1} of {options.rounds}")
