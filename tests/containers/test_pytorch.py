"""PyTorch for the CPU, built and run for real: the project's wheel by its address, from a mirror on the loopback."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage
from leftovers import remove
from test_bench import measured
from test_rendered_kits import INTEL_MPI, render_by_command, report, settings, site_profile
from torch_mirror import TorchMirror


@pytest.fixture(scope="module")
def collection(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    torch_mirror: TorchMirror,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """This machine, whose mirror of files has the wheel."""
    folder = tmp_path_factory.mktemp("collection")
    site = torch_mirror.added_to(site_profile(machine_facts, plain_base_image))
    (folder / "site_profiles").mkdir()
    (folder / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    return folder


def built(ch_image: ChImage, collection: Path, folder: Path, stack: str, *chosen: str, ranks: int = 1) -> Path:
    """An image of a stack by the rendered script, whose self-test is passed."""
    kit, image = folder / "kit", folder / stack
    job = ["--ranks-per-node", str(ranks)] if ranks > 1 else []
    render_by_command(collection, kit, "--site", "here", "--stack", stack, *job, *settings(list(chosen)))
    started = time.monotonic()
    ch_image.run(["bash", kit / "build.sh", image], cwd=folder, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    report(f"{stack} {' '.join(chosen)}", started, ch_image.run(["du", "-sm", image]).stdout + " MB")
    tested = ch_image.run(["ch-run", "--set-env", image, "--", "/opt/hpcgen/selftest.sh"]).stdout
    print(tested)
    assert " 0 failed" in tested, tested
    return image


def size_in_mb(image: Path) -> int:
    return int(subprocess.run(["du", "-sm", image], capture_output=True, text=True, check=True).stdout.split()[0])


def ranks_of(ch_image: ChImage, folder: Path, image: Path) -> list[str]:
    """What the ranks of the job's own script print."""
    done = ch_image.run(["bash", folder / "kit" / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=folder)
    print(done.stdout)
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))


@pytest.mark.slow
def test_the_wheel_for_the_cpu_is_small_and_computes(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, "pytorch")
    assert size_in_mb(image) <= 1200
    (line,) = ranks_of(ch_image, tmp_path, image)
    assert line.startswith("rank 0 size 1 device cpu loss 0.0")
    remove(image)


@pytest.mark.slow
def test_two_ranks_train_together(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, "pytorch-ddp", *INTEL_MPI, ranks=2)
    assert [line.split(" device")[0] for line in ranks_of(ch_image, tmp_path, image)] == [
        "rank 0 size 2",
        "rank 1 size 2",
    ]
    rows = measured(ch_image, collection, image, tmp_path, "--workload", "mlp,gan3d,allreduce")
    speed = rows["mlp", "samples_per_second"]
    assert (speed.software.framework, speed.software.mpi, speed.ranks_per_node) == ("pytorch", "image", 2)
    assert ("gan3d", "samples_per_second") in rows and ("allreduce", "gigabytes_per_second") in rows
    remove(image)


@pytest.mark.slow
def test_the_distributions_package_computes(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, "pytorch", "pytorch.install=package")
    (line,) = ranks_of(ch_image, tmp_path, image)
    assert line.startswith("rank 0 size 1 device cpu loss 0.0")
    remove(image)


@pytest.mark.slow
def test_a_compiler_in_the_image_compiles(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    remove(built(ch_image, collection, tmp_path, "pytorch", "pytorch.compile=true"))


@pytest.mark.slow
def test_two_ranks_of_deepspeed_divide_the_states(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, "deepspeed", *INTEL_MPI, ranks=2)
    told = ranks_of(ch_image, tmp_path, image)
    assert [line.split(" device")[0] for line in told] == ["rank 0 size 2 stage 1", "rank 1 size 2 stage 1"]
    remove(image)


@pytest.mark.slow
def test_two_ranks_of_horovod_train_together(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, "pytorch-horovod", *INTEL_MPI, ranks=2)
    told = ranks_of(ch_image, tmp_path, image)
    assert [line.split(" loss")[0] for line in told] == ["rank 0 size 2", "rank 1 size 2"]
    remove(image)
