"""An ensemble → the folder of its converted models; partial results go into a folder next to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from hpcgen._version import __version__
from hpcgen.core.errors import HpcgenError, Problem
from hpcgen.core.support.file_formats import CONVERSION
from hpcgen.core.support.hashing import sha256_of
from hpcgen.plugins.onnx.convert import Done, How, convert_model
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
from hpcgen.plugins.onnx.page import page
from hpcgen.plugins.onnx.records import ConversionReport, HashedFile
from hpcgen.plugins.onnx.results import PAGE, REPORT, Workshop, workshop
from hpcgen.plugins.onnx.stack import STACK_FILE, serving_stack, stack_text
from hpcgen.plugins.onnx.start import Runner
from hpcgen.plugins.onnx.target import OnnxTarget


class EnsembleConversion(msgspec.Struct, frozen=True):
    """What became of an ensemble: its report, what is wrong with its models, and the folder with all of it."""

    report: ConversionReport
    problems: list[Problem]
    folder: Path


def convert_ensemble(
    loaded: LoadedEnsemble, names: list[str], output: Path, runner: Runner, how: How, command: str = ""
) -> EnsembleConversion:
    """Convert models of an ensemble; only where all of them are valid, the result is at ``output``.

    names: of the models.
    command: the command that asked for it, for the report.
    OutputError: something cannot be written, as on a full disk; what was at ``output`` is untouched.
    PolicyError: no step can be started.
    KeyboardInterrupt: after what was started has been ended.
    """
    done: dict[str, Done] = {}

    def files() -> dict[str, str]:
        report = report_of(loaded, done, runner, how.target, command)
        return {
            "ensemble.yaml": loaded.text,
            REPORT: msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n",
            PAGE: page(report),
        }

    with workshop(output) as shop:
        try:
            for name in names:
                done[name] = convert_model(loaded, name, shop, runner, how)
            problems = [problem for each in done.values() for problem in each.problems]
            if not problems:
                stack = stack_text(serving_stack(loaded.ensemble.name, sorted(done)))
                shop.finish(
                    {name: each.work for name, each in done.items()}, {**files(), STACK_FILE: stack}, _logs(done)
                )
        except (HpcgenError, OSError, KeyboardInterrupt):
            _kept(shop, done, files(), how)
            raise
        report = report_of(loaded, done, runner, how.target, command)
        return EnsembleConversion(report, problems, shop.keep(files()) if problems else output)


def _logs(done: dict[str, Done]) -> dict[str, Path]:
    """What the programs printed of variants that could not be made, which fail no conversion."""
    logs = [each.work.log(one.variant) for each in done.values() for one in each.model.variants if one.failed]
    return {path.name: path for path in logs if os.path.lexists(path)}


def _kept(shop: Workshop, done: dict[str, Done], files: dict[str, str], how: How) -> None:
    """After an error: models that were done are worth keeping."""
    if done and shop.folder.exists():
        how.tell(f"warning: {', '.join(done)} until then: {shop.keep(files)}")


# What became of an ensemble, as a record: ``report.json`` of its folder.


def report_of(
    loaded: LoadedEnsemble, done: Mapping[str, Done], runner: Runner, target: OnnxTarget, command: str
) -> ConversionReport:
    """The report of the models that are done. ``command``: the command that made them."""
    own = HashedFile(path=loaded.path.name, sha256=sha256_of(loaded.text), bytes=len(loaded.text.encode()))
    return ConversionReport(
        conversion=CONVERSION.newest,
        ensemble=loaded.ensemble.name,
        models={name: each.model for name, each in done.items()},
        given=[own, *_once(given for each in done.values() for given in each.given)],
        hpcgen=__version__,
        image=runner.content,
        foreign=runner.foreign,
        blocks=dict(runner.blocks),
        site=target.site,
        partition=target.partition,
        provider=target.provider,
        runtime=target.runtime,
        opset=target.opset,
        command=command,
    )


def _once(files: Iterable[HashedFile]) -> list[HashedFile]:
    found = {each.path: each for each in files}
    return [found[path] for path in sorted(found)]
