"""The preflight in a real allocation: facts of a profile that are wrong stop a job before its program starts.

Intel MPI as the host's, mpi-hello in Charliecloud, srun of a loopback Slurm. All kits are started one after the other
in one job, because each job of its own takes seconds. sbatch itself, a PMI that does not fit and Apptainer are in
test_host_mpi.py and test_submit.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from container_tools import BaseImage, HostMpi, Slurm
from mpi_hello import HOST_ROOT, profile, render

Change = Callable[[dict[str, Any]], None]


def wrong_pmi(site: dict[str, Any]) -> None:
    site["mpi"]["pmi"] = []


def wrong_cpu(site: dict[str, Any]) -> None:
    # Knights Mill has instructions that no other CPU got.
    site["partitions"]["cpu"]["cpu"]["target"] = "mic_knl"


def missing_bind(site: dict[str, Any]) -> None:
    site["mpi"]["binds"].append({"source": "/nowhere/at/all", "target": "/mnt/1"})


def wrong_libraries(site: dict[str, Any]) -> None:
    """The folder is there, but what the loader finds first is the image's own."""
    site["mpi"]["libraries"] = [f"{HOST_ROOT}/etc"]


def swapped_for_nothing(site: dict[str, Any]) -> None:
    """Nobody says where the host's libraries are inside: the image's own are loaded."""
    site["mpi"]["libraries"] = []


def wrong_provider(site: dict[str, Any]) -> None:
    site["fabric"] = {"kind": "omni-path", "provider": "psm2"}


CASES: dict[str, tuple[Change, str]] = {
    "pmi": (wrong_pmi, "ranks: expected one job of 2 ranks; seen: 2 ranks in jobs of 1; the PMI of the launcher"),
    "cpu": (wrong_cpu, ": expected mic_knl, for which the image was compiled; seen: a CPU without "),
    "bind": (missing_bind, ": expected /nowhere/at/all; seen: nothing there; correct mpi.binds"),
    "libraries": (wrong_libraries, ": expected libmpi.so.12; seen: none in "),
    "library": (
        swapped_for_nothing,
        "MPI library: expected the host's (intel) from /opt/host-mpi; seen: /opt/intel_mpi/",
    ),
    "provider": (wrong_provider, "fabric provider: expected psm2 for omni-path; seen: tcp"),
}

JOB = """\
#!/bin/bash
#SBATCH -n 2 -o slurm.out
for kit in */kit; do
    (
        cd "$kit"
        began=${EPOCHREALTIME/.}
        bash preflight.sh > by-hand 2>&1
        echo "$? $(((${EPOCHREALTIME/.} - began) / 1000))" > by-hand-status
        bash job.slurm /usr/bin/touch started > said 2>&1
        echo $? > status
        # What a person may have set, and written in the launch line.
        export SLURM_LABELIO=1 SLURM_STDOUTMODE=/dev/null SLURM_UNBUFFEREDIO=1
        bash preflight.sh > labelled 2>&1
        unset SLURM_STDOUTMODE
        sed 's/^srun /srun --label /; s/ srun / srun --label /' job.slurm > edited
        bash edited /bin/true > edited-said 2>&1 || true
    )
done
"""


def test_facts_that_are_wrong_stop_the_job_before_it_starts(
    mpi_hello_image: Path,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    slurm_cluster: Callable[..., Slurm],
    tmp_path: Path,
) -> None:
    fabric = {"kind": "ethernet", "provider": "tcp"}
    site = profile(machine_facts, plain_base_image, host_mpi, scheduler={"kind": "slurm"}, fabric=fabric)
    site["mpi"].update(launcher="srun", pmi=["pmi2"])
    site["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    for name, change in {"good": lambda site: None, **{name: case[0] for name, case in CASES.items()}}.items():
        other = json.loads(json.dumps(site))
        change(other)
        (tmp_path / name).mkdir()
        (render(other, tmp_path / name) / "mpi-hello").symlink_to(mpi_hello_image)
    job = tmp_path / "job.sh"
    job.write_text(JOB)
    slurm_cluster("general").run(["sbatch", "-W", job], cwd=tmp_path)

    def read(name: str, file: str) -> str:
        # Slurm's own remarks while the step before ends ("step creation temporarily disabled") are none of ours.
        lines = (tmp_path / name / "kit" / file).read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("srun: "))

    passed = f"preflight: passed: 2 ranks with {HOST_ROOT}/lib/libmpi.so"
    assert read("good", "status") == "0\n", read("good", "said")
    assert read("good", "said").startswith(passed)
    assert read("good", "said").endswith(" over tcp\n") or "over tcp;" in read("good", "said")
    assert (tmp_path / "good" / "kit" / "started").exists()
    status, milliseconds = read("good", "by-hand-status").split()
    assert (status, read("good", "by-hand")) == ("0", read("good", "said"))
    assert int(milliseconds) < 20_000
    assert read("good", "labelled") == read("good", "edited-said") == read("good", "said")
    assert "srun --label " in read("good", "edited")
    for name, (_, says) in CASES.items():
        for file in ("said", "by-hand", "labelled"):
            text = read(name, file)
            assert "preflight: FAILED: " in text, f"{name}: {text}"
            assert says in text, f"{name}: {text}"
        assert read(name, "status") == "78\n"
        assert read(name, "by-hand-status").startswith("78 ")
        assert not (tmp_path / name / "kit" / "started").exists()
