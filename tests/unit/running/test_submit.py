"""What batch systems answer, and a job followed to its end.

Slurm's answers are those of Slurm 22.05; the container tier submits to a real one. There is no free PBS to be had as a
package, so ``qsub`` and ``qstat`` are small programs here that behave as the manuals say: they show that hpcgen speaks
to them as documented, not that a real server answers like this.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import hpcgen as library
from hpcgen.backends.schedulers.base import GONE, JobState, Scheduler, seconds_of
from hpcgen.backends.schedulers.gridengine import GridEngine
from hpcgen.backends.schedulers.lsf import Lsf
from hpcgen.backends.schedulers.pbs import Pbs
from hpcgen.backends.schedulers.pjm import Pjm
from hpcgen.backends.schedulers.slurm import Slurm, expand
from hpcgen.backends.schedulers.torque import Torque
from hpcgen.catalog.copied import files_of
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.stack import Copied
from hpcgen.running.follow import Tail
from hpcgen.running.here import status_text
from tests.conftest import GOLDEN, Command

SCONTROL = """\
JobId=8 JobName=demo
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=0 Nice=0 Account=(null) QOS=(null)
   JobState={state} Reason={reason} Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={exit_code}
   RunTime=1-00:00:07 TimeLimit=UNLIMITED TimeMin=N/A
   Partition=general AllocNode:Sid=localhost:5259
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList={nodes}
   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   Command=(null)
   WorkDir=/home/u/a b
   StdErr={error}
   StdIn=/dev/null
   StdOut=/home/u/a b/./demo.8.out
   Power=
"""


def slurm(state: str, reason: str = "None", exit_code: str = "0:0", nodes: str = "", error: str = "") -> JobState:
    error = error or "/home/u/a b/./demo.8.out"
    text = SCONTROL.format(state=state, reason=reason, exit_code=exit_code, nodes=nodes, error=error)
    found = Slurm().read(0, text, "")
    assert found is not None
    return found


def test_slurm_waits_runs_and_ends() -> None:
    waiting = slurm("PENDING", "Resources")
    assert (waiting.phase, waiting.reason, waiting.exit_status) == ("waiting", "Resources", None)
    running = slurm("RUNNING", nodes="n[01-04]")
    assert (running.phase, running.where, running.reason) == ("running", "n[01-04]", "")
    assert slurm("COMPLETING").phase == "running"
    ended = slurm("COMPLETED")
    assert (ended.phase, ended.good, ended.exit_status, ended.elapsed_s) == ("ended", True, 0, 86407)
    assert (ended.output, ended.error) == ("/home/u/a b/./demo.8.out", "")
    assert slurm("COMPLETED", error="/home/u/demo.%j.err").error == "/home/u/demo.8.err"


@pytest.mark.parametrize(
    ("state", "exit_code", "status", "number"),
    [("FAILED", "3:0", 3, 0), ("FAILED", "0:9", 0, 9), ("TIMEOUT", "0:15", 0, 15), ("OUT_OF_MEMORY", "0:125", 0, 125)],
)
def test_slurm_tells_failures(state: str, exit_code: str, status: int, number: int) -> None:
    ended = slurm(state, "NonZeroExitCode", exit_code)
    assert (ended.phase, ended.good, ended.word, ended.exit_status, ended.signal) == (
        *("ended", False),
        *(state, status, number),
    )


def test_slurm_forgets_a_job_and_accounting_may_know_it() -> None:
    queue = Slurm()
    assert queue.read(1, "", "slurm_load_jobs error: Invalid job id specified") == GONE
    assert queue.read(1, "", "Slurm accounting storage is disabled") is None
    assert queue.read(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)") is None
    cancelled = queue.read(0, "8|CANCELLED by 1000|0:15|12\n", "")
    assert cancelled == JobState("ended", "CANCELLED", exit_status=0, signal=15, elapsed_s=12)


def test_a_job_has_nothing_of_the_one_that_submits_it() -> None:
    """As an allocation by --mem-per-cpu has them, beside which srun refuses the memory of the new job's own header."""
    outer = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_CPU": "1750", "SLURM_CPU_BIND": "quiet,mask_cpu:0x1"}
    user = {"SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "abc", "PATH": "/usr/bin"}
    assert Slurm().submitting({**outer, **user}) == user
    # Outside of a job a user's own settings stay.
    assert Slurm().submitting({"SLURM_CPU_BIND": "cores"}) == {"SLURM_CPU_BIND": "cores"}


@pytest.mark.parametrize(
    ("queue", "outer", "user"),
    [
        (Lsf(), {"LSB_JOBID": "7", "LSB_AFFINITY_HOSTFILE": "/gone"}, {"LSB_DEFAULTQUEUE": "q", "LSF_ENVDIR": "/lsf"}),
        (Pbs(), {"PBS_JOBID": "7.s", "PBS_ARRAY_INDEX": "3"}, {"PBS_DEFAULT": "server", "PBS_EXEC": "/opt/pbs"}),
        (Torque(), {"PBS_JOBID": "7.s", "PBS_NODEFILE": "/gone"}, {"PBS_SERVER": "server"}),
        (GridEngine(), {"SGE_JOB_SPOOL_DIR": "/gone", "PE_HOSTFILE": "/gone"}, {"SGE_ROOT": "/sge", "SGE_CELL": "a"}),
        (Pjm(), {"PJM_JOBID": "7", "PJM_O_NODEINF": "/gone"}, {"PJM_LLIO_GFSCACHE": "/vol0004"}),
    ],
    ids=lambda value: value.name if isinstance(value, Scheduler) else "",
)
def test_other_batch_systems_hand_nothing_of_it_on(
    queue: Scheduler, outer: dict[str, str], user: dict[str, str]
) -> None:
    assert queue.submitting({**outer, **user}) == user
    left = {name: value for name, value in outer.items() if name != queue.job_variable}
    assert queue.submitting({**left, **user}) == {**left, **user}


@pytest.mark.parametrize(
    ("said", "job_id"), [("12\n", "12"), ("Welcome!\n12;alpha\n", "12"), ("Submitted batch job\n", ""), ("", "")]
)
def test_the_id_is_found_in_what_sbatch_says(said: str, job_id: str) -> None:
    assert Slurm().job_id(said) == job_id


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("./%x.%j.out", "./demo.42.out"),
        ("log-%5j", "log-00042"),
        ("100%%-%A", "100%-42"),
        ("%N.out", "%N.out"),
        ("", ""),
    ],
)
def test_slurms_file_patterns(pattern: str, file: str) -> None:
    assert expand(pattern, "demo", "42") == file


QSTAT = """\
Job Id: 41.server
    Job_Name = demo
    resources_used.walltime = 00:01:05
    job_state = {state}
    Error_Path = login1:/home/u/work/demo.e41
    exec_host = n1/0*4+n2/0*4
    Join_Path = n
    Output_Path = login1.example.org:/home/u/a/very/long/path/of/a/folder/
\tdemo.o41
    Variable_List = PBS_O_HOME=/home/u,PBS_O_WORKDIR=/home/u/work,
\tLANG=C
    comment = {comment}
    {status}
"""


def test_pbs_and_torque_states() -> None:
    running = Pbs().read(0, QSTAT.format(state="R", comment="Job run at noon", status=""), "")
    assert running is not None
    assert (running.phase, running.where, running.elapsed_s) == ("running", "n1/0*4+n2/0*4", 65)
    assert running.output == "/home/u/a/very/long/path/of/a/folder/demo.o41"
    assert running.error == "/home/u/work/demo.e41"
    waiting = Pbs().read(0, QSTAT.format(state="Q", comment="Not Running: no node", status=""), "")
    assert waiting is not None
    assert (waiting.phase, waiting.reason) == ("waiting", "Not Running: no node")


@pytest.mark.parametrize(
    ("state", "status", "good", "exit_status", "number"),
    [
        ("F", "Exit_status = 0", True, 0, 0),
        ("F", "Exit_status = 271", False, 271, 15),
        ("C", "exit_status = 4", False, 4, 0),
        ("C", "exit_status = -11", False, -11, 0),
        ("C", "", False, None, 0),
    ],
)
def test_pbs_and_torque_ends(state: str, status: str, good: bool, exit_status: int | None, number: int) -> None:
    ended = Torque().read(0, QSTAT.format(state=state, comment="x", status=status), "")
    assert ended is not None
    assert (ended.phase, ended.good, ended.exit_status, ended.signal) == ("ended", good, exit_status, number)


def test_pbs_forgets_a_job() -> None:
    queue = Pbs()
    assert queue.read(1, "", "qstat: PBS is not configured to maintain job history") is None
    assert queue.read(153, "", "qstat: Unknown Job Id 41.server") == GONE
    assert queue.read(1, "", "Connection refused\nqstat: cannot connect to server") is None
    assert queue.default_files("a-name-that-is-too-long", "41.server", BatchSystem(kind="pbs")) == (
        "a-name-that-is-.o41",
        "a-name-that-is-.e41",
    )


@given(st.integers(0, 10**7))
def test_slurms_times_are_read(seconds: int) -> None:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    assert seconds_of(f"{days}-{clock}" if days else clock) == seconds


def test_a_growing_file_is_shown_once(tmp_path: Path) -> None:
    path, shown = tmp_path / "out", io.BytesIO()
    tail = Tail(path)
    assert not tail.copy_new(shown)
    path.write_bytes(b"one\ntw")
    assert tail.copy_new(shown)
    with path.open("ab") as file:
        file.write(b"o\n")
    tail.copy_new(shown)
    tail.copy_new(shown)
    assert shown.getvalue() == b"one\ntwo\n"
    path.write_bytes(b"new\n")
    tail.copy_new(shown)
    assert shown.getvalue() == b"one\ntwo\nnew\n"


@pytest.mark.parametrize(
    ("status", "words"),
    [(3, "status 3"), (137, "status 137 (the signal SIGKILL)"), (-11, "the signal SIGSEGV"), (255, "status 255")],
)
def test_statuses_in_words(status: int, words: str) -> None:
    assert status_text(status) == words


QSUB = """\
#!/bin/bash
# Takes a job as qsub does: the script starts later, in the home folder, and its output comes when it has ended.
set -eu
spool=$SPOOL
here=$PWD
state() { # at once, since qstat reads it at any time
    echo "$1" > "$spool/state.new"
    mv "$spool/state.new" "$spool/state"
}
state Q
echo 41.server
name=$(sed -n 's/^#PBS -N //p' "$1")
output=$(sed -n 's/^#PBS -o //p' "$1")
errors=$(sed -n 's/^#PBS -e //p' "$1")
cp "$1" "$spool/script"
(
    exec > /dev/null 2>&1
    sleep 0.1
    state R
    cd /
    status=0
    PBS_JOBID=41.server PBS_O_WORKDIR=$here bash "$spool/script" > "$spool/out" 2> "$spool/err" || status=$?
    echo "$status" > "$spool/status"
    state END
    sleep 0.4
    cp "$spool/err" "$here/${errors:-$name.e41}"
    cp "$spool/out" "$here/${output:-$name.o41}"
) &
"""

QSTAT_PROGRAM = """\
#!/bin/bash
set -eu
letter=$(cat "$SPOOL/state")
touch "$SPOOL/seen$letter"
if [ "$letter" = END ]; then
    if [ "${FORGETFUL:-}" ] || { [ "$KIND" = pbs ] && [ "$1" != -x ]; }; then
        echo "qstat: Unknown Job Id 41.server" >&2
        exit 153
    fi
    letter=C
    status="exit_status = $(cat "$SPOOL/status")"
    if [ "$KIND" = pbs ]; then
        letter=F
        status=E${status#e}
    fi
fi
echo "Job Id: 41.server"
printf '    %s\\n' "Job_Name = mpi-hello" "job_state = $letter" "${status:-queue = batch}"
"""


class Site:
    """A folder to submit from, on a site with Torque or PBS Pro whose programs are those above."""

    def __init__(self, folder: Path, kind: str, hpcgen: Command) -> None:
        self.folder, self.hpcgen = folder, hpcgen
        programs = folder / "bin"
        sites = folder / "collection" / "site_profiles"
        for each in (programs, sites, folder / "spool", folder / "work"):
            each.mkdir(parents=True)
        engine = '#!/bin/bash\nwhile [ "$1" != mpiexec ]; do shift; done\nshift 3\nexec "$@"\n'
        for name, text in (("qsub", QSUB), ("qstat", QSTAT_PROGRAM), ("singularity", engine)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        sources = {"scheduler.kind": {"from": "here", "checked": "2026-11-20", "verified": "no"}}
        profile = {"name": "here", "extends": "hlrs-testbed", "scheduler": {"kind": kind}, "sources": sources}
        # The preflight asks a node of this kind for nothing that a CPU may lack.
        profile["partitions"] = {"gpu": {"cpu": {"target": "x86_64"}}}
        (sites / "here.yaml").write_text(json.dumps(profile))
        (folder / "work" / "mpi-hello.sif").touch()
        path = f"{programs}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "SPOOL": str(folder / "spool"), "KIND": kind}

    def command(self, *words: str) -> list[str]:
        options = ["--collection", str(self.folder / "collection")]
        return [sys.executable, "-m", "hpcgen", *options, *words]

    def submit(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        options = ["--collection", str(self.folder / "collection"), "submit", "--site", "here", "--stack", "mpi-hello"]
        return self.hpcgen(*options, *words, cwd=self.folder / "work", env={**self.env, **env})


@pytest.fixture(params=["torque", "pbs"])
def site(request: pytest.FixtureRequest, torque: Site, tmp_path: Path) -> Site:
    return torque if request.param == "torque" else Site(tmp_path / "other", request.param, torque.hpcgen)


@pytest.fixture
def torque(tmp_path: Path, hpcgen: Command, quick_queue: None) -> Site:
    return Site(tmp_path, "torque", hpcgen)


def test_a_job_is_followed_and_its_output_brought_back(site: Site) -> None:
    done = site.submit("--", "sh", "-c", 'until [ -e "$SPOOL/seenR" ]; do sleep 0.05; done; echo from the job; pwd')
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"from the job\n{site.folder / 'work'}\n"
    assert "job 41.server submitted with" in done.stderr
    assert "job 41.server runs" in done.stderr
    assert "job 41.server succeeded" in done.stderr


class Notebook(io.StringIO):
    """The stdout of a notebook: text, with no stream of bytes below it."""


def test_a_notebook_submits_an_image_and_follows_it(torque: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    image = torque.folder / "image"
    shutil.copytree(GOLDEN / "hlrs-testbed" / "mpi-hello", image / "opt/hpcgen/kit")
    for name in ("bin", "etc", "usr"):
        (image / name).mkdir()
    shutil.copy(torque.folder / "bin/singularity", torque.folder / "bin/ch-run")
    for name in ("PATH", "SPOOL", "KIND"):
        monkeypatch.setenv(name, torque.env[name])
    catalog = library.Catalog([torque.folder / "collection"])
    place: dict[str, Any] = {"site": "here", "folder": torque.folder / "work", "catalog": catalog}
    until_seen = 'until [ -e "$SPOOL/seenR" ]; do sleep 0.05; done; '
    said: list[str] = []
    job = library.submit(image, ["sh", "-c", until_seen + "echo größer"], walltime=timedelta(minutes=5), **place)
    script = f"{torque.folder}/work/.hpcgen/jobs/mpi-hello-1/job.pbs"
    assert repr(job) == f"<Submitted job 41.server (mpi-hello) of here: {script}>"
    assert "walltime=00:05:00" in job.script.read_text()
    monkeypatch.setattr(sys, "stdout", stdout := Notebook())
    result = library.follow(job, say=said.append)
    assert (result.good, stdout.getvalue()) == (True, "größer\n") and "job 41.server runs" in said
    failing = library.submit(image, ["sh", "-c", "exit 7"], **place)
    with pytest.raises(library.JobFailedError, match="with status 7"):
        library.follow(failing)
    array = replace(job, job=replace(job.job, queueing=library.Queueing(tasks=2)))
    with pytest.raises(library.InputError, match=r"job 41\.server is an array, which cannot be followed"):
        library.follow(array)


def test_a_job_that_is_put_back_into_its_queue_is_said(torque: Site) -> None:
    seen = 'rm -f "$SPOOL/seen{0}"; until [ -e "$SPOOL/seen{0}" ]; do sleep 0.05; done'
    state = 'echo {0} > "$SPOOL/state.new"; mv "$SPOOL/state.new" "$SPOOL/state"'
    turns = [f"{state.format(letter)}; {seen.format(letter)}" for letter in "QR"]
    program = "; ".join([seen.format("R"), *turns])
    done = torque.submit("--", "sh", "-c", program)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "job 41.server" in line]
    back = "was requeued and will run again from the start (or cancel it: qdel 41.server)"
    at = told.index(f"hpcgen: job 41.server {back}")
    assert told[at - 1 : at + 3 : 2] == ["hpcgen: job 41.server runs", "hpcgen: job 41.server waits"]
    assert told[at + 2] == "hpcgen: job 41.server runs"


def test_the_output_of_a_failed_job_is_shown_once(site: Site) -> None:
    done = site.submit("--json", "--", "sh", "-c", "echo nearly; echo broken >&2; exit 7")
    assert done.returncode == 10
    result = json.loads(done.stdout)
    assert (result["id"], result["good"], result["exit_status"]) == ("41.server", False, 7)
    assert "with status 7" in done.stderr
    assert done.stderr.splitlines().count("nearly") == 1
    assert done.stderr.count("broken") == 1
    own = site.folder / "work" / ".hpcgen" / "jobs" / "mpi-hello-1"
    assert result["output"] == [f"{own}/output", f"{own}/errors"]


def test_the_step_that_failed_is_named(site: Site) -> None:
    """The lines that tell it come on the job's stderr, which these systems keep in a file of its own."""
    done = site.submit(
        "--json", "--step", "first=echo one", "--step", "fails=sh -c 'exit 7'", "--step", "last=touch no"
    )
    assert done.returncode == 10
    result = json.loads(done.stdout)
    assert [(each["name"], each["number"], each["exit_status"]) for each in result["steps"]] == [
        ("first", 1, 0),
        ("fails", 2, 7),
    ]
    assert "with status 7, in its step fails (2 of 3)" in done.stderr
    assert not (site.folder / "work" / "no").exists()


def test_a_forgotten_job_is_not_called_good(site: Site) -> None:
    done = site.submit("--", "true", FORGETFUL="1")
    assert done.returncode == 10
    assert "how job 41.server (mpi-hello) ended is unknown" in done.stderr


def test_without_following_the_id_is_all(torque: Site, tmp_path: Path) -> None:
    done = torque.submit("--no-follow", "--folder", "new/place", "--", "true")
    assert (done.returncode, done.stdout) == (0, "41.server\n")
    assert (tmp_path / "work/new/place/.hpcgen/jobs/mpi-hello-1/job.pbs").exists()


def test_jobs_of_a_project_have_folders_of_their_own(torque: Site) -> None:
    """A job that waits keeps its preflight, whatever is submitted meanwhile; git and images have nothing of it."""
    work = torque.folder / "work"
    before = {path.name for path in work.iterdir()}
    for command in ("true", "false"):
        torque.submit("--no-follow", "--", command)
    jobs = work / ".hpcgen" / "jobs"
    assert [path.name for path in sorted(jobs.iterdir())] == ["mpi-hello-1", "mpi-hello-2"]
    first = (jobs / "mpi-hello-1" / "job.pbs").read_text()
    assert "preflight=$folder/.hpcgen/jobs/mpi-hello-1/preflight.sh" in first and "set -- true" in first
    assert {path.name for path in work.iterdir()} - before == {".hpcgen"}
    assert (work / ".hpcgen" / ".gitignore").read_text() == "*\n"
    assert [path for path, _ in files_of(work, Copied(from_=".", to="/app"))] == ["mpi-hello.sif"]


def test_the_output_goes_where_it_is_asked(torque: Site) -> None:
    done = torque.submit("--output", "here.txt", "--", "echo", "hello")
    assert (torque.folder / "work" / "here.txt").read_text() == done.stdout == "hello\n", done.stderr


def test_ctrl_c_leaves_the_job_alone(torque: Site, tmp_path: Path) -> None:
    site = torque
    waits = 'until [ -e "$SPOOL/go" ]; do sleep 0.05; done'
    command = site.command("submit", "--site", "here", "--stack", "mpi-hello", "--", "sh", "-c", waits)
    process = subprocess.Popen(
        command, cwd=tmp_path / "work", env=site.env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    said = ""
    while "runs" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGINT)
    said += process.stderr.read()
    assert process.wait(20) == 130
    assert "continues: look at it with `qstat -f 41.server`, cancel it with `qdel 41.server`" in said
    (tmp_path / "spool" / "go").touch()
    until = time.monotonic() + 30
    while not (tmp_path / "spool" / "status").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert (tmp_path / "spool" / "status").read_text() == "0\n"


def test_what_cannot_be_submitted_is_explained(torque: Site, tmp_path: Path) -> None:
    site = torque
    (tmp_path / "bin" / "qsub").write_text("#!/bin/sh\necho 'qsub: Unknown queue' >&2\nexit 2\n")
    refused = site.submit("--queue", "nowhere")
    assert refused.returncode == 10
    assert "qsub did not accept the job:\nqsub: Unknown queue" in refused.stderr
    assert "do this first" not in refused.stderr
    profile = tmp_path / "collection" / "site_profiles" / "here.yaml"
    stated = json.loads(profile.read_text())
    stated["scheduler"]["before_submitting"] = "workgroup -g NAME"
    profile.write_text(json.dumps(stated))
    assert "do this first in the same shell: workgroup -g NAME; or see --queue" in site.submit().stderr
    (tmp_path / "bin" / "qsub").write_text("#!/bin/sh\necho thank you\n")
    assert "its output contains no job id:\nthank you" in site.submit().stderr
    (tmp_path / "bin" / "qsub").unlink()
    missing = site.submit(PATH=str(tmp_path / "bin"))
    assert missing.returncode == 69
    assert "qsub is not on PATH" in missing.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["submit", "--site", "workstation", "--stack", "mpi-hello"], 6, "has no batch system"),
        (["submit", "--site", "supermuc", "--stack", "mpi-hello"], 6, "requires an account"),
        (["job"], 2, "give an IMAGE, or --site and --stack"),
        (["job", "--stack", "mpi-hello"], 2, "plan mpi-hello for which site?"),
        (["job", "--add", "hwloc"], 2, "--add requires --stack"),
        (["job", "no-such-image"], 4, "no-such-image"),
        (["run", "--site", "supermuc", "--stack", "mpi-hello", "--nodes", "2"], 6, "require an allocation"),
    ],
)
def test_wrong_calls(words: list[str], code: int, says: str, hpcgen: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)
    done = hpcgen(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_of_a_new_plan_takes_what_render_takes(hpcgen: Command, tmp_path: Path) -> None:
    """Block, collection and command are in the script's own command, which renders the kit of its image."""
    (tmp_path / "ours" / "recipes").mkdir(parents=True)
    stack = "name: mine\ntitle: Mine\nblocks: {mpi: {}}\nrun: {command: [hostname]}\n"
    (tmp_path / "ours" / "recipes" / "mine.yaml").write_text(stack)
    words = ("--site", "supermuc", "--stack", "mine", "--add", "hwloc", "--account", "abc")
    done = hpcgen("--collection", "ours", "job", *words, "--", "lstopo")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("# made by "))
    assert line.endswith(f": hpcgen --collection ours render {' '.join(words)} -- lstopo")
    assert ", hwloc 2" in done.stdout
