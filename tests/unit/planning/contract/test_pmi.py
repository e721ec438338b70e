"""How ranks are told about each other where the profile says little or what only an expert can judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command

HOST = """\
name: here
extends: slurm-cpu
system: {{os: rhel, os_version: 8.8, glibc: 2.28, architecture: x86_64}}
containers: {{preferred: apptainer, engines: {{apptainer: {{version: 1.3.4}}}}}}
fabric: {{kind: {fabric}}}
mpi: {{flavour: openmpi, version: {version}, abi: openmpi, launcher: {launcher}{more}}}
"""
SWAPPED = ", root: /apps/mpi, libraries: [/apps/mpi/lib], binds: [{source: /apps/mpi, target: /apps/mpi}]"


@pytest.mark.parametrize(
    ("fabric", "version", "launcher", "more", "says", "started"),
    [
        # Knowing the MPI is no worse than knowing nothing: Open MPI 5 has PMIx alone.
        ("infiniband", "5.0.3", "srun", "", "which PMI srun offers is not in the profile", " --mpi=pmix "),
        ("infiniband", "5.0.3", "srun", SWAPPED, "which PMI srun offers is not in the profile", " --mpi=pmix "),
        # It may have been built --with-pmi.
        (
            "infiniband",
            "4.1.6",
            "srun",
            f", pmi: [pmi2]{SWAPPED}",
            "only if it was built with --with-pmi",
            " --mpi=pmi2 ",
        ),
        ("omni-path", "5.0.5", "srun", ", pmi: [pmix]", "OMPI_MCA_orte_precondition_transports", " --mpi=pmix "),
        ("omni-path", "5.0.3", "mpirun", ", pmi: [pmix]", "", "mpirun -n 2 "),
        ("omni-path", "4.1.6", "srun", ", pmi: [pmix]", "", " --mpi=pmix "),
    ],
)
def test_what_is_said_and_started(
    hpcgen: Command, tmp_path: Path, fabric: str, version: str, launcher: str, more: str, says: str, started: str
) -> None:
    site = tmp_path / "here.yaml"
    site.write_text(HOST.format(fabric=fabric, version=version, launcher=launcher, more=more))
    done = hpcgen("job", "--site", str(site), "--stack", "mpi-hello", "--nodes", "2")
    assert done.returncode == 0, done.stderr
    assert started in done.stdout.splitlines()[-1]
    warned = [
        line for line in done.stderr.splitlines() if "PMI" in line or "transports" in line or "--with-pmi" in line
    ]
    assert len(warned) == bool(says) and all(says in line for line in warned)


def test_a_hosts_open_mpi_5_beside_pmi2_is_refused(hpcgen: Command, tmp_path: Path) -> None:
    site = tmp_path / "here.yaml"
    site.write_text(HOST.format(fabric="infiniband", version="5.0.3", launcher="srun", more=f", pmi: [pmi2]{SWAPPED}"))
    done = hpcgen("plan", "--site", str(site), "--stack", "mpi-hello", "--nodes", "2")
    assert done.returncode == 6 and "srun offers pmi2" in done.stderr
