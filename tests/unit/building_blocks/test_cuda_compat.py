"""A newer CUDA on nodes with an old driver: what can be had, who may use it, and that nodes decide by themselves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.planning.drivers import with_driver

OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Mon Jan  8 12:00:00 UTC 2024"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.133.20  Release Build  (dvs@builder)"
SAME = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:00:00 UTC 2025"
NEW = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.43.02  Release Build  (dvs@builder)"


def site(driver: str, data_center: bool | None = True) -> Site:
    found = with_driver(default_catalog().site("leonardo"), None, driver)
    node = found.partitions["booster"]
    assert node.gpu is not None
    gpu = msgspec.structs.replace(node.gpu, data_center=data_center)
    changed = {**found.partitions, "booster": msgspec.structs.replace(node, gpu=gpu)}
    return msgspec.structs.replace(found, partitions=changed)


def planned(driver: str, data_center: bool | None = True, version: str = ">=2.11") -> Plan:
    settings = {"pytorch.version": version}
    return hpcgen.plan(site(driver, data_center), "pytorch-ddp", settings=settings, add=["cuda_compat"])


def pytorch(plan: Plan) -> tuple[int, ...]:
    return tuple(int(part) for part in next(b.version for b in plan.blocks if b.name == "pytorch").split("."))


@pytest.mark.parametrize("driver", ["535.161.08", "570.133.20", "580.65.06", "610.43.02"])
def test_a_framework_for_cuda_13_can_be_had(driver: str) -> None:
    plan = planned(driver)
    assert pytorch(plan) >= (2, 11)
    # The plan goes on saying what the node has.
    gpu = plan.site.partitions["booster"].gpu
    assert gpu is not None and gpu.driver == driver
    assert {c.outcome for c in checks_of(case_of(plan, default_catalog()), only=("GPU driver",))} == {"holds"}


@pytest.mark.parametrize(("driver", "runs"), [("550.54.15", "==2.10.0"), ("470.57.02", "==2.0.1")])
def test_drivers_of_other_branches_are_refused(driver: str, runs: str) -> None:
    with pytest.raises(PolicyError, match=f"work with drivers 535, 570, and the node has {driver}"):
        planned(driver, version=runs)


def test_only_data_centre_gpus_can_use_it() -> None:
    with pytest.raises(PolicyError, match="only data-centre GPUs"):
        planned("535.161.08", data_center=False, version=">=2.10,<2.11")


def test_where_nobody_knows_the_kind_of_gpu_it_is_a_warning() -> None:
    plan = planned("535.161.08", data_center=None)
    assert any("does not say whether" in f.message for f in plan.findings if f.severity == "warning")


def test_a_refusal_for_an_old_driver_offers_it_first() -> None:
    with pytest.raises(ConflictError) as error:
        hpcgen.plan(site("535.161.08"), "pytorch-ddp", settings={"pytorch.version": "2.11"})
    assert error.value.remedies[0].added == ("cuda_compat",)
    with pytest.raises(ConflictError) as error:
        hpcgen.plan(site("535.161.08", data_center=False), "pytorch-ddp", settings={"pytorch.version": "2.11"})
    assert not any(each.added for each in error.value.remedies)


def test_each_rank_is_started_by_what_looks_at_its_node() -> None:
    files = make_kit(planned("535.161.08"), default_catalog()).files
    job = files["job.slurm"].text.splitlines()
    start = job.index("    /opt/cuda_compat/run")
    # Inside the container, before the rank takes its GPU; and no check that the driver runs CUDA 13 by itself.
    assert job[start + 1].startswith("    /bin/bash -c") and '    "$image"' in job[:start]
    assert "GPU driver" not in files["preflight.sh"].text
    assert "LD_LIBRARY_PATH" not in "".join(line for line in job if "cuda_compat" in line)
    without = make_kit(hpcgen.plan(site("580.65.06"), "pytorch-ddp"), default_catalog()).files
    assert "cuda_compat" not in without["job.slurm"].text and "GPU driver" in without["preflight.sh"].text


@pytest.mark.parametrize(
    ("node", "first"), [(OLD, True), (OPEN, True), (SAME, False), (NEW, False), ("unreadable", False), (None, False)]
)
@pytest.mark.parametrize("before", ["", "/opt/cuda/lib64"])
def test_the_libraries_are_first_only_under_an_older_driver(
    tmp_path: Path, node: str | None, first: bool, before: str
) -> None:
    seen, program = tmp_path / "version", tmp_path / "run"
    if node is not None:
        seen.write_text(f"{node}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n")
    source = Path(str(hpcgen.__file__)).parents[1] / "building_blocks/files/with_cuda_compat.sh"
    program.write_text(source.read_text().replace("/proc/driver/nvidia/version", str(seen)))
    (tmp_path / "branch").write_text("580\n")
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    environment |= {"LD_LIBRARY_PATH": before} if before else {}
    words = ["sh", str(program), "sh", "-c", 'echo "${LD_LIBRARY_PATH-none} $1"', "sh", "two words"]
    shown = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    ours = f"{tmp_path}/lib"
    path = ":".join([ours, *filter(None, [before])]) if first else before or "none"
    assert shown == f"{path} two words\n"
