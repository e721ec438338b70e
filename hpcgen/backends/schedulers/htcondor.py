"""HTCondor: a job script whose ``#CONDOR`` lines are the commands of its submit description; condor_q, condor_history.

The description is made of these lines when the job is submitted, with the script as its executable, and the script
starts the container itself (universe vanilla), so that engine, binds and preflight are those of every other batch
system. Where a profile says ``container_universe``, HTCondor starts the image: it chooses engine and binds, sends the
image, and what the job leaves in its folder back, and the script runs inside, without a preflight. A pool has no
queues: a profile's queue says by ``directives`` which attribute asks for it; by itself it is CERN's, ``JobFlavour``.
Sources: HTCondor's manual, condor_submit, condor_q and condor_history, "Job ClassAd Attributes" (JobStatus,
HoldReasonCode), docs/users-manual/container-universe-jobs.rst of github.com/htcondor/htcondor@1ac4f0e;
batchdocs.web.cern.ch, "Submit Files". No job was ever submitted to one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from hpcgen.core.errors import InputError
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.support.traced import subjects_of, traced

STATES: Mapping[int, tuple[Phase, str]] = {
    1: ("waiting", "Idle"),
    2: ("running", "Running"),
    3: ("ended", "Removed"),
    4: ("ended", "Completed"),
    5: ("ended", "Held"),
    6: ("running", "TransferringOutput"),
    7: ("running", "Suspended"),
}
TOO_LONG = (46, 47)
ATTRIBUTES = (
    "JobStatus,HoldReason,HoldReasonCode,RemoveReason,ExitCode,ExitBySignal,ExitSignal,RemoteWallClockTime,"
    "JobCurrentStartDate,ServerTime,RemoteHost,Iwd,Out,Err"
)
# A script's lines may be in any order, and the last of a description must be the one that queues.
_SUBMIT = (
    '{ sed -n "/^#CONDOR queue/!s/^#CONDOR //p" "$1"; printf "executable = %s\\n" "$1"; '
    'sed -n "s/^#CONDOR queue/queue/p" "$1" | grep . || echo queue; } | condor_submit -terse -'
)


class HtCondor(Scheduler):
    """All CPUs and GPUs that a node of the partition has, of one node."""

    name = "htcondor"
    title = "HTCondor"
    file_name = "job.condor"
    mark = "#CONDOR"
    account_option = "accounting_group = "
    programs = ("condor_submit", "condor_q")
    looking = ("condor_q", "-better-analyze")
    cancelling = ("condor_rm",)
    interactive = "condor_submit -interactive"
    job_variable = "_CONDOR_JOB_AD"
    node_count = "1"
    selecting = ("--requirements",)
    task_variable = "CONDOR_PROCESS"
    array_size = 10_000
    wished = {"environment": "getenv = HOME,USER,{}", "whole_environment": "getenv = true"}
    mail_words = {"end": "Complete", "fail": "Error"}
    endings = {
        "TooLong": "give it more time: --time",
        "Held": "it waits for you: condor_q -hold ID says why; condor_release ID lets it go on, condor_rm ID ends it",
        "Removed": "submit it again: it was removed",
    }

    def starts_images(self, facts: BatchSystem) -> bool:
        return facts.container_universe

    def directives(self, header: Header) -> list[str]:
        """Name, files, resources, time, queue, group, then the site's own."""
        job, facts = header.job, header.scheduler
        if job.nodes > 1:
            raise InputError("jobs of HTCondor are of one node", "--nodes", "1 node")
        lines = [traced(f"batch_name = {option('', header.name, '')}", of_job("name")), *_universe(header)]
        lines += [
            f"{name} = {value}" for name, value in zip(("output", "error"), _files(facts, header.name), strict=True)
        ]
        lines += [f"log = {header.name}.$(ClusterId).log", *_files_sent(header), "getenv = HOME,USER"]
        lines += [f'environment = "{self.task_variable}=$(ProcId)"']
        memory = header.partition.memory
        lines += [
            option("request_cpus", header.slots, " = ", of_job("nodes")),
            option("request_memory", f"{int((memory.usable_gb or memory.total_gb) * 10**9 / 2**20)}M", " = "),
        ]
        if header.gpus and facts.gpu_request != "none":
            lines.append(option("request_gpus", header.gpus, " = ", of_job("gpus_per_node")))
        # The attribute is that of CERN and other sites, which choose machines by it; elsewhere it means nothing.
        lines += [option(name, job.walltime_s, " = ", of_job("walltime_s")) for name in _LIMITS]
        lines += _commands(queue_options(header, "--MY.JobFlavour"))
        lines += self.account(header)
        return lines + _commands(site_options(header))

    def array(self, tasks: int, limit: int | None) -> str:
        """Jobs of one cluster, of which ``max_materialize`` are in the queue at a time."""
        return "\n".join([*([f"max_materialize = {limit}"] if limit else []), f"queue {tasks}"])

    def mail(self, events: Sequence[str], address: str) -> list[str]:
        word = "Always" if len(events) > 1 else self.mail_words[events[0]]
        return [f"notification = {word}", f"notify_user = {address}"]

    def submit(self, script: Path) -> list[str]:
        return ["/bin/sh", "-c", _SUBMIT, "condor_submit", str(script)]

    def job_id(self, output: str) -> str:
        """``123.0 - 123.9``, the first and last job of cluster 123."""
        found = re.findall(r"(?m)^(\d+)\.\d+ - \d+\.\d+\s*$", output)
        return found[-1] if found else ""

    def ask(self, job_id: str) -> list[list[str]]:
        """The queue, then the jobs that left it."""
        words = ["-json", "-attributes", ATTRIBUTES]
        return [["condor_q", job_id, *words], ["condor_history", job_id, "-limit", "1", *words]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The first record of the answer, which is empty where it does not know the job."""
        text = output[output.find("[") :] if "[" in output else ""
        try:
            records = json.loads(text) if text else []
        except (ValueError, RecursionError):
            return None
        if status != 0:
            return None
        return _state(records[0]) if records and isinstance(records[0], dict) else GONE

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """Those of the first job of a cluster."""
        known = {"$(ClusterId)": job_id, "$(ProcId)": "0"}
        output, error = (_replaced(text, known) for text in _files(facts, name))
        return output, error


_LIMITS = ("allowed_execute_duration", "MY.MaxRuntime")


def _universe(header: Header) -> list[str]:
    if not header.container_image:
        return ["universe = vanilla"]
    return ["universe = container", option("container_image", header.container_image, " = ")]


def _files_sent(header: Header) -> list[str]:
    """By itself the job begins in the folder that it is submitted from, which compute nodes see."""
    if not header.container_image:
        return ["should_transfer_files = no"]
    return ["should_transfer_files = YES", "when_to_transfer_output = ON_EXIT"]


def _files(facts: BatchSystem, name: str) -> tuple[str, str]:
    """Output and error; a profile's, which cannot have a ``$``, with ``%j`` for the cluster and ``%t`` for the job."""
    texts = facts.output or f"{name}.%j.%t.out", facts.error or f"{name}.%j.%t.err"
    for text, fact in zip(texts, ("output", "error"), strict=True):
        option(fact, text, of=of_fact(f"scheduler.{fact}"))
    output, error = (_replaced(text, {"%j": "$(ClusterId)", "%t": "$(ProcId)"}) for text in texts)
    return output, error


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for sign, value in known.items():
        text = text.replace(sign, value)
    return text


def _commands(options: Iterable[str]) -> list[str]:
    """Options of a profile as commands: ``--request_disk=10G``, and ``--MY.NAME=TEXT`` of an attribute, in quotes."""
    commands = []
    for each in options:
        name, _, value = each.lstrip("-").partition("=")
        text = name.startswith("MY.") and not re.fullmatch(r"-?\d+(\.\d+)?|true|false", value, re.IGNORECASE)
        line = f'{name} = "{value}"' if text else f"{name} = {value}"
        subject = subjects_of(each).get(0)
        commands.append(line if subject is None else traced(line, subject))
    return commands


def _state(ad: Mapping[str, Any]) -> JobState:
    phase, word = STATES.get(ad.get("JobStatus", 0), ("waiting", "unknown"))
    killed = bool(ad.get("ExitBySignal"))
    code = ad.get("ExitCode")
    status = code if isinstance(code, int) and word == "Completed" and not killed else None
    if word == "Held" and ad.get("HoldReasonCode") in TOO_LONG:
        word = "TooLong"
    since, now, took = (ad.get(name) for name in ("JobCurrentStartDate", "ServerTime", "RemoteWallClockTime"))
    if phase == "running" and isinstance(since, int) and isinstance(now, int):
        took = now - since
    folder = str(ad.get("Iwd", ""))
    output, error = (str(Path(folder, name)) if (name := str(ad.get(key, ""))) else "" for key in ("Out", "Err"))
    return JobState(
        phase=phase,
        word=word,
        good=word == "Completed" and status == 0,
        reason=str(ad.get("HoldReason", "") if word in ("Held", "TooLong") else ad.get("RemoveReason", "")),
        exit_status=status,
        signal=int(ad.get("ExitSignal", 0)) if killed and word == "Completed" else 0,
        elapsed_s=int(took) if isinstance(took, (int, float)) and took >= 0 else None,
        where=str(ad.get("RemoteHost", "")) if phase == "running" else "",
        output=output,
        error="" if error == output else error,
    )
