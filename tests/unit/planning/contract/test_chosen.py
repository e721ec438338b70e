"""What `hpcgen lock` chose for ranges is held against the node like a lock of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.project import BLOCK
from hpcgen.planning.contract.verdict import hold_chosen
from tests.unit.planning.contract.test_packages import OLDEST_CPU, STACK

HASH = f" --hash=sha256:{1:064x}"


def planned(folder: Path, text: str, site: str, before: str = "", mpi: str = "false", gpus: int | None = None) -> Plan:
    (folder / "requirements.txt").write_text(text, "utf-8")
    stack = folder / "hpcgen.yaml"
    stack.write_text(STACK.format(before=before, file="requirements.txt", mpi=mpi), "utf-8")
    return hpcgen.plan(site, str(stack), catalog=Catalog(), account="a", gpus_per_node=gpus)


def held(plan: Plan, *chosen: str, name: str = BLOCK, allow: bool = False) -> list[Finding]:
    wheels = {name: [line + HASH for line in chosen]}
    return hold_chosen(plan, Catalog(), wheels, allow_unsupported=allow)


def oldest(folder: Path) -> str:
    (folder / "old.yaml").write_text(OLDEST_CPU, "utf-8")
    return str(folder / "old.yaml")


def test_a_version_that_the_nodes_cpu_cannot_start_is_refused_with_the_line_and_what_to_ask_for(tmp_path: Path) -> None:
    plan = planned(tmp_path, "h5py\nnumpy>=1.26\n", oldest(tmp_path))
    with pytest.raises(PolicyError) as refused:
        held(plan, "h5py==3.14.0", "numpy==2.5.5")
    (problem,) = refused.value.problems
    assert problem.message.startswith("numpy 2.5.5 (requirements.txt:2, chosen by the lock) needs cx16")
    assert "use numpy outside of >=2.4" in problem.remedy and "--allow-unsupported" in problem.remedy
    assert problem.where == "partitions.main.cpu.target of the profile of old"
    assert not held(plan, "h5py==3.14.0", "numpy==2.3.5")
    assert [each.severity for each in held(plan, "numpy==2.5.5", allow=True)] == ["warning"]


def test_what_others_need_is_held_too(tmp_path: Path) -> None:
    plan = planned(tmp_path, "some-tables\n", oldest(tmp_path))
    with pytest.raises(PolicyError, match=r"polars 1.30.0 \(chosen by the lock\) needs avx"):
        held(plan, "some-tables==1.0", "polars==1.30.0")


def test_a_build_for_other_gpus_that_only_others_need_is_a_warning(tmp_path: Path) -> None:
    plan = planned(tmp_path, "xgboost\n", "lumi-g", gpus=0)
    (found,) = held(plan, "xgboost==3.0.0", "nvidia-nccl-cu12==2.27.5")
    assert found.severity == "warning" and "nvidia-nccl-cu12 2.27.5 (chosen by the lock) is built for" in found.message
    plan = planned(tmp_path, "xgboost\n", "hlrs-testbed", gpus=0)
    (found,) = held(plan, "xgboost==3.0.0", "nvidia-nccl-cu12==2.27.5")
    assert "which needs driver 525, and the node has 418.39" in found.message


def test_an_mpi_that_others_bring_is_refused_beside_the_sites(tmp_path: Path) -> None:
    plan = planned(tmp_path, "app\n", "supermuc", before="mpi: {}, ", mpi="true")
    with pytest.raises(PolicyError, match=r"mpich 4.3.2 \(chosen by the lock\) brings MPICH, and"):
        held(plan, "app==1.0", "mpich==4.3.2")


def test_lists_of_blocks_and_what_the_files_lock_are_held_elsewhere(tmp_path: Path) -> None:
    plan = planned(tmp_path, "h5py\n", oldest(tmp_path))
    assert not held(plan, "polars==1.30.0", name="some-block")
    assert not held(plan)
