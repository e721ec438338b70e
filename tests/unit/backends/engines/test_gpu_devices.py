"""How GPUs are shown inside by engines that do as Podman and Docker do."""

from __future__ import annotations

import pytest

from hpcgen.backends.engines import engine_for
from hpcgen.backends.engines.base import Call


@pytest.mark.parametrize(
    ("engine", "gpu", "cdi", "shown"),
    [
        ("podman", "nvidia", "", "--device nvidia.com/gpu=all"),
        ("podman", "nvidia", "nvidia.com/gpu=0", "--device nvidia.com/gpu=0"),
        ("podman", "amd", "", "--device /dev/kfd --device /dev/dri --group-add video"),
        ("podman", "amd", "amd.com/gpu=all", "--device amd.com/gpu=all --group-add keep-groups"),
        ("podman", "intel", "", "--device /dev/dri"),
        ("docker", "nvidia", "", "--gpus all"),
        ("docker", "nvidia", "nvidia.com/gpu=all", "--device nvidia.com/gpu=all"),
        ("docker", "amd", "amd.com/gpu=all", "--device amd.com/gpu=all --group-add video"),
    ],
)
def test_gpus_are_shown_by_cdi_where_the_profile_names_it(engine: str, gpu: str, cdi: str, shown: str) -> None:
    groups = [" ".join(group) for group in engine_for(engine).words(Call(gpu=gpu, gpu_cdi=cdi))]
    assert shown in groups


def test_docker_has_to_be_new_enough_for_cdi() -> None:
    docker = engine_for("docker")
    assert docker.oldest(Call(gpu="amd", gpu_cdi="amd.com/gpu=all")) == "25"
    assert docker.oldest(Call(gpu="amd")) == ""
