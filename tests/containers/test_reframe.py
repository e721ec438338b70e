"""``hpcgen ci reframe``: the real ReFrame runs the tests of an image as its site starts it, and sees one that fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from container_tools import BaseImage, HostMpi, Run, Tool
from mpi_hello import profile

Check = Callable[[dict[str, Any]], tuple[Run, dict[str, str]]]
RELEASE = "reframe-hpc==4.10.4"


@pytest.fixture
def reframe(testbed_env: dict[str, str], host_mpi: HostMpi, mpi_hello_image: Path, tmp_path: Path) -> Check:
    """``reframe(site)``: how ReFrame ended, and the result of each check: "" or why it failed."""
    path = f"{host_mpi.root}/bin:{testbed_env['PATH']}"
    tool = Tool({**testbed_env, **host_mpi.env, "PATH": path, "RFM_PREFIX": str(tmp_path / "rfm")})
    tool.run([sys.executable, "-m", "venv", tmp_path / "venv"])
    tool.run([tmp_path / "venv" / "bin" / "pip", "install", "-q", RELEASE])

    def run(site: dict[str, Any]) -> tuple[Run, dict[str, str]]:
        (tmp_path / "here.yaml").write_text(json.dumps(site))
        words = [
            "--site",
            tmp_path / "here.yaml",
            "--ranks-per-node",
            "2",
            "--threads",
            "1",
            "-o",
            tmp_path / "checks.py",
        ]
        tool.run([sys.executable, "-m", "hpcgen", "ci", "reframe", mpi_hello_image, *words], cwd=tmp_path)
        report = tmp_path / "junit.xml"
        call = [tmp_path / "venv" / "bin" / "reframe", "-c", tmp_path / "checks.py", "-r", f"--report-junit={report}"]
        done = tool.run(call, cwd=tmp_path, check=False)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return done, {each.get("name", ""): "".join(each.itertext()) for each in cases}

    return run


@pytest.mark.slow
def test_reframe_runs_the_tests_of_an_image(
    reframe: Check, machine_facts: dict[str, Any], plain_base_image: BaseImage, host_mpi: HostMpi, tmp_path: Path
) -> None:
    site = profile(machine_facts, plain_base_image, host_mpi)
    done, results = reframe(site)
    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout
    assert sum("selftest " in name for name in results) >= 4, results
    assert any("ranks find each other" in name for name in results), results

    (tmp_path / "empty").mkdir()
    site["mpi"]["binds"].append({"source": str(tmp_path / "empty"), "target": "/opt/intel_mpi/bin"})
    done, results = reframe(site)
    print(done.stdout[-3000:])
    assert done.returncode != 0
    failed = [name for name, why in results.items() if why.strip()]
    assert any("intel_mpi" in name and "launcher" in name for name in failed), results
