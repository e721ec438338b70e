"""Flux: ``# flux:`` directives, flux run, flux batch, flux jobs, flux cancel.

Source: the manual of flux-core 0.88.0 (github.com/flux-framework/flux-core@4a5e79f5, doc/): flux-batch(1), also for the
directives of RFC 36; flux-run(1); flux-jobs(1), "JOB STATUS" and "OUTPUT FORMAT"; flux-cancel(1); flux-environment(7);
flux-shell-options(7) for PMI: PMI-1 (``simple``) by Flux itself, PMIx by the plugin of the flux-pmix project.

The script of ``flux batch`` is the first program of a Flux of its own, which has the job's nodes; ``flux run`` in it
starts ranks on these. Outside of a job it asks the system's Flux for nodes.
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
from hpcgen.core.model.job import Job
from hpcgen.core.support.quoting import directive
from hpcgen.core.support.traced import traced

FIELDS = ("state", "result", "returncode", "runtime", "exception.type", "contextual_info")
"""What flux jobs is asked for; the last tells why a job waits, or else its nodes, and may have any character."""
WAITING = ("DEPEND", "PRIORITY", "SCHED")
NEVER_STARTED = -128
"""The return code of a job that was cancelled before it began."""
_UNITS = (("h", 3600), ("m", 60))
_TAG = re.compile(r"\{\{([a-z.]+)\}\}")


class Flux(Scheduler):
    """Whole nodes; the ranks share their cores evenly."""

    name = "flux"
    title = "Flux"
    file_name = "job.flux"
    mark = "# flux:"
    account_option = "--bank="
    programs = ("flux",)
    looking = ("flux", "jobs")
    cancelling = ("flux", "cancel")
    interactive = "flux alloc"
    job_variable = "FLUX_ENCLOSING_ID"
    launcher = "flux"
    # PMIx by its plugin, or PMI-1.
    pmi = ("pmix", "pmi")
    # F58, whose first letter is f where the locale has no ƒ.
    id_form = r"[ƒf][1-9A-HJ-NP-Za-km-z]+"
    local_rank = "FLUX_TASK_LOCAL_ID"
    launcher_allocates = True
    endings = {"TIMEOUT": "give it more time: --time", "CANCELED": "submit it again: it was cancelled"}

    def directives(self, header: Header) -> list[str]:
        """Name, output, time, nodes, queue, bank, then the site's own."""
        job = header.job
        lines = [option("--job-name", header.name, of=of_job("name"))]
        lines += [
            _template(name, value)
            for name, value in (("--output", header.scheduler.output), ("--error", header.scheduler.error))
            if value
        ]
        # With --exclusive a job has all cores and GPUs of its nodes.
        lines += [
            option("--time-limit", duration(job.walltime_s), of=of_job("walltime_s")),
            option("--nodes", job.nodes, of=of_job("nodes")),
            "--exclusive",
        ]
        lines += queue_options(header, "--queue")
        lines += self.account(header)
        return lines + site_options(header)

    def launch(self, job: Job, pmi: Sequence[str]) -> list[str]:
        # By tasks per node, not by cores per task: Flux counts cores, and a rank's threads may be hardware threads.
        words = ["flux", "run", f"--nodes={job.nodes}", f"--tasks-per-node={job.ranks_per_node}", "--exclusive"]
        words += ["-o", "cpu-affinity=per-task"]
        asked = self.requested_pmi(pmi)
        return [*words, "-o", f"pmi={'pmix' if asked == 'pmix' else 'simple'}"] if asked is not None else words

    def bind_gpus(self, gpus_per_rank: int) -> list[str]:
        """It divides the GPUs of a node evenly, however many they are."""
        return ["-o", "gpu-affinity=per-task"]

    def terminal_words(self, threads: int) -> list[str]:
        """The command is its last words. Source: flux-alloc(1)."""
        return []

    def submit(self, script: Path) -> list[str]:
        """It copies the script and prints the id."""
        return ["flux", "batch", str(script)]

    def after(self, job_id: str) -> str:
        """flux-batch(1), "DEPENDENCIES"."""
        return f"--dependency=afterany:{directive(job_id.replace('ƒ', 'f'), '--after')}"

    def ask(self, job_id: str) -> list[list[str]]:
        """flux jobs, which knows ended jobs too when they are named."""
        form = "|".join(f"{{{field}}}" for field in FIELDS)
        return [["flux", "jobs", "--no-header", f"--format={form}", job_id]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The one line of the answer."""
        lines = [line for line in output.splitlines() if line.count("|") >= len(FIELDS) - 1]
        if lines:
            return _state(lines[-1].split("|", len(FIELDS) - 1))
        return GONE if "unknown" in errors.lower() or status == 0 else None

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """The profile's templates, or Flux's own."""
        known = {"id": job_id, "jobid": job_id, "name": name}
        files = (facts.output or "flux-{{id}}.out", facts.error)
        output, error = (_TAG.sub(lambda found: known.get(found[1], found[0]), text) for text in files)
        return output, error


def duration(seconds: int) -> str:
    """Flux standard duration (RFC 23): a number and one unit."""
    return next((f"{seconds // size}{unit}" for unit, size in _UNITS if seconds % size == 0), f"{seconds}s")


def _template(name: str, value: str) -> str:
    """A file's name with tags such as ``{{id}}``; InputError for what cannot be written in a directive."""
    option(name, _TAG.sub("x", value))
    return traced(f"{name}={value}", of_fact(f"scheduler.{name.removeprefix('--')}"))


def _state(parts: Sequence[str]) -> JobState:
    state, result, code, runtime, exception, context = (part.strip() for part in parts)
    phase: Phase = "waiting" if state in WAITING else "ended" if state == "INACTIVE" else "running"
    number = int(code) if re.fullmatch(r"-?\d+", code) else None
    killed = number is not None and NEVER_STARTED < number < 0
    return JobState(
        phase=phase,
        word=result or state,
        good=result == "COMPLETED",
        reason=context if phase == "waiting" else exception if exception != "exec" else "",
        exit_status=number if number is not None and number >= 0 else None,
        signal=-number if killed and number is not None else 0,
        elapsed_s=int(float(runtime)) if re.fullmatch(r"\d+(\.\d+)?", runtime) else None,
        where=context if phase == "running" else "",
    )
