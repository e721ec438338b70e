"""Frameworks and workloads of the papers, built from rendered Charliecloud scripts and run: minutes each.

On one node ``tf``, ``tf-xla`` and ``mxnet`` train; ``3dgan`` and ``mxnet-horovod`` train on two ranks that must end
with one set of weights.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage
from leftovers import remove
from test_rendered_kits import INTEL_MPI, check_selftest, render_by_command, report, settings, site_profile

pytestmark = pytest.mark.slow
Built = Callable[..., str]


@pytest.fixture
def built(machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path) -> Built:
    """``built(stack, words, *blocks)``: what the job of a stack prints, once it is built and its self-tests hold."""

    def output(stack: str, words: list[str], *blocks: str) -> str:
        sites = tmp_path / "collection" / "site_profiles"
        sites.mkdir(parents=True)
        (sites / "here.yaml").write_text(json.dumps(site_profile(machine_facts, plain_base_image)))
        kit, image = tmp_path / "kit", tmp_path / "image"
        job = ["--site", "here", "--format", "charliecloud", "--stack", stack, "--set", "tensorflow.install=pip"]
        render_by_command(sites.parent, kit, *(job if "tensorflow" in blocks else job[:-2]), *words)
        started = time.monotonic()
        ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
        report(stack, started, ch_image.run(["du", "-sh", image]).stdout)
        tested = ch_image.run(["ch-run", "--set-env", image, "--", "/opt/hpcgen/selftest.sh"]).stdout
        check_selftest(tested, *blocks)
        done = ch_image.run(["bash", kit / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
        remove(image)
        print(tested, done.stdout, sep="\n")
        return str(done.stdout)

    return output


def test_3dgan_trains_on_two_ranks(built: Built) -> None:
    words = ["--nodes", "1", "--ranks-per-node", "2", "--threads", "1", *settings(INTEL_MPI)]
    output = built("3dgan", words, "tensorflow", "horovod", "gan3d")
    ranks = sorted(line for line in output.splitlines() if line.startswith("rank "))
    assert [line.split(" showers")[0] for line in ranks] == ["rank 0 size 2", "rank 1 size 2"], output
    assert "job ranks 2 showers per second" in output


@pytest.mark.parametrize("stack", ["tf", "tf-xla"])
def test_tensorflow_trains_on_one_node(built: Built, stack: str) -> None:
    output = built(stack, [], "tensorflow", "tf_step")
    assert "right answers" in output
    assert ("files of what XLA compiled" in output) == (stack == "tf-xla")


def test_mxnet_trains_on_one_node(built: Built) -> None:
    output = built("mxnet", [], "mxnet")
    assert "on cpu with oneDNN" in output and "right answers" in output


def test_mxnet_trains_on_two_ranks_with_horovod(built: Built) -> None:
    words = ["--nodes", "1", "--ranks-per-node", "2", "--threads", "1", *settings(INTEL_MPI)]
    output = built("mxnet-horovod", words, "mxnet", "horovod")
    ranks = sorted(line for line in output.splitlines() if line.startswith("rank "))
    assert [line.split(" loss")[0] for line in ranks] == ["rank 0 size 2", "rank 1 size 2"], output
