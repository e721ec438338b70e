"""Memory that is kept by default: for whom, who has decided otherwise, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen import api
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.tuning.measurements.collection import load_measurements
from hpcgen.plugins.tuning.measurements.records import Measurement
from tests.conftest import Command

CATALOG = Catalog()
ADDED, PART = "huge_pages", "kept_memory"


def planned(stack: str, *, site: str = "workstation", partition: str | None = None, **asked: list[str]) -> Plan:
    settings, added = asked.get("settings", []), asked.get("added", [])
    return make_plan(
        CATALOG, CATALOG.site(site), CATALOG.stack(stack), partition=partition, settings=settings, added=added
    )


def said(plan: Plan) -> list[str]:
    return [each.message for each in plan.findings if each.name == "memory default"]


@pytest.mark.parametrize("stack", ["pytorch", "pytorch-ddp", "pytorch-horovod", "tf"])
def test_programs_on_cpus_that_gain_have_it_and_the_plan_says_by_how_much(stack: str) -> None:
    plan = planned(stack)
    assert plan.block(ADDED) is not None
    assert len(said(plan)) == 1 and "times as fast on" in said(plan)[0] and "2026-" in said(plan)[0]
    text = make_kit(plan, CATALOG).files["Dockerfile"].text.replace('"', "")
    assert "MALLOC_MMAP_THRESHOLD_" in text and "GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in text


def test_explain_has_the_measured_row_and_its_source(hpcgen: Command) -> None:
    shown = hpcgen("explain", "--site", "workstation", "--stack", "pytorch", ADDED).stdout
    assert "times as fast on an Intel Xeon" in shown and "measurements/gains.jsonl" in shown


@pytest.mark.parametrize("stack", ["mpi-hello", "gromacs", "jax", "mpi-python", "openvino"])
def test_what_was_not_measured_stays_as_it_was(stack: str) -> None:
    plan = planned(stack)
    assert plan.block(ADDED) is None and plan.block(PART) is None and not said(plan)


def test_programs_on_gpus_stay_as_they_were() -> None:
    assert planned("pytorch", site="leonardo").block(ADDED) is None


def test_what_loses_by_it_has_it_in_no_company() -> None:
    """OpenVINO was slower by it, also in an image with PyTorch."""
    assert planned("pytorch", added=["openvino"]).block(PART) is None


def test_python_packages_that_gain_have_it() -> None:
    assert planned("mpi-python", added=["pip:scipy==1.17.1"]).block(ADDED) is not None
    assert planned("mpi-python", added=["pip:click==8.1.7"]).block(ADDED) is None


@pytest.mark.parametrize(
    "stack",
    [
        "memory: plain",
        "run: {mpi: false, environment: {MALLOC_ARENA_MAX: '2'}}",
        "run: {mpi: false, environment: {LD_PRELOAD: libjemalloc.so.2}}",
    ],
)
def test_a_stack_that_decides_is_heard(stack: str, tmp_path: Path) -> None:
    run = "" if stack.startswith("run") else "run: {mpi: false}\n"
    path = tmp_path / "own.yaml"
    path.write_text(f"name: own\ntitle: own\nblocks: {{pytorch: {{}}}}\n{run}{stack}\n")
    plan = api.plan("workstation", str(path))
    assert plan.block(ADDED) is None and not said(plan)


def test_another_allocator_takes_its_place() -> None:
    plan = planned("pytorch", added=["gperftools"], settings=["gperftools.preload=true"])
    assert plan.block(ADDED) is None
    assert planned("pytorch", added=["gperftools"]).block(ADDED) is not None


def test_who_asks_for_it_is_not_told_of_a_default() -> None:
    plan = planned("mpi-hello", added=[ADDED])
    assert plan.block(ADDED) is not None and not said(plan)
    assert not said(planned("pytorch", added=[ADDED]))


def test_who_asks_for_a_part_has_that_part_alone() -> None:
    plan = planned("pytorch", added=[PART])
    assert plan.block(PART) is not None and plan.block(ADDED) is None and not said(plan)


def test_an_old_plan_without_it_or_with_a_part_is_kept() -> None:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("pytorch")
    before = {each.name: each.version for each in planned("pytorch").blocks if each.name != ADDED}
    part = make_plan(CATALOG, site, stack, kept=before)
    assert part.block(ADDED) is None and part.block(PART) is not None
    del before[PART]
    assert make_plan(CATALOG, site, stack, kept=before).block(PART) is None


def _name(row: Measurement) -> str:
    return row.workload.name + ("-inference" if row.workload.kind == "inference" else "")


def test_what_is_said_was_measured() -> None:
    rows = load_measurements(CATALOG.folders).rows
    for default in CATALOG.measured_defaults:
        for name, times in default.gained.items():
            assert any(
                _name(row) == name
                and row.hardware.name == default.hardware
                and row.measured == default.measured
                and "MALLOC_MMAP_THRESHOLD_" in row.software.environment
                and round(row.value, 2) == times
                for row in rows
            ), (default.title, name)


def test_a_collection_has_rows_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "building_blocks").mkdir()
    row = msgspec.to_builtins(CATALOG.measured_defaults[1]) | {"title": "our MPI programs", "blocks": ["mpi4py"]}
    path = tmp_path / "building_blocks" / "measured_defaults.yaml"
    path.write_bytes(msgspec.yaml.encode({"measured_defaults": [row]}))
    plan = api.plan("workstation", "mpi-python", catalog=Catalog([tmp_path]))
    assert "our MPI programs" in said(plan)[0]
