"""Horovod for PyTorch beside TensorFlow, and DeepSpeed: what is needed, patched and compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import notices
from tests.unit.building_blocks.test_onnxruntime import H100, V100, versions
from tests.unit.building_blocks.test_pytorch import assembled, commands, planned


def test_horovod_for_pytorch_needs_no_tensorflow_and_an_older_python(collection: Path) -> None:
    plan = planned(collection, stack="pytorch-horovod")
    found = versions(plan)
    assert "tensorflow" not in found
    assert (found["pytorch"], found["python"]) == ("2.13.0", "3.11.2")
    told = commands(assembled(plan))
    assert "HOROVOD_WITH_PYTORCH=1" in told
    assert "HOROVOD_WITHOUT_TENSORFLOW=1" in told
    assert "/opt/horovod/share/step_torch.py" in {
        file.target for _, step in assembled(plan).builder.steps for file in step.files
    }


@pytest.mark.parametrize(("version", "standard"), [("2.13.0", "20"), ("2.1.2", "17"), ("1.13.1", "")])
def test_the_standard_of_cpp_follows_pytorch_and_its_text_must_be_there(
    collection: Path, version: str, standard: str
) -> None:
    told = commands(assembled(planned(collection, "", f"pytorch.version={version}", stack="pytorch-horovod")))
    for file in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        patch = f"s/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD {standard})/' /opt/hpcgen/build/horovod/{file}"
        check = f"grep -q 'set(CMAKE_CXX_STANDARD 14)' /opt/hpcgen/build/horovod/{file}"
        assert (patch in told) == (check in told) == bool(standard)


def test_horovod_for_both_frameworks_has_a_test_and_a_step_of_each(collection: Path) -> None:
    settings = ("horovod.frameworks=tensorflow,pytorch", "tensorflow.install=pip")
    plan = planned(collection, "", *settings, stack="pytorch-horovod")
    assert {"tensorflow", "pytorch"} <= versions(plan).keys()
    made = assembled(plan)
    told = commands(made)
    assert "HOROVOD_WITH_PYTORCH=1" in told and "HOROVOD_WITH_TENSORFLOW=1" in told
    assert "import sys, horovod.torch as hvd" in made.files["selftest.sh"].text
    assert "import sys, horovod.tensorflow as hvd" in made.files["selftest.sh"].text


def test_a_framework_that_horovod_is_not_for_is_refused(collection: Path) -> None:
    with pytest.raises(HpcgenError, match="tensorflow"):
        planned(collection, "", "horovod.frameworks=caffe", stack="pytorch-horovod")


@pytest.mark.parametrize(("gpu", "wanted"), [("", "0.19.8"), (V100, "0.19.8"), (H100, "0.19.8")])
def test_deepspeed_keeps_a_compiler_and_every_list_has_hashes(collection: Path, gpu: str, wanted: str) -> None:
    plan = planned(collection, gpu, stack="deepspeed")
    made = assembled(plan)
    assert versions(plan)["deepspeed"] == wanted
    assert not made.loose
    assert "g++" in "\n".join(line for _, step in made.final.steps for line in step.commands)
    # pip's cache of wheels does not know which PyTorch one was compiled for.
    assert "pip install --no-cache-dir --no-deps --require-hashes --no-binary deepspeed" in commands(made)


def test_packages_that_have_ended_name_what_took_their_place(collection: Path) -> None:
    packages = "python_packages.packages=intel_extension_for_pytorch==2.8.0"
    told = notices(assembled(planned_with(collection, packages)))
    assert any("intel-extension-for-pytorch has ended" in note and "xpu" in note for note in told)


def planned_with(collection: Path, *settings: str) -> Plan:
    (collection / "recipes" / "more.yaml").write_text(
        "name: more\ntitle: PyTorch and packages\nextends: pytorch\nblocks: {python_packages: {}}\n"
    )
    return planned(collection, "", *settings, stack="more")
