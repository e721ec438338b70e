"""Torque: ``#PBS`` options, qsub, qstat, qdel. PBS Pro (OpenPBS) parts from it where :mod:`.pbs` says.

``qstat -f`` prints ``Job Id: ID`` and lines ``    name = value``, of which long ones go on in lines that begin with a
tab (man qstat of both; the text is read rather than ``-F json``, which Torque has not and which was seen to be invalid
where a variable of the job has quotes in it). Finished jobs: PBS Pro shows them with ``-x`` if the server keeps
a history, in state F; Torque in state C for ``keep_completed`` seconds, then no more. Exit statuses: PBS Professional
Reference Guide, "Job Exit Status Codes", and Torque's "Job exit status": below 0 the job could not be run, above 256 a
signal ended it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

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
from hpcgen.core.support.units import walltime_text

UNKNOWN_JOB = re.compile(r"Unknown Job|Job has finished|Invalid Job", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"^\s+([A-Za-z_]+(?:\.[A-Za-z_]+)?) = (.*)$")
SIGNAL_BASE = 256
NAME_LENGTH = 15
"""Older releases refuse longer job names."""


def job_name(name: str) -> str:
    """A name that every release takes: a letter first, and not too long."""
    return (name if name[0].isalpha() else f"j{name}")[:NAME_LENGTH]


WISHED = {"after": "-W depend={}", "begin": "-a {}", "environment": "-v {}", "whole_environment": "-V"}
"""What qsub takes in all of its forms. Source: qsub(1B)."""


class Torque(Scheduler):
    """``-l nodes=N:ppn=SLOTS:gpus=G,walltime=…``."""

    name = "torque"
    title = "Torque"
    file_name = "job.pbs"
    mark = "#PBS"
    start = 'cd "${PBS_O_WORKDIR:-.}"'
    account_option = "-A "
    programs = ("qsub", "qstat")
    looking: ClassVar[tuple[str, ...]] = ("qstat", "-f")
    cancelling = ("qdel",)
    memory_forms = {"pmem": (",pmem={}mb", "slot")}
    output_at_end = True
    interactive = "qsub -I"
    job_variable = "PBS_JOBID"
    queue_variable = "PBS_QUEUE"  # qsub(1B)
    job_variables = ("PBS_",)
    # qsub(1B), "ENVIRONMENT VARIABLES", of both, and where their clients look for their files.
    client_variables = (
        *("PBS_CLIENTRETRY", "PBS_CONF_FILE", "PBS_DEFAULT", "PBS_DPREFIX", "PBS_EXEC", "PBS_HOME", "PBS_SERVER"),
    )
    node_list = 'sort -u "${PBS_NODEFILE:-}"'
    launcher_variables = ("PBS_ENVIRONMENT", "PBS_JOBID", "PBS_NODEFILE")
    selecting = ("-l select", "-l nodes", "-l feature")
    requeueing = ("-r y",)
    # qsub(1B), "Requesting resources"; qos and naccesspolicy are those of its schedulers Maui and Moab.
    wished = {**WISHED, "array": "-t {}", "exclusive": "-l naccesspolicy=singlejob", "qos": "-l qos={}"}
    nodes_in_request = True
    kind_of_node = "-l partition="
    limits_of = "qstat -Qf {}"
    resource_form = "-l"
    mail_words = {"begin": "b", "end": "e", "fail": "af"}
    id_form = r"\d+(?:\.\S+)?"

    def directives(self, header: Header) -> list[str]:
        """Name, shell, output, resources, queue, account, then the site's own."""
        named = option("-N", job_name(header.name), " ", of_job("name"))
        lines = [named, "-S /bin/bash", *file_options(header, "-o", "-e")]
        lines += self.resources(header)
        lines += queue_options(header, "-q", " ")
        lines += self.account(header)
        return lines + site_options(header, self.resource_form)

    def resources(self, header: Header) -> list[str]:
        """Whole nodes: as many slots as a node has, and all its GPUs; ``chunk`` has properties that the nodes have."""
        wanted = f"nodes={header.job.nodes}:ppn={header.slots}"
        if header.gpus:
            wanted += f":gpus={header.gpus}"
        wanted += "".join(f":{each}" for each in header.partition.chunk)
        wanted += self.memory(header)
        of = of_job("nodes", *(["gpus_per_node"] if header.gpus else []), "walltime_s")
        return [option("-l", f"{wanted},walltime={walltime_text(header.job.walltime_s)}", " ", of)]

    def submit(self, script: Path) -> list[str]:
        """qsub prints ``NUMBER.SERVER``."""
        return ["qsub", str(script)]

    def after(self, job_id: str) -> str:
        """``depend`` of qsub(1B), which both have."""
        return option("-W", f"depend=afterany:{job_id}", " ")

    def ask(self, job_id: str) -> list[list[str]]:
        return [["qstat", "-f", job_id]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The attributes of the one job that was asked for."""
        attributes = attributes_of(output)
        if "job_state" in attributes:
            return _state(attributes)
        if UNKNOWN_JOB.search(errors + output) or status == 0:
            return GONE
        return None

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """``NAME.oNUMBER`` and ``NAME.eNUMBER``, or what the profile names."""
        number = job_id.partition(".")[0]
        output = facts.output or f"{job_name(name)}.o{number}"
        return output, facts.error or f"{job_name(name)}.e{number}"


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of the first job in an answer of ``qstat -f``."""
    attributes: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        found = _ATTRIBUTE.match(line)
        if found and not line.startswith("\t"):
            last = found[1]
            attributes.setdefault(last, found[2])
        elif line.startswith("\t") and last:
            attributes[last] += line.strip("\t\n")
        elif line.startswith("Job Id:") and attributes:
            break
    return attributes


def _state(attributes: dict[str, str]) -> JobState:
    letter = attributes["job_state"].strip()
    phase: Phase = "ended" if letter in "CFX" else "running" if letter in "REBS" else "waiting"
    text = attributes.get("Exit_status", attributes.get("exit_status", "")).strip()
    status = int(text) if re.fullmatch(r"-?\d+", text) else None
    number = status - SIGNAL_BASE if status is not None and status > SIGNAL_BASE else 0
    # Each is HOST:/PATH.
    output, error = (re.sub(r"^.*?:(?=/)", "", attributes.get(name, "")) for name in ("Output_Path", "Error_Path"))
    joined = attributes.get("Join_Path", "n") not in ("n", "")
    return JobState(
        phase=phase,
        word=letter,
        good=status == 0,
        reason=attributes.get("comment", "").strip(),
        exit_status=status,
        signal=number,
        elapsed_s=seconds_of(attributes.get("resources_used.walltime", "")),
        where=attributes.get("exec_host", "") if phase == "running" else "",
        output=output,
        error="" if joined or error == output else error,
    )
