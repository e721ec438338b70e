"""The public inputs of MODAK: each that is a request gives a plan with a report, or says why not."""

from __future__ import annotations

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.plugins.tuning.measurements.collection import load_measurements
from hpcgen.plugins.tuning.optimise.decide import optimise
from hpcgen.plugins.tuning.optimise.report import report
from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes
from hpcgen.plugins.tuning.requests.reading import read_request
from tests.unit.plugins.tuning.requests.test_modak_inputs import FOLDER, READ

UNPINNED = (
    "examples/mpi/mpi_solver",
    "examples/mpi/mpi_test",
    "examples/mpi/mpi_test_daint",
    "examples/mpi/mpi_test_egi",
    "test/mpi_solver",
    "test/mpi_test",
    "test/mpi_test_egi",
)


def outcome(name: str) -> str:
    """The report, or what was said in its place."""
    catalog = Catalog()
    read = read_request(FOLDER / f"{name}.json")
    try:
        site, found = target_of(read.request, catalog, "2026-11-20")
        site, more = with_wishes(site, read.request)
        findings = [*read.findings, *found, *more]
        known = load_measurements(catalog.folders)
        again = "hpcgen optimise request.json"
        return report(optimise(catalog, read.request, site, known, findings, name, again=again).decision)
    except HpcgenError as error:
        return str(error)


@pytest.mark.parametrize("name", READ)
def test_public_input_gives_a_report_or_a_reason(name: str) -> None:
    said = outcome(name)
    if name in UNPINNED:
        assert "nothing pins https://" in said and "`hpcgen optimise request.json --pin` fetches it once" in said
        return
    assert "**Taken:**" in said
    for lost in READ[name][2].split():
        assert lost == "braces" or f"{lost}:" in said.partition("## To know")[2]
