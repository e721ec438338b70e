"""``hpcgen bench``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.options import in_record
from hpcgen.cli.own_job_options import SubmissionOptions, submit_array, submit_own_call, submitted_options
from hpcgen.cli.terminal import echo
from hpcgen.cli.test_report import printable
from hpcgen.cli.words import COUNT, IMAGE, SECONDS
from hpcgen.core.errors import HpcgenError, JobFailedError, Problem
from hpcgen.core.support.refusals import unwritable
from hpcgen.plugins.tuning.cli.measuring import MeasuringOptions, measuring_options

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.plugins.tuning.bench import BenchOutcome, BenchWorkload
    from hpcgen.plugins.tuning.bench.comparison import Compared
    from hpcgen.plugins.tuning.measurements.records import Measurement

EXAMPLES = {
    "bench": (
        "hpcgen bench image.sif --workload mnist-cnn --vary threads=1,2,4",
        "hpcgen bench image.sif --workload resnet50,mlp --vary compiler=none,torch.compile --to bench.jsonl",
        "hpcgen bench docker:tensorflow/tensorflow:2.15.0 tf.sif --workload mnist-cnn",
        "hpcgen bench image.sif --command 'python3 train.py' --figure 'images/s: ([0-9.]+)' --vary threads=4,8",
        "hpcgen bench tf.sif --against venv/bin/python --workload resnet50-inference,mlp --rounds 9 --repeat 9",
    ),
}


class BenchOptions(MeasuringOptions, frozen=True, kw_only=True):
    """How much is measured: ``seconds`` of steps in each of the ``rounds``, each start within ``timeout`` seconds.

    ``against``: a command that is the baseline. ``repeat``: how many disturbed rounds are measured again. ``keep``:
    where rounds are kept; ``share``: every how many-th of them is measured by this task of an array.
    """

    rounds: int = 5
    seconds: float = 2.0
    timeout: float = 900.0
    keep: Path | None = None
    share: int | None = None
    here: bool = False
    python: str | None = None
    against: str = ""
    repeat: int | None = None

    @property
    def plain(self) -> str | None:
        """The Python that is measured without a container, if one is."""
        return (self.python or sys.executable) if self.here else None


@click.command("bench")
@click.argument("images", metavar="IMAGE...", nargs=-1, type=IMAGE)
@click.option(
    "--workload", "workloads", metavar="NAME,NAME", multiple=True, help="The workload to run; without it, a list."
)
@click.option("--layout", "layouts", metavar="RANKSxTHREADS", multiple=True, help="Ranks, and threads of each.")
@click.option(
    "--vary",
    metavar="NAME=VALUE,VALUE",
    multiple=True,
    help="Vary one of: threads, interop, framework, compiler, allocator, memory, batch, precision or env.NAME.",
)
@click.option(
    "--rounds", type=COUNT, default=5, show_default=True, metavar="N", help="Every variant runs once in each."
)
@click.option(
    "--seconds", type=SECONDS, default=2.0, show_default=True, metavar="SECONDS", help="Time of the steps that count."
)
@click.option(
    "--nodes", type=COUNT, default=1, help="Start the ranks of each variant over so many nodes of an allocation."
)
@measuring_options
@click.option(
    "--timeout",
    type=SECONDS,
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for each start of an image.",
)
@click.option("--here", is_flag=True, help="Also measure without a container, by hpcgen's own Python; it comes first.")
@click.option("--python", metavar="PROGRAM", help="With --here: another Python, such as that of an environment.")
@click.option(
    "--against",
    metavar="COMMAND",
    default="",
    help="The baseline: your own command, without hpcgen, that starts a Python.",
)
@click.option("--repeat", type=COUNT, metavar="N", help="Repeat up to N rounds of each workload that others disturbed.")
@click.option("--keep", metavar="FOLDER", type=PATH, help="Keep every round here, and go on with those that are there.")
@click.option("--share", type=COUNT, metavar="N", help="In a task of an array: only every N-th round, and no table.")
@click.option("--tasks", type=COUNT, metavar="N", help="With --submit: the rounds in an array of so many tasks.")
@in_record(BenchOptions)
@submitted_options
def command(
    ctx: click.Context,
    images: tuple[str, ...],
    workloads: tuple[str, ...],
    layouts: tuple[str, ...],
    vary: tuple[str, ...],
    options: BenchOptions,
    submission: SubmissionOptions,
) -> None:
    """Measure standard workloads in IMAGES right here, variant against variant, and keep the numbers.

    Every combination of --layout and --vary is a variant; the first of the first image is what the others are compared
    with. Images that hpcgen did not build are measured as well, if they have a framework.
    """
    from hpcgen.plugins.tuning.bench import outcomes_for, parse_variants, workload_named
    from hpcgen.plugins.tuning.cli.bench_cases import cases_of
    from hpcgen.plugins.tuning.cli.bench_report import list_of_workloads

    plain = options.here or bool(options.against)
    own = options.workload()
    if not images and not workloads and not plain and own is None:
        echo(list_of_workloads(sys.stdout))
        return
    if not (images or plain) or not (workloads or own):
        raise click.UsageError(
            "give at least one IMAGE and --workload, or --command; `hpcgen bench` without options lists the workloads"
        )
    if workloads and own is not None:
        raise click.UsageError("--command takes the place of --workload: leave one of them out")
    _check(options, submission)
    variants = parse_variants(vary, layouts)
    names = dict.fromkeys(name for each in workloads for name in each.split(","))
    chosen = [own] if own is not None else [workload_named(name) for name in names]
    catalog = catalog_of(ctx)
    if submission.submit:
        _submit(images, catalog, options, submission)
        return
    outcomes = outcomes_for(cases_of(images, catalog, options, options.plain, options.against), chosen, variants)
    _measure(outcomes, options.to or own_file(catalog), options)


def _check(options: BenchOptions, submission: SubmissionOptions) -> None:
    """UsageError for options that mean nothing together."""
    submission.check()
    if options.share is not None and options.keep is None:
        raise click.UsageError("--share requires --keep")
    if options.python is not None and not options.here:
        raise click.UsageError("--python requires --here")
    for name, given in (("--here", options.here), ("--against", options.against)):
        if given and options.nodes > 1:
            raise click.UsageError(f"{name} measures one node: leave out --nodes")
    if options.repeat and options.keep is not None:
        raise click.UsageError("--repeat measures rounds again, and --keep keeps them as they were")
    if submission.tasks is not None and submission.tasks > options.rounds:
        raise click.UsageError(f"{submission.tasks} tasks for {options.rounds} rounds: a task runs whole rounds")


def _submit(images: Sequence[str], catalog: Catalog, options: BenchOptions, submission: SubmissionOptions) -> None:
    """The same command as a job of the first image's size; with tasks an array for the rounds, and a job after it."""
    from hpcgen.images.reference import parse_image
    from hpcgen.plugins.tuning.cli.bench_cases import job_of

    if not images:
        raise click.UsageError("--submit requires an IMAGE, whose size the job has")
    job = job_of(parse_image(images[0], start=False), catalog, options, submission)
    about = f"Measurements on {job.plan.site.name} by hpcgen"
    if not submission.tasks:
        submit_own_call(job, f"{about}.", submission)
        return
    new = _new_folder() if options.keep is None else None
    keep = ["--keep", str(new)] if new is not None else []
    try:
        each = [*keep, "--share", str(submission.tasks)]
        submit_array(job, about, submission, each=each, end=keep, at_end="the measurements of the tasks")
    except HpcgenError:
        if new is not None:
            with suppress(OSError):
                new.rmdir()
        raise


def _new_folder() -> Path:
    """Where the tasks of an array keep their rounds, for this array alone."""
    for number in count(1):
        folder = Path(f"bench-rounds-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as failure:
            raise unwritable(folder, failure) from failure
        return folder
    raise AssertionError


def own_file(catalog: Catalog) -> Path | None:
    """Where measurements are kept without --to: the first collection of one's own, if there is one."""
    from hpcgen.plugins.tuning.measurements.collection import FOLDER

    own = catalog.folders[:-1]
    return own[0] / FOLDER / "bench.jsonl" if own else None


def warn_if_busy() -> None:
    """Warn where others use the machine that is to be measured."""
    from hpcgen.plugins.tuning.bench.pressure import busy_warning

    if text := busy_warning():
        say(f"warning: {text}")


def _measure(outcomes: list[BenchOutcome], to: Path | None, options: BenchOptions) -> None:
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.tuning.bench import run_rounds
    from hpcgen.plugins.tuning.bench.pressure import waiting

    warn_if_busy()
    if options.keep is not None:
        _measure_kept(outcomes, options.keep, to, options)
        return
    try:
        with interruptible(), _progress(outcomes, options.rounds) as tell:
            run_rounds(
                outcomes,
                rounds=options.rounds,
                seconds=options.seconds,
                timeout_s=options.timeout,
                on_begin=tell,
                look=waiting,
                repeat=options.repeat or 0,
            )
    except KeyboardInterrupt:
        say("warning: interrupted; partial results follow")
        _write(outcomes, to, options)
        raise
    _write(outcomes, to, options)
    _refuse_nothing(outcomes)


def _measure_kept(outcomes: list[BenchOutcome], keep: Path, to: Path | None, options: BenchOptions) -> None:
    """The rounds that are not in the folder ``keep``, or of them the share of this task of an array."""
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.tuning.bench import run_rounds
    from hpcgen.plugins.tuning.bench.kept import KeptRounds
    from hpcgen.plugins.tuning.bench.pressure import waiting

    rounds, share = options.rounds, options.share
    kept = KeptRounds(keep, outcomes, options.seconds)
    task = _task(outcomes) if share is not None else 0
    kept.read(rounds)

    def is_wanted(workload: BenchWorkload, number: int) -> bool:
        return number % (share or 1) == task and not kept.has(workload, number)

    try:
        with interruptible(), _progress(outcomes, rounds) as tell:
            run_rounds(
                outcomes,
                rounds=rounds,
                seconds=options.seconds,
                timeout_s=options.timeout,
                on_begin=tell,
                look=waiting,
                is_wanted=is_wanted,
                on_round=kept.keep,
            )
    except KeyboardInterrupt:
        say(f"warning: interrupted; the same command goes on with the rounds in {kept.folder}")
        raise
    if share is not None:
        return
    # Others may have added some meanwhile.
    kept.read(rounds)
    if kept.is_added():
        _write(outcomes, None, options, f"nothing is added: these rounds of {kept.folder} were added before")
    else:
        _write(outcomes, to, options)
        if to is not None:
            kept.note_added()
    _refuse_nothing(outcomes)


def _task(outcomes: list[BenchOutcome]) -> int:
    """The number of the array's task that this is."""
    from hpcgen.backends.schedulers import scheduler_for
    from hpcgen.running.submission import task_number

    task = task_number(scheduler_for(outcomes[0].case.job.plan.site.scheduler), os.environ)
    if task is None:
        raise click.UsageError("--share is only for tasks of an array")
    return task


def _refuse_nothing(outcomes: list[BenchOutcome]) -> None:
    """JobFailedError where nothing could be measured."""
    if not any(each.rates for each in outcomes):
        raise JobFailedError([Problem(printable(each.reason), each.workload.name) for each in outcomes])


NOTHING_KEPT = "results are not saved: you have no collection, and gave no --to FILE"


def _write(outcomes: list[BenchOutcome], to: Path | None, options: BenchOptions, unless: str = NOTHING_KEPT) -> None:
    """Print what there is, and add it to the file; ``unless``: what is said where there is no file for it."""
    from hpcgen.plugins.tuning.bench.comparison import compare
    from hpcgen.plugins.tuning.cli.bench_report import data, report

    rows = rows_today(outcomes)
    if to is not None and rows:
        from hpcgen.plugins.tuning.measurements.lines import append

        append(to, rows)
    compared = compare(outcomes)
    write_page(options.html, compared)
    if options.as_json:
        print_json({"variants": data(compared), "measurements": rows, "file": str(to) if to and rows else None})
    else:
        echo(report(compared, sys.stdout))
    if not rows:
        return
    if to is not None:
        say(f"{len(rows)} measurements added to {to}")
    else:
        say(unless)


def write_page(file: Path | None, compared: list[Compared], verdict: str = "") -> None:
    """The comparison as a page, where one is asked for."""
    if file is None:
        return
    from hpcgen.core.secret_rules import without_secrets
    from hpcgen.core.support.quoting import command as quoted
    from hpcgen.core.support.writing import write_file
    from hpcgen.plugins.tuning.bench.page import comparison_page

    title = without_secrets(quoted("hpcgen", *sys.argv[1:]))
    write_file(file, comparison_page(title, compared, verdict))
    say(f"wrote {file}")


def rows_today(outcomes: list[BenchOutcome]) -> list[Measurement]:
    """What was measured, as rows of today by the command that runs."""
    from datetime import date

    from hpcgen.core.support.quoting import command as quoted
    from hpcgen.plugins.tuning.bench.rows import rows_of

    today, line = date.today().isoformat(), quoted("hpcgen", *sys.argv[1:])
    return [row for each in outcomes for row in rows_of(each, today, line)]


@contextmanager
def _progress(outcomes: list[BenchOutcome], rounds: int) -> Iterator[Callable[[BenchOutcome, int], None]]:
    """What runs now and the best so far: always on a terminal, once in each round in a log."""
    from hpcgen.plugins.tuning.cli.bench_report import best_so_far

    said: set[tuple[str, int]] = set()

    def text(outcome: BenchOutcome, number: int) -> str:
        best = best_so_far(outcomes, outcome.workload)
        return f"{outcome.workload.name}: round {number + 1} of {rounds}{best}"

    def log(outcome: BenchOutcome, number: int) -> None:
        if (outcome.workload.name, number) not in said:
            said.add((outcome.workload.name, number))
            say(text(outcome, number))

    with status_line() as show:
        if show is None:
            yield log
        else:
            yield lambda outcome, number: show(f"{text(outcome, number)}; now {outcome.variant}")
