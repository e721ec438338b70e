"""Which variables tell an image its threads: those that something in it reads."""

from __future__ import annotations

import re

import pytest

import hpcgen

POOLS = {"TF_NUM_INTRAOP_THREADS": "12", "TF_NUM_INTEROP_THREADS": "12"}
OPENMP = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "0"}


def told(stack: str, **settings: str) -> dict[str, str]:
    plan = hpcgen.plan("supermuc", stack, settings=settings)
    exported = dict(re.findall(r"(?m)^export (\w+)=(.*)$", hpcgen.render(plan).files["job.slurm"].text))
    assert exported["OMP_NUM_THREADS"] == str(plan.job.threads_per_rank)
    return {name: value for name, value in exported.items() if name.startswith(("TF_", "KMP_"))}


@pytest.mark.parametrize("stack", ["tf-horovod", "3dgan"])
def test_tensorflow_ignores_what_openmp_reads_and_is_told_by_variables_of_its_own(stack: str) -> None:
    assert told(stack) == POOLS


def test_a_tensorflow_with_openmp_reads_that_ones_variables() -> None:
    assert told("tf-horovod", **{"tensorflow.install": "source", "tensorflow.mkl": "true"}) == OPENMP


def test_other_images_have_gccs_openmp() -> None:
    assert told("pytorch") == {}
