"""TVM, OpenVINO, JAX and the converters to ONNX: what is chosen, and that a GPU which they leave unused is told."""

from __future__ import annotations

import json
import sys

import pytest

from hpcgen.blocks.steps import Run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.stages import Assembly


def planned(site: str, stack: str, *settings: str, partition: str | None = None) -> Plan:
    catalog = Catalog()
    return make_plan(catalog, catalog.site(site), catalog.stack(stack), settings=settings, partition=partition)


def text_of(assembly: Assembly, name: str) -> str:
    steps: list[Run] = [step for _, step in assembly.builder.steps]
    (found,) = [file.text for step in steps for file in step.files if file.path == name]
    return found


@pytest.mark.parametrize(
    ("site", "target"),
    [
        ("supermuc", {"kind": "llvm", "mcpu": "skylake-avx512"}),
        ("lumi-c", {"kind": "llvm", "mcpu": "znver3"}),
        ("alps-bristen", {"kind": "llvm", "mcpu": "znver3"}),
    ],
)
def test_tvm_compiles_for_the_cpu_of_the_partition(site: str, target: dict[str, str]) -> None:
    assembly = assemble(planned(site, "tvm"), Catalog())
    assert json.loads(text_of(assembly, "files/tests/tvm_target")) == target
    assert not assembly.loose


@pytest.mark.parametrize("stack", ["tvm", "openvino", "onnxruntime"])
def test_the_programs_share_the_model_that_they_are_compared_by(stack: str) -> None:
    assembly = assemble(planned("workstation", stack), Catalog())
    assert "def example()" in text_of(assembly, "files/tests/onnx_model.py")


@pytest.mark.parametrize("stack", ["tvm", "openvino"])
def test_a_gpu_that_is_left_unused_is_told(stack: str) -> None:
    told = notices(assemble(planned("leonardo", stack), Catalog()))
    assert any(each.startswith(f"{stack} ") and "CPU, not" in each for each in told)


def test_releases_of_tvm_are_packages_of_the_index() -> None:
    """A row is called by its release; the index has some with a correction of the packaging (.post1)."""
    for version, row in Catalog().releases("tvm").items():
        assert str(row.values["package"]).startswith(version)


@pytest.mark.parametrize("version", ["2024.6.0", "2025.4.1", "2026.4.1"])
def test_every_release_of_openvino_has_hashes(version: str) -> None:
    plan = planned("workstation", "openvino", f"openvino.version={version}")
    assert not assemble(plan, Catalog()).loose


JAX = [
    ("workstation", "main", "cpu", "0.12.0.1"),
    ("leonardo", None, "cuda12", "0.12.0.1"),
    ("perlmutter", None, "cuda13", "0.12.0.1"),
    ("jupiter", None, "cuda13", "0.12.0.1"),
    ("darwin", "gpu-v100", "cuda12", "0.12.0.1"),
]


@pytest.mark.parametrize(("site", "partition", "accelerator", "version"), JAX)
def test_the_gpu_and_its_driver_decide_what_jax_computes_on(
    site: str, partition: str | None, accelerator: str, version: str
) -> None:
    plan = planned(site, "jax", partition=partition)
    jax = plan.block("jax")
    assert jax is not None and (jax.options["accelerator"], jax.version) == (accelerator, version)
    assert not assemble(plan, Catalog()).loose


def test_jax_refuses_a_package_that_the_gpu_cannot_use() -> None:
    with pytest.raises(ConflictError, match=r"jax 0\.7\.1 is the last that supports capability 7\.0"):
        planned("darwin", "jax", "jax.accelerator=cuda13", partition="gpu-v100")
    with pytest.raises(PolicyError, match="but the image cannot use them"):
        planned("aurora", "jax")


def test_jax_takes_the_rocm_that_the_driver_runs_with_the_libraries_of_its_plugin() -> None:
    plan = planned("lumi-g", "jax")
    versions = {block.name: block.version for block in plan.blocks}
    assert versions["jax"] == "0.5.0" and versions["rocm"].startswith("6.")
    recipe = "".join(file.text for file in make_kit(plan, Catalog()).files.values())
    assert " miopen-hip" in recipe and " hipsolver" in recipe


def test_jax_knows_the_drivers_and_gpus_of_its_table_and_of_rocm() -> None:
    catalog = Catalog()
    module = sys.modules[catalog.block("jax").__module__]
    ways = [way for row in catalog.releases("jax").values() for way in row.ways]
    for accelerator, (driver, capability) in module.CUDA.items():
        hosts = [way.host for way in ways if accelerator in way.only["accelerator"]]
        assert hosts and all(each == {"driver": f">={driver}", "capability": f">={capability}"} for each in hosts)
    rows = catalog.releases("rocm").items()
    for accelerator, (driver, targets) in module.ROCM.items():
        major = f"{accelerator.removeprefix('rocm')[0]}."
        of_rocm = [row for version, row in rows if version.startswith(major) and not row.not_default]
        assert {target for row in of_rocm for target in row.targets} == set(targets)
        assert {row.host["driver"].partition(",")[0] for row in of_rocm} == {f">={driver}"}


def test_what_is_converted_brings_its_framework() -> None:
    names = {block.name for block in planned("workstation", "onnx-convert").blocks}
    assert {"onnx_tools", "onnxruntime", "tensorflow"} <= names and "pytorch" not in names
    more = planned("workstation", "onnx-convert", "onnx_tools.frameworks=sklearn,pytorch")
    names = {block.name for block in more.blocks}
    assert "pytorch" in names and "tensorflow" not in names
    # On a CPU with AVX-512 too, where TensorFlow by itself is compiled.
    tensorflow = planned("supermuc", "onnx-convert").block("tensorflow")
    assert tensorflow is not None and tensorflow.options["install"] == "pip"
    assembly = assemble(more, Catalog())
    assert text_of(assembly, "files/tests/onnx_frameworks") == "sklearn\npytorch\n"


def test_lists_of_one_python_environment_agree() -> None:
    """numpy and protobuf in another version than a list before asked for would break what came before."""
    assembly = assemble(
        planned("workstation", "onnx-convert", "onnx_tools.frameworks=sklearn,keras,pytorch"), Catalog()
    )
    seen: dict[str, str] = {}
    for step in (step for _, step in assembly.builder.steps):
        for file in step.files:
            for line in file.text.splitlines() if file.path.startswith("files/requirements/") else ():
                name, _, version = line.partition(" ")[0].partition("==")
                assert seen.setdefault(name, version) == version or name in ("pip", "setuptools", "wheel"), line


def test_vllm_is_for_gpus_alone() -> None:
    assembly = assemble(planned("perlmutter", "vllm"), Catalog())
    assert not assembly.loose
    with pytest.raises(ConflictError, match="with no GPU in the node") as refused:
        planned("supermuc", "vllm")
    assert "only vllm" not in str(refused.value)
    with pytest.raises(ConflictError, match=r"no known vllm supports capability 7\.0") as refused:
        planned("darwin", "vllm", partition="gpu-v100")
    # The older release is for AMD's GPUs.
    assert "is the last that supports" not in str(refused.value)


VLLM = ["vllm.install=pip", "vllm.version=0.26.0", "vllm.install=hub"]


@pytest.mark.parametrize("setting", VLLM)
def test_ray_leaves_what_vllm_has_as_it_is(setting: str) -> None:
    assembly = assemble(planned("perlmutter", "vllm-ray", setting), Catalog())
    assert not assembly.loose
    seen: dict[str, str] = {}
    for step in (step for _, step in assembly.builder.steps):
        for file in step.files:
            for line in file.text.splitlines() if file.path.startswith("files/requirements/") else ():
                name, _, version = line.partition(" ")[0].partition("==")
                assert seen.setdefault(name, version) == version or name in ("pip", "setuptools", "wheel"), line
    assert seen["ray"] == "2.60.0"
    if "vllm" in seen:
        needed = sys.modules[Catalog().block("ray").__module__].NEEDED
        assert {"msgpack", *needed} <= seen.keys()
    else:
        assert "protobuf" not in seen


def test_vllm_ray_starts_one_rank_on_each_node_that_sees_all_its_gpus() -> None:
    job = planned("leonardo", "vllm-ray").job
    assert (job.ranks_per_node, job.gpus_per_node, job.rank_gpus) == (1, 4, "all")
    assert job.command[0] == "ray-job" and {"{gpus}", "{nodes}"} <= set(job.command)
