"""Slurm: ``#SBATCH`` options, srun, sbatch, scontrol, sacct, scancel.

``scontrol show job`` is asked first, because it answers where no accounting is set up; it knows a job for MinJobAge
(300 s by default) after its end, sacct for good. Options: man sbatch, man srun. Fields and states: man scontrol, man
sacct, "JOB STATE CODES" in man squeue. Patterns of output files: "filename pattern" in man sbatch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from hpcgen.backends.schedulers.base import (
    GONE,
    Header,
    JobState,
    Phase,
    Scheduler,
    file_options,
    of_job,
    option,
    queue_options,
    seconds_of,
    site_options,
)
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.job import Job
from hpcgen.core.support.traced import traced
from hpcgen.core.support.units import walltime_text

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
UNKNOWN_JOB = "Invalid job id"
# Compiled where a job is followed: renders load this module too.
_FIELD = r"(?:^|\s)([A-Za-z][A-Za-z/]*)=(\S*)"
_PATH_FIELD = r"(?m)^\s*(StdOut|StdErr)=(.*)$"
_PATTERN = r"%(\d*)([%AJjuxaNnst\\])"
SACCT = "JobIDRaw,State,ExitCode,ElapsedRaw"
NO_REASON = ("None", "(null)", "NonZeroExitCode")
"""What says nothing that the state and the exit status do not."""


_GPU_OPTIONS = ("--gres=gpu", "--gpus")
"""Options that ask for GPUs, in whatever form a site wants them."""


class Slurm(Scheduler):
    """Whole nodes, with ranks and threads stated."""

    name = "slurm"
    title = "Slurm"
    file_name = "job.slurm"
    mark = "#SBATCH"
    # After sbatch --export=NONE every srun, the one that mpiexec starts too, gives its ranks no environment.
    start = "unset SLURM_EXPORT_ENV"
    account_option = "--account="
    programs = ("sbatch", "scontrol")
    looking = ("squeue", "-j")
    cancelling = ("scancel",)
    interactive = "salloc"
    # man salloc; --get-user-env is for root there.
    interactive_lacks = ("--export", "--get-user-env", "--requeue", "--no-requeue", "--open-mode")
    job_variable = "SLURM_JOB_ID"
    queue_variable = "SLURM_JOB_PARTITION"
    node_list = 'scontrol show hostnames "${SLURM_JOB_NODELIST:-}"'
    node_count = "${SLURM_STEP_NUM_NODES:-${SLURM_JOB_NUM_NODES:-1}}"
    launcher_variables = ("SLURM_JOBID", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
    # sbatch hands all of it on; SLURM_MEM_PER_CPU of one job beside SLURM_MEM_PER_NODE of another ends srun.
    job_variables = ("SLURM_",)
    client_variables = ("SLURM_CLUSTERS", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_TIME_FORMAT")
    # With the last, ranks write to a terminal: each line ends with a carriage return.
    output_variables = ("SLURM_LABELIO", "SLURM_STDERRMODE", "SLURM_STDOUTMODE", "SLURM_UNBUFFEREDIO")
    selecting = ("-C", "--constraint", "-w", "--nodelist", "--gres", "--gpus", "-G", "--gpus-per-node")
    task_variable = "SLURM_ARRAY_TASK_ID"
    array_size = 1001  # MaxArraySize in man slurm.conf
    requeueing = ("--requeue", "--open-mode=append")
    again = 'scontrol requeue "$SLURM_JOB_ID"'
    wished = {
        "after": "--dependency={}",
        "array": "--array={}",
        "begin": "--begin={}",
        "exclusive": "--exclusive",
        "qos": "--qos={}",
        "nodes": "--nodelist={}",
        "environment": "--export={}",
        "whole_environment": "--export=ALL",
    }
    memory_forms = {
        "mem": ("--mem={}M", "node"),
        "mem-per-cpu": ("--mem-per-cpu={}M", "cpu"),
        "mem-per-gpu": ("--mem-per-gpu={}M", "gpu"),
    }
    usual_memory = "mem"
    kind_of_node = "--constraint="
    limits_of = "scontrol show partition {}"
    account_limits = "sacctmgr show assoc user=$USER"
    mail_words = {"begin": "BEGIN", "end": "END", "fail": "FAIL", "requeue": "REQUEUE", "time_limit": "TIME_LIMIT"}
    launcher = "srun"
    # Those that srun has a plugin of.
    pmi = ("pmix", "pmi2")
    pmi_variable = "SLURM_MPI_TYPE"  # srun(1)
    local_rank = "SLURM_LOCALID"
    copies_to_nodes = ("sbcast", "--force")
    launcher_allocates = True
    endings = {
        "TIMEOUT": "give it more time: --time",
        "DEADLINE": "give it more time: --time",
        "OUT_OF_MEMORY": "fewer ranks on each node, or nodes with more memory: --ranks-per-node, --partition",
        "NODE_FAIL": "submit it again: a node failed",
        "PREEMPTED": "submit it again: it was preempted by another job",
    }

    def directives(self, header: Header) -> list[str]:
        """Name, output, time, nodes, ranks, threads, queue, account, GPUs, then the site's own."""
        job = header.job
        lines = [option("-J", header.name, " ", of_job("name")), *file_options(header, "-o", "-e")]
        lines += [
            option("--time", walltime_text(job.walltime_s), of=of_job("walltime_s")),
            option("--nodes", job.nodes, of=of_job("nodes")),
            option("--ntasks-per-node", job.ranks_per_node, of=of_job("ranks_per_node")),
            option("--cpus-per-task", job.threads_per_rank, of=of_job("threads_per_rank")),
        ]
        queue = queue_options(header, "--partition")
        lines += queue
        lines += self.account(header)
        own = site_options(header)
        if not header.gpus:
            own = [line for line in own if not line.startswith(_GPU_OPTIONS)]
        request = header.scheduler.gpu_request
        if header.gpus and request != "none" and not any(line.startswith(_GPU_OPTIONS) for line in own):
            asked = f"gpu:{header.gpus}" if request == "gres" else header.gpus
            lines.append(option(f"--{request}", asked, of=of_job("gpus_per_node")))
        # Options for memory exclude each other, so that one of the profile stands alone.
        if (memory := self.memory(header)) and not any(map(self.memory_said, [*queue, *own])):
            lines.append(traced(memory, of_job("memory_per_rank_gb", "ranks_per_node")))
        return lines + own

    def memory_said(self, line: str) -> tuple[str, float] | None:
        """man sbatch: MiB unless a unit is named."""
        found = re.fullmatch(r"--mem(?:-per-([cg]pu))?=(\d{1,12})([KMGT]?)B?", line, re.IGNORECASE)
        if found is None:
            return None
        power = {"K": -2, "": -1, "M": -1, "G": 0, "T": 1}[found[3].upper()]
        return found[1] or "node", int(found[2]) * 1024.0**power

    def mail(self, events: Sequence[str], address: str) -> list[str]:
        """``--mail-type``, ``--mail-user``."""
        return [f"--mail-type={','.join(self.mail_words[each] for each in events)}", f"--mail-user={address}"]

    def array(self, tasks: int, limit: int | None) -> str:
        return option("--array", f"0-{tasks - 1}" + (f"%{limit}" if limit else ""))

    def after(self, job_id: str) -> str:
        return option("--dependency", f"afterany:{job_id}")

    def warn(self, seconds: int) -> str:
        """To the batch shell, not to the steps (man sbatch, ``--signal``)."""
        return option("--signal", f"B:USR1@{seconds}")

    def launch(self, job: Job, pmi: Sequence[str]) -> list[str]:
        words = [*self._task_words(job.nodes, job.ranks), f"--ntasks-per-node={job.ranks_per_node}"]
        # --cpus-per-task: since Slurm 22.05 srun does not take it over from the job's header.
        words.append(f"--cpus-per-task={job.threads_per_rank}")
        flavour = self.requested_pmi(pmi)
        return [*words, f"--mpi={flavour}"] if flavour is not None else words

    def bind_gpus(self, gpus_per_rank: int) -> list[str]:
        return [f"--gpus-per-task={gpus_per_rank}"]

    def launch_one(self, threads: int) -> list[str]:
        return [*self._task_words(1, 1), f"--cpus-per-task={threads}"]

    def terminal_words(self, threads: int) -> list[str]:
        """salloc itself starts a command where it is typed. Source: salloc(1), srun(1)."""
        return [*self.launch_one(threads), "--pty"]

    def on_each_node(self, nodes: int) -> list[str]:
        return [*self._task_words(nodes, nodes), "--ntasks-per-node=1", "--mpi=none"]

    def _task_words(self, nodes: int, tasks: int) -> list[str]:
        # --export=ALL: after sbatch --export=NONE the ranks would have no variables.
        return [self.launcher, "--export=ALL", f"--nodes={nodes}", f"--ntasks={tasks}"]

    def submit(self, script: Path) -> list[str]:
        """``--parsable`` prints the id alone."""
        return ["sbatch", "--parsable", str(script)]

    def job_id(self, output: str) -> str:
        """``ID`` or ``ID;CLUSTER``; sites let sbatch say other things before."""
        last = output.strip().splitlines()[-1:]
        found = re.fullmatch(r"(\d+)(?:;\S+)?", last[0].strip()) if last else None
        return found[1] if found else ""

    def ask(self, job_id: str) -> list[list[str]]:
        """scontrol, then sacct."""
        return [
            ["scontrol", "show", "job", job_id],
            ["sacct", "-j", job_id, "-X", "-n", "-P", "-o", SACCT],
        ]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The answer of scontrol or of sacct."""
        if UNKNOWN_JOB in errors or UNKNOWN_JOB in output:
            return GONE
        if status != 0:
            return None
        if "JobState=" in output:
            return _of_scontrol(output)
        lines = output.strip().splitlines()
        return _of_sacct(lines[-1]) if lines and lines[-1].count("|") == SACCT.count(",") else GONE

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """The profile's patterns, or Slurm's own."""
        output = expand(facts.output or "slurm-%j.out", name, job_id)
        return output, expand(facts.error, name, job_id)


def expand(pattern: str, name: str, job_id: str) -> str:
    """A file name with ``%x``, ``%j`` and the like filled in, as Slurm does for the batch script of a job.

    What is known on the nodes alone, such as ``%N``, stays as it is.
    """
    import getpass

    if "\\" in pattern:
        return pattern.replace("\\", "")
    known = {"%": "%", "j": job_id, "J": job_id, "A": job_id, "x": name, "s": "batch", "t": "0", "n": "0"}

    def fill(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        value = getpass.getuser() if letter == "u" else known.get(letter)
        if value is None:
            return found[0]
        return value.zfill(min(int(width), 10)) if width and value.isdigit() else value

    return re.sub(_PATTERN, fill, pattern)


def _of_scontrol(text: str) -> JobState:
    fields: dict[str, str] = {}
    for key, value in re.findall(_FIELD, text):
        fields.setdefault(key, value)
    # A line of their own each, so that their names may have spaces.
    files = {key: value.strip() for key, value in re.findall(_PATH_FIELD, text)}
    name = fields.get("JobName", "")
    job_id = fields.get("JobId", "")
    output, error = (expand(files.get(key, ""), name, job_id) for key in ("StdOut", "StdErr"))
    reason = fields.get("Reason", "")
    state = _state(fields["JobState"], fields.get("ExitCode", ""), seconds_of(fields.get("RunTime", "")))
    nodes = fields.get("NodeList", "")
    return replace(
        state,
        reason="" if reason in NO_REASON else reason,
        where="" if nodes == "(null)" else nodes,
        output=output,
        error="" if error == output else error,
    )


def _of_sacct(line: str) -> JobState:
    _, state, exit_code, elapsed = line.split("|")
    return _state(state, exit_code, int(elapsed) if elapsed.isdigit() else None)


def _state(word: str, exit_code: str, elapsed_s: int | None) -> JobState:
    """``CANCELLED by 0`` is sacct's; ``ExitCode`` is STATUS:SIGNAL."""
    word = (word.split() or ["UNKNOWN"])[0].rstrip("+")
    phase: Phase = "waiting" if word in WAITING else "running" if word in RUNNING else "ended"
    status, _, number = exit_code.partition(":")
    ended = phase == "ended"
    return JobState(
        phase=phase,
        word=word,
        good=word == "COMPLETED",
        exit_status=int(status) if ended and status.isdigit() else None,
        signal=int(number) if ended and number.isdigit() else 0,
        elapsed_s=elapsed_s,
    )
