"""Tables of other tools become measurements: MODAK's CSV, ReFrame's performance logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.measurements.imported import COLUMNS, read_modak_csv, read_reframe_log

LOG = Path(__file__).parent / "data" / "reframe-4.10.4.log"
"""As ReFrame 4.10.4 wrote it for a test with three variables, run twice; the middle one's name is ``time``."""
LINES = [
    "Case 3,DM_CENTRALISE.com,MPICH,cloud server,default,202112132309,1,2,2,1,773.33",
    "Case 3,DM_CENTRALISE.com,OpenMPI,cloud server,default,20211215143811,2,4,8,1,372.54",
]


def csv(tmp_path: Path, *lines: str, head: str = ",".join(COLUMNS)) -> Path:
    path = tmp_path / "modak.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_modaks_table(tmp_path: Path) -> None:
    first, second = read_modak_csv(csv(tmp_path, *LINES), "code-aster")
    assert (first.workload.name, first.hardware.name, first.software.mpi) == (
        "dm_centralise.com",
        "cloud-server",
        "MPICH",
    )
    assert (first.ranks, first.value, first.measured) == (2, 773.33, "2021-12-13")
    assert (second.nodes, second.ranks_per_node, second.measured) == (2, 4, "2021-12-15")


def test_every_wrong_line_of_modaks_table_is_told(tmp_path: Path) -> None:
    wrong = [LINES[0].replace("773.33", "fast"), LINES[1].replace(",8,1,", ",9,1,")]
    with pytest.raises(InputError) as caught:
        read_modak_csv(csv(tmp_path, LINES[0], *wrong), "code-aster")
    assert "modak.csv:3" in str(caught.value)
    assert "modak.csv:4" in str(caught.value)
    assert "nnodes x ppn is 8" in str(caught.value)


def test_table_without_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"modak.csv:1:1: .* nthreads, time"):
        read_modak_csv(csv(tmp_path, head="testtype,testalgo,mpidist,cluster,queue,timestamp,nnodes,ppn,nranks"), "x")


def test_reframes_log_with_units_converted() -> None:
    rows, left = read_reframe_log(LOG, None)
    assert left == []
    assert [(row.workload.name, row.metric, row.value) for row in rows[:3]] == [
        ("stream_check.copy_bw", "gigabytes_per_second", 21.0005),
        ("stream_check.time", "seconds", 2.5),
        ("stream_check.rate", "samples_per_second", 12.5),
    ]
    assert {(row.threads_per_rank, row.hardware.partition, row.software.framework) for row in rows} == {
        (2, "default", "builtin")
    }


def test_what_reframes_log_has_and_cannot_be_taken_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG.read_text().replace("images/s", "furlongs").replace("\npass", "\nfail", 1))
    rows, left = read_reframe_log(path, "own")
    assert {row.metric for row in rows} == {"gigabytes_per_second", "seconds"}
    assert {row.software.framework for row in rows} == {"own"}
    assert left == ["line 2: the run did not pass (fail)", "rate: no measurement is in furlongs"]
