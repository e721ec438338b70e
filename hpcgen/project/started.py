"""What a job starts: by a job script of the project, else by what looks like its program."""

from __future__ import annotations

import itertools
import re

from hpcgen.core.model.own_project import FileWord
from hpcgen.project.candidates import candidates_of, chosen, say_others
from hpcgen.project.command_words import commands_of
from hpcgen.project.draft import APP, Draft, reasons
from hpcgen.project.found import Found
from hpcgen.project.job_options import choose_options
from hpcgen.project.job_program import start_job
from hpcgen.project.language_programs import choose_environments, language_of, likely_script
from hpcgen.project.packages import GPU_BLOCKS
from hpcgen.project.python_program import by_program, find_modules

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


def choose_command(found: Found, draft: Draft, asked: str = "", *, scripts: bool = True) -> None:
    """The ``run`` of the stack.

    Parameters
    ----------
    asked: the number of one of the command lines of the project, or a part of its text; empty for the likeliest.
    scripts: a script in R or Julia may be the program because it is the likeliest of them; beside notebooks it is not.

    Raises
    ------
    InputError: there is none of this number or with this text.
    """
    draft.candidates = candidates_of(found, draft)
    taken = chosen(draft.candidates, asked, found.top)
    if taken is None and scripts and (script := likely_script(found, draft)) is not None:
        taken = next((each for each in draft.candidates if each.job == script), None)
    if taken is not None:
        start_job(taken.job, found, draft)
    else:
        for job in found.jobs[:1]:
            draft.remark(f"init finds no program that {job.file} starts", job.where)
            choose_options(job, job.facts, draft)
        by_program(found, draft)
    find_modules(found, draft)
    choose_environments(found, draft)
    say_others(draft, taken)
    _bring(draft)
    _ranks(draft)
    _gpus(draft, found.build.gpus if found.build is not None else None)


# what has to be there for it


def _bring(draft: Draft) -> None:
    """The block that brings the program, where it is none of the project's; a remark where none is known to."""
    for words in commands_of(draft.data["run"]):
        name = words[0]
        if name == "python3" and not draft.has_any((*BRING_PYTHON, *GPU_BLOCKS)):
            draft.add_block("python", "the program is in Python")
        elif name in PROGRAMS and PROGRAMS[name] == language_of(draft):
            continue
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
    elif all(each.why.startswith("deepspeed needs") for each in reasons(draft, ("blocks", "mpi"))):
        why = "deepspeed needs MPI, and nothing here starts several ranks: the program is started once"
        draft.put(("run", "mpi"), False, why)


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
    elif "mpi" in draft.data["run"] and option is not None:
        draft.put(("run", "gpus_per_node"), int(option.words[1]), f"{using} on {option.said}", option.where)
        draft.options.remove(option)
    elif "mpi" in draft.data["run"] and (number := _asked_gpus(draft)):
        why = f"the command asks for {number} GPUs, on which its own processes compute"
        draft.put(("run", "gpus_per_node"), number, why)
    elif "mpi" in draft.data["run"] and using is not None:
        draft.put(("run", "gpus_per_node"), 1, f"{using} in one process uses one GPU")


_DEVICES = re.compile(r"(?:--?)?(?:[\w-]+\.)*(?:devices|n_?gpus?|gpus|num[_-]gpus|gpus[_-]per[_-]node)(?:=(\d{1,2}))?")


def _asked_gpus(draft: Draft) -> int:
    """How many GPUs the options of the command say; 0 for one, which may as well be its number."""
    words = [*(word for words in commands_of(draft.data["run"]) for word in words), ""]
    pairs = [(match[1] or value) for word, value in itertools.pairwise(words) if (match := _DEVICES.fullmatch(word))]
    return max((int(each) for each in pairs if re.fullmatch(r"[2-9]|1[0-6]", each)), default=0)
