"""Versions of frameworks that no release table has: the project's own wheels, held against node and driver."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, PolicyError
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.project import BLOCK
from hpcgen.planning.contract.verdict import hold_chosen
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin import image_wheels, wheels

STACK = """name: mine
title: my project
blocks: {{python_packages: {{options: {{files: [requirements.txt]}}}}{more}}}
run: {{mpi: {mpi}, command: [python3, app.py]}}
"""
OLD_DRIVER = """extends: juwels-booster
name: old-driver
partitions: {booster: {gpu: {driver: "550.54"}}}
"""


def planned(folder: Path, text: str, site: str, more: str = "", mpi: str = "false", gpus: int | None = None) -> Plan:
    (folder / "requirements.txt").write_text(text, "utf-8")
    (folder / "hpcgen.yaml").write_text(STACK.format(more=more, mpi=mpi), "utf-8")
    if site == "old-driver":
        site = str(folder / "old.yaml")
        Path(site).write_text(OLD_DRIVER, "utf-8")
    stack = str(folder / "hpcgen.yaml")
    return hpcgen.plan(site, stack, catalog=Catalog(), account="a", gpus_per_node=gpus)


def held(plan: Plan, *chosen: str) -> list[Finding]:
    return hold_chosen(plan, Catalog(), {BLOCK: [f"{line} --hash=sha256:{1:064x}" for line in chosen]})


@pytest.mark.parametrize(
    ("text", "block", "wheel"),
    [
        ("torch==2.3.9\n", "pytorch", "torch==2.3.9"),
        ("torch==2.9.1+site.build\n", "pytorch", "torch==2.9.1+site.build"),
        ("jax<0.4.21\n", "jax", "jax<0.4.21"),
        ("tensorflow==2.99.1\n", "tensorflow", "tensorflow==2.99.1"),
        ("mpi4py==3.0.3\n", "mpi4py", "mpi4py==3.0.3"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_version_outside_of_the_tables_is_the_projects_own_wheel(
    tmp_path: Path, text: str, block: str, wheel: str, named: bool
) -> None:
    plan = planned(tmp_path, text, "workstation", more=f", {block}: {{}}" if named else "")
    assert plan.block(block) is None and plan.project is not None
    assert [each.asked for each in plan.project.packages] == [wheel]
    (told,) = [each for each in plan.findings if "is in no release table" in each.message]
    assert "(requirements.txt:1)" in told.message and "untried" in told.message and told.severity == "warning"


@pytest.mark.parametrize("way", ["--add", "--set", "hpcgen.yaml:3"])
def test_a_version_that_is_named_without_a_file_is_no_other(tmp_path: Path, way: str) -> None:
    line, written = "torch==1.12.1", "h5py==3.11.0" if way != "hpcgen.yaml:3" else "torch==1.12.1, h5py==3.11.0"
    packages = f"python_packages: {{options: {{packages: [{written}]}}}}"
    stack = f"name: mine\ntitle: mine\nblocks: {{pytorch: {{}}, {packages}}}\nrun: {{mpi: false, command: [python3]}}\n"
    (tmp_path / "hpcgen.yaml").write_text(stack, "utf-8")
    add = [f"pip:{line}"] if way == "--add" else []
    settings = {"python_packages.packages": f"h5py==3.11.0,{line}"} if way == "--set" else {}
    plan = hpcgen.plan("workstation", str(tmp_path / "hpcgen.yaml"), add=add, settings=settings)
    python, own = plan.block("python"), plan.block(BLOCK)
    assert python is not None and python.version.startswith("3.10.") and plan.block("pytorch") is None
    assert own is not None and own.options["packages"] == ["h5py==3.11.0"] and plan.project is not None
    assert [(each.asked, each.origin) for each in plan.project.packages] == [(line, way)]
    (told,) = [each for each in plan.findings if "is in no release table" in each.message]
    assert f"({way})" in told.message and "untried" in told.message and told.severity == "warning"
    lines = [line for each in assemble(plan, Catalog()).installed for line in each.wheels.requirements]
    assert sorted(line for line in lines if line.startswith(("torch==", "h5py=="))) == ["h5py==3.11.0", line]


def test_a_listed_version_that_the_option_names_is_the_blocks() -> None:
    settings = {"python_packages.packages": ["torch==2.8.0"]}
    block = hpcgen.plan("workstation", "mpi-hello", add=[BLOCK], settings=settings).block("pytorch")
    assert block is not None and block.version == "2.8.0"


def test_a_build_that_the_tables_stand_for_stays_the_blocks(tmp_path: Path) -> None:
    assert planned(tmp_path, "torch==2.9.1+cpu\n", "workstation").block("pytorch") is not None


def test_what_is_built_for_it_or_requires_it_comes_with_it(tmp_path: Path) -> None:
    plan = planned(tmp_path, "torch==2.3.9\ntorchvision\nlightning\n", "workstation", more=", torchvision: {}")
    assert plan.block("pytorch") is None and plan.block("torchvision") is None and plan.project is not None
    assert [each.name for each in plan.project.packages] == ["lightning", "torch", "torchvision"]
    held(plan, "lightning==2.5.0", "torch==2.3.9", "torchvision==0.18.1")
    with pytest.raises(HpcgenError, match=r"requires jax 0\.6\.2"):
        held(plan, "lightning==2.5.0", "torch==2.3.9", "torchvision==0.18.1", "jax==0.6.2")


def test_its_python_is_one_that_it_has_wheels_for(tmp_path: Path) -> None:
    python = planned(tmp_path, "torch==1.12.1\n", "workstation").block("python")
    assert python is not None and python.version.startswith("3.10.")


def test_what_the_tables_say_of_its_range_is_held_against_the_node(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"torch 1\.12\.1 \(requirements\.txt:1\).* capability >=3\.7,<8.* 8\.0"):
        planned(tmp_path, "torch==1.12.1\n", "juwels-booster")
    with pytest.raises(PolicyError, match=r"torch 2\.99 \(requirements\.txt:1\).* driver >=580.* 550\.54"):
        planned(tmp_path, "torch==2.99\n", "old-driver")
    planned(tmp_path, "torch==1.12.1\n", "juwels-booster", gpus=0)


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("jax==0.4.20\n", "juwels-booster"),
        ("tensorflow==2.99.1\n", "juwels-booster"),
        ("tensorflow[and-cuda]==2.99.1\n", "alps"),
        ("torch==1.12.1\n", "lumi-g"),
    ],
)
def test_one_that_is_for_cpus_is_refused_where_the_job_asks_for_gpus(tmp_path: Path, text: str, site: str) -> None:
    with pytest.raises(PolicyError, match=r"asks for .* GPU.*cannot use them.*\(requirements\.txt:1\)"):
        planned(tmp_path, text, site)


def test_a_lock_refuses_wheels_that_turn_out_to_be_for_cpus(tmp_path: Path) -> None:
    plan = planned(tmp_path, "torch==1.12.1\n", "alps")
    with pytest.raises(PolicyError, match=r"torch 1\.12\.1 \(requirements\.txt:1\).*aarch64, computes on the CPU"):
        held(plan, "torch==1.12.1", "typing-extensions==4.12.0")
    held(plan, "torch==1.12.1", "nvidia-cublas-cu12==12.1.3.1")
    held(planned(tmp_path, "torch==1.12.1\n", "alps", gpus=0), "torch==1.12.1")


def test_a_lock_refuses_a_cuda_that_the_driver_does_not_run(tmp_path: Path) -> None:
    plan = planned(tmp_path, "jax[cuda]==0.99\n", "old-driver")
    with pytest.raises(PolicyError) as refused:
        held(plan, "jax==0.99", "jax-cuda13-plugin==0.99")
    (problem,) = refused.value.problems
    assert problem.message.startswith("jax 0.99 (requirements.txt:1) brings jax-cuda13-plugin 0.99 for CUDA 13")
    assert "needs driver 580, and the node has 550.54" in problem.message
    held(plan, "jax==0.99", "jax-cuda12-plugin==0.99")


def test_a_lock_names_the_line_of_what_no_index_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*words: object, **more: object) -> list[str]:
        raise ConflictError("uv found no wheels for torch==2.3.9 on CPython 3.12.3, x86_64, glibc 2.39")

    monkeypatch.setattr(wheels, "lock_packages", none)
    plan, catalog = planned(tmp_path, "h5py\ntorch==2.3.9\n", "workstation"), Catalog()
    with pytest.raises(ConflictError) as refused:
        image_wheels.lock_image_wheels(plan, catalog, assemble(plan, catalog), None, lambda text: None)
    assert [each.where for each in refused.value.problems] == ["requirements.txt:2"]


def test_a_wheel_that_is_compiled_for_the_index_s_pytorch_needs_that_one(tmp_path: Path) -> None:
    with pytest.raises(
        PolicyError, match=r"torchvision 0\.24\.9 \(requirements\.txt:2\).*install=wheel.*not load"
    ) as no:
        planned(tmp_path, "torch==2.9.1\ntorchvision==0.24.9\n", "workstation")
    assert "--set pytorch.install=pip" in no.value.problems[0].remedy
    planned(tmp_path, "torch==2.0.0\ntorchvision==0.15.9\n", "workstation")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("numpy==1.13.3\ntensorflow==1.15.2\n", r"txt:1 asks for numpy==1\.13\.3, tensorflow 1\.15\.2 \(.*txt:2\)"),
        ("torch==2.0.0\ntorchvision==0.15.0\n", r"torchvision 0\.15\.0 \(\S*txt:2\) requires torch==2\.0\.0\+cu117"),
    ],
)
def test_what_releases_outside_of_the_tables_require_is_held_to_the_other_lines(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(ConflictError, match=told):
        planned(tmp_path, text, "workstation")


def test_blocks_give_way_to_what_a_release_outside_of_the_tables_requires(tmp_path: Path) -> None:
    """TensorFlow 2.4 takes typing-extensions below 3.8, and PyTorch newer ones from 2.2 on."""
    torch = planned(tmp_path, "torch>=1.7.0\ntensorflow==2.4.0\n", "workstation").block("pytorch")
    assert torch is not None and torch.version < "2.2"


def test_nvidia_s_licences_are_asked_for_as_with_the_block(tmp_path: Path) -> None:
    own = planned(tmp_path, "torch==2.3.9\n", "juwels-booster").licences
    assert own and own == planned(tmp_path, "torch==2.3.1\n", "juwels-booster").licences
    assert not planned(tmp_path, "torch==2.3.9\n", "workstation").licences
