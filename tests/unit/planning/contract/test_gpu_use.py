"""GPUs that a job asks for are used: by what is in the image, of the right vendor, or not asked for at all."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of


def outcomes(plan: Plan) -> list[str]:
    return [each.outcome for each in checks_of(case_of(plan, default_catalog()), only=("GPU use",))]


def header(plan: Plan) -> str:
    return make_kit(plan, default_catalog()).files["job.slurm"].text


@pytest.mark.parametrize(
    ("site", "partition", "stack"),
    [("lumi-g", None, "tf-horovod"), ("darwin", "gpu-mi50", "onnxruntime"), ("stampede3", "pvc", "onnxruntime")],
)
def test_gpus_that_nothing_in_the_image_can_use_are_refused(site: str, partition: str | None, stack: str) -> None:
    with pytest.raises(PolicyError, match=r"the job asks for \d GPUs? per node .* but the image cannot use them"):
        hpcgen.plan(site, stack, partition=partition)


def test_the_remedy_names_nodes_without_gpus() -> None:
    with pytest.raises(PolicyError, match=r"--gpus 0 for a job on CPUs only, or --partition standard or large-mem"):
        hpcgen.plan("darwin", "tf-horovod", partition="gpu-mi50")


def test_a_job_that_asks_for_none_says_so_and_names_none() -> None:
    plan = hpcgen.plan("lumi-g", "tf-horovod", gpus_per_node=0)
    assert outcomes(plan) == ["skipped"]
    assert "gpu" not in "".join(line for line in header(plan).splitlines() if line.startswith("#SBATCH"))
    assert "--gpus 0" in plan.command


def test_gpus_that_a_person_asks_for_are_a_warning() -> None:
    """A program of one's own may use what the image brings nothing for."""
    plan = hpcgen.plan("lumi-g", "tf-horovod", gpus_per_node=8)
    assert [each.severity for each in plan.findings if each.name == "GPU use"] == ["warning"]


def test_what_uses_them_is_named() -> None:
    plan = hpcgen.plan("juwels-booster", "tf-horovod")
    (check,) = checks_of(case_of(plan, default_catalog()), only=("GPU use",))
    assert check.outcome == "holds" and "cuda" in check.reason


def test_a_compiler_for_gpus_on_nodes_without_any_is_a_warning() -> None:
    """What it compiles ends there; a framework on the same nodes computes on CPUs."""
    plan = hpcgen.plan("supermuc", "mpi-hello", add=["cuda"])
    (found,) = [each for each in plan.findings if each.name == "GPU use"]
    assert found.severity == "warning" and "the partition has no GPU, and the stack names cuda 1" in found.message
    assert not [each for each in hpcgen.plan("supermuc", "tf-horovod").findings if each.name == "GPU use"]
    darwin = hpcgen.plan("darwin", "mpi-hello", partition="standard", add=["cuda"])
    assert [each.remedy[:12] for each in darwin.findings if each.name == "GPU use"] == ["--partition "]


def test_a_package_of_the_index_for_another_vendor_is_refused() -> None:
    settings = {"python_packages.packages": "cupy-cuda12x==13.6.0", "onnxruntime.install": "source"}
    plan = hpcgen.plan("hunter", "onnxruntime", settings=settings, add=["python_packages"], allow_unsupported=True)
    assert outcomes(plan) == ["broken"]


@pytest.mark.parametrize("packages", ["torch==2.7.1", "torch==2.7.1+rocm6.3"])
def test_what_a_block_provides_is_chosen_for_the_vendor_or_refused(packages: str) -> None:
    settings = {"python_packages.packages": packages, "onnxruntime.install": "source"}
    with pytest.raises(ConflictError, match=r"only with pytorch.accelerator=cpu or cuda, and here that is rocm"):
        hpcgen.plan("hunter", "onnxruntime", settings=settings, add=["python_packages"], allow_unsupported=True)


def test_without_a_layout_each_gpu_has_a_rank() -> None:
    plan = hpcgen.plan("darwin", "tf-horovod", partition="gpu-v100")
    assert (plan.job.ranks_per_node, plan.job.threads_per_rank) == (4, 12)
    assert "ranks per node 4: one for each GPU" in plan.job.why()
    assert hpcgen.plan("darwin", "mpi-hello", partition="gpu-v100").job.ranks_per_node == 1
    assert hpcgen.plan("darwin", "tf-horovod", partition="gpu-v100", ranks_per_node=2).job.ranks_per_node == 2


def test_more_gpus_than_a_node_has_are_refused() -> None:
    with pytest.raises(PolicyError, match="a node of booster has 4 GPUs, and 5 were requested"):
        hpcgen.plan("juwels-booster", "tf-horovod", gpus_per_node=5)
    with pytest.raises(PolicyError, match="a node of thin has no GPU"):
        hpcgen.plan("supermuc", "tf-horovod", gpus_per_node=1)


def test_asking_outright_for_gpus_that_nothing_uses_is_no_remedy() -> None:
    with pytest.raises(PolicyError) as refused:
        hpcgen.plan("lumi-g", "tf-horovod")
    assert "--gpus 0 for a job on CPUs only" in str(refused.value)
    assert "--gpus 8" not in str(refused.value)


def test_a_refusal_leads_with_what_keeps_the_image_from_the_gpus() -> None:
    with pytest.raises(PolicyError) as refused:
        hpcgen.plan("aurora", "jax")
    (problem,) = refused.value.problems
    assert problem.message.startswith("jax 0.12.0.1 computes on the CPU: no package has code for it; ")
    assert problem.remedy.index("a stack or provider") < problem.remedy.index("--gpus 0")
