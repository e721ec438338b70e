"""What is varied, by framework and workload, and what a person makes of that."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench.running import BenchCase
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.tune.space import (
    DEFAULT,
    FIRST,
    IMAGE,
    alone,
    cell_of,
    effective,
    idle,
    layouts_of,
    space_for,
)
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


HUGE = "glibc.malloc.hugetlb=1"
KEEP = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"


def keeping(**more: str) -> BenchCase:
    """An image with the block kept_memory."""
    plain = case()
    kept = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
    return replace(plain, job=replace(plain.job, environment={**kept, **more}))


def test_an_image_that_keeps_memory_is_tried_without_and_with_huge_pages_on_top() -> None:
    axes = space_for(keeping(), workload_named("mlp")).axes
    assert axes["memory"] == [DEFAULT, "plain"] and axes["env.GLIBC_TUNABLES"] == [DEFAULT, HUGE]
    huge = space_for(keeping(GLIBC_TUNABLES=HUGE), workload_named("mlp")).axes
    # With its own huge pages it is tried without them.
    assert huge["memory"] == [DEFAULT, "plain"] and huge["env.GLIBC_TUNABLES"] == [DEFAULT, KEEP]
    without = space_for(case(), workload_named("mlp")).axes
    assert "memory" not in without and without["env.GLIBC_TUNABLES"] == [DEFAULT, KEEP, HUGE, f"{HUGE}:{KEEP}"]
    asked = space_for(keeping(), workload_named("mlp"), ["memory=measured,plain", f"env.GLIBC_TUNABLES={KEEP}"]).axes
    assert asked["memory"] == [DEFAULT, "plain"] and asked["env.GLIBC_TUNABLES"] == [DEFAULT, KEEP]


def test_another_image_is_a_setting_that_is_tried_first() -> None:
    plain, fast = case(), replace(case(), image="fast.sif")
    axes = space_for(plain, workload_named("mlp"), others=[fast]).axes
    assert axes[IMAGE] == [DEFAULT, "fast.sif"] and FIRST[0] == IMAGE
    settings = {IMAGE: "fast.sif", "interop": "1"}
    found = cell_of(plain, workload_named("mlp"), settings, [fast])
    assert (found.case, str(found.variant)) == (fast, "interop=1")
    with pytest.raises(InputError, match=r"two images are called fast\.sif"):
        space_for(plain, workload_named("mlp"), others=[fast, fast])


def test_of_equal_combinations_of_memory_one_is_tried() -> None:
    read = idle(["libgomp", "glibc", "glibc-hugetlb"])
    both = {"memory": "plain", "env.GLIBC_TUNABLES": HUGE}
    assert effective(both, read) == both
    assert effective({"memory": "plain", "env.GLIBC_TUNABLES": KEEP}, read) == {"env.GLIBC_TUNABLES": KEEP}
    assert effective({**both, "allocator": "jemalloc"}, read) == {"allocator": "jemalloc"}
    assert ("memory", "plain") in idle(["libgomp"])


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
    gnu = idle(["libgomp", "glibc", "glibc-hugetlb", "channels_last", "scipy.fft"])
    assert {name for name, _ in gnu} == {"env.KMP_BLOCKTIME", "env.KMP_AFFINITY"}
    intel = idle(["libiomp5", "glibc"])
    assert ("env.OMP_WAIT_POLICY", "active") in intel and ("env.KMP_BLOCKTIME", "0") not in intel
    assert sum(name == "env.GLIBC_TUNABLES" for name, _ in intel) == 2
    assert ("env.OMP_PLACES", "cores") in idle([]) and idle(None) == set()
    own = {"env.GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "interop": "1"}
    assert effective(own, gnu) == own
    assert effective({**own, "allocator": "tcmalloc"}, gnu) == {"allocator": "tcmalloc", "interop": "1"}


def test_an_engine_with_threads_of_its_own_reads_no_variables_of_openmp() -> None:
    varied = {"env.OMP_PLACES": "cores", "env.ONEDNN_MAX_CPU_ISA": "AVX2", "interop": "1", "memory": "plain"}
    framework = {"compiler": "torch.compile", **varied}
    assert effective(framework, set()) == framework
    onnxruntime = effective({**varied, "compiler": "onnxruntime"}, set())
    assert onnxruntime == {"compiler": "onnxruntime", "memory": "plain"}
    assert effective({"compiler": "onnxruntime", "interop": "2"}, set())["interop"] == "2"
    openvino = effective({**varied, "compiler": "openvino"}, set())
    assert openvino == {"compiler": "openvino", "memory": "plain", "env.ONEDNN_MAX_CPU_ISA": "AVX2"}


def test_what_needs_another_setting_is_tried_with_it_first() -> None:
    axes = space_for(case(), workload_named("resnet18-inference"))
    first = list(alone(axes))
    frozen = {"compiler": "torch.compile", "env.TORCHINDUCTOR_FREEZING": "1"}
    assert frozen in first and {"env.TORCHINDUCTOR_FREEZING": "1"} not in first
    without = space_for(case(), workload_named("resnet18-inference"), ["compiler="])
    assert not any("env.TORCHINDUCTOR_FREEZING" in each for each in alone(without))
