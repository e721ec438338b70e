"""A converted ensemble measured again: its files copied, held against the report, and timed in rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import load
from hpcgen.core.errors import InputError, JobFailedError, Problems, UnknownNameError, did_you_mean
from hpcgen.core.support.hashing import CHUNK, hash_file, open_plain
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.refusals import explained
from hpcgen.plugins.onnx.convert import job_of_times, spelled
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
from hpcgen.plugins.onnx.records import ConversionReport, Ensemble, HashedFile, Provider, Timing
from hpcgen.plugins.onnx.results import read_report
from hpcgen.plugins.onnx.start import Runner, run_steps
from hpcgen.plugins.onnx.work import ModelWork

ROUNDS = 7
SECONDS = 1.0
"""How long calls are repeated in each round."""

_DEEPEST = 3
"""MODEL/VARIANT/FILE."""


class Measuring(msgspec.Struct, frozen=True):
    """How models are measured; ``batches``: without any, those of the ensemble file; ``doing``: told what runs."""

    rounds: int = ROUNDS
    seconds: float = SECONDS
    batches: Sequence[int] = ()
    provider: Provider | None = None
    timeout_s: float = 3600.0
    doing: Callable[[str], None] = lambda text: None


class MeasuredEnsemble(msgspec.Struct, frozen=True):
    """A folder of converted models: its report, and the ensemble file that lies in it."""

    folder: Path
    report: ConversionReport
    ensemble: Ensemble

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The models of these names, or all that are valid; UnknownNameError for one that is not there."""
        for name in names:
            if name not in self.report.models:
                remedy = did_you_mean(name, list(self.report.models))
                raise UnknownNameError(f"{self.folder} has no model {name!r}", "--only", remedy=remedy)
        return [name for name, model in self.report.models.items() if (name in names if names else model.passed)]


def converted_ensemble(folder: Path) -> MeasuredEnsemble:
    """What ``hpcgen onnx convert`` wrote. InputError: it is no such folder, or damaged."""
    report = read_report(folder)
    ensemble = convert(load(folder / "ensemble.yaml"), Ensemble)
    if missing := sorted(report.models.keys() - ensemble.models.keys()):
        raise InputError(
            f"{folder} is damaged: its ensemble.yaml has no model {missing[0]}",
            remedy="convert again into an empty folder",
        )
    return MeasuredEnsemble(folder, report, ensemble)


def measure_models(
    there: MeasuredEnsemble, names: Sequence[str], runner: Runner, how: Measuring, origin: LoadedEnsemble | None = None
) -> list[Timing]:
    """The latencies of models and their variants, with ``origin`` those of their frameworks, too.

    origin: the ensemble file in the folder where the original models lie.
    InputError: a file is not the one of the report. JobFailedError: a program said nothing that can be used.
    OutputError: the copies cannot be written, as on a full disk.
    """
    found: list[Timing] = []
    with scratch_folder("hpcgen-onnx-") as scratch:
        for name in names:
            how.doing(f"{name}: measuring")
            work = ModelWork(scratch / name, name)
            _fill(work, there, origin)
            found += _timed(work, there, runner, how, origin is not None)
    return found


def _fill(work: ModelWork, there: MeasuredEnsemble, origin: LoadedEnsemble | None) -> None:
    """Make a work folder like the one in which the model was converted."""
    known = {each.path: each.sha256 for each in there.report.given}
    problems = Problems()
    if origin is not None:
        for each in work.make(origin):
            if known.get(each.path) != each.sha256:
                problems.add(
                    f"{each.path} is not the file that was converted",
                    "--origin",
                    "the same ensemble's folder",
                    "convert it again, or name the folder from which it was converted",
                )
    else:
        with explained(work.folder):
            for name in ("given", "said", "log", work.model):
                (work.folder / name).mkdir(parents=True)
    for file in there.report.models[work.model].files:
        with problems.caught():
            _copy(there.folder, file, work)
    problems.raise_as(InputError)


def _copy(folder: Path, file: HashedFile, work: ModelWork) -> None:
    """Copy a file of the result; only what the report tells of is given to programs."""
    parts = PurePosixPath(file.path).parts
    if parts[0] != work.model or not 1 < len(parts) <= _DEEPEST or ".." in parts:
        raise InputError(f"{file.path!a} is not a file of {work.model}", expected="a path such as MODEL/model.onnx")
    source, target = folder / file.path, work.folder / file.path
    try:
        stream = open_plain(source)
    except OSError as failure:
        raise InputError(
            f"{source} cannot be read: {failure.strerror}", remedy="convert the ensemble anew"
        ) from failure
    with explained(target), stream:
        target.parent.mkdir(exist_ok=True)
        with open(target, "xb") as out:
            while data := stream.read(CHUNK):
                out.write(data)
    if hash_file(target)[0] != file.sha256:
        raise InputError(f"{source} is not the file that was validated", remedy="convert the ensemble anew")


def _timed(work: ModelWork, there: MeasuredEnsemble, runner: Runner, how: Measuring, framework: bool) -> list[Timing]:
    job = {
        "ensemble": spelled(there.ensemble),
        "provider": how.provider or there.report.provider,
        "threads": runner.threads,
        "rounds": how.rounds,
        "seconds": how.seconds,
        "batches": list(how.batches),
        "framework": framework,
    }
    job = job_of_times(job, there.report.models[work.model])
    ended = run_steps(runner, work, ["time"], job, how.timeout_s)
    said = work.said("time", list[Timing])
    if said is None:
        raise JobFailedError(
            f"{work.model} was not measured: {ended.why(how.timeout_s)}",
            work.model,
            remedy="its output is in the log next to the results; --timeout allows more time",
        )
    return [each for each in said if each.model == work.model]
