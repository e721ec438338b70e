"""Measurements of collections: tables and lines are read, mistakes named by their place, rows found and added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.catalog.collections import built_in
from hpcgen.core.errors import InputError, OutputError
from hpcgen.plugins.tuning.measurements.collection import load_measurements, read_file
from hpcgen.plugins.tuning.measurements.lines import append, read_lines
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload

TABLE = """\
sources:
  lab: {from: a run, checked: 2026-11-20, verified: yes}
workloads:
  small: {name: small, kind: training, batch: 8}
software:
  plain: {framework: pytorch, version: 2.10}
  faster: {framework: pytorch, version: 2.10, compiler: torch.compile}
hardware:
  box: {name: box, site: ours, partition: cpu, cores: 2}
series:
  - {workload: small, software: plain, hardware: box, metric: samples_per_second, by_nodes: {1: 50, 2: 90}, source: lab}
"""
ROW = Measurement(
    workload=Workload(name="small", kind="training"),
    software=Software(framework="pytorch"),
    hardware=Hardware(name="box"),
    metric="seconds",
    value=1.5,
)


def table(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "measurements"
    folder.mkdir(exist_ok=True)
    (folder / "lab.yaml").write_text(text)
    return folder


def test_rows_of_tables_and_lines_add_up_and_are_found(tmp_path: Path) -> None:
    folder = table(tmp_path, TABLE)
    append(folder / "bench.jsonl", [ROW, ROW])
    found = load_measurements([tmp_path])
    assert [row.value for row in found] == [1.5, 1.5, 50, 90]
    assert [row.nodes for row in found.find(workload="small", metric="samples_per_second")] == [1, 2]
    assert found.find(machine="ours/cpu") == found.find(machine="ours") == found.find(machine="box")[2:]
    assert found.find(framework="pytorch", workload="large") == []


def test_version_stays_the_text_that_was_written(tmp_path: Path) -> None:
    rows = read_file(table(tmp_path, TABLE) / "lab.yaml", "lab.yaml")
    assert {row.software.version for row in rows} == {"2.10"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("workload: small, software", "workload: smal, software"), "small"),
        (("software: plain", "software: plian"), "plain"),
        (("source: lab", "source: lob"), "lab"),
        (("metric: samples_per_second", "metric: speedup"), "baseline"),
        (("source: lab}", "source: lab, baseline: faster}"), "only a speedup has a baseline"),
        (("source: lab}", "source: lab, doubtful: {4: odd}}"), "no row for 4 nodes"),
        (("{1: 50, 2: 90}", "{1: 0}"), "above 0"),
        (("metric: samples_per_second", "metric: imgs"), "samples_per_second"),
    ],
)
def test_mistake_in_a_table_is_told_with_its_line(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert change[0] in TABLE
    file = table(tmp_path, TABLE.replace(*change, 1)) / "lab.yaml"
    with pytest.raises(InputError) as caught:
        read_file(file, "lab.yaml")
    assert said in str(caught.value)
    assert "lab.yaml:11:" in str(caught.value)


def test_every_wrong_line_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append(file, [ROW])
    good = json.loads(file.read_text())
    bad = [json.dumps(good | {"value": -1}), json.dumps(good | {"valu": 1}), '{"workload": {"na']
    file.write_text("\n".join([json.dumps(good), *bad]))
    with pytest.raises(InputError) as caught:
        read_lines(file, "a.jsonl")
    assert [f"a.jsonl:{line}:" in str(caught.value) for line in (1, 2, 3, 4)] == [False, True, True, True]


def test_rows_after_an_unfinished_line_are_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append(file, [ROW])
    file.write_bytes(file.read_bytes() + b'{"workload": {"na')
    append(file, [replace(ROW, value=2.5)])
    lines = file.read_text().splitlines()
    assert lines[0] == lines[2].replace("2.5", "1.5")
    with pytest.raises(InputError, match=r"a\.jsonl:2:1"):
        read_lines(file, "a.jsonl")


def test_the_same_rows_again_add_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    other = replace(ROW, value=2.5)
    assert [append(file, rows) for rows in ([ROW], [ROW, other], [other])] == [1, 1, 0]
    assert read_lines(file, "a.jsonl") == [ROW, other]


def test_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        append(tmp_path, [ROW])


def test_shipped_rows_have_sources_and_the_doubtful_one_says_why() -> None:
    found = load_measurements([built_in()])
    assert all(row.source is not None for row in found)
    assert [row.nodes for row in found if row.doubtful] == [768]
    layouts = found.find(workload="3dgan", machine="supermuc/thin", doubtful=False)
    assert {(row.ranks_per_node, row.threads_per_rank) for row in layouts} == {(1, 48), (2, 48), (4, 12)}
