"""Reasons of a plan are records; those of hpcgen 0.1.0, which are sentences, are read and written as they are."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import Reason, requirement_text
from hpcgen.kit.kit import plan_text
from hpcgen.running.host_side import laid_out

GOLDEN = Path(__file__).parents[3] / "golden"


def old_text(path: Path) -> str:
    """A plan.json as hpcgen 0.1.0 wrote it."""
    plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    data = json.loads(path.read_text())
    del data["plan"]
    for block, planned in zip(data["blocks"], plan.blocks, strict=True):
        block["reasons"] = [str(reason) for reason in planned.reasons]
        block.pop("mpi", None)
    data["job"]["reasons"] = plan.job.why()
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*/plan.json")), ids=lambda path: "-".join(path.parts[-3:-1]))
def test_a_plan_of_0_1_0_is_written_again_as_it_was(path: Path) -> None:
    text = old_text(path)
    plan = msgspec.json.decode(text, type=Plan)
    assert plan.number == 1
    assert plan_text(plan) == text
    assert plan.mpi.abi == ("mpich" if plan.block("mpi") is not None else "")
    shorter = laid_out(plan, None, None, JobRequest(walltime="10m")).job.why()
    assert [line for line in shorter if line.startswith("time ")] == ["time 00:10:00: requested"]


def test_reasons_in_words() -> None:
    asked = Reason(rule="asked", by="horovod", by_version="0.28.1", of="mpi")
    assert str(asked) == "horovod 0.28.1 asks for any mpi"
    assert not asked.bounds
    vendor = Reason(rule="vendor", requires={"vendor": "nvidia"}, found="amd", newer="12.4")
    assert str(vendor) == "not 12.4: it is for nvidia GPUs, the node has amd"
    assert str(msgspec.structs.replace(vendor, newer="")) == "because of the node's GPU vendor amd"
    option = Reason(rule="option", by="tensorflow.install", requires={"tensorflow.install": "pip"}, found="source")
    assert (str(option), option.bounds) == ("because tensorflow.install=source", True)
    assert requirement_text("fabric", {"ucx": "", "libfabric": ">=1.15"}) == "ucx or libfabric >=1.15"
