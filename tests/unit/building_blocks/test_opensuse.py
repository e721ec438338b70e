"""What can be planned on openSUSE Leap, and why the rest cannot."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.api import load_site
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.site import Site
from hpcgen.kit.kit import Kit

WITHOUT_PYTHON = {"mpi-hello", "net-test", "net-test-gpu"}
NEVER = {
    "cntk": "needs python ==3.6.*",
    "openvino-gpu": "no known intel_gpu",
    "pytorch-glow": "needs ubuntu ==18.04",
    "tf-ngraph": "needs python ==3.6.*",
}
OLD_COMPILER = {
    "3dgan": "needs gnu >=8,<13",
    "mxnet": "needs gnu >=5,<11",
    "mxnet-horovod": "needs gnu >=8,<13",
    "pytorch-horovod": "needs gnu >=8,<13",
    "tf-horovod": "needs gnu >=8,<13",
    "tf-horovod-xla": "needs gnu >=8,<13",
}


def site() -> Site:
    """A workstation with four A100 that wants its images on openSUSE."""
    gpu = {"vendor": "nvidia", "model": "A100", "count": 4, "capability": "8.0", "driver": "580.65"}
    return load_site(
        {
            "name": "leap-pc",
            "extends": "workstation",
            "image": {"distribution": "opensuse_leap"},
            "partitions": {"main": {"gpu": gpu, "memory": {"total_gb": 256}}},
        }
    )


def kit(stack: str, release: str, *settings: str) -> Kit:
    python = [] if stack in WITHOUT_PYTHON else ["python.obtain=standalone"]
    asked = ["base.provider=opensuse_leap", f"opensuse_leap.version={release}", *python, *settings]
    return hpcgen.render(hpcgen.plan(site(), stack, settings=asked, allow_unsupported=True))


@pytest.mark.parametrize(("release", "refused"), [("15.6", NEVER), ("16.0", NEVER | OLD_COMPILER)])
def test_each_stack_plans_on_leap_or_says_what_the_tables_lack(release: str, refused: dict[str, str]) -> None:
    for stack in Catalog().names("stack"):
        if stack not in refused:
            assert "zypper --non-interactive install" in kit(stack, release).recipe
            continue
        with pytest.raises(ConflictError) as caught:
            kit(stack, release)
        assert refused[stack] in str(caught.value)


def test_pytorch_is_compiled_with_the_openblas_of_opensuse() -> None:
    recipe = kit("pytorch", "15.6", "pytorch.install=source", "pytorch.accelerator=cpu").recipe
    assert "libopenblas_openmp-devel" in recipe
    assert "libopenblas_openmp0" in recipe


def test_a_compiler_in_the_image_is_that_of_opensuse() -> None:
    final = kit("pytorch", "16.0", "pytorch.compile=true").recipe.split("FROM")[-1]
    assert "gcc13 gcc13-c++" in final


def test_a_site_that_prefers_opensuse_gets_it() -> None:
    plan = hpcgen.plan(site(), "jax", settings=["python.obtain=standalone"])
    assert "opensuse_leap" in {block.name for block in plan.blocks}
    assert "libstdc++6" in hpcgen.render(plan).recipe
