"""A profile's figures beside those that the newest recorded tests measured at its site, for ``hpcgen site doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.model.performance import Measure
from hpcgen.core.model.record import BuildRecord, TestResult, TestRun
from hpcgen.core.model.site import Site
from hpcgen.machine.doctor.rules import Drift, Report, Unseen
from hpcgen.running.verify.judging import judge, path_of

_MEANS = "`hpcgen test --nodes N` fails where the machine stays below it"
_REMEDY = "test again; if the machine itself has changed, `hpcgen test --nodes N --record FILE` writes its new figures"


def with_figures(report: Report, site: Site, document: Document, records: Iterable[BuildRecord]) -> Report:
    """The report, with each figure of the partition held against the newest measurement of its layout.

    ``document``: the profile's, for positions. ``records``: of builds, with their tests.
    """
    runs = sorted(_runs(records, site.name, report.partition), key=lambda each: each.started, reverse=True)
    for measure, fact in site.partitions[report.partition].performance.items():
        path = path_of(report.partition, measure)
        where, said = document.position(path.split(".")), f"{fact.value:g} {fact.unit}"
        newest = next(_measurements(site, report.partition, measure, runs), None)
        if newest is None:
            why = "no recorded test measured it here; `hpcgen test IMAGE --nodes 2` does"
            report = replace(report, unseen=(*report.unseen, Unseen(path, said, where, why)))
            continue
        day, value, good = newest
        if good:
            report = replace(report, agree=(*report.agree, path))
            continue
        drift = Drift(path, "warning", said, value, where, f"hpcgen test of {day}", _MEANS, _REMEDY)
        report = replace(report, drift=(*report.drift, drift))
    return report


def _runs(records: Iterable[BuildRecord], site: str, partition: str) -> Iterator[TestRun]:
    for record in records:
        yield from (run for run in record.tests if (run.site, run.partition) == (site, partition))


def _measurements(
    site: Site, partition: str, measure: Measure, runs: Iterable[TestRun]
) -> Iterator[tuple[str, str, bool]]:
    """Day, value and whether it is as expected, of each measurement in the fact's layout."""
    results: Iterator[tuple[str, TestResult]] = ((run.started[:10], each) for run in runs for each in run.results)
    for day, result in results:
        had = result.judgement
        if had is None or had.measure != measure or had.result == "busy":
            continue
        found = judge(site, partition, measure, result.figures, had.nodes, had.ranks_per_node)
        if found is not None and found.result != "unknown":
            yield day, f"{found.measured:g} {found.unit}", found.result == "good"
