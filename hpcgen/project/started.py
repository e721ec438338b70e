"""What a job starts: by a job script of the project, else by what looks like its program."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcgen.core.model.own_project import FileWord, JobFact, JobField, JobFile, Launched
from hpcgen.core.secret_rules import secret_name
from hpcgen.core.support.units import some, walltime_text
from hpcgen.project.command_words import (
    RANKS,
    by_a_shell,
    commands_of,
    in_image,
    steps_of,
    unknown_variables,
    without_torchrun,
)
from hpcgen.project.draft import APP, Draft, Option
from hpcgen.project.found import Found
from hpcgen.project.packages import GPU_BLOCKS
from hpcgen.project.python_program import by_program, find_modules, ranks_by_mpi, told_by

PROGRAMS = {
    "lmp": "lammps",
    "gmx": "gromacs",
    "gmx_mpi": "gromacs",
    "vllm": "vllm",
    "R": "r",
    "Rscript": "r",
    "julia": "julia",
}
"""Programs that blocks bring under these names."""
BRING_PYTHON = ("python", "python_packages", "conda_packages", "mpi4py")
_SITES_OWN = re.compile(
    r"(OMP|KMP|SLURM|PBS|SGE|I_MPI|MPICH|OMPI|PMIX?|FI|UCX|NCCL|RCCL|GOMP|SRUN|CUDA_VISIBLE|ROCR|HIP)_\w*|"
    r"PATH|\w*_PATH|\w*PATH|LD_\w+|HOME|MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|LOCAL_RANK|CUDA_VISIBLE_DEVICES|TMPDIR"
)
"""Variables that the site's profile, the batch system or the image sets."""


_SECRET = "everybody can read a stack and an image; let the program read it from the job's environment or a file"


def choose_command(found: Found, draft: Draft) -> None:
    """The ``run`` of the stack."""
    job = _job(found, draft)
    if job is not None and job.launched:
        _by_job(job, found, draft)
    else:
        if job is not None:
            draft.remark(f"init finds no program that {job.file} starts", job.where)
            choose_options(job, job.facts, draft)
        by_program(found, draft)
    find_modules(found, draft)
    _bring(draft)
    _ranks(draft)
    _gpus(draft, found.build.gpus if found.build is not None else None)


def _job(found: Found, draft: Draft) -> JobFile | None:
    """The job script that is taken, of several the one that starts something and has the plainest name."""
    jobs = sorted(found.jobs, key=lambda each: (not each.launched, each.file.count("/"), len(each.file), each.file))
    if len(jobs) > 1:
        names = [each.file for each in jobs[1:]]
        draft.remark(f"{jobs[0].file} is taken as the job; not read further: {some(names)}", jobs[0].where)
    return jobs[0] if jobs else None


def _by_job(job: JobFile, found: Found, draft: Draft) -> None:
    ranked = [each for each in job.launched if each.launcher]
    main = ranked or job.launched[-1:]
    facts = {each.field: each for each in [*job.facts, *main[0].facts]}
    start = (facts["array"].value if "array" in facts else "0").partition("-")[0]
    lines = [(each, _words(each, found, draft, job, start)) for each in main]
    if len({tuple(words) for _, words in lines}) > 1:
        why = f"{len(lines)} commands that {job.file} starts one after the other"
        draft.put(("run", "steps"), steps_of([words for _, words in lines]), why, lines[0][0].where)
    else:
        by = f" by {main[0].launcher}" if main[0].launcher else ""
        draft.put(("run", "command"), lines[0][1], f"started in {job.file}{by}", main[0].where)
    for each, words in lines:
        _say_line(each, words, draft, {f"${secret.text}" for secret in job.secrets})
    _parallel(main[0], facts, draft)
    if others := [each for each in job.launched if each not in main]:
        text = f"also in {job.file}, and not taken: {some([' '.join(each.words) for each in others], 2)}"
        draft.remark(text, others[0].where)
    _environment(job, draft)
    if (ranks := without_torchrun(main[0].words)[1]).name:
        # Of torchrun there is one task on a node, which starts the ranks.
        facts = {field: each for field, each in facts.items() if field not in ("ranks", "ranks_per_node")}
        if ranks.ranks.isdecimal():
            said = f"{ranks.name} with {ranks.ranks} processes on each node"
            facts["ranks_per_node"] = JobFact("ranks_per_node", ranks.ranks, said, main[0].where)
    choose_options(job, list(facts.values()), draft)


def _words(each: Launched, found: Found, draft: Draft, job: JobFile, start: str) -> list[str]:
    words, cut = without_torchrun(each.words)
    words = in_image(words, found, draft, job.file.rpartition("/")[0])
    if cut.name:
        ranks_by_mpi(draft, f"{cut.name} is left out: the site's launcher starts the ranks", each.where)
    block = told_by(draft, bool(cut.name) or _runs_parallel(words, found))
    return by_a_shell(["python3", RANKS[block], *words] if block else words, start)


def _runs_parallel(words: list[str], found: Found) -> bool:
    """Whether a source that the command starts computes on several ranks with its framework's own means."""
    started = {word.removeprefix(f"{APP}/") for word in words}
    return any(each.parallel is not None and each.file in started for each in found.sources)


def _say_line(each: Launched, words: list[str], draft: Draft, secrets: set[str]) -> None:
    if each.container:
        draft.remark(f"`{each.container} IMAGE` is left out: hpcgen starts the image", each.where)
    if each.dropped:
        draft.remark(f"left out behind the command: {each.dropped}", each.where)
    if each.secrets:
        text = f"left out of the command, since it may be secret: {', '.join(each.secrets)}; {_SECRET}"
        draft.remark(text, each.where)
    if each.repeated:
        draft.remark("the command stands in a loop, a condition or a function; it is taken once", each.where)
    unknown = unknown_variables(words)
    secret = [name for name in unknown if name in secrets or secret_name(name[1:])]
    if plain := [name for name in unknown if name not in secret]:
        draft.remark(f"init does not know the value of {', '.join(plain)}: put it into the command", each.where)
    if secret:
        draft.remark(f"{', '.join(secret)} may be secret, and its value is not put in: {_SECRET}", each.where)


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
        else:
            draft.put(("run", "environment", name), value, f"{job.file} exports it", each.where)
    if left:
        names = ", ".join(dict.fromkeys(each.text.partition("=")[0] for each in left))
        draft.remark(f"exports that are not taken over, since they are the site's: {names}", left[0].where)
    if job.secrets:
        names = ", ".join(each.text for each in job.secrets)
        text = f"variables that are not taken over, since they may be secret: {names}; {_SECRET}"
        draft.remark(text, job.secrets[0].where)


# what has to be there for it


def _bring(draft: Draft) -> None:
    """The block that brings the program, where it is none of the project's; a remark where none is known to."""
    for words in commands_of(draft.data["run"]):
        name = words[0]
        if name == "python3" and not draft.has_any((*BRING_PYTHON, *GPU_BLOCKS)):
            draft.add_block("python", "the program is in Python")
        elif name in PROGRAMS:
            draft.add_block(PROGRAMS[name], f"the program {name} comes from this block")
        elif (
            not name.startswith(APP)
            and name not in ("python3", "bash", *draft.programs.values())
            and not draft.has_any(BRING_PYTHON)
        ):
            draft.remark(f"no known block provides {name}: `hpcgen list blocks`, `os_packages`, or `build`")


# ranks and GPUs


def _ranks(draft: Draft) -> None:
    if "mpi" not in draft.blocks:
        draft.put(("run", "mpi"), False, "nothing here requires MPI: the program is started once")


def _gpus(draft: Draft, compiled: FileWord | None) -> None:
    option = next((each for each in draft.options if each.words[0] == "--gpus"), None)
    using = next((name for name in GPU_BLOCKS if name in draft.blocks), draft.gpu_package or None)
    if using is None and compiled is not None:
        text = (
            f"{compiled.text} compiles for GPUs, which init leaves to you: name a block that brings the compiler "
            "(`cuda: {options: {obtain: archive}}` has nvcc), and then remove `gpus_per_node: 0`"
        )
        draft.remark(text, compiled.where)
        draft.put(("run", "gpus_per_node"), 0, "no block here provides a compiler for GPUs", compiled.where)
        draft.options = [each for each in draft.options if each is not option]
    elif using is None and option is None:
        draft.put(("run", "gpus_per_node"), 0, "no package here is known to use GPUs")
    elif using is None and option is not None:
        text = (
            f"{option.said}: no package here is known to compute on GPUs; if the program does, its blocks are missing"
        )
        draft.remark(text, option.where)
        draft.put(("run", "gpus_per_node"), 0, "see the remark on GPUs")
        draft.options.remove(option)
    elif "mpi" not in draft.blocks and option is not None:
        draft.put(("run", "gpus_per_node"), int(option.words[1]), f"{using} on {option.said}", option.where)
        draft.options.remove(option)
    elif "mpi" not in draft.blocks and using is not None:
        draft.put(("run", "gpus_per_node"), 1, f"{using} in one process uses one GPU")


# What a job script asks for that no stack holds, as options of ``hpcgen submit``: how large a job is, how long.

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
    if job.modules:
        names = ", ".join(dict.fromkeys(each.text for each in job.modules))
        text = f"modules ({names}) are not in an image: add the blocks or os_packages that the program needs"
        draft.remark(text, job.modules[0].where)


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
