"""Fujitsu's Technical Computing Suite: ``#PJM`` options, pjsub, pjstat, pjdel.

Nodes by ``-L node``, ranks by ``--mpi``, which Fujitsu's own mpiexec goes by. Sources: RIKEN's Supercomputer Fugaku
Users Guide, Use and job execution, "Job submission options", "Displaying a job status"; public job scripts of ITO
(Kyushu), Flow (Nagoya) and Wisteria (Tokyo) for Intel MPI over pjrsh. No job was ever submitted to one.
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
    file_options,
    of_job,
    option,
    queue_options,
    site_options,
)
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.support.traced import traced
from hpcgen.core.support.units import walltime_text

WAITING = ("ACC", "QUE", "HLD", "RNA")
ENDED = ("EXT", "CCL", "RJT", "ERR")
_ROW = r"(?m)^(\d+)\s+([A-Z]{3})\s+(-|\d+)\s*$"


class Pjm(Scheduler):
    """Whole nodes and the ranks of each."""

    name = "pjm"
    memory_forms = {"node-mem": ("-L node-mem={}Mi", "node")}
    title = "PJM"
    file_name = "job.pjm"
    mark = "#PJM"
    # Intel MPI and MPICH are not told by it which nodes a job has.
    start = (
        '[ -z "${PJM_O_NODEINF:-}" ] || export I_MPI_HYDRA_HOST_FILE="$PJM_O_NODEINF" HYDRA_HOST_FILE="$PJM_O_NODEINF"'
    )
    account_option = "-g "
    programs = ("pjsub", "pjstat")
    looking = ("pjstat", "-v")
    cancelling = ("pjdel",)
    output_at_end = True
    interactive = "pjsub --interact"
    job_variable = "PJM_JOBID"
    job_variables = ("PJM_",)
    client_variables = ("PJM_LLIO_GFSCACHE",)  # which volumes a job sees, on Fugaku
    node_list = 'sort -u "${PJM_O_NODEINF:-}"'
    launcher_variables = ("PJM_JOBID", "PJM_O_NODEINF", "PJM_MPI_PROC")
    mpi_environment = {
        "intel": {"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/bin/pjrsh"},
        "mpich": {"HYDRA_BOOTSTRAP": "rsh", "HYDRA_LAUNCHER_EXEC": "/bin/pjrsh"},
    }
    selecting = ("-L rscunit", "-L vnode")
    requeueing = ("--restart",)
    wished = {"environment": "-x {}", "whole_environment": "-X"}
    resource_form = "-L"
    mail_words = {"begin": "b", "end": "e"}
    endings = {"CCL": "submit it again: it was cancelled", "RJT": "the site's rules refuse it: see pjstat -v ID"}

    def directives(self, header: Header) -> list[str]:
        """Name, output, nodes, ranks, time, queue, group, then the site's own."""
        job = header.job
        files = file_options(header, "-o", "-e")
        lines = [option("-N", job_name(header.name), " ", of_job("name")), *files]
        lines += [] if header.scheduler.error else ["-j"]
        ranks = f"proc={job.ranks},max-proc-per-node={job.ranks_per_node}"
        lines += [
            option("-L", f"node={job.nodes}", " ", of_job("nodes")),
            option("--mpi", ranks, " ", of_job("nodes", "ranks_per_node")),
            option("-L", f"elapse={walltime_text(job.walltime_s)}", " ", of_job("walltime_s")),
        ]
        if memory := self.memory(header):
            lines.append(traced(memory, of_job("memory_per_rank_gb", "ranks_per_node")))
        lines += queue_options(header, "-L rscgrp")
        lines += self.account(header)
        return lines + site_options(header, self.resource_form)

    def mail(self, events: Sequence[str], address: str) -> list[str]:
        words = ",".join(self.mail_words[each] for each in events)
        return [f"-m {words}", f"--mail-list {address}"]

    def submit(self, script: Path) -> list[str]:
        return ["pjsub", str(script)]

    def job_id(self, output: str) -> str:
        """``[INFO] PJM 0000 pjsub Job 123 submitted.``"""
        found = re.findall(r"pjsub Job (\d+) submitted", output)
        return found[-1] if found else ""

    def ask(self, job_id: str) -> list[list[str]]:
        """The jobs of the queue, then those that ended."""
        words = ["--choose", "jid,st,ec", job_id]
        return [["pjstat", *words], ["pjstat", "-H", *words]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The row below the names of the columns, which alone come where it does not know the job."""
        rows = re.findall(_ROW, output)
        if rows:
            _, word, code = rows[-1]
            phase: Phase = "waiting" if word in WAITING else "ended" if word in ENDED else "running"
            ended = int(code) if code != "-" and phase == "ended" else None
            return JobState(phase=phase, word=word, good=word == "EXT" and ended == 0, exit_status=ended)
        return GONE if status == 0 else None

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """``NAME.ID.out``, or the profile's with ``%j`` and ``%n``."""
        known = {"%j": job_id, "%n": job_name(name)}
        files = (facts.output or "%n.%j.out", facts.error)
        output, error = (re.sub("%[jn]", lambda found: known[found[0]], text or "") for text in files)
        return output, error


def job_name(name: str) -> str:
    """A name that it takes: no digit first, at most 63 characters."""
    return (name if not name[0].isdigit() else f"j{name}")[:63]
