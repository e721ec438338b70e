"""A converted model run over data files right here: in an image, sealed off, or with the Python of hpcgen itself."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from hpcgen.backends.engines.base import refuse_separators
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, JobFailedError, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import Name, Record, Text, WholeNumber
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.support.hashing import open_plain
from hpcgen.core.support.processes import own_program
from hpcgen.core.support.quoting import command
from hpcgen.core.support.refusals import explained
from hpcgen.launch.binding import VISIBLE
from hpcgen.plugins.onnx.records import Provider
from hpcgen.plugins.onnx.results import check_variant, read_report
from hpcgen.plugins.onnx.stack import provider_for
from hpcgen.plugins.onnx.start import refuse_lacking
from hpcgen.plugins.tuning.bench.program import packed
from hpcgen.running.here import status_text
from hpcgen.running.image_job import ImageJob
from hpcgen.running.python_inside import python_inside
from hpcgen.running.verify.starts import StartResult, start_job, start_script, with_layout

PARTS = ("onnx_sessions", "onnx_arrays", "onnx_infer")
"""The program's files, each of which imports those before it."""

REPORT = "run.json"
FELL_BACK = 76
"""Exit status of the program where a GPU does not compute, as building_blocks/files/onnx_sessions.py has it."""

_MOST_BYTES = 16 * 1024 * 1024
MODELS_INSIDE, DATA_INSIDE = "/srv", "/media"
"""Where the sealed container sees models and data: folders that every base image has, which is read-only."""

ARRAY = ("HPCGEN_TASK", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT")
"""Variables by which a task of an array knows its share, which would not come into a sealed container."""

OnLine = Callable[[str], None]


class RanBy(Record, frozen=True):
    """What computed a model: ``nodes`` of it by the provider that computed them, where that was looked at."""

    runtime: Text
    provider: Text
    nodes: dict[Text, WholeNumber] = {}


class FailedFile(Record, frozen=True):
    """A data file without a result, and why."""

    data: Text
    why: Annotated[str, msgspec.Meta(max_length=4000)]


class RunReport(Record, frozen=True):
    """What the program says it has done: data files computed, those whose result was ``there``, those that failed."""

    task: WholeNumber
    tasks: WholeNumber
    computed: WholeNumber
    there: WholeNumber
    rows: WholeNumber
    models: dict[Name, RanBy]
    failed: list[FailedFile]
    seconds: float


class RunRequest(msgspec.Struct, frozen=True):
    """What is run: ``model`` of the result folder ``models`` over ``data``; results go below ``output``.

    ``variant``, ``provider``, ``batch``, ``shard``: as the program's options; "" and None leave them out.
    """

    models: Path
    model: str
    data: Sequence[Path]
    output: Path
    variant: str = ""
    provider: Provider | None = None
    batch: int | None = None
    shard: str = ""

    def checked(self) -> RunRequest:
        """The same with absolute paths; all that is missing is said at once.

        InputError: data are not there, or the folder is none of a conversion. UnknownNameError: it has no such model,
        or that no such variant.
        """
        problems = Problems()
        for each in self.data:
            if not each.exists():
                problems.add(f"there is no {each}", "DATA", "files .npz or .npy, or folders of such")
        problems.raise_as(InputError)
        known = sorted(read_report(self.models).models)
        if self.model not in known:
            remedy = did_you_mean(self.model, known)
            raise UnknownNameError(f"{self.models} has no model {self.model!r}", "MODEL", remedy=remedy)
        provider_for(self.variant, self.provider)
        check_variant(self.models, [self.model], self.variant)
        places = {"models": self.models.resolve(), "output": self.output.resolve()}
        return msgspec.structs.replace(self, **places, data=[each.resolve() for each in self.data])

    def words(self, models: str, output: str, data: Sequence[str]) -> list[str]:
        """The program's words, by the paths that it sees."""
        given: Mapping[str, str | int | None] = {
            "--variant": self.variant,
            "--provider": provider_for(self.variant, self.provider),
            "--batch": self.batch,
            "--shard": self.shard,
        }
        asked = [word for option, value in given.items() if value for word in (option, str(value))]
        places = ["--models", models, "--output", output, "--report", f"{output}/{REPORT}"]
        return [*places, "--model", self.model, *asked, "--", *data]


def program(catalog: Catalog) -> str:
    """The whole program as a word of the launch line, so that the image needs ONNX Runtime or OpenVINO alone."""
    texts = {name: catalog.beside.text_file(f"{name}.py") for name in PARTS}
    return packed(texts, f"import sys; from {PARTS[-1]} import main; sys.exit(main(sys.argv[1:]))\n")


def run_in_image(
    asked: RunRequest, job: ImageJob, catalog: Catalog, on_line: OnLine, threads: int | None = None
) -> RunReport:
    """Run it in an image, without a network and with nothing of the host but models, data and results.

    threads: of the program, those of the job if None.
    InputError: the data have no folder in common, or links lead out of it.
    PolicyError: the engine cannot seal a container off. OutputError: there can be no folder for results.
    MissingToolError: an image that hpcgen did not build lacks what computes.
    JobFailedError: it failed, with what it said last.
    """
    asked = asked.checked()
    folder = _common(asked.data)
    _check_links(asked.data, folder)
    with explained(asked.output):
        asked.output.mkdir(parents=True, exist_ok=True)
    started = _sealed(asked, job, catalog, folder, threads)

    def by_its_name(text: str) -> str:
        return text.replace(f"{DATA_INSIDE}/", f"{folder}/")

    def start(tell: OnLine) -> StartResult:
        return start_job(started, math.inf, lambda text: tell(by_its_name(text)), asked.output)

    report = _ended(asked, start, on_line)
    failed = [FailedFile(by_its_name(each.data), by_its_name(each.why)[:4000]) for each in report.failed]
    return msgspec.structs.replace(report, failed=failed)


def _sealed(asked: RunRequest, job: ImageJob, catalog: Catalog, folder: Path, threads: int | None) -> ImageJob:
    """The start of the program on data below ``folder``."""
    binds = (Bind(str(asked.models), MODELS_INSIDE), Bind(str(folder), DATA_INSIDE))
    for bind, place in zip(binds, ("DIR", "DATA"), strict=True):
        refuse_separators(bind.source, place)
    data = [(Path(DATA_INSIDE) / each.relative_to(folder)).as_posix() for each in asked.data]
    python = _python(asked, msgspec.structs.replace(job, sealed=True)) if job.foreign else "python3"
    words = [python, "-c", program(catalog), *asked.words(MODELS_INSIDE, ".", data)]
    whole = job.plan.job
    threads = threads or max(1, whole.ranks_per_node * whole.threads_per_rank)
    told = {name: os.environ[name] for name in (*ARRAY, *VISIBLE.values()) if name in os.environ}
    started = with_layout(job, words, 1, told, threads=threads)
    return msgspec.structs.replace(started, sealed=True, shown=binds)


def _python(asked: RunRequest, job: ImageJob) -> str:
    """The Python of an image that hpcgen did not build, which computes the model."""
    by_openvino = provider_for(asked.variant, asked.provider) == "openvino"
    needs = ["numpy", "openvino" if by_openvino else "onnxruntime"]
    python = python_inside(job, needs, job.image)
    refuse_lacking(python, needs, job.image)
    return python.program


def run_here(asked: RunRequest, catalog: Catalog, on_line: OnLine, threads: int | None = None) -> RunReport:
    """Run it with the Python that hpcgen runs with, as the user; parameters are those of :func:`run_in_image`.

    JobFailedError: it failed, with what it said last.
    """
    asked = asked.checked()
    given = asked.words(str(asked.models), str(asked.output), [str(each) for each in asked.data])
    count = threads or len(os.sched_getaffinity(0))
    script = f"export OMP_NUM_THREADS={count}\nexec {command(*own_program(program(catalog), *given))}\n"
    return _ended(asked, lambda tell: start_script(script, math.inf, tell), on_line)


def _common(paths: Sequence[Path]) -> Path:
    """The folder that has them all, which the container sees."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    found = Path(os.path.commonpath([str(each) for each in folders]))
    if found == Path("/"):
        raise InputError(
            "the data have no folder in common that the container could see",
            "DATA",
            "all below one folder other than /",
            "run it for one folder after the other, or with --here",
        )
    return found


def _check_links(data: Sequence[Path], folder: Path) -> None:
    """InputError for data files that are links to where the container does not look."""
    problems = Problems()
    found = (each for path in data if path.is_dir() for end in ("*.npy", "*.npz") for each in sorted(path.rglob(end)))
    for path in found:
        if path.is_symlink() and (path.readlink().is_absolute() or not path.resolve().is_relative_to(folder)):
            message = f"{path} is a link that leads nowhere in the container, which sees only the data folder {folder}"
            remedy = "give the folder that contains them, make the links relative within it, or run with --here"
            problems.add(message, "DATA", remedy=remedy)
    problems.raise_as(InputError)


def _ended(asked: RunRequest, start: Callable[[OnLine], StartResult], on_line: OnLine) -> RunReport:
    """What was done, or the error of a run that did nothing; one that failed for some files says so itself."""
    report = asked.output / REPORT
    report.unlink(missing_ok=True)
    last: list[str] = []

    def line(text: str) -> None:
        last.append(text)
        del last[:-3]
        on_line(text)

    ended = start(line)
    if ended.status in (0, 1) and report.is_file():
        return _read(report)
    said = " | ".join(each.strip() for each in last if each.strip()) or "nothing"
    if ended.status == FELL_BACK:
        message = f"the provider of the GPU does not compute here: {said}"
        raise JobFailedError(message, remedy="--provider cpu computes on the CPU; docs/onnx-serving.md says more")
    raise JobFailedError(
        f"{asked.model} ended with {status_text(ended.status or 0)}: {said}",
        remedy="run it with single files to find the one; --provider cpu leaves the GPU out",
    )


def _read(path: Path) -> RunReport:
    """The program's report, which is believed as far as it is one."""
    try:
        with open_plain(path) as stream:
            return record_from(msgspec.json.decode(stream.read(_MOST_BYTES)), RunReport)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as failure:
        raise JobFailedError(
            f"{path} is not a result of the program: {failure}", remedy="run it again into an empty folder"
        ) from failure
