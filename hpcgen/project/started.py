"""What a job starts: by a job script of the project, else by what looks like its program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from msgspec.structs import replace

from hpcgen.catalog.project import SPACK
from hpcgen.core.model.own_project import FileWord, JobFact, JobField, JobFile, Launched
from hpcgen.core.secret_rules import secret_name
from hpcgen.core.support.units import some
from hpcgen.project.candidates import candidates_of, chosen, say_others
from hpcgen.project.command_words import (
    RANKS,
    by_a_shell,
    commands_of,
    folders_of,
    framework_in,
    in_image,
    placeholders,
    steps_of,
    subject_of,
    text_in_image,
    told_by,
    unknown_variables,
    without_framework,
    wrap_reason,
)
from hpcgen.project.draft import APP, Draft, reasons
from hpcgen.project.found import Found
from hpcgen.project.job_options import choose_options, sized
from hpcgen.project.languages import choose_environments, language_of, likely_script
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

    asked: the number of one of the command lines of the project, or a part of its text; empty for the likeliest.
    scripts: a script in R or Julia may be the program because it is the likeliest of them; beside notebooks it is not.
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
            and not draft.has_any((*BRING_PYTHON, SPACK))
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


_SITES_OWN = re.compile(
    r"(OMP|KMP|SLURM|PBS|SGE|I_MPI|MPICH|OMPI|PMIX?|FI|UCX|NCCL|RCCL|GOMP|SRUN|CUDA_VISIBLE|ROCR|HIP)_\w*|"
    r"PATH|\w*_PATH|\w*PATH|LD_\w+|HOME|MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|LOCAL_RANK|CUDA_VISIBLE_DEVICES|TMPDIR"
)
"""Variables that the site's profile, the batch system or the image sets."""


def start_job(job: JobFile, found: Found, draft: Draft) -> None:
    """The ``run`` of the stack by what a script starts."""
    cluster = [each for each in job.launched if _is_of_ray(each)]
    if rest := [each for each in job.launched if each not in cluster]:
        job = replace(job, launched=rest)
    ranked = [each for each in job.launched if each.launcher or framework_in(each.words).name]
    # Without a launcher what is started last is the program; it may be started before, for something else.
    last = [each for each in job.launched if subject_of(each) == subject_of(job.launched[-1])]
    main = ranked or last
    start = next((each.value for each in job.facts if each.field == "array"), "0").partition("-")[0]
    by_ray = bool(cluster and rest)
    lines = [(each, _words(each, found, draft, job, start, by_ray=by_ray)) for each in main]
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
    # A step on one node starts a program of Ray for all that the job has.
    first = replace(main[0], facts=[]) if by_ray else main[0]
    facts = sized(job.facts, first, cut, draft)
    _parallel(first, {each.field: each for each in facts}, draft)
    if by_ray:
        _bring_ray(cluster[0], draft)
    if others := [each for each in job.launched if each not in main]:
        text = f"also in {job.file}, and not taken: {some([' '.join(each.words) for each in others], 2)}"
        draft.remark(text, others[0].where)
    _environment(job, draft)
    choose_options(job, facts, draft)


def _is_of_ray(each: Launched) -> bool:
    """Whether it starts Ray on a node, or stops it, for a program that another line starts."""
    text = " ".join(without_framework(each.words)[0])
    return re.match(r"(bash -c (exec )?)?ray (start|stop|status)\b", text) is not None


def _bring_ray(line: Launched, draft: Draft) -> None:
    """The block whose program makes the cluster of a job, and one rank on each node for it."""
    options = {"needs": "missing"} if "vllm" in draft.blocks else {}
    draft.add_block("ray", "ray-job makes one cluster of the nodes, in place of ray start", line.where, **options)
    if "mpi" not in draft.blocks:
        draft.add_block("mpi", "ray-job is started on each node", line.where)
    draft.put(("run", "ranks_per_node"), 1, "ray-job is started once on each node", line.where)
    draft.put(("run", "rank_gpus"), "all", "Ray gives a node's GPUs to its processes", line.where)


def _words(each: Launched, found: Found, draft: Draft, job: JobFile, start: str, *, by_ray: bool = False) -> list[str]:
    folders = folders_of(each, job.file.rpartition("/")[0])
    cut = framework_in(each.words)
    if each.words[:2] == ["bash", "-c"] and len(each.words) == 3:
        words = by_a_shell(["bash", "-c", text_in_image(each.words[2], found, draft, folders)], start)
    else:
        words = in_image(without_framework(each.words)[0], found, draft, folders)
    if cut.name:
        wrap_reason(draft, f"{cut.name} is left out: the site's launcher starts the ranks", each.where)
    if by_ray:
        return by_a_shell(["ray-job", *words], start, each.unquoted)
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


LEFT_TO_THE_JOB = (
    "everybody can read a stack and an image; let the program read it from the job's environment or a file"
)
"""What to do with a secret."""


def say_line(each: Launched, words: list[str], found: Found, draft: Draft, secrets: set[str]) -> None:
    """Remarks on one command line: what is left out, and what nothing here says.

    ``words``: the command in the image. ``secrets``: variables of the script that may be secret.
    """
    if each.container or each.image:
        image = f" ({each.image})" if each.image else ""
        by = f"`{each.container} IMAGE`{image}" if each.container else f"the image {each.image}"
        draft.remark(f"{by} is left out: the image of this stack replaces it", each.where)
    for text, said in (
        (each.before, "left out before the command"),
        (each.dropped, "left out behind the command"),
        (", ".join(each.strange), "options that init does not know, or whose values it does not"),
    ):
        if text:
            draft.remark(f"{said}: {text}", each.where)
    if each.secrets:
        text = f"left out of the command, since it may be secret: {', '.join(each.secrets)}; {LEFT_TO_THE_JOB}"
        draft.remark(text, each.where)
    if each.repeated:
        draft.remark("the command stands in a loop, a condition or a function; it is taken once", each.where)
    _say_framework(each, draft)
    _say_simulator(each, draft)
    _say_unknown(each, words, draft, secrets)
    _say_places(each, words, found, draft)


def _say_framework(each: Launched, draft: Draft) -> None:
    cut = framework_in(each.words)
    names = {given.name for given in cut.given}
    if left := [*cut.other, *cut.strange]:
        draft.remark(f"options of {cut.name} that are left out with it: {' '.join(left)}", each.where)
    if (cut.name == "torch.distributed.launch" and "use-env" not in names) or (
        cut.name == "deepspeed" and "no-local-rank" not in names
    ):
        text = f"{cut.name} gives the program --local_rank; here it has LOCAL_RANK in its environment alone"
        draft.remark(text, each.where)


_SIMULATORS = (
    (
        r"(Humanoid(Standup)?|HalfCheetah|Hopper|Walker2d|Ant|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum)-v[1-3]",
        "MuJoCo and its older binding: `mujoco-py` below `requirements`, which compiles on first use",
    ),
    (
        r"(Humanoid(Standup)?|HalfCheetah|Hopper|Walker2d|Ant|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum)-v[45]",
        "MuJoCo: `mujoco` below `requirements`",
    ),
    (r"(ALE/\w+|\w+NoFrameskip)-v\d+", "Atari games: `ale-py`, or `atari-py` for an old gym, below `requirements`"),
)
"""Environments of Gym and Gymnasium by their names, and the simulator that each needs beside it.

Source: the lists of environments in https://gymnasium.farama.org.
"""


def _say_simulator(each: Launched, draft: Draft) -> None:
    listed = str(draft.blocks.get("python_packages", {})) + str(draft.blocks.get("conda_packages", {}))
    for word in each.words:
        for pattern, needs in _SIMULATORS:
            if re.fullmatch(rf"(--?[\w.-]+=)?{pattern}", word) and not re.search(r"mujoco|atari|ale-py", listed):
                draft.remark(f"the environment {word.rpartition('=')[2]} needs {needs}, if no list has it", each.where)


def _say_unknown(each: Launched, words: list[str], draft: Draft, secrets: set[str]) -> None:
    unknown = unknown_variables(words)
    secret = [name for name in unknown if name in secrets or secret_name(name[1:])]
    if plain := [name for name in unknown if name not in secret]:
        draft.remark(f"init does not know the value of {', '.join(plain)}: put it into the command", each.where)
    if secret:
        text = f"{', '.join(secret)} may be secret, and its value is not put in: {LEFT_TO_THE_JOB}"
        draft.remark(text, each.where)
    if each.doubts:
        names = ", ".join(f"${name}" for name in each.doubts)
        draft.remark(f"{names} has another value under some condition of the script", each.where)
    if each.patterns:
        draft.remark(f"no shell puts names of files in for {', '.join(each.patterns)}: name them", each.where)
    if stand := [word for word in placeholders(each) if any(word in text for text in words)]:
        draft.remark(f"placeholder, put your value into the command: {', '.join(stand)}", each.where)


def _say_places(each: Launched, words: list[str], found: Found, draft: Draft) -> None:
    missing = [word for word in words if re.fullmatch(r"(?!/)[\w./-]+\.(py|sh|jl|R)", word)]
    if missing:
        draft.remark(f"not among the files of the project: {', '.join(missing)}", each.where)
    first = each.words[0]
    name = first.rpartition("/")[2]
    if (
        re.match(r"(\./|build/)", first)
        and name not in draft.programs
        and not found.tree.has(words[0].removeprefix(f"{APP}/"))
    ):
        draft.remark(f"init finds nothing that makes {first}: change its place, or how it is built", each.where)
    paths = [word.rpartition("=")[2] for word in words]
    if relative := [path for path in paths if re.match(r"\.{1,2}/[\w.]", path)]:
        text = "paths from the folder where the job is submitted, since the project has no such files"
        draft.remark(f"{text}: {', '.join(relative[:5])}", each.where)
    beside = each.where.file.rpartition("/")[0] if any(word.startswith("../") for word in each.words) else ""
    if (each.folder or beside) and any(word.startswith(f"{APP}/") for word in words):
        does = f"the script goes to {each.folder} before" if each.folder else f"the script is for the folder {beside}"
        text = (
            f"{does}; a job starts where it is submitted, so submit it there if the program opens files by relative "
            "paths"
        )
        draft.remark(text, each.where)
