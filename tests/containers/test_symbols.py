"""What programs of an image call in MPI, and a library in its place that lacks some of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from container_tools import BaseImage, HostMpi
from mpi_hello import HOST_ROOT, profile
from test_prove import Prove, outcome, prove  # noqa: F401

from hpcgen.kit.folder import read_kit
from hpcgen.recipe.selftest import selftest_script

GOLDEN = Path(__file__).parents[1] / "golden"
SHARED = ("-shared", "-fPIC", "-Wl,-soname,libmpi.so.12")
MPI = """\
int MPI_Init(int *argc, char ***argv) { return 0; }
#ifdef SESSIONS
int MPI_Session_init(int info, int errhandler, int *session) { return 0; }
#endif
"""
CALLS = """\
int MPI_Init(int *argc, char ***argv);
int MPI_Session_init(int info, int errhandler, int *session);
int main(int argc, char **argv) { int session; return MPI_Init(&argc, &argv) + MPI_Session_init(0, 0, &session); }
"""


def compiled(target: Path, text: str, *options: str | Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", "-o", target, source, *options], check=True)
    source.unlink()
    return target


def test_a_program_of_mpich_4_over_an_older_library(tmp_path: Path) -> None:
    own = compiled(tmp_path / "opt/mpich/lib/libmpi.so.12", MPI, *SHARED, "-DSESSIONS")
    host = compiled(tmp_path / "host/libmpi.so.12", MPI, *SHARED)
    program = compiled(tmp_path / "opt/tool/bin/tool", CALLS, own)
    # The MPI's own tools are not asked.
    compiled(tmp_path / "opt/mpich/bin/tool", CALLS, own)
    compiled(tmp_path / "opt/tool/bin/plain", "int main(void) { return 0; }\n")
    plan = read_kit(GOLDEN / "workstation" / "mpi-hello").plan
    text = selftest_script(plan, [], ["/opt/mpich", "/opt/tool"]).replace("/opt/", f"{tmp_path}/opt/")

    def run_with(folder: Path) -> list[str]:
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        done = subprocess.run(["/bin/sh", "-c", text], env=env, capture_output=True, text=True)
        assert done.stderr == ""
        return done.stdout.splitlines()

    assert run_with(own.parent) == ["ok       mpich 4.3.2: symbols", "1 passed, 0 failed, 0 skipped"]
    missing = f"{program} needs MPI_Session_init, which {host} does not have"
    assert run_with(host.parent)[:2] == [f"FAILED   mpich 4.3.2: symbols: {missing}", f"         | {missing}"]


def test_the_library_that_is_bound_into_an_image_is_asked(
    mpi_hello_image: Path,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    prove: Prove,  # noqa: F811
    tmp_path: Path,
) -> None:
    """By hpcgen test, with a host's library that has nothing but MPI_Init."""
    site = profile(machine_facts, plain_base_image, host_mpi)
    _, results = prove(str(mpi_hello_image), site)
    assert results["intel_mpi: symbols"]["result"] == "passed"
    compiled(tmp_path / "older/lib/libmpi.so.12", MPI, *SHARED)
    other = json.loads(json.dumps(site))
    other["mpi"]["binds"][0]["source"] = str(tmp_path / "older")
    _, results = prove(str(mpi_hello_image), other)
    assert "intel_mpi: symbols" in outcome(results, "failed")
    library = f"{HOST_ROOT}/lib/libmpi.so.12"
    reason = results["intel_mpi: symbols"]["reason"]
    assert reason.startswith("/opt/rank_test/bin/rank_test needs MPI_") and reason.endswith(f"{library} does not have")
    assert f"needs MPI_Allreduce, which {library} does not have" in results["intel_mpi: symbols"]["output"]
