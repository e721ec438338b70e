"""MXNet: on GPUs that CUDA 11.2 knows, on CPUs elsewhere, and never in silence."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.blocks.requirements import in_range
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.recipe.assemble import assemble, notices


def test_what_it_takes_cuda_to_need_is_what_the_table_says() -> None:
    block = default_catalog().block("mxnet")
    module = __import__("sys").modules[block.__module__]
    host = default_catalog().releases("cuda")["11.2.2"].host
    assert host["driver"] == f">={module.OLDEST_DRIVER}"
    assert in_range(module.NEWEST_CAPABILITY, host["capability"])
    assert host["capability"].endswith(f"<={module.NEWEST_CAPABILITY}")


def test_a_gpu_that_cuda_knows_is_used() -> None:
    plan = hpcgen.plan("darwin", "mxnet", partition="gpu-v100")
    assert plan.block("cuda") is not None and plan.block("nccl") is not None
    assert "unmaintained" in [each.name for each in plan.findings]
    assert any(name.startswith("files/requirements/mxnet-cu112") for name in hpcgen.render(plan).files)


def test_one_that_it_does_not_know_is_not_asked_for_in_silence() -> None:
    with pytest.raises(PolicyError, match="but the image cannot use them"):
        hpcgen.plan("hlrs-testbed", "mxnet")
    plan = hpcgen.plan("hlrs-testbed", "mxnet", gpus_per_node=0)
    assert plan.block("cuda") is None
    told = notices(assemble(plan, default_catalog()))
    assert any("computes on the CPU" in each and "driver is 418.39" in each for each in told)
    assert not any("no hashed wheel list" in each for each in told)


def test_the_older_release_is_for_cpus_and_python_of_its_time() -> None:
    plan = hpcgen.plan("hlrs-testbed", "mxnet", settings={"mxnet.version": "1.6.0"}, gpus_per_node=0)
    assert "python 3.6.9" in [block.label for block in plan.blocks]
    told = notices(assemble(plan, default_catalog()))
    assert not any("no hashed wheel list" in each for each in told)


def test_horovod_is_compiled_for_mxnet_alone() -> None:
    kit = hpcgen.render(hpcgen.plan("supermuc", "mxnet-horovod"))
    told = kit.recipe
    assert "HOROVOD_WITH_MXNET=1" in told
    assert "HOROVOD_WITHOUT_TENSORFLOW=1" in told
    assert "import sys, horovod.mxnet as hvd" in kit.files["selftest.sh"].text
    assert "step_mxnet.py" in kit.files["job.slurm"].text
    with pytest.raises(ConflictError):
        hpcgen.plan("supermuc", "mxnet-horovod", settings={"mxnet.version": "==1.6.0"})
