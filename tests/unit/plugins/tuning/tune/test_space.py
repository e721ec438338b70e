"""What is varied, by framework and workload, and what a person makes of that."""

from __future__ import annotations

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.tune.space import DEFAULT, cell_of, effective, idle, layouts_of, space_for
from tests.unit.plugins.tuning.bench.test_running import case


def test_the_table_says_what_is_varied_by_framework_and_workload() -> None:
    pytorch = space_for(case(), workload_named("mlp")).axes
    assert pytorch["compiler"] == [DEFAULT, "torch.compile"] and "env.TF_ENABLE_ONEDNN_OPTS" not in pytorch
    inference = space_for(case(), workload_named("resnet50-inference")).axes
    assert inference["compiler"] == [DEFAULT, "openvino", "onnxruntime", "torch.compile"]
    tensorflow = space_for(case("tf"), workload_named("mlp")).axes
    assert tensorflow["compiler"] == [DEFAULT, "xla"] and "env.OMP_PROC_BIND" not in tensorflow
    gemm = space_for(case(), workload_named("gemm")).axes
    assert "interop" not in gemm and "compiler" not in gemm
    assert list(space_for(case("mpi-python"), workload_named("allreduce")).axes) == ["layout"]


def test_layouts_share_the_cores_and_those_that_cannot_start_are_left_out() -> None:
    plan = case("pytorch-ddp").job.plan
    node = plan.site.partitions[plan.partition]
    cores = node.cpu.cores
    assert (
        f"1x{cores}" in layouts_of(node) and f"{cores}x1" in layouts_of(node) and f"1x{cores // 2}" in layouts_of(node)
    )
    several = space_for(case("pytorch-ddp"), workload_named("mlp")).axes["layout"]
    assert f"2x{cores // 2}" in several
    alone = space_for(case(), workload_named("mlp")).axes["layout"]
    assert all(each.startswith("1x") for each in alone if each)
    assert all(
        not each.startswith("1x")
        for each in space_for(case("mpi-python"), workload_named("allreduce")).axes["layout"]
        if each
    )


def test_a_person_narrows_adds_and_leaves_out() -> None:
    vary = ["interop=4", "batch=64,128", "compiler=none,torch.compile", "allocator=", "env.A=1"]
    space = space_for(case(), workload_named("mlp"), vary, ["1x1"])
    assert space.axes["interop"] == [DEFAULT, "4"] and space.axes["layout"] == [DEFAULT, "1x1"]
    # 64 is the workload's own, and none is what there is without a compiler.
    assert space.axes["batch"] == [DEFAULT, "128"] and space.axes["compiler"] == [DEFAULT, "torch.compile"]
    assert "allocator" not in space.axes and space.axes["env.A"] == [DEFAULT, "1"]
    assert next(space.combinations()) == {}
    assert "layout" not in space_for(case(), workload_named("mlp"), ["threads=1"]).axes


def test_values_with_commas_are_one_value() -> None:
    value = "granularity=fine,compact,1,0"
    found = cell_of(case(), workload_named("mlp"), {"env.KMP_AFFINITY": value, "layout": "1x2"})
    assert found.variant.environment == {"KMP_AFFINITY": value}
    assert (found.variant.ranks, found.variant.threads, found.framework) == (1, 2, "pytorch")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as raised:
        space_for(case(), workload_named("mlp"), ["thread=1", "interop=none", "env.LD_PRELOAD=x"], ["2*2"])
    assert len(raised.value.problems) == 4
    for vary in (["interop"], ["interop=1", "interop=2"], ["threads=1"]):
        with pytest.raises(InputError, match="--vary"):
            space_for(case(), workload_named("mlp"), vary, ["1x1"])


def test_what_nothing_reads_is_not_varied() -> None:
    gnu = idle(["libgomp", "glibc", "glibc-hugetlb"])
    assert {name for name, _ in gnu} == {"env.KMP_BLOCKTIME", "env.KMP_AFFINITY"}
    intel = idle(["libiomp5", "glibc"])
    assert ("env.OMP_WAIT_POLICY", "active") in intel and ("env.KMP_BLOCKTIME", "0") not in intel
    assert sum(name == "env.GLIBC_TUNABLES" for name, _ in intel) == 2
    assert ("env.OMP_PLACES", "cores") in idle([]) and idle(None) == set()
    own = {"env.GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "interop": "1"}
    assert effective(own, gnu) == own
    assert effective({**own, "allocator": "tcmalloc"}, gnu) == {"allocator": "tcmalloc", "interop": "1"}
