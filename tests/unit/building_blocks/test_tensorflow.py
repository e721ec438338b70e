"""TensorFlow's releases from 1.4 on: which package, on which base, and what plans say of the old ones."""

from __future__ import annotations

import re

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, HpcgenError, PolicyError
from hpcgen.recipe.assemble import assemble, notices


def planned(version: str, site: str = "workstation", **more: str) -> hpcgen.Plan:
    settings = {"tensorflow.version": version, "tensorflow.install": "pip", **more}
    return hpcgen.plan(site, "tf", settings=settings, gpus_per_node=0 if "tensorflow.gpu" in more else None)


def package_of(plan: hpcgen.Plan) -> str:
    """The package of TensorFlow that the recipe installs."""
    lines = hpcgen.render(plan).files
    listed = [text for name, text in lines.items() if name.startswith("files/requirements/tensorflow")]
    return next(
        found[0] for line in listed[0].text.splitlines() if (found := re.match(r"tensorflow(-[cg]pu)?==\S+", line))
    )


@pytest.mark.parametrize("version", ["1.4.1", "1.14.0", "1.15.5", "2.1.4"])
def test_old_releases_come_with_a_base_of_their_time_and_hashes(version: str) -> None:
    plan = planned(version)
    assert [block.label for block in plan.blocks if block.name in ("ubuntu", "python")] == [
        "ubuntu 18.04",
        "python 3.6.9",
    ]
    assert not any("no hashed wheel list" in each for each in notices(assemble(plan, default_catalog())))
    said = [each.name for each in plan.findings if each.message.startswith(f"tensorflow {version}")]
    assert said == (["unmaintained"] if version < "2" else [])


@pytest.mark.parametrize(
    ("version", "site", "gpu", "package"),
    [
        ("1.14.0", "workstation", "", "tensorflow==1.14.0"),
        ("1.14.0", "hlrs-testbed", "", "tensorflow-gpu==1.14.0"),
        ("1.14.0", "hlrs-testbed", "false", "tensorflow==1.14.0"),
        ("1.15.5", "workstation", "", "tensorflow==1.15.5"),
        ("2.1.4", "hlrs-testbed", "", "tensorflow==2.1.4"),
        ("2.1.4", "hlrs-testbed", "false", "tensorflow-cpu==2.1.4"),
    ],
)
def test_the_package_is_the_one_for_the_device(version: str, site: str, gpu: str, package: str) -> None:
    plan = planned(version, site, **({"tensorflow.gpu": gpu} if gpu else {}))
    assert package_of(plan) == package
    assert (plan.block("cuda") is not None) == (site == "hlrs-testbed" and not gpu)


def test_a_release_whose_cuda_nobody_has_is_for_cpus_alone() -> None:
    with pytest.raises(ConflictError, match=r"needs cuda ==8\.0"):
        planned("1.4.1", "hlrs-testbed")
    assert planned("1.4.1", "hlrs-testbed", **{"tensorflow.gpu": "false"}).block("cuda") is None


def test_packages_for_arm_begin_later() -> None:
    with pytest.raises(ConflictError, match="aarch64"):
        hpcgen.plan("alps", "tf", settings={"tensorflow.version": "1.15.5"})


def test_xla_is_switched_on_by_a_variable_of_the_job_alone() -> None:
    kits = [hpcgen.render(hpcgen.plan("workstation", stack)).files for stack in ("tf", "tf-xla")]
    assert ["--tf_xla_auto_jit=2" in kit["run.sh"].text for kit in kits] == [False, True]
    # Nothing of the image is another.
    assert kits[0]["selftest.sh"].text.splitlines()[3:] == kits[1]["selftest.sh"].text.splitlines()[3:]


def test_the_projects_image_with_cuda_uses_the_gpu() -> None:
    plan = hpcgen.plan("hlrs-testbed", "tf", settings={"tensorflow.install": "hub"})
    assert plan.job.gpus_per_node and plan.block("cuda") is None
    assert "-gpu" in hpcgen.render(plan).recipe


def test_intels_packages_are_offered_for_cpus_with_hashes() -> None:
    plan = hpcgen.plan("supermuc", "tf-horovod", settings={"tensorflow.install": "intel"})
    block = plan.block("tensorflow")
    assert block is not None and block.version == "2.14.0" and block.kmp and not block.thread_variables
    assert "intel-tensorflow==2.14.0 --hash=sha256:" in "".join(
        file.text for file in hpcgen.render(plan).files.values()
    )
    with pytest.raises(PolicyError, match="the image cannot use them"):
        hpcgen.plan("slurm-nvidia", "tf", settings={"tensorflow.install": "intel"})


@pytest.mark.parametrize("stack", ["tf", "tf-horovod"])
def test_a_wheel_for_arm_is_refused_where_the_job_asks_for_gpus(stack: str) -> None:
    with pytest.raises(HpcgenError, match=r"tensorflow 2\.\d+\.\d+ computes on the CPU: .* are without CUDA"):
        hpcgen.plan("alps", stack)
    block = hpcgen.plan("alps", stack, gpus_per_node=0, ranks_per_node=1).block("tensorflow")
    assert block is not None and block.options["install"] == "pip"
    with pytest.raises(HpcgenError, match=r"for aarch64 are without CUDA"):
        hpcgen.plan("alps", stack, settings={"tensorflow.gpu": "true"}, gpus_per_node=0, ranks_per_node=1)


def test_on_arm_it_is_compiled_with_cuda() -> None:
    plan = hpcgen.plan("alps", "tf", settings={"tensorflow.install": "source"})
    assert plan.block("cuda") is not None and plan.block("tensorflow") is not None
