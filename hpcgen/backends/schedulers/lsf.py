"""IBM Spectrum LSF: ``#BSUB`` options, bsub, bjobs, bkill.

bsub reads the options of a script that it gets as standard input; named as a command their lines are comments, unless
the site set LSB_BSUB_PARSE_SCRIPT. Sources: the command references of LSF 10.1, bsub (``-gpu``, ``-R``, ``-w``, ``-W``)
and bjobs (``-o``), and its list of environment variables of jobs. No job was ever submitted to one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hpcgen.backends.schedulers.base import (
    GONE,
    Header,
    JobState,
    Phase,
    Scheduler,
    of_fact,
    of_job,
    option,
    queue_options,
    site_options,
)
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.support.traced import traced

FIELDS = "stat exit_code run_time exit_reason"
WAITING = ("PEND", "PSUSP", "WAIT", "PROV")
ENDED = ("DONE", "EXIT", "ZOMBI")
UNKNOWN_JOB = "is not found"


class Lsf(Scheduler):
    """Slots of whole nodes, as many of each as it has, and no other job beside them."""

    name = "lsf"
    memory_forms = {"rusage": ("-R rusage[mem={}MB]", "node"), "M": ("-M {}MB", "node")}
    title = "LSF"
    file_name = "job.lsf"
    mark = "#BSUB"
    account_option = "-P "
    programs = ("bsub", "bjobs")
    looking = ("bjobs", "-l")
    cancelling = ("bkill",)
    output_at_end = True
    interactive = "bsub -Is"
    job_variable = "LSB_JOBID"
    queue_variable = "LSB_QUEUE"
    # bsub hands on all of it (its manual); Open MPI reads LSB_AFFINITY_HOSTFILE, which not every job has.
    job_variables = ("LSB_", "LS_JOBPID", "LS_SUBCWD")
    client_variables = (
        *("LSB_DEFAULTPROJECT", "LSB_DEFAULTQUEUE", "LSB_DEFAULT_JOBGROUP", "LSB_DEFAULT_USERGROUP"),
        *("LSB_NTRIES", "LSB_STDOUT_DIRECT"),
    )
    node_list = 'sort -u "${LSB_DJOB_HOSTFILE:-}"'
    launcher_variables = ("LSB_JOBID", "LSB_HOSTS", "LSB_MCPU_HOSTS", "LSB_DJOB_HOSTFILE", "LSB_AFFINITY_HOSTFILE")
    # blaunch starts Hydra's helpers. The slots of a job would else say how many ranks a node gets.
    mpi_environment = {
        "intel": {"I_MPI_HYDRA_BOOTSTRAP": "lsf", "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"},
        "mpich": {"HYDRA_BOOTSTRAP": "lsf"},
    }
    selecting = ("-R", "-m", "-gpu")
    requeueing = ("-r",)
    wished = {
        "after": "-w {}",
        "begin": "-b {}",
        "exclusive": "-x",
        "nodes": "-m {}",
        "environment": "-env {}",
        "whole_environment": "-env all",
    }
    limits_of = "bqueues -l {}"
    mail_words = {"begin": "-B", "end": "-N"}
    endings = {
        "TERM_RUNLIMIT": "give it more time: --time",
        "TERM_MEMLIMIT": "fewer ranks on each node, or nodes with more memory: --ranks-per-node, --partition",
        "TERM_PREEMPT": "submit it again: it was preempted by another job",
    }

    def directives(self, header: Header) -> list[str]:
        """Name, output, time, slots, GPUs, queue, project, then the site's own."""
        job, facts = header.job, header.scheduler
        # Without a file all that is printed is sent by mail.
        lines = [option("-J", header.name, " ", of_job("name"))]
        lines.append(option("-o", facts.output or f"{header.name}.o%J", " ", of_fact("scheduler.output")))
        lines += [option("-e", facts.error, " ", of_fact("scheduler.error"))] if facts.error else []
        lines += [
            option("-W", _limit(job.walltime_s), " ", of_job("walltime_s")),
            option("-n", job.nodes * header.slots, " ", of_job("nodes")),
            option("-R", f"span[ptile={header.slots}]", " ", of_job("nodes")),
            "-x",
        ]
        if memory := self.memory(header):
            lines.append(traced(memory, of_job("memory_per_rank_gb", "ranks_per_node")))
        if header.gpus and facts.gpu_request != "none":
            lines.append(option("-gpu", f"num={header.gpus}", " ", of_job("gpus_per_node")))
        lines += queue_options(header, "-q", " ")
        lines += self.account(header)
        return lines + site_options(header)

    def mail(self, events: Sequence[str], address: str) -> list[str]:
        return [f"-u {address}", *(self.mail_words[each] for each in events)]

    def after(self, job_id: str) -> str:
        return option("-w", f"ended({job_id})", " ")

    def terminal_words(self, threads: int) -> list[str]:
        """The command is its last words. Source: bsub(1)."""
        return []

    def submit(self, script: Path) -> list[str]:
        """The script is its standard input."""
        return ["/bin/sh", "-c", 'exec bsub < "$1"', "bsub", str(script)]

    def job_id(self, output: str) -> str:
        """``Job <123> is submitted to queue <normal>.``"""
        found = re.findall(r"(?m)^Job <(\d+)> is submitted", output)
        return found[-1] if found else ""

    def ask(self, job_id: str) -> list[list[str]]:
        """bjobs knows a job for CLEAN_PERIOD, an hour by default, after its end."""
        return [["bjobs", "-a", "-noheader", "-o", f"{FIELDS} delimiter='|'", job_id]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The one line of the answer."""
        lines = [line for line in output.splitlines() if line.count("|") >= FIELDS.count(" ")]
        if lines:
            return _state(*(part.strip() for part in lines[-1].split("|", FIELDS.count(" "))))
        return GONE if UNKNOWN_JOB in errors + output else None

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """The profile's, or that of the header, with the job's id."""
        output, error = ((text or "").replace("%J", job_id) for text in (facts.output or f"{name}.o%J", facts.error))
        return output, error


def _limit(seconds: int) -> str:
    """Hours and minutes, which it takes no seconds beside."""
    minutes = -(-seconds // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _state(stat: str, code: str, took: str, reason: str) -> JobState:
    phase: Phase = "waiting" if stat in WAITING else "ended" if stat in ENDED else "running"
    cause = reason.partition(":")[0]
    seconds = re.match(r"\d+", took)
    status = int(code) if code.isdigit() else 0 if stat == "DONE" else None
    return JobState(
        phase=phase,
        word=cause if stat == "EXIT" and cause.startswith("TERM_") else stat,
        good=stat == "DONE",
        reason="" if reason == "-" else reason,
        exit_status=status if phase == "ended" else None,
        elapsed_s=int(seconds[0]) if seconds else None,
    )
