"""Where a request's program runs: the batch system that it names, on nodes that are known or are what it asks for."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import UnknownNameError
from tests.conftest import Command
from tests.unit.plugins.tuning.optimise.test_modak_scripts import made

MPI = {"kind": "mpi", "mpi": {"library": "openmpi", "version": "4.1"}, "limits": {"nodes": 2, "ranks_per_node": 4}}


def messages(result: Any) -> str:
    return "\n".join(f"{each.severity}: {each}" for each in result.decision.findings)


@pytest.mark.parametrize(
    ("named", "site", "file"),
    [
        ({"scheduler": "torque"}, "torque-cpu", "job.pbs"),
        ({"scheduler": "pbs"}, "slurm-cpu", "job.pbs"),
        ({"scheduler": "slurm"}, "slurm-cpu", "job.slurm"),
        ({"scheduler": "torque", "site": "elsewhere"}, "elsewhere", "job.pbs"),
        ({"scheduler": "slurm", "site": "elsewhere"}, "elsewhere", "job.slurm"),
        ({"scheduler": "torque", "site": "supermuc"}, "supermuc", "job.pbs"),
        ({"site": "hlrs-testbed"}, "hlrs-testbed", "job.pbs"),
        ({"scheduler": "slurm", "site": "hlrs-testbed"}, "hlrs-testbed", "job.slurm"),
    ],
)
def test_the_batch_system_that_a_request_names_is_that_of_its_job(named: dict[str, str], site: str, file: str) -> None:
    result, files = made({"kind": "mpi", "stack": "mpi-hello", **named})
    assert (result.decision.site, [name for name in files if name.startswith("job.")]) == (site, [file])
    if len(named) == 2 and site != "elsewhere":
        assert f"and the request names {named['scheduler']}" in messages(result)


def test_a_system_of_no_profile_and_no_batch_system_is_not_guessed() -> None:
    with pytest.raises(UnknownNameError, match="no site is called 'elsewhere'"):
        made({"kind": "mpi", "stack": "mpi-hello", "site": "elsewhere"})


def test_ranks_on_several_nodes_of_torque_are_started_by_the_mpi_that_the_request_names() -> None:
    result, files = made({**MPI, "scheduler": "torque"})
    assert "mpirun -n 8 --map-by ppr:4:node:PE=4" in files["job.pbs"]
    assert "warning: the ranks are started by the mpirun of the host, which is taken to be that of openmpi 4.1." in (
        messages(result)
    )


def test_nodes_that_nobody_knows_have_what_the_request_asks_of_them() -> None:
    limits = {"nodes": 2, "ranks_per_node": 40, "threads": 2, "memory_per_rank_gb": 4}
    _, files = made({**MPI, "scheduler": "torque", "limits": limits, "partition": "fat"})
    assert "#PBS -l nodes=2:ppn=40," in files["job.pbs"] and "#PBS -l partition=fat" in files["job.pbs"]
    assert "export OMP_NUM_THREADS=2" in files["job.pbs"]


def test_forty_slots_of_a_node_take_forty_ranks() -> None:
    limits = {"ranks_per_node": 40, "threads": 1}
    _, files = made({"kind": "mpi", "stack": "mpi-hello", "site": "hlrs-testbed", "limits": limits})
    assert "#PBS -l nodes=1:ppn=40" in files["job.pbs"] and "mpiexec -n 40" in files["job.pbs"]


JOB = {
    "after": "afterok:12:13",
    "array": "1-10%2",
    "begin": "2312311200",
    "exclusive": True,
    "qos": "low",
    "nodes": "ssd",
    "environment": ["HOME", "LANG"],
    "before": ["./fetch.sh", "a b"],
    "afterwards": ["./keep.sh"],
}


@pytest.mark.parametrize(
    ("scheduler", "lines", "lost"),
    [
        (
            "slurm",
            "--dependency=afterok:12:13 --array=1-10%2 --begin=2312311200 --exclusive --qos=low --nodelist=ssd "
            "--export=HOME,LANG",
            "",
        ),
        (
            "torque",
            "-W depend=afterok:12:13|-t 1-10%2|-a 2312311200|-l naccesspolicy=singlejob|-l qos=low|-v HOME,LANG",
            "",
        ),
        ("pbs", "-W depend=afterok:12:13|-J 1-10%2|-a 2312311200|-v HOME,LANG", "exclusive qos nodes"),
    ],
)
def test_wishes_for_the_job_are_options_of_its_header(scheduler: str, lines: str, lost: str) -> None:
    result, files = made({"kind": "mpi", "stack": "mpi-hello", "scheduler": scheduler, "job": JOB})
    (text,) = [text for name, text in files.items() if name.startswith("job.")]
    mark = "#SBATCH" if scheduler == "slurm" else "#PBS"
    for each in lines.split("|" if "|" in lines else " "):
        assert f"\n{mark} {each}\n" in text
    assert (":ssd," in text) == (scheduler == "torque")
    for name in ("exclusive", "qos", "nodes", "array"):
        assert (f"job.{name} is not honoured: hpcgen knows no option" in messages(result)) == (name in lost.split())


def test_commands_before_and_after_run_once_on_the_host_and_the_program_keeps_its_status(tmp_path: Path) -> None:
    """The script is run for real, with a container engine that starts what it is given."""
    (tmp_path / "apptainer").write_text('#!/bin/sh\nwhile [ "$1" != /usr/bin/env ]; do shift; done\nexec "$@"\n')
    (tmp_path / "apptainer").chmod(0o755)
    (tmp_path / "image.sif").touch()
    run = {"command": ["sh", "-c", "echo program >> order; exit 7"], "mpi": False}
    hostile = ["$(touch hit)", "'; touch hit", "`touch hit`", "a\\' touch hit"]
    job = {"before": ["sh", "-c", "echo before >> order", *hostile], "afterwards": ["sh", "-c", "echo after >> order"]}
    data = {"kind": "hpc", "container": "./image.sif", "site": "slurm-cpu", "run": run, "job": job}
    _, files = made(data)
    (tmp_path / "job.slurm").write_text(files["job.slurm"])
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HPCGEN_PREFLIGHT": "0"}
    done = subprocess.run(["bash", "job.slurm"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "order").read_text().split() == ["before", "program", "after"]
    assert not (tmp_path / "hit").exists()


def test_the_file_system_of_a_storage_class_is_seen_in_the_container() -> None:
    node = {"ncpus": 1, "cpu": {"arch": "x86_64", "ncores": 8}, "memory": "64GiB"}
    system = {"storage": {"file:///fast": "default-ssd"}, "partitions": {"*": {"nnodes": 2, "node": node}}}
    data = {"kind": "mpi", "stack": "mpi-hello", "infrastructure": system, "job": {"storage": "default-ssd"}}
    result, files = made(data)
    assert "places=(/fast)" in files["job.slurm"] and "of the storage class default-ssd is /fast" in messages(result)
    result, _ = made({**data, "job": {"storage": "default-high"}})
    assert "described has no known file system of class default-high" in messages(result)


def test_warnings_are_told_beside_a_kit_and_beside_json(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text(json.dumps({"kind": "mpi", "stack": "mpi-hello", "scheduler": "torque"}))
    said = "warning: the request does not say where the program runs: this is for torque-cpu"
    for more in (["-o", "kit"], ["--json"]):
        done = hpcgen("optimise", "request.yaml", *more)
        assert (done.returncode, said in done.stderr) == (0, True), done.stderr
    done = hpcgen("optimise", "request.yaml")
    assert said in done.stdout and said not in done.stderr
    again = json.loads((tmp_path / "kit" / "decision.json").read_text())["command"]
    assert "optimise request.yaml" in again or "--site torque-cpu" in again


def test_what_a_message_proposes_is_an_option_of_the_command(hpcgen: Command, tmp_path: Path) -> None:
    data = {"kind": "mpi", "stack": "mpi-hello", "site": "workstation", "limits": {"ranks_per_node": 4096}}
    (tmp_path / "request.yaml").write_text(json.dumps(data))
    done = hpcgen("optimise", "request.yaml")
    proposed = re.search(r"try (--ranks-per-node) (\d+)", done.stderr)
    assert done.returncode == 5 and proposed is not None
    assert hpcgen("optimise", "request.yaml", *proposed.groups()).returncode == 0
