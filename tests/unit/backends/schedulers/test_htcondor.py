"""HTCondor, of which only its manual was there: the description of a job, and answers as documented."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hpcgen.backends.schedulers import Header
from hpcgen.backends.schedulers.base import GONE, JobState
from hpcgen.backends.schedulers.htcondor import HtCondor
from hpcgen.core.errors import InputError
from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Cpu, Gpu, Memory
from hpcgen.core.model.site import Partition
from tests.conftest import Command

JOB = Job(
    nodes=1, ranks_per_node=4, threads_per_rank=6, walltime_s=5430, command=["x"], queue="longlunch", account="c3"
)
SITE = ["--request_disk=10G", "--MY.SendCredential=true", "--MY.AccountingGroup=group_u.c3"]


def header(job: Job = JOB, *, gpus: int = 1) -> Header:
    gpu = Gpu(vendor="nvidia", model="V100", count=gpus) if gpus else None
    partition = Partition(
        cpu=Cpu(target="zen3", cores=24),
        memory=Memory(total_gb=128, usable_gb=120),
        queues=[Queue(name="longlunch")],
        gpu=gpu,
    )
    return Header("3dgan", job, partition, BatchSystem(kind="htcondor", directives=SITE))


def test_the_description_of_a_job() -> None:
    assert HtCondor().directives(header()) == [
        "batch_name = 3dgan",
        "universe = vanilla",
        "output = 3dgan.$(ClusterId).$(ProcId).out",
        "error = 3dgan.$(ClusterId).$(ProcId).err",
        "log = 3dgan.$(ClusterId).log",
        "should_transfer_files = no",
        "getenv = HOME,USER",
        'environment = "CONDOR_PROCESS=$(ProcId)"',
        "request_cpus = 24",
        "request_memory = 114440M",
        "request_gpus = 1",
        "allowed_execute_duration = 5430",
        "MY.MaxRuntime = 5430",
        'MY.JobFlavour = "longlunch"',
        "accounting_group = c3",
        "request_disk = 10G",
        "MY.SendCredential = true",
        'MY.AccountingGroup = "group_u.c3"',
    ]


def test_several_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="one node"):
        HtCondor().directives(header(Job(2, 4, 6, 60, ["x"])))


def described(tmp_path: Path, text: str) -> tuple[list[str], str]:
    """What condor_submit is given for a script, and what of its answer becomes the job's id."""
    script = tmp_path / "of a job.condor"
    script.write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "condor_submit"
    program.write_text('#!/bin/sh\n[ "$*" = "-terse -" ] && cat > given && echo "17.0 - 17.2"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    words = HtCondor().submit(script)
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    return (tmp_path / "given").read_text().splitlines(), HtCondor().job_id(done.stdout)


def test_a_script_is_submitted_by_its_own_lines(tmp_path: Path) -> None:
    """The commands of an array may be anywhere, and what queues comes last."""
    script = "#!/bin/bash\n#CONDOR batch_name = x\n#CONDOR queue 3\n#CONDOR request_cpus = 4\necho '#CONDOR no = 1'\n"
    place = f"executable = {tmp_path}/of a job.condor"
    assert described(tmp_path, script) == (["batch_name = x", "request_cpus = 4", place, "queue 3"], "17")
    assert described(tmp_path, script.replace("#CONDOR queue 3\n", ""))[0][-2:] == [place, "queue"]
    assert HtCondor().array(10, 2).split("\n") == ["max_materialize = 2", "queue 10"]
    assert HtCondor().job_id("ERROR: Can't find address of local schedd\n") == ""


ENDED = {"RemoteWallClockTime": 12.0, "Iwd": "/home/u", "Out": "x.17.0.out", "Err": "/e"}
FILES = {"output": "/home/u/x.17.0.out", "error": "/e"}


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"JobStatus": 1}, JobState("waiting", "Idle")),
        (
            {"JobStatus": 2, "JobCurrentStartDate": 100, "ServerTime": 160, "RemoteHost": "slot1@n1"},
            JobState("running", "Running", elapsed_s=60, where="slot1@n1"),
        ),
        (
            {"JobStatus": 4, "ExitCode": 0, **ENDED},
            JobState("ended", "Completed", True, exit_status=0, elapsed_s=12, **FILES),
        ),
        ({"JobStatus": 4, "ExitCode": 3}, JobState("ended", "Completed", exit_status=3)),
        ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9}, JobState("ended", "Completed", signal=9)),
        (
            {"JobStatus": 5, "HoldReasonCode": 47, "HoldReason": "The job exceeded allowed execute duration"},
            JobState("ended", "TooLong", reason="The job exceeded allowed execute duration"),
        ),
        (
            {"JobStatus": 5, "HoldReasonCode": 34, "HoldReason": "memory"},
            JobState("ended", "Held", reason="memory"),
        ),
        ({"JobStatus": 3, "RemoveReason": "via condor_rm"}, JobState("ended", "Removed", reason="via condor_rm")),
    ],
)
def test_what_condor_q_says(said: dict[str, object], state: JobState) -> None:
    assert HtCondor().read(0, json.dumps([said]), "") == state


def test_a_job_that_is_forgotten_and_a_pool_that_does_not_answer() -> None:
    assert HtCondor().read(0, "", "") == HtCondor().read(0, "[\n]\n", "") == GONE
    assert HtCondor().read(1, "", "Error: Can't find address for schedd") is None
    assert HtCondor().read(0, "[{", "") is None


def test_a_whole_job_script(hpcgen: Command, tmp_path: Path) -> None:
    ours = tmp_path / "ours" / "site_profiles"
    ours.mkdir(parents=True)
    (ours / "here.yaml").write_text(
        "name: here\nextends: workstation\nscheduler: {kind: htcondor, account: optional}\n"
    )
    words = ("--collection", str(ours.parent), "render", "--site", "here", "--stack", "mpi-hello", "-o", "kit")
    done = hpcgen(*words)
    assert done.returncode == 0, done.stderr
    script = (tmp_path / "kit" / "job.condor").read_text()
    assert "#CONDOR universe = vanilla" in script and "#SBATCH" not in script
    given, _ = described(tmp_path, script)
    assert all(" = " in line for line in given[:-1]) and given[-1] == "queue"


def test_detection_knows_a_pool(tmp_path: Path) -> None:
    from tests.helpers.trees import make_tree, seen_in

    tree = make_tree(tmp_path, commands={"condor-version": "$CondorVersion: 23.10.29 2025-09-22 BuildID: 1 $\n"})
    assert seen_in(tree).value("scheduler.kind") == "htcondor"


CONDOR_SUBMIT = """\
#!/bin/bash
# Takes a description as condor_submit does: its executable starts later, in the folder of the submission.
set -eu
cat > "$POOL/description"
value() { sed -n "s/^$1 = //p" "$POOL/description" | sed 's/$(ClusterId)/17/; s/$(ProcId)/0/'; }
[ "$(tail -n 1 "$POOL/description")" = queue ]
echo 1 > "$POOL/state"
echo "17.0 - 17.0"
(
    exec > /dev/null 2>&1
    sleep 0.1
    echo 2 > "$POOL/state"
    status=0
    cp "$(value executable)" "$POOL/condor_exec.exe"
    bash "$POOL/condor_exec.exe" > "$(value output)" 2> "$(value error)" || status=$?
    echo "$status" > "$POOL/status"
    echo 4 > "$POOL/state"
) &
"""
CONDOR_Q = """\
#!/bin/bash
state=$(cat "$POOL/state")
touch "$POOL/seen$state"
[ "$state" != 4 ] || exit 0
echo '[{"JobStatus": '"$state"', "RemoteHost": "slot1@node"}]'
"""
CONDOR_HISTORY = """\
#!/bin/bash
[ "$1 $2 $3" = "17 -limit 1" ] || exit 1
echo '[{"JobStatus": 4, "ExitCode": '"$(cat "$POOL/status")"', "Iwd": "'"$PWD"'"}]'
"""


@pytest.mark.parametrize(("status", "code"), [(0, 0), (7, 10)])
def test_a_job_is_followed_to_its_end(
    hpcgen: Command, tmp_path: Path, quick_queue: None, status: int, code: int
) -> None:
    """By programs that behave as the manual says: there is no pool."""
    engine = '#!/bin/bash\nwhile [ "$1" != mpiexec ]; do shift; done\nshift 3\nexec "$@"\n'
    programs, work, sites = tmp_path / "bin", tmp_path / "work", tmp_path / "ours" / "site_profiles"
    for folder in (programs, work, sites, tmp_path / "pool"):
        folder.mkdir(parents=True)
    texts = {"condor_submit": CONDOR_SUBMIT, "condor_q": CONDOR_Q, "condor_history": CONDOR_HISTORY}
    for name, text in {**texts, "singularity": engine}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    profile = {"name": "here", "extends": "hlrs-testbed", "scheduler": {"kind": "htcondor", "directives": []}}
    profile["partitions"] = {"gpu": {"cpu": {"target": "x86_64"}}}
    (sites / "here.yaml").write_text(json.dumps(profile))
    (work / "mpi-hello.sif").touch()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "POOL": str(tmp_path / "pool")}
    script = f'until [ -e "{tmp_path}/pool/seen2" ]; do sleep 0.05; done; pwd; exit {status}'
    words = ("--collection", str(tmp_path / "ours"), "submit", "--site", "here", "--stack", "mpi-hello")
    done = hpcgen(*words, "--", "sh", "-c", script, cwd=work, env=environment)
    assert done.returncode == code, done.stderr
    assert "job 17 runs" in done.stderr
    assert str(work) in (done.stdout if status == 0 else done.stderr)
    assert ("job 17 succeeded" if status == 0 else "with status 7") in done.stderr


def universe_job(hpcgen: Command, path: Path, engine: str) -> subprocess.CompletedProcess[str]:
    """Render a stack for a pool of HTCondor that starts images by itself."""
    containers = {"preferred": engine, "engines": {engine: {"allowed": True}}}
    scheduler = {"kind": "htcondor", "account": "optional", "container_universe": True}
    data = {"name": "here", "extends": "workstation", "containers": containers, "scheduler": scheduler}
    (path / "here.yaml").write_text(json.dumps(data))
    return hpcgen("render", "--site", "here.yaml", "--stack", "openvino", "-o", "kit", cwd=path)


def test_in_the_container_universe_the_script_runs_inside_the_image(hpcgen: Command, tmp_path: Path) -> None:
    assert universe_job(hpcgen, tmp_path, "apptainer").returncode == 0
    script = tmp_path / "kit" / "job.condor"
    head = [line.removeprefix("#CONDOR ") for line in script.read_text().splitlines() if line.startswith("#CONDOR")]
    assert {"universe = container", "container_image = ./openvino.sif", "should_transfer_files = YES"} <= set(head)
    assert "apptainer exec" not in script.read_text() and "preflight.sh" not in script.read_text()
    # It starts its command with nothing but what every image has.
    words = ["bash", str(script), "sh", "-c", "echo in $PWD with $OMP_NUM_THREADS"]
    done = subprocess.run(words, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 0 and f"in {tmp_path} with " in done.stdout, done.stderr


def test_an_image_that_htcondor_does_not_start_is_refused(hpcgen: Command, tmp_path: Path) -> None:
    done = universe_job(hpcgen, tmp_path, "charliecloud")
    assert done.returncode == 6 and "images for charliecloud are of another kind" in done.stderr
