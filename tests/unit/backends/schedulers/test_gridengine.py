"""Grid Engine: its header, and the answers of gridengine 8.1.9; the container tier submits to a real one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpcgen.backends.schedulers import Header, scheduler_for
from hpcgen.backends.schedulers.base import GONE, JobState
from hpcgen.backends.schedulers.gridengine import GridEngine
from hpcgen.core.errors import InputError
from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Cpu, Memory
from hpcgen.core.model.site import Partition
from tests.conftest import Command

JOB = Job(nodes=2, ranks_per_node=4, threads_per_rank=6, walltime_s=5400, command=["x"], queue="all.q", account="abc")
ONE = Job(nodes=1, ranks_per_node=4, threads_per_rank=6, walltime_s=5400, command=["x"])


def header(job: Job = JOB, environment: str | None = None, **facts: str) -> Header:
    memory = Memory(total_gb=128, usable_gb=120)
    queues = [Queue(name="all.q")]
    cpu = Cpu(target="zen3", cores=24)
    partition = Partition(cpu=cpu, memory=memory, queues=queues, parallel_environment=environment)
    return Header("3dgan", job, partition, BatchSystem(kind="gridengine", parallel_environment="mpi", **facts))


def test_the_header_asks_for_the_slots_of_whole_nodes() -> None:
    found = scheduler_for(BatchSystem(kind="gridengine")).directives(header(memory_request="h_vmem"))
    assert found == [
        "-N j3dgan",
        "-cwd",
        "-S /bin/bash",
        "-j y",
        "-pe mpi 48",
        "-l h_rt=01:30:00",
        "-l h_vmem=4768M",
        "-q all.q",
        "-P abc",
    ]


def test_which_parallel_environment_is_meant() -> None:
    queue = GridEngine()
    assert "-pe smp 24" in queue.directives(header(ONE, one_node_environment="smp"))
    assert "-pe mpi 48" in queue.directives(header(one_node_environment="smp"))
    assert "-pe mpi24 48" in queue.directives(header(environment="mpi24"))
    assert "-pe mpi24 24" in queue.directives(header(ONE, environment="mpi24"))


def test_files_with_variables_and_an_own_one_for_errors() -> None:
    asked = header(output="out/$JOB_NAME.$JOB_ID", error="out/err")
    assert GridEngine().directives(asked)[3:5] == ["-o out/$JOB_NAME.$JOB_ID", "-e out/err"]
    assert GridEngine().default_files("3dgan", "7", asked.scheduler) == ("out/j3dgan.7", "out/err")
    assert GridEngine().default_files("x", "7", BatchSystem(kind="gridengine")) == ("x.o7", "")
    with pytest.raises(InputError, match="-o"):
        GridEngine().directives(header(output="$JOB_IDS"))


@pytest.mark.parametrize("said", ["12\n", "greeting of the site\n12\n", "12.1-3:1\n"])
def test_the_id_is_found(said: str) -> None:
    assert GridEngine().job_id(said) == "12"
    assert GridEngine().job_id("Unable to run job: job rejected") == ""


QSTAT = "<djob_info><element><JB_job_number>4</JB_job_number>{tasks}</element></djob_info><messages>{said}</messages>"
TASK = "<ulong_sublist><JAT_status>{bits}</JAT_status>{more}</ulong_sublist>"
ERROR = "<QIM_message>error: can&apos;t open output file &quot;/x/y&quot;</QIM_message>"


@pytest.mark.parametrize(
    ("tasks", "said", "state"),
    [
        (
            "",
            "<MES_message>cannot run: only 1 slots</MES_message>",
            JobState("waiting", "qw", reason="cannot run: only 1 slots"),
        ),
        ("", "<MES_message>There are no messages available</MES_message>", JobState("waiting", "qw")),
        (TASK.format(bits=128, more=""), "", JobState("running", "r")),
        (
            TASK.format(bits=0, more=ERROR),
            "<MES_message>Job is in error state</MES_message>",
            JobState("ended", "Eqw", reason='error: can\'t open output file "/x/y"'),
        ),
    ],
)
def test_what_qstat_says(tasks: str, said: str, state: JobState) -> None:
    assert GridEngine().read(0, QSTAT.format(tasks=tasks, said=said), "") == state


QACCT = """\
==============================================================
qname        general
jobnumber    2
taskid       {task}
failed       {failed}
exit_status  {status}
ru_wallclock {took}
"""


def account(failed: str, status: str, took: str = "4s", task: str = "undefined") -> str:
    return QACCT.format(failed=failed, status=status, took=took, task=task)


@pytest.mark.parametrize(
    ("text", "word", "good", "status", "reason"),
    [
        (account("0    ", "0"), "done", True, 0, ""),
        (account("0    ", "3", "4.5"), "failed", False, 3, ""),
        (account("100 : assumedly after job", "137                  (Killed)"), "failed", False, 137, ""),
        (account("37  : qmaster enforced h_rt limit", "137"), "failed 37", False, 137, "qmaster enforced h_rt limit"),
        # An array is good where all tasks are; of a job that was started again the last run counts.
        (account("0", "0", task="1") + account("0", "7", task="2"), "failed", False, 7, ""),
        (account("0", "99") + account("0", "0"), "done", True, 0, ""),
    ],
)
def test_what_the_accounting_says(text: str, word: str, good: bool, status: int, reason: str) -> None:
    state = JobState("ended", word, good=good, exit_status=status, reason=reason, elapsed_s=4)
    assert GridEngine().read(0, text, "") == state


def test_a_job_that_it_does_not_know_is_gone_and_silence_is_none() -> None:
    queue = GridEngine()
    assert queue.read(0, "<unknown_jobs ><ST_name>99</ST_name></unknown_jobs>", "") == GONE
    assert queue.read(1, "", "error: job id 99 not found\n") == GONE
    assert queue.read(1, "no jobs running since startup", "/sge/default/common/accounting: No such file") == GONE
    assert queue.read(1, "", "error: commlib error: got select error (Connection refused)") is None


QSUB = """\
#!/bin/bash
touch "$SPOOL/began"
echo "from the job" > "$OUTPUT"
echo 41
"""
QSTAT_PROGRAM = """\
#!/bin/bash
if [ "$(cat "$SPOOL/asked" 2> /dev/null)" ]; then echo '<unknown_jobs ></unknown_jobs>'; exit; fi
echo yes > "$SPOOL/asked"
echo '<JB_job_number>41</JB_job_number><JAT_status>128</JAT_status>'
"""
QACCT_PROGRAM = """\
#!/bin/bash
if [ ! -e "$SPOOL/once" ]; then touch "$SPOOL/once"; echo 'error: job id 41 not found' >&2; exit 1; fi
printf '%s\\n' 'jobnumber 41' 'failed 0' 'exit_status 0' 'ru_wallclock 2s'
"""


def test_the_accounting_is_waited_for(hpcgen: Command, tmp_path: Path, quick_queue: None) -> None:
    """Between a job's end and the next writing of the accounting file nothing knows of it."""
    (tmp_path / "bin").mkdir()
    for name, text in (("qsub", QSUB), ("qstat", QSTAT_PROGRAM), ("qacct", QACCT_PROGRAM)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    scheduler = {"kind": "gridengine", "parallel_environment": "mpi"}
    sites = tmp_path / "collection" / "site_profiles"
    sites.mkdir(parents=True)
    (sites / "here.yaml").write_text(json.dumps({"name": "here", "extends": "hlrs-testbed", "scheduler": scheduler}))
    job = tmp_path / ".hpcgen" / "jobs" / "mpi-hello-1"
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "SPOOL": str(tmp_path), "OUTPUT": str(job / "output")}
    began = time.monotonic()
    done = hpcgen(
        *("--collection", str(tmp_path / "collection"), "submit", "--site", "here", "--stack", "mpi-hello"),
        cwd=tmp_path,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "from the job\n"
    assert "job 41 succeeded after 2 s" in done.stderr
    assert time.monotonic() - began < 30


def test_a_profile_without_a_parallel_environment_is_refused(hpcgen: Command, tmp_path: Path) -> None:
    sites = tmp_path / "site_profiles"
    sites.mkdir()
    profile = {"name": "here", "extends": "hlrs-testbed", "scheduler": {"kind": "gridengine"}}
    (sites / "here.yaml").write_text(json.dumps(profile))
    done = hpcgen("--collection", str(tmp_path), "check", str(sites / "here.yaml"))
    assert done.returncode != 0
    assert "without scheduler.parallel_environment" in done.stdout + done.stderr


def test_a_kit_starts_the_modules_and_hydra_by_its_means(hpcgen: Command, tmp_path: Path) -> None:
    sites = tmp_path / "site_profiles"
    sites.mkdir()
    profile = {
        "name": "here",
        "extends": "supermuc",
        "scheduler": {"kind": "gridengine", "parallel_environment": "mpi", "directives": []},
        "mpi": {"bootstrap": "sge", "modules": ["intel-mpi"]},
    }
    (sites / "here.yaml").write_text(json.dumps(profile))
    words = ("--site", "here", "--stack", "mpi-hello", "--nodes", "2", "--account", "abc", "-o", "kit")
    done = hpcgen("--collection", str(tmp_path), "render", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "kit" / "job.sge").read_text().splitlines()
    assert lines[1] == "#$ -N mpi-hello"
    assert "#$ -pe mpi 96" in lines
    assert lines.index("shopt -q login_shell || . /etc/profile") < lines.index("module load intel-mpi")
    assert "export I_MPI_HYDRA_BOOTSTRAP=sge" in lines
