"""The ``run`` of a stack by a script of the project."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcgen.core.model.own_project import JobFact, JobField, JobFile, Launched
from hpcgen.core.secret_rules import secret_name
from hpcgen.core.support.units import some
from hpcgen.project.command_words import (
    RANKS,
    by_a_shell,
    folders_of,
    framework_in,
    in_image,
    steps_of,
    subject_of,
    text_in_image,
    told_by,
    without_framework,
    wrap_reason,
)
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found
from hpcgen.project.job_options import choose_options, sized
from hpcgen.project.job_remarks import LEFT_TO_THE_JOB, say_line

_SITES_OWN = re.compile(
    r"(OMP|KMP|SLURM|PBS|SGE|I_MPI|MPICH|OMPI|PMIX?|FI|UCX|NCCL|RCCL|GOMP|SRUN|CUDA_VISIBLE|ROCR|HIP)_\w*|"
    r"PATH|\w*_PATH|\w*PATH|LD_\w+|HOME|MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|LOCAL_RANK|CUDA_VISIBLE_DEVICES|TMPDIR"
)
"""Variables that the site's profile, the batch system or the image sets."""


def start_job(job: JobFile, found: Found, draft: Draft) -> None:
    """The ``run`` of the stack by what a script starts."""
    ranked = [each for each in job.launched if each.launcher or framework_in(each.words).name]
    # Without a launcher what is started last is the program; it may be started before, for something else.
    last = [each for each in job.launched if subject_of(each) == subject_of(job.launched[-1])]
    main = ranked or last
    start = next((each.value for each in job.facts if each.field == "array"), "0").partition("-")[0]
    lines = [(each, _words(each, found, draft, job, start)) for each in main]
    cut = framework_in(main[0].words)
    if len({tuple(words) for _, words in lines}) > 1:
        why = f"{len(lines)} commands that {job.file} starts one after the other"
        draft.put(("run", "steps"), steps_of([words for _, words in lines]), why, lines[0][0].where)
    else:
        by = f" by {main[0].launcher}" if main[0].launcher else ""
        own = any(word == job.file or f'/{job.file}"' in word for word in main[0].words)
        why = "a program of the project" if own else f"started in {job.file}{by}"
        draft.put(("run", "command"), lines[0][1], why, main[0].where)
    for each, words in lines:
        say_line(each, words, found, draft, {f"${secret.text}" for secret in job.secrets})
    facts = sized(job.facts, main[0], cut, draft)
    _parallel(main[0], {each.field: each for each in facts}, draft)
    if others := [each for each in job.launched if each not in main]:
        text = f"also in {job.file}, and not taken: {some([' '.join(each.words) for each in others], 2)}"
        draft.remark(text, others[0].where)
    _environment(job, draft)
    choose_options(job, facts, draft)


def _words(each: Launched, found: Found, draft: Draft, job: JobFile, start: str) -> list[str]:
    folders = folders_of(each, job.file.rpartition("/")[0])
    cut = framework_in(each.words)
    if each.words[:2] == ["bash", "-c"] and len(each.words) == 3:
        words = by_a_shell(["bash", "-c", text_in_image(each.words[2], found, draft, folders)], start)
    else:
        words = in_image(without_framework(each.words)[0], found, draft, folders)
    if cut.name:
        wrap_reason(draft, f"{cut.name} is left out: the site's launcher starts the ranks", each.where)
    block = told_by(draft, bool(cut.name) or _runs_parallel(words, found))
    return by_a_shell(["python3", RANKS[block], *words] if block else words, start, each.unquoted)


def _runs_parallel(words: list[str], found: Found) -> bool:
    """Whether a source that the command starts computes on several ranks with its framework's own means."""
    started = {word.removeprefix(f"{APP}/") for word in words}
    return any(each.parallel is not None and each.file in started for each in found.sources)


def _parallel(main: Launched, facts: Mapping[JobField, JobFact], draft: Draft) -> None:
    """MPI where the script starts several ranks, whatever the program is."""
    fields: tuple[JobField, ...] = ("ranks", "ranks_per_node", "nodes")
    several = next((facts[field] for field in fields if field in facts and facts[field].value != "1"), None)
    if main.launcher and several is not None and "mpi" not in draft.blocks:
        why = f"{main.launcher} starts several ranks ({several.said}), which requires MPI"
        draft.add_block("mpi", why, several.where)


def _environment(job: JobFile, draft: Draft) -> None:
    left = []
    for each in job.variables:
        name, _, value = each.text.partition("=")
        if _SITES_OWN.fullmatch(name):
            left.append(each)
        elif not value and secret_name(name):
            # To be filled in by hand; in a job it would hide the user's own.
            continue
        else:
            draft.put(("run", "environment", name), value, f"{job.file} exports it", each.where)
    if left:
        names = ", ".join(dict.fromkeys(each.text.partition("=")[0] for each in left))
        draft.remark(f"exports that are not taken over, since they are the site's: {names}", left[0].where)
    if job.secrets:
        names = ", ".join(each.text for each in job.secrets)
        text = f"variables that are not taken over, since they may be secret: {names}; {LEFT_TO_THE_JOB}"
        draft.remark(text, job.secrets[0].where)
