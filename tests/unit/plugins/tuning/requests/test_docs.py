"""docs/requests.md and modak-requests.md: their requests are requests, and the table is that of the fields read."""

from __future__ import annotations

import re

import pytest

from hpcgen.core.config.yamlfile import loads
from hpcgen.plugins.tuning.requests import modak_fields as fields
from hpcgen.plugins.tuning.requests.reading import request_from
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "modak-requests.md"
TEXT = (ROOT / "docs" / "requests.md").read_text("utf-8") + PAGE.read_text("utf-8")
BLOCKS = re.findall(r"(?s)^```(?:yaml|json)\n(.*?)^```$", TEXT, re.MULTILINE)
TABLE = re.compile(r"(?s)(<!-- fields of MODAK -->\n).*?(<!-- end of the fields -->)")
SHORT = {
    fields.steps()["DATA"]: "optimisation.app_type-KIND.data",
    fields.steps()["AI"]: "optimisation.app_type-ai_training",
    fields.steps()["HPC"]: "optimisation.app_type-hpc",
    fields.steps()["FRAMEWORK"]: "ai_framework-NAME",
    "{parallelisation-mpi|mpi|parallelisation-openmp|openmp}": "{parallelisation-mpi|parallelisation-openmp}",
    "{parallelisation-mpi|mpi}": "parallelisation-mpi",
    "{parallelisation-openmp|openmp}": "parallelisation-openmp",
    "{parallelisation-opencc|parallelisation-opencl|opencc|opencl}": "{parallelisation-opencc|parallelisation-opencl}",
}


def table() -> str:
    lines = ["| field | here |", "|---|---|"]
    for row in fields.rows():
        path = row.path
        for long, short in SHORT.items():
            path = path.replace(long, short)
        path = re.sub(r"\{(ai_framework-\w+)\|\w+\}", r"\1", path)
        path = path.replace("|", ",")
        lines.append(f"| `{path}`{' *' if row.form == 'example' else ''} | {row.means} |")
    return "\n".join(lines) + "\n"


def test_the_table_is_that_of_the_rows(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text("utf-8")
    expected = TABLE.sub(lambda found: f"{found[1]}\n{table()}\n{found[2]}", text)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(expected, "utf-8")
    assert text == expected, "run this test with --update-golden"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0][:30])
def test_every_example_is_a_request(block: str) -> None:
    got = request_from(loads(block, "docs/requests.md"))
    assert [each.message for each in got.findings] == []


def test_all_forms_are_shown() -> None:
    assert [request_from(loads(block, "")).dialect for block in BLOCKS] == ["hpcgen", "hpcgen", "hpcgen", "listing"]
