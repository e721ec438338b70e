"""Flux, by what its manual documents: there is no flux-core to be had as a package here.

The stand-in for ``flux`` takes jobs and answers as flux-batch(1) and flux-jobs(1) of flux-core 0.88.0 say.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpcgen.backends.schedulers import Header, scheduler_for
from hpcgen.backends.schedulers.base import GONE
from hpcgen.backends.schedulers.flux import Flux, duration
from hpcgen.core.errors import InputError
from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Cpu, Memory
from hpcgen.core.model.site import Partition
from tests.conftest import Command

PROGRAM = """\
#!/bin/bash
set -eu
case $1 in
    batch)
        grep '^# flux: ' "$2" > "$SPOOL/directives"
        cp "$2" "$SPOOL/script"
        echo R > "$SPOOL/state"
        echo 'ƒM7Zq9AKHno'
        (
            exec > /dev/null 2>&1
            sleep 0.3
            status=0
            output=$(sed -n 's/^# flux: --output=//p' "$SPOOL/directives")
            FLUX_ENCLOSING_ID=ƒM7Zq9AKHno bash "$SPOOL/script" > "$output" 2>&1 || status=$?
            echo "$status" > "$SPOOL/status"
        ) &
        ;;
    jobs)
        if [ -e "$SPOOL/status" ]; then
            status=$(cat "$SPOOL/status")
            [ "$status" = 0 ] && result=COMPLETED || result=FAILED
            echo "INACTIVE|$result|$status|1.25|exec|node1"
        else
            echo "RUN|||0.1||node1"
        fi
        ;;
esac
"""
JOB = Job(nodes=2, ranks_per_node=4, threads_per_rank=6, walltime_s=5400, command=["x"], queue="batch", account="abc")


def header(**facts: str) -> Header:
    partition = Partition(cpu=Cpu(target="zen3", cores=24), memory=Memory(total_gb=1), queues=[Queue(name="batch")])
    return Header("mpi-hello", JOB, partition, BatchSystem(kind="flux", **facts))


def test_the_header_asks_for_whole_nodes() -> None:
    found = scheduler_for(BatchSystem(kind="flux")).directives(header(output="out/{{name}}.{{id}}"))
    assert found == [
        "--job-name=mpi-hello",
        "--output=out/{{name}}.{{id}}",
        "--time-limit=90m",
        "--nodes=2",
        "--exclusive",
        "--queue=batch",
        "--bank=abc",
    ]


@pytest.mark.parametrize("evil", ["a b", "x # y", "{{id}", "{{$(id)}}", '"a"'])
def test_what_a_directive_would_read_otherwise_is_refused(evil: str) -> None:
    with pytest.raises(InputError, match="--output"):
        Flux().directives(header(output=evil))


@pytest.mark.parametrize(("seconds", "text"), [(7200, "2h"), (5400, "90m"), (61, "61s"), (129600, "36h")])
def test_times_are_flux_standard_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("pmi", "words"),
    [(["pmi2", "pmix", "pmi"], ["-o", "pmi=pmix"]), (["pmi"], ["-o", "pmi=simple"]), (["pmi2"], []), ([], [])],
)
def test_the_launch_line_names_the_pmi_that_flux_has(pmi: list[str], words: list[str]) -> None:
    line = ["flux", "run", "--nodes=2", "--tasks-per-node=4", "--exclusive", "-o", "cpu-affinity=per-task"]
    assert Flux().launch(JOB, pmi) == [*line, *words]


@pytest.mark.parametrize("said", ["ƒM7Zq9AKHno\n", "fM7Zq9AKHno\n", "site's greeting\nƒM7Zq9AKHno\n"])
def test_the_id_is_found(said: str) -> None:
    assert Flux().job_id(said)[1:] == "M7Zq9AKHno"
    assert Flux().job_id("flux-batch: ERROR: x") == ""


@pytest.mark.parametrize(
    ("answer", "phase", "word", "good", "status", "number", "reason"),
    [
        ("SCHED|||0.0||eta:now", "waiting", "SCHED", False, None, 0, "eta:now"),
        ("DEPEND||||| after|any", "waiting", "DEPEND", False, None, 0, "after|any"),
        ("RUN|||61.5||node[1-2]", "running", "RUN", False, None, 0, ""),
        ("CLEANUP|||61.5||node[1-2]", "running", "CLEANUP", False, None, 0, ""),
        ("INACTIVE|COMPLETED|0|61.5||node1", "ended", "COMPLETED", True, 0, 0, ""),
        ("INACTIVE|FAILED|7|61.5|exec|node1", "ended", "FAILED", False, 7, 0, ""),
        ("INACTIVE|FAILED|-9|61.5||node1", "ended", "FAILED", False, None, 9, ""),
        ("INACTIVE|TIMEOUT|142|60|timeout|node1", "ended", "TIMEOUT", False, 142, 0, "timeout"),
        ("INACTIVE|CANCELED|-128|0|cancel|", "ended", "CANCELED", False, None, 0, "cancel"),
    ],
)
def test_states_are_read(
    answer: str, phase: str, word: str, good: bool, status: int | None, number: int, reason: str
) -> None:
    found = Flux().read(0, answer + "\n", "")
    assert found is not None
    assert (found.phase, found.word, found.good) == (phase, word, good)
    assert (found.exit_status, found.signal, found.reason) == (status, number, reason)


def test_a_job_that_flux_does_not_know_is_gone_and_silence_is_none() -> None:
    assert Flux().read(1, "", "flux-jobs: ERROR: JobID ƒM7Zq9AKHno unknown\n") == GONE
    assert Flux().read(1, "", "flux-jobs: ERROR: Unable to connect to Flux: broker socket not found\n") is None


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """The environment of a site with Flux, whose profile is ``here``."""
    for name in ("bin", "ours/site_profiles", "spool"):
        (tmp_path / name).mkdir(parents=True)
    engine = '#!/bin/bash\nwhile [ "$1" != mpiexec ]; do shift; done\nshift 3\nexec "$@"\n'
    for name, text in (("flux", PROGRAM), ("singularity", engine)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    profile: dict[str, object] = {"name": "here", "extends": "hlrs-testbed", "scheduler": {"kind": "flux"}, "mpi": None}
    profile["partitions"] = {"gpu": {"cpu": {"target": "x86_64"}}}
    (tmp_path / "ours" / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SPOOL": str(tmp_path / "spool")}


def test_a_kit_for_flux(hpcgen: Command, site: dict[str, str], tmp_path: Path) -> None:
    profile = {"name": "here", "extends": "archer2", "scheduler": {"kind": "flux"}, "mpi": {"launcher": "flux"}}
    (tmp_path / "ours" / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    words = ("--site", "here", "--stack", "mpi-hello", "--nodes", "2", "--account", "abc", "-o", "kit")
    done = hpcgen("--collection", "ours", "render", *words, "--allow-unsupported")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "kit" / "job.flux").read_text().splitlines()
    assert lines[1] == "# flux: --job-name=mpi-hello"
    directives = [number for number, line in enumerate(lines) if line.startswith("# flux: ")]
    assert directives == list(range(1, 1 + len(directives)))
    assert "# flux: --bank=abc" in lines
    assert lines[-1].startswith("flux run --nodes=2 --tasks-per-node=")


@pytest.mark.usefixtures("quick_queue")
@pytest.mark.parametrize(("program", "status"), [("echo from the job", 0), ("echo nearly; exit 7", 10)])
def test_a_job_is_submitted_and_followed(
    hpcgen: Command, site: dict[str, str], tmp_path: Path, program: str, status: int
) -> None:
    (tmp_path / "mpi-hello.sif").touch()
    words = ("submit", "--site", "here", "--stack", "mpi-hello", "--", "sh", "-c", program)
    done = hpcgen("--collection", "ours", *words, env=site)
    assert done.returncode == status, done.stderr
    assert "job ƒM7Zq9AKHno submitted with" in done.stderr
    assert "# flux: --exclusive\n" in (tmp_path / "spool" / "directives").read_text()
    if status:
        assert "in the state FAILED, with status 7" in done.stderr
        assert (done.stdout.count("nearly"), done.stderr.count("nearly")) == (1, 0)
    else:
        assert done.stdout.endswith("from the job\n")
