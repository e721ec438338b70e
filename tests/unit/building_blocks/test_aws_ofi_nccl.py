"""aws-ofi-nccl, and what drives InfiniBand for NCCL: which release for which GPU and fabric, and how it is built."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.kit.kit import make_kit

ADDED = ["aws_ofi_nccl"]
STANDALONE = {"python.obtain": "standalone"}


def recipe(site: str, stack: str, **asked: object) -> str:
    plan = hpcgen.plan(site, stack, allow_unsupported=True, **asked)  # type: ignore[arg-type]
    files = make_kit(plan, Catalog()).files
    return next(files[name].text for name in ("Dockerfile", "Singularity.def", "tf-horovod.def") if name in files)


def version(site: str, stack: str, **settings: str) -> str:
    plan = hpcgen.plan(site, stack, add=ADDED, settings=settings, allow_unsupported=True)
    block = plan.block("aws_ofi_nccl")
    assert block is not None
    return block.version


def test_it_is_compiled_for_nvidia_without_what_is_awss_alone() -> None:
    text = recipe("alps", "pytorch-horovod", add=ADDED)
    assert "echo 1.21.1 > .release_version" in text and "sh autogen.sh" in text
    assert "--with-cuda=/opt/cuda" in text and "--disable-platform-aws" in text and "--with-rocm" not in text
    assert "FI_CXI_DISABLE_HOST_REGISTER" in text and "NCCL_NET=" not in text.partition("net_plugin")[0]


def test_rocm_has_it_from_1_18_on() -> None:
    assert version("lumi-g", "pytorch-ddp", **STANDALONE) == "1.21.1"
    # ROCm for its driver is on the Ubuntu whose Python the wheel of PyTorch is made for.
    assert version("lumi-g", "pytorch-ddp") == "1.21.1"
    with pytest.raises(ConflictError, match="accelerator"):
        version("lumi-g", "pytorch-ddp", **STANDALONE, **{"aws_ofi_nccl.version": "1.17.3"})


def test_what_was_made_for_aws_alone_is_for_no_other_fabric() -> None:
    assert version("alps", "pytorch-horovod", **{"aws_ofi_nccl.version": "<1.14"}) == "1.9.2"
    with pytest.raises(ConflictError, match="for EFA only"):
        version("alps", "pytorch-horovod", **{"aws_ofi_nccl.version": "1.13.0"})


@pytest.mark.parametrize("stack", ["pytorch-ddp", "tf-horovod", "jax"])
def test_images_have_libibverbs_where_gpus_are_joined_by_infiniband(stack: str) -> None:
    assert "libibverbs" in recipe("stampede3", stack, partition="h100")
    assert "libibverbs" not in recipe("perlmutter", stack)
