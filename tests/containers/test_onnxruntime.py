"""An image for a GPU, built where there is none: CUDA's libraries from wheels are all found, and nothing falls back.

The rendered Charliecloud script builds the stack ``onnxruntime`` for this machine with a P40 that it has not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage
from leftovers import remove
from test_rendered_kits import render_by_command, site_profile


@pytest.mark.slow
def test_cuda_from_wheels_is_complete_and_does_not_fall_back(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    site = site_profile(machine_facts, plain_base_image)
    site["partitions"]["cpu"]["gpu"] = {"vendor": "nvidia", "model": "P40", "capability": "6.1"}
    (tmp_path / "collection" / "site_profiles").mkdir(parents=True)
    (tmp_path / "collection" / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    kit, image = tmp_path / "kit", tmp_path / "onnxruntime"
    render_by_command(tmp_path / "collection", kit, "--site", "here", "--stack", "onnxruntime")
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    inside = ["ch-run", "--set-env", image, "--"]
    tested = ch_image.run([*inside, "/opt/hpcgen/selftest.sh"]).stdout
    assert " 0 failed" in tested, tested
    (libraries,) = [line for line in tested.splitlines() if "libraries of the provider" in line]
    assert libraries.startswith("ok")
    # The provider is loaded and asks for the driver; the program does not take the CPU for it.
    program = ["python3", "/opt/onnxruntime/share/onnx_step.py"]
    done = ch_image.run([*inside, *program], check=False)
    assert done.returncode == 1, done.stdout
    assert "CUDAExecutionProvider was asked for, CPUExecutionProvider is used" in done.stdout
    assert "CUDA driver version is insufficient" in done.stdout
    ch_image.run([*inside, *program, "CPUExecutionProvider"])
    remove(image)
