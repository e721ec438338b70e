"""What became of an ensemble, as a record: ``report.json`` of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from hpcgen._version import __version__
from hpcgen.core.model.conversion import ConversionReport, HashedFile
from hpcgen.core.support.file_formats import CONVERSION
from hpcgen.core.support.hashing import sha256_of
from hpcgen.plugins.onnx.convert import Done
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
from hpcgen.plugins.onnx.start import Runner
from hpcgen.plugins.onnx.target import OnnxTarget


def report_of(
    loaded: LoadedEnsemble, done: Mapping[str, Done], runner: Runner, target: OnnxTarget, command: str
) -> ConversionReport:
    """The report of the models that are done.

    Parameters
    ----------
    command: the command that made them.
    """
    own = HashedFile(path=loaded.path.name, sha256=sha256_of(loaded.text), bytes=len(loaded.text.encode()))
    return ConversionReport(
        conversion=CONVERSION.newest,
        ensemble=loaded.ensemble.name,
        models={name: each.model for name, each in done.items()},
        given=[own, *_once(given for each in done.values() for given in each.given)],
        hpcgen=__version__,
        image=runner.content,
        blocks=dict(runner.blocks),
        site=target.site,
        partition=target.partition,
        provider=target.provider,
        runtime=target.runtime,
        opset=target.opset,
        command=command,
    )


def report_text(report: ConversionReport) -> str:
    """The report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def _once(files: Iterable[HashedFile]) -> list[HashedFile]:
    found = {each.path: each for each in files}
    return [found[path] for path in sorted(found)]
