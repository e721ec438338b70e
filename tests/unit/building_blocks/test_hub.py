"""Images of their makers as a base, with what the site needs laid on top."""

from __future__ import annotations

import pytest

from tests.conftest import Command


def rendered(hpcgen: Command, site: str, *words: str) -> str:
    answer = hpcgen("render", "--site", site, "--stack", "pytorch-ddp", "--set", "pytorch.install=hub", *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_nvidias_image_is_the_base_of_both_stages_with_the_sites_mpi_on_top(hpcgen: Command) -> None:
    text = rendered(hpcgen, "alps")
    assert text.count("FROM nvcr.io/nvidia/pytorch:") == 2
    assert "mpich" in text
    assert "torch==" not in text
    # The image's packages show in the environment, and its libraries stay where they are looked for.
    assert "hub.pth /opt/python/lib/python3.12/site-packages/" in text
    assert "/usr/local/lib/python3.12/dist-packages/torch/lib" in text
    assert "cuda/compat" not in text.replace("# ", "")


def test_amds_image_fits_the_nodes_driver(hpcgen: Command) -> None:
    """LUMI's driver 6.3 runs ROCm 6.4 and not 7.2."""
    assert "From: rocm/pytorch:rocm6.4.3_" in rendered(hpcgen, "lumi-g")
    newer = rendered(hpcgen, "slurm-amd", "--driver", "6.4", "--allow-unsupported", "--format", "docker")
    assert "FROM docker.io/rocm/pytorch:rocm7.2.4_" in newer


@pytest.mark.parametrize("site", ["supermuc", "slurm-cpu"])
def test_there_is_no_image_for_the_cpu_alone(hpcgen: Command, site: str) -> None:
    answer = hpcgen("plan", "--site", site, "--stack", "pytorch", "--set", "pytorch.install=hub")
    assert answer.returncode == 5
    assert "without --set pytorch.install=hub" in answer.stderr


def test_a_tag_that_nobody_checked_is_said_to_be_unverified(hpcgen: Command) -> None:
    answer = hpcgen("plan", "--site", "alps", "--stack", "pytorch", "--set", "pytorch.install=hub", "--notes")
    assert "pytorch 2.12.0" in answer.stderr
    assert "not verified" in answer.stderr or "unverified" in answer.stderr


def test_vllms_image_is_started_by_the_python_that_everything_is_installed_into(hpcgen: Command) -> None:
    """The image's own program is of another Python, and its entry point would take the job's command for a model."""
    words = ("--site", "slurm-nvidia", "--stack", "vllm-ray", "--set", "vllm.install=hub", "--driver", "580")
    answer = hpcgen("render", *words, "--allow-unsupported", "--format", "docker")
    assert answer.returncode == 0, answer.stderr
    final = answer.stdout.rpartition("FROM ")[2]
    assert final.startswith("docker.io/vllm/vllm-openai:v0.26.0-ubuntu2404@sha256:")
    assert "ENTRYPOINT []" in final
    assert "install -m 755 /opt/hpcgen/build/vllm /opt/python/bin/vllm" in answer.stdout
    assert "ray==2.60.0" not in answer.stdout and "requirements/ray-2.60.0-missing.txt" in answer.stdout


@pytest.mark.parametrize(
    ("driver", "version", "image"),
    [("6.3", "0.10.1", "rocm/vllm:rocm6.4.1_"), ("6.4", "0.26.0", "vllm/vllm-openai-rocm@sha256:5709")],
)
def test_on_amds_gpus_vllm_is_an_image_that_the_driver_runs(
    hpcgen: Command, driver: str, version: str, image: str
) -> None:
    answer = hpcgen("render", "--site", "lumi-g", "--driver", driver, "--stack", "vllm", "--allow-unsupported")
    assert answer.returncode == 0, answer.stderr
    assert f"\nFrom: {image}" in answer.stdout
    assert f"vllm {version}" in answer.stdout
    # Its Ubuntu's own Python is 3.10, the image's 3.12.
    assert "cpython-3.12" in answer.stdout


def test_a_base_of_the_distribution_needs_no_other_entry_point(hpcgen: Command) -> None:
    answer = hpcgen("render", "--site", "workstation", "--stack", "mpi-hello")
    assert "ENTRYPOINT" not in answer.stdout
