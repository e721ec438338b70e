"""What a job script asks for that no stack holds, as options of ``hpcgen submit``: how large a job is, how long."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcgen.core.model.own_project import JobFact, JobField, JobFile
from hpcgen.core.support.units import walltime_text
from hpcgen.project.draft import Draft, Option

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

    Parameters
    ----------
    facts: those of the script, and those of the command that is started.
    """
    known = {each.field: each for each in facts}
    if "ranks" in known and "ranks_per_node" not in known and (spread := _per_node(known)) is not None:
        known["ranks_per_node"] = spread
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
            draft.remark(f"{each.said}: not understood; {option} of `hpcgen submit` says it", each.where)
    if "array" in known:
        text = "in the tasks of an array $HPCGEN_TASK is the number, from 0, whatever the batch system calls its own"
        draft.remark(text, known["array"].where)
    if "queue" in known:
        text = f"{known['queue'].said}: hpcgen chooses a queue of the site that takes the job; --queue names another"
        draft.remark(text, known["queue"].where)
    if job.other:
        said = ", ".join(each.text for each in job.other[:6]) + (" …" if len(job.other) > 6 else "")
        draft.remark(f"not taken over: {said}; a site's own directives are in its profile", job.other[0].where)
    if job.modules:
        names = ", ".join(dict.fromkeys(each.text for each in job.modules))
        text = f"modules ({names}) are not in an image: what the program needs of them is a block, or in os_packages"
        draft.remark(text, job.modules[0].where)


def _per_node(known: Mapping[JobField, JobFact]) -> JobFact | None:
    """Ranks on each node, where the script says how many there are on how many nodes."""
    nodes = int(known["nodes"].value) if "nodes" in known else 1
    ranks = known["ranks"]
    if int(ranks.value) % nodes:
        return None
    return JobFact("ranks_per_node", str(int(ranks.value) // nodes), ranks.said, ranks.where)


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
