"""ReFrame's settings, read as data; run only where somebody says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_source
from tests.conftest import ROOT

AURELIA = ROOT / "tests" / "sites" / "aurelia"
COMPUTED = """\
import pathlib
pathlib.Path(__file__).with_name("it-ran").touch()
print("said on the way")
name = "c" * 3
site_configuration = {
    "systems": [{"name": "aurelia", "hostnames": ["."], "partitions": [
        {"name": "p", "scheduler": name.replace("ccc", "slurm"), "launcher": "srun", "environs": ["e"],
         "processor": {"arch": "zen4", "num_cpus": 96}}]}],
}
"""


def read(path: Path, system: str = "aurelia", run: bool = False) -> Seen:
    return read_source("reframe", path, SourceSettings(system, lambda file, why: run))


def written(folder: Path, text: str, name: str = "settings.py") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_partitions_processors_and_devices() -> None:
    seen = read(AURELIA / "reframe")
    for path, value in {
        "partitions.cpu.cpu.target": "zen3",
        "partitions.cpu.cpu.cores": 128,
        "partitions.cpu.cpu.threads_per_core": 2,
        "partitions.cpu.cpu.sockets": 2,
        "partitions.cpu.cpu.numa_domains": 8,
        "partitions.cpu.queues": [{"name": "batch"}],
        "partitions.cpu.directives": ["--exclusive"],
        "partitions.gpu-a100.gpu.count": 4,
        "partitions.gpu-a100.gpu.capability": "8.0",
        "partitions.gpu-a100.queues": [{"name": "gpu"}],
        "scheduler.kind": "slurm",
        "scheduler.account": "required",
        "mpi.launcher": "srun",
        "mpi.version": "4.1.6",
        "containers.preferred": "apptainer",
        "containers.engines.apptainer.modules": ["apptainer/1.3.4"],
    }.items():
        assert seen.value(path) == value, path
    assert seen.facts["partitions.cpu.cpu.target"].how.endswith("reframe/settings.py:24")
    assert "partitions.cpu.memory.total_gb" in seen.unseen
    assert any("settings.py:11: login has no scheduler: a login node" in note for note in seen.notes)


def test_json_settings_are_read_as_well(tmp_path: Path) -> None:
    partition = {"name": "p", "scheduler": "pbs", "launcher": "mpirun", "environs": []}
    data = {"systems": [{"name": "x", "partitions": [partition]}]}
    seen = read(written(tmp_path, json.dumps(data, indent=1), "settings.json"))
    assert seen.value("scheduler.kind") == "pbs"
    assert seen.facts["scheduler.kind"].how.endswith("settings.json:8")


def test_what_is_computed_is_left_out_and_nothing_is_run(tmp_path: Path) -> None:
    seen = read(written(tmp_path, COMPUTED))
    assert not (tmp_path / "it-ran").exists()
    assert seen.value("partitions.p.cpu.target") == "zen4"
    assert seen.value("scheduler.kind") is None
    assert any("settings.py:7 (systems.0.partitions.0.scheduler)" in note for note in seen.notes)


def test_a_file_that_may_be_run_tells_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "x")
    seen = read(
        written(tmp_path, COMPUTED.replace('"p"', '"p", "descr": str(sorted(__import__("os").environ))')), run=True
    )
    assert (tmp_path / "it-ran").exists()
    assert seen.value("scheduler.kind") == "slurm"
    assert seen.facts["scheduler.kind"].how.endswith("settings.py as it was run: systems.0.partitions.0.scheduler")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(3)\nsite_configuration = dict()\n", "running it failed: Python ended with status 3"),
        ("site_configuration = [x for x in ()]\n", "running it gave no mapping"),
    ],
)
def test_a_run_that_fails_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text), run=True)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("site_configuration = {\n", "settings.py:1:"),
        ("x = 1\n", "nothing is assigned to site_configuration"),
        ("site_configuration = make()\n", "add --run-settings"),
        ("site_configuration = {'systems': []}\n", "it names no system"),
        ("site_configuration = {'systems': [{'name': 'aurelio'}, {'name': 'b'}]}\n", "did you mean aurelio"),
        (f"site_configuration = {{'systems': {'[' * 90}{']' * 90}}}\n", "nested too deeply"),
        (f"site_configuration = {{'systems': [{'{},' * 200_000}]}}\n", "at most 524288 bytes of Python"),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert said in str(caught.value)


def test_the_system_is_chosen_by_its_name(tmp_path: Path) -> None:
    partition = "{'name': 'p', 'scheduler': '%s'}"
    systems = [
        f"{{'name': '{name}', 'partitions': [{partition % kind}]}}" for name, kind in (("a", "slurm"), ("b", "pbs"))
    ]
    path = written(tmp_path, f"site_configuration = {{'systems': [{', '.join(systems)}]}}\n")
    assert read(path, "b").value("scheduler.kind") == "pbs"
