"""Grid Engine: ``#$`` options, qsub, qstat, qacct, qdel.

Sources: the manuals of Debian's gridengine 8.1.9 (submit(1), qstat(1), qacct(1), sge_pe(5), accounting(5),
sge_types(1)), and the answers of that release, to which the container tier submits. ``qstat -xml -j`` names no state in
words: ``JAT_status`` has a bit for it (source/libs/sgeobj/sge_jobL.h). A job is in qstat until its end, and in qacct
from the next time that the accounting file is written.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from hpcgen.backends.schedulers.base import (
    GONE,
    Header,
    JobState,
    Scheduler,
    of_fact,
    of_job,
    option,
    queue_options,
    site_options,
)
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.support.traced import traced
from hpcgen.core.support.units import walltime_text

RUNNING = 0x80
"""The bit of ``JAT_status`` of a job that runs, or is about to."""
ERROR_STATE = "Eqw"
TIME_LIMIT = "failed 37"
_MESSAGE = re.compile(r"<(QIM|MES)_message>(.*?)</\1_message>", re.DOTALL)
_NOTHING = "There are no messages available"
_ACCOUNT = re.compile(r"^(taskid|failed|exit_status|ru_wallclock) +(\S+)(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$(JOB_NAME|JOB_ID|USER)(?![A-Za-z0-9_])")


class GridEngine(Scheduler):
    """Slots of a parallel environment, as many for each node as it has."""

    name = "gridengine"
    title = "Grid Engine"
    file_name = "job.sge"
    mark = "#$"
    # A job has none of the submitting shell's variables, and a login shell only where sge_conf's login_shells has bash.
    before_modules = "shopt -q login_shell || . /etc/profile"
    account_option = "-P "
    programs = ("qsub", "qstat", "qacct")
    looking = ("qstat", "-j")
    cancelling = ("qdel",)
    needs = ("parallel_environment",)
    records_after_s = 90.0
    interactive = "qrsh"
    interactive_lacks = ("-S",)
    job_variable = "SGE_JOB_SPOOL_DIR"
    queue_variable = "QUEUE"
    # qsub(1), "ENVIRONMENTAL VARIABLES"; those that say where it is installed have other names.
    job_variables = (
        *(
            "ARC",
            "JOB_ID",
            "JOB_NAME",
            "JOB_SCRIPT",
            "NHOSTS",
            "NQUEUES",
            "NSLOTS",
            "PE_HOSTFILE",
            "QUEUE",
            "RESTARTED",
        ),
        *("SGE_BINDING", "SGE_CWD_PATH", "SGE_JOB_SPOOL_DIR", "SGE_O_", "SGE_STD", "SGE_TASK_"),
    )
    node_list = """awk '{ print $1 }' "${PE_HOSTFILE:-}\""""
    node_count = "${NHOSTS:-1}"
    # Hydra reads it; Open MPI wants ARC, JOB_ID and SGE_ROOT as well.
    launcher_variables = ("PE_HOSTFILE",)
    # Otherwise Intel MPI starts as many ranks on a node as the job has slots there, not as many as -ppn says.
    mpi_environment = {"intel": {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}}
    selecting = ("-l", "-q")
    task_variable = "SGE_TASK_ID"
    first_task = 1
    requeueing = ("-r y",)
    wished = {"begin": "-a {}", "environment": "-v {}", "whole_environment": "-V"}  # qsub(1)
    limits_of = "qconf -sq {}"
    resource_form = "-l"
    mail_words = {"begin": "b", "end": "e", "fail": "a"}
    array_size = 75000  # max_aj_tasks in sge_conf(5)
    id_form = r"\d+(?:\.\d+-\d+:\d+)?"
    endings = {
        TIME_LIMIT: "give it more time or memory: --time; its limits are h_rt and those of the profile",
        ERROR_STATE: "it stays in the queue: remove the cause, then `qmod -cj ID`, or delete it with qdel",
    }

    def directives(self, header: Header) -> list[str]:
        """Name, folder, shell, output, slots, time, memory, queue, project, then the site's own."""
        job, facts = header.job, header.scheduler
        # Its own shell may be csh. Errors go where the output goes, unless the profile has a file for them.
        lines = [option("-N", job_name(header.name), " ", of_job("name")), "-cwd", "-S /bin/bash"]
        lines += [_file(name, text) for name, text in (("-o", facts.output), ("-e", facts.error)) if text]
        lines += [] if facts.error else ["-j y"]
        lines += [*self.slots(header), option("-l", f"h_rt={walltime_text(job.walltime_s)}", " ", of_job("walltime_s"))]
        if facts.memory_request not in (None, "none"):
            of = of_fact("scheduler.memory_request")
            lines.append(option("-l", f"{facts.memory_request}={memory_of_slot(header)}", " ", of))
        lines += queue_options(header, "-q", " ")
        lines += self.account(header)
        return lines + site_options(header, self.resource_form)

    def slots(self, header: Header) -> list[str]:
        """Whole nodes in the profile's parallel environment, for one node in its own where there is one."""
        facts, nodes = header.scheduler, header.job.nodes
        of_one = facts.one_node_environment if nodes == 1 else None
        name = of_one or header.partition.parallel_environment or facts.parallel_environment or ""
        return [traced(f"{option('-pe', name, ' ')} {nodes * header.slots}", of_job("nodes"))]

    def array(self, tasks: int, limit: int | None) -> str:
        return option("-t", f"1-{tasks}", " ") + (f" -tc {limit}" if limit else "")

    def after(self, job_id: str) -> str:
        return option("-hold_jid", job_id, " ")

    def terminal_words(self, threads: int) -> list[str]:
        """Source: qrsh(1)."""
        return ["-now", "no", "-pty", "yes"]

    def submit(self, script: Path) -> list[str]:
        """``-terse`` prints the id alone."""
        return ["qsub", "-terse", str(script)]

    def job_id(self, output: str) -> str:
        """Of an array without the range of its tasks."""
        return super().job_id(output).partition(".")[0]

    def ask(self, job_id: str) -> list[list[str]]:
        """qstat, then the accounting."""
        return [["qstat", "-xml", "-j", job_id], ["qacct", "-j", job_id]]

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The answer of qstat or of qacct."""
        if "<JB_job_number>" in output:
            return _of_qstat(output)
        if _ACCOUNT.search(output):
            return _of_qacct(output)
        unknown = "<unknown_jobs" in output or "not found" in errors or "accounting" in errors
        return GONE if unknown else None

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """``NAME.oID``, or the profile's with its variables."""
        import getpass

        known = {"JOB_NAME": job_name(name), "JOB_ID": job_id, "USER": getpass.getuser()}
        files = (facts.output or f"{known['JOB_NAME']}.o{job_id}", facts.error)
        output, error = (_VARIABLE.sub(lambda found: known[found[1]], text) for text in files)
        return output, error


def job_name(name: str) -> str:
    """A name that it takes: no digit first."""
    return name if not name[0].isdigit() else f"j{name}"


def memory_of_slot(header: Header) -> str:
    """What a job may have of a node for each of its slots, in MiB: the limit counts per slot."""
    memory = header.partition.memory
    share = (memory.usable_gb or memory.total_gb) * 10**9 / header.slots
    return f"{int(share) // 2**20}M"


def _file(name: str, text: str) -> str:
    """A file's name with variables such as ``$JOB_ID``; InputError for what cannot be written in a directive."""
    option(name, _VARIABLE.sub("x", text))
    return traced(f"{name} {text}", of_fact(f"scheduler.{'output' if name == '-o' else 'error'}"))


def _of_qstat(text: str) -> JobState:
    """Waiting, running, or in an error state, in which it waits until the user does something."""
    messages = {kind: unescape(" ".join(said.split())) for kind, said in reversed(_MESSAGE.findall(text))}
    if error := messages.get("QIM"):
        return JobState("ended", ERROR_STATE, reason=error)
    bits = re.findall(r"<JAT_status>(\d+)</JAT_status>", text)
    if any(int(each) & RUNNING for each in bits):
        return JobState("running", "r")
    reason = messages.get("MES", "")
    return JobState("waiting", "qw", reason="" if reason == _NOTHING else reason)


def _of_qacct(text: str) -> JobState:
    """The last record of each task: a job that was started again has several."""
    tasks: dict[str, dict[str, tuple[str, str]]] = {}
    for record in re.split(r"^=+$", text, flags=re.MULTILINE):
        facts = {key: (value, rest.strip(" :\t")) for key, value, rest in _ACCOUNT.findall(record)}
        if "exit_status" in facts:
            tasks[facts.get("taskid", ("", ""))[0]] = facts
    states = [_ended(facts) for facts in tasks.values()]
    return next((state for state in states if not state.good), states[0]) if states else GONE


def _ended(facts: dict[str, tuple[str, str]]) -> JobState:
    status = int(_number(facts["exit_status"][0]) or 0)
    code, why = facts.get("failed", ("0", ""))
    # 100: a signal ended the script, which the exit status says too.
    word = f"failed {code}" if code not in ("0", "100") else "done" if status == 0 else "failed"
    elapsed = _number(facts.get("ru_wallclock", ("", ""))[0])
    return JobState(
        phase="ended",
        word=word,
        good=word == "done",
        reason=why if word == f"failed {code}" else "",
        exit_status=status,
        elapsed_s=int(elapsed) if elapsed is not None else None,
    )


def _number(text: str) -> float | None:
    """A number that may have a unit behind it."""
    found = re.match(r"\d+(\.\d+)?", text)
    return float(found[0]) if found else None
