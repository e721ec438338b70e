"""What a job script asks for that no stack holds, as options of ``hpcgen submit``: how large a job is, how long."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from hpcgen.core.model.own_project import JobFact, JobField, JobFile, Launched
from hpcgen.core.support.units import walltime_text
from hpcgen.project.command_words import Framework
from hpcgen.project.draft import Draft, Option
from hpcgen.readers.job_script import variables_of
from hpcgen.readers.launch_lines import filled

_OPTIONS: Mapping[JobField, str] = {
    "nodes": "--nodes",
    "ranks_per_node": "--ranks-per-node",
    "threads": "--threads",
    "gpus_per_node": "--gpus",
    "time": "--time",
    "account": "--account",
    "array": "--array",
}


def choose_options(job: JobFile, facts: list[JobFact], draft: Draft) -> None:
    """The options, and a remark for each directive that has none.

    ``facts``: those of the script, and those of the command that is started.
    """
    known: dict[JobField, JobFact] = {each.field: each for each in facts}
    if "ranks" in known and (spread := _spread(known)) is not None:
        known[spread.field] = spread
    for field, option in _OPTIONS.items():
        if field not in known:
            continue
        each = known[field]
        value = each.value
        if field == "time":
            value = _time(value, "minutes" if job.batch == "slurm" else "seconds")
        elif field == "array":
            value = _array(value)
        if value and not (field == "array" and job.batch == "gridengine"):
            draft.options.append(Option((option, value), each.said, each.where))
        else:
            draft.remark(f"{each.said}: not understood; use {option} of `hpcgen submit`", each.where)
    if "array" in known:
        text = "in the tasks of an array $HPCGEN_TASK is the number, from 0, whatever the batch system calls its own"
        draft.remark(text, known["array"].where)
    if "queue" in known:
        text = f"{known['queue'].said}: hpcgen chooses a queue of the site that takes the job; --queue names another"
        draft.remark(text, known["queue"].where)
    if job.other:
        said = ", ".join(each.text for each in job.other[:6]) + (" …" if len(job.other) > 6 else "")
        draft.remark(f"not taken over: {said}; a site's own directives are in its profile", job.other[0].where)
    if job.sourced:
        names = ", ".join(dict.fromkeys(each.text for each in job.sourced))
        draft.remark(f"{job.file} reads in {names}, which init does not", job.sourced[0].where)
    if job.unclosed is not None:
        draft.remark("unclosed quote or bracket: init reads no further", job.unclosed)
    if job.modules:
        names = ", ".join(dict.fromkeys(each.text for each in job.modules))
        text = f"modules ({names}) are not in an image: add the blocks or os_packages that the program needs"
        draft.remark(text, job.modules[0].where)


def sized(facts: list[JobFact], main: Launched, cut: Framework, draft: Draft) -> list[JobFact]:
    """What directives and the launcher say together, of ranks and GPUs so many on each node.

    ``cut``: the launcher of a framework, whose processes are the ranks here.
    """
    known = {each.field: each for each in facts}
    asked = {each.field: each for each in main.facts}
    nodes = _number(asked.get("nodes") or known.get("nodes"), 1)
    if "ranks" in asked and "ranks_per_node" not in asked:
        if _number(known.get("ranks_per_node"), 0) * nodes != int(asked["ranks"].value):
            known.pop("ranks_per_node", None)
    elif "ranks_per_node" in asked:
        known.pop("ranks", None)
    known |= asked
    if "nodes" not in known and _number(known.get("ranks"), 0) % _number(known.get("ranks_per_node"), 1):
        # What does not come out even is a number of ranks that suits the machine of those who wrote it.
        known.pop("ranks_per_node")
    tasks = _number(known.get("ranks_per_node"), 0) or max(1, _number(known.get("ranks"), 1) // nodes)
    totals: dict[JobField, int] = {"gpus": 1, "gpus_per_rank": nodes * tasks}
    for field, total in totals.items():
        each = known.pop(field) if field in known else None
        if each is not None and "gpus_per_node" not in known and int(each.value) * total % nodes == 0:
            known["gpus_per_node"] = replace(each, field="gpus_per_node", value=str(int(each.value) * total // nodes))
    if cut.name:
        _share(known, tasks, nodes, main, cut, draft)
    return list(known.values())


def _number(each: JobFact | None, other: int) -> int:
    return int(each.value) if each is not None else other


def _share(
    known: dict[JobField, JobFact], tasks: int, nodes: int, main: Launched, cut: Framework, draft: Draft
) -> None:
    """The ranks are the processes that the framework's launcher starts; they share the CPUs of its tasks."""
    variables = variables_of(list(known.values()))
    machines = filled(cut.number("nnodes", "num-machines", "num-nodes"), variables)
    if machines.isdecimal() and int(machines) and "nodes" not in known:
        nodes = int(machines)
        known["nodes"] = JobFact(
            "nodes", machines, f"{cut.name} {cut.said('nnodes', 'num-machines', 'num-nodes')}", main.where
        )
    text = filled(cut.number("nproc-per-node", "num-gpus", "num-accelerators"), variables)
    if (total := filled(cut.number("num-processes"), variables)).isdecimal():
        text = str(int(total) // nodes)
    elif include := cut.number("include", "i"):
        text = str(include.partition(":")[2].count(",") + 1) if "@" not in include else ""
    elif not text and cut.name.startswith("torch"):
        text = "1"
    if (not text or text in ("gpu", "auto")) and "gpus_per_node" in known:
        text = known["gpus_per_node"].value
    known.pop("ranks", None)
    known.pop("ranks_per_node", None)
    threads = known.pop("threads", None)
    if not text.isdecimal() or not int(text):
        said = f"init does not know how many processes {cut.name} starts on a node: use --ranks-per-node"
        draft.remark(f"{said} and --threads of `hpcgen submit`", main.where)
        return
    said = f"{cut.name} with {text} processes on each node"
    known["ranks_per_node"] = JobFact("ranks_per_node", text, said, main.where)
    own = cut.number("num-cpu-threads-per-process")
    if own.isdecimal():
        known["threads"] = JobFact("threads", own, f"{cut.name} with {own} threads in each", main.where)
    elif threads is not None:
        each = max(1, int(threads.value) * tasks // int(text))
        shared = f"{threads.said}, shared by {text} processes" if text != "1" else threads.said
        known["threads"] = replace(threads, value=str(each), said=shared)


def _spread(known: Mapping[JobField, JobFact]) -> JobFact | None:
    """Ranks on each node, or else nodes, where the script says how many ranks there are and the other of the two."""
    field: JobField = "nodes" if "ranks_per_node" in known else "ranks_per_node"
    ranks, by = known["ranks"], known.get("ranks_per_node" if field == "nodes" else "nodes")
    parts = int(by.value) if by is not None else 1
    if field in known or int(ranks.value) % parts:
        return None
    return JobFact(field, str(int(ranks.value) // parts), ranks.said, ranks.where)


def _time(value: str, unit: str) -> str:
    """As ``--time`` takes it; Slurm also has days before a dash. ``unit``: of a number alone, minutes or seconds."""
    if unit == "seconds" and value.isdecimal():
        return walltime_text(int(value))
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", value)
    if match is None:
        return ""
    days, *rest = (int(each) if each is not None else None for each in match.groups())
    first, second, third = rest
    assert first is not None
    if days is not None or third is not None:
        hours, minutes, seconds = first, second or 0, third or 0
    else:
        hours, minutes, seconds = 0, first, second or 0
    return walltime_text(((days or 0) * 24 + hours) * 3600 + minutes * 60 + seconds)


def _array(value: str) -> str:
    """``N`` or ``N%M`` for so many tasks."""
    match = re.fullmatch(r"(\d+)-(\d+)(%\d+)?", value)
    if match is None or int(match[2]) < int(match[1]):
        return ""
    return f"{int(match[2]) - int(match[1]) + 1}{match[3] or ''}"
