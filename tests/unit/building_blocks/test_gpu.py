"""CUDA, cuDNN and NCCL blocks: the right archive, the right GPU, no driver library in the image."""

from __future__ import annotations

from typing import Any

import pytest

import hpcgen
from hpcgen.blocks.requirements import in_range
from hpcgen.blocks.steps import Archive
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.release import Release
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, text


def test_cuda_from_nvidias_image_where_there_is_one() -> None:
    block, ctx = context("cuda", "12.9.1", base=("ubuntu", "22.04"))
    images = [block.base_image(ctx, stage) for stage in ("builder", "final")]
    assert [image.name for image in images if image] == [
        "nvidia/cuda:12.9.1-devel-ubuntu22.04",
        "nvidia/cuda:12.9.1-runtime-ubuntu22.04",
    ]
    assert not [*block.build(ctx)]
    assert not block.inputs(ctx)
    # The prefix that other blocks use is there all the same.
    assert "ln -s /usr/local/cuda /opt/cuda" in text(block.prepare(ctx, "builder"))
    # The run-time image has no compiler for XLA.
    assert "/usr/local/cuda-12.9/bin/ptxas" in block.runtime(ctx).copies
    assert "compat" in text(block.finish(ctx, "final"))


@pytest.mark.parametrize(
    ("version", "base", "options"),
    [
        ("12.9.1", ("debian", "12"), {}),
        ("11.8.0", ("ubuntu", "22.04"), {}),
        ("12.9.1", ("ubuntu", "22.04"), {"obtain": "archive"}),
    ],
)
def test_cuda_from_the_installer_otherwise(version: str, base: tuple[str, str], options: dict[str, Any]) -> None:
    block, ctx = context("cuda", version, base=base, **options)
    assert block.base_image(ctx, "builder") is None
    (installer,) = block.inputs(ctx)
    assert isinstance(installer, Archive)
    assert installer.name.startswith(f"cuda_{version}_")
    assert installer.name.endswith("_linux.run")
    steps = text(block.build(ctx))
    assert installer.sha256 in steps
    assert "--installpath=/opt/cuda" in steps


def test_the_image_has_no_stand_in_for_the_drivers_library() -> None:
    block, ctx = context("cuda", "10.1.243", base=("ubuntu", "18.04"))
    assert "/opt/cuda/targets/x86_64-linux/lib/stubs" in text(block.finish(ctx, "builder"))
    assert "/opt/cuda/targets/x86_64-linux/lib" in block.runtime(ctx).copies
    assert "ln -s targets/x86_64-linux/lib /opt/cuda/lib64" in text(block.finish(ctx, "final"))


def test_cuda_for_arm_is_another_archive() -> None:
    block, ctx = context("cuda", "12.9.1", facts(architecture="aarch64"))
    (installer,) = block.inputs(ctx)
    assert isinstance(installer, Archive)
    assert installer.name.endswith("_linux_sbsa.run")


def fits(name: str, fact: str, value: str) -> list[str]:
    def host(release: Release) -> str:
        return {str(key): wanted for key, wanted in release.host.items()}.get(fact, "")

    return [version for version, row in CATALOG.releases(name).items() if in_range(value, host(row))]


def test_cuda_fits_driver_and_gpu() -> None:
    # A GTX 1080 Ti with the driver of CUDA 10.1 cannot have 11 or 12; with a new driver it still cannot have 13.
    with_old_driver = fits("cuda", "driver", "418.87.00")
    assert with_old_driver == ["10.0.130", "10.1.243"]
    assert max(fits("cuda", "capability", "6.1")) == "12.9.1"
    assert "11.0.3" not in fits("cuda", "capability", "8.6")
    # Compatibility inside a major version: 12.9 runs with the first driver of 12.
    assert "12.9.1" in fits("cuda", "driver", "525.60.13")


def test_cuda_refuses_a_newer_compiler() -> None:
    accepts = CATALOG.releases("cuda")["10.1.243"].accepts["gnu"]
    assert in_range("8.4.0", accepts)
    assert not in_range("9.4.0", accepts)


@pytest.mark.parametrize(
    ("version", "cuda", "architecture", "archive"),
    [
        ("7.6.4.38", "10.1.243", "x86_64", "cudnn-10.1-linux-x64-v7.6.4.38.tgz"),
        ("8.0.5.39", "11.0.3", "x86_64", "cudnn-11.0-linux-x64-v8.0.5.39.tgz"),
        ("8.0.5.39", "11.8.0", "x86_64", "cudnn-11.1-linux-x64-v8.0.5.39.tgz"),
        ("8.9.7.29", "12.2.2", "x86_64", "cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz"),
        ("8.9.7.29", "11.8.0", "aarch64", "cudnn-linux-sbsa-8.9.7.29_cuda11-archive.tar.xz"),
        ("8.6.0.163", "11.2.2", "x86_64", "cudnn-linux-x86_64-8.6.0.163_cuda11-archive.tar.xz"),
    ],
)
def test_cudnn_is_the_build_for_the_chosen_cuda(version: str, cuda: str, architecture: str, archive: str) -> None:
    block, ctx = context("cudnn", version, facts(architecture=architecture), others={"cuda": chosen("cuda", cuda)})
    (found,) = block.inputs(ctx)
    assert isinstance(found, Archive)
    assert found.name == archive


def test_every_cudnn_finds_an_archive_for_every_cuda_it_accepts() -> None:
    for version, release in CATALOG.releases("cudnn").items():
        for cuda in CATALOG.releases("cuda"):
            if in_range(cuda, release.accepts["cuda"]) and "archive" in release.only.get("obtain", ["archive"]):
                block, ctx = context("cudnn", version, others={"cuda": chosen("cuda", cuda)})
                assert block.inputs(ctx), (version, cuda)


def test_nccl_is_compiled_for_the_gpu_of_the_site() -> None:
    others = {"cuda": chosen("cuda", "10.1.243"), "gnu": chosen("gnu", "8.4.0")}
    gpu = Gpu(vendor="nvidia", model="GTX 1080 Ti", capability="6.1")
    block, ctx = context("nccl", "2.7.8", facts(gpu=gpu), base=("ubuntu", "18.04"), others=others)
    assert "NVCC_GENCODE=-gencode=arch=compute_61,code=sm_61" in text(block.build(ctx))
    block, ctx = context("nccl", "2.7.8", base=("ubuntu", "18.04"), others=others)
    assert "NVCC_GENCODE" not in text(block.build(ctx))


@pytest.mark.parametrize(
    ("name", "version", "licence"), [("cuda", "12.9.1", "nvidia-cuda-eula"), ("cudnn", "9.10.2.21", "nvidia-cudnn")]
)
def test_nvidias_software_names_the_licence_to_accept(name: str, version: str, licence: str) -> None:
    block, ctx = context(name, version)
    (found,) = block.capabilities(ctx).licences
    assert found.name == licence
    assert found.url.startswith("https://docs.nvidia.com/")


AMD_TABLE = {
    "5.5": "5.3 5.4 5.5 5.6 5.7",
    "5.6": "5.4 5.5 5.6 5.7 6.0",
    "5.7": "5.5 5.6 5.7 6.0 6.1",
    "6.0": "5.6 5.7 6.0 6.1 6.2",
    "6.1": "5.7 6.0 6.1 6.2 6.3 6.4",
    "6.2": "6.0 6.1 6.2 6.3 6.4 7.0",
    "6.3": "6.1 6.2 6.3 6.4 7.0",
    "6.4": "6.1 6.2 6.3 6.4 7.0 7.1 7.2",
    "30.10": "6.2 6.3 6.4 7.0 7.1 7.2 7.14 10.0",
    "30.30": "6.3 6.4 7.0 7.1 7.2 7.14 10.0",
    "31.50": "7.0 7.1 7.2 7.14 10.0",
}
"""The ROCm that each release of AMD's driver takes.  Source: github.com/ROCm/amdgpu-docs compatibility-matrix.rst."""


@pytest.mark.parametrize("driver", list(AMD_TABLE))
def test_rocm_goes_with_the_drivers_that_amds_table_has_for_it(driver: str) -> None:
    for version, row in CATALOG.releases("rocm").items():
        taken = version.rpartition(".")[0] in AMD_TABLE[driver].split()
        assert in_range(driver, row.host["driver"]) == taken, version
        assert in_range(f"{driver}.2", row.host["driver"]) == taken, version


def test_lumis_driver_is_given_a_rocm_that_it_takes() -> None:
    with pytest.raises(ConflictError, match=r"rocm 6\.4\.1 is the last that supports driver 6\.3") as failure:
        hpcgen.plan("lumi-g", "onnxruntime")
    assert {"onnxruntime.install": "source"} in [dict(each.settings) for each in failure.value.remedies]
    plan = hpcgen.plan("lumi-g", "onnxruntime", settings={"onnxruntime.install": "source"})
    assert [block.version for block in plan.blocks if block.name == "rocm"] == ["6.4.1"]
