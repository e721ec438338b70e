"""TVM and OpenVINO: what is chosen, and that a GPU which they leave unused is told."""

from __future__ import annotations

import json

import pytest

from hpcgen.blocks.steps import Run
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.stages import Assembly


def planned(site: str, stack: str, *settings: str) -> Plan:
    catalog = Catalog()
    return make_plan(catalog, catalog.site(site), catalog.stack(stack), settings=settings)


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
