"""What is started where no job script says it: the program that is compiled, or a Python program of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, JobFile, PythonSource
from hpcgen.core.support.units import some
from hpcgen.project.command_words import (
    RANKS,
    commands_of,
    folders_of,
    linked_module,
    place_of,
    script_code,
    told_by,
    wrap_reason,
)
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found
from hpcgen.project.modules import Modules

_USUAL = ("train", "main", "run", "pretrain", "finetune", "app", "solve", "simulate", "inference", "predict")
_NO_PROGRAMS = re.compile(
    r"(^|/)[~_.]?(tests?|testing|docs?|documentation|examples?|benchmarks?|notebooks|tutorials|third_party|submodules|"
    r"external|archived?|deprecated|legacy)/|"
    r"(^|/)(conftest|setup|configure|noxfile|tasks|conf|version|_version|__init__|utils?|helpers?|constants|config)\.py$|"
    r"(^|/)test_|_tests?\.py$"
)
_EXAMPLES = re.compile(r"(?<![^/])examples?/")
"""Folders whose programs a project is about only where its README starts them."""
_BESIDE = re.compile(
    r"(^|[_/-])(eval|evaluate|test|sample|demo|plot|convert|download|prepare|preprocess|preprocessing|create|extract|"
    r"export|visuali[sz]e|dataset|datasets|data|make|gen|generate|draw|check|analy[sz]e|upload|logger|submitit)([_.-]|$)"
)
"""Words of programs that a project has beside the one that it is about."""


NO_PROGRAM = "init sees no program in this folder"


class ProgramCandidate(NamedTuple):
    """What may be the program: a file, or a command that the project installs; the more evidence, the higher."""

    name: str
    evidence: int
    where: Position
    source: PythonSource | None = None
    script: FileWord | None = None
    shown: bool = False


def candidates(found: Found, modules: Modules) -> list[ProgramCandidate]:
    """Those of a project, the likeliest first."""
    order = {name: number for number, name in reversed(list(enumerate(_shown(found))))}
    every = [*_files(found, modules), *_scripts(found)]
    of_scripts = {modules.module(each.script.text.partition(":")[0]) for each in every if each.script is not None}
    every = [each for each in every if each.name not in of_scripts or each.name in order]
    here = [each._replace(evidence=each.evidence + 3, shown=True) if each.name in order else each for each in every]
    return sorted(here, key=lambda each: (-each.evidence, order.get(each.name, len(order)), each.name))


def _shown(found: Found) -> list[str]:
    """Files and commands that the README starts, in its order."""
    there = {each.file for each in found.sources}
    ends = ("{}", "{}.py", "{}/__main__.py", "src/{}.py", "src/{}/__main__.py")
    paths = [
        (each.text if each.text.endswith(".py") else each.text.replace(".", "/")) for each in found.readme.programs
    ]
    files = [next((p for end in ends if (p := end.format(path)) in there), "") for path in paths]
    return [path or each.text for path, each in zip(files, found.readme.programs, strict=True)]


def _files(found: Found, modules: Modules) -> Iterator[ProgramCandidate]:
    shown = {*_shown(found)}
    programs = [e for e in found.sources if may_start(_EXAMPLES.sub("", e.file) if e.file in shown else e.file)]
    imported = {path for each in found.sources for path in modules.imported_by(each)}
    alone = len(programs) == 1
    for each in programs:
        stem = each.file.removesuffix(".py").rpartition("/")[2]
        begins = re.split(r"[_-]", stem)[0]
        usual = 4 if stem in _USUAL[:2] else 3 if stem in _USUAL or begins in _USUAL else 2 if "train" in stem else 0
        usual = 3 if stem == "__main__" else usual
        # What others import only says something, or prepares it, when it is read.
        starts = each.program or (each.runs if each.file not in imported else None)
        if not (starts or alone or (usual and stem != "__main__" and "/" not in each.file) or stem == "__main__"):
            continue
        if each.file in imported and not (usual or each.interface or each.file in shown) and "/" in each.file:
            # A module that shows what it does.
            continue
        evidence = usual + (2 if starts else 0) + (1 if each.interface else 0) - min(each.file.count("/"), 3)
        evidence -= (2 if _BESIDE.search(each.file) else 0) + (1 if each.file in imported and not each.interface else 0)
        yield ProgramCandidate(each.file, evidence, starts or Position(each.file, 1, 1), source=each)


def _scripts(found: Found) -> Iterator[ProgramCandidate]:
    """Commands that an installation of the project would have, whose modules are found without it."""
    own = found.table.name.text if found.table.name is not None else ""
    scripts = {name: each for name, each in found.table.scripts.items() if script_code(each, found)}
    for name, each in scripts.items():
        alike = name.replace("_", "-").lower() == own.replace("_", "-").lower()
        evidence = (4 if alike or len(scripts) == 1 else 2 if "train" in name else 0) + 2
        evidence += 1 if re.search(r"(^|[_-])train$", name) else 0
        yield ProgramCandidate(name, evidence - (2 if _BESIDE.search(name) else 0), each.where, script=each)


def chosen(ordered: list[ProgramCandidate]) -> ProgramCandidate | None:
    """The program, where there is one that is likelier than the others."""
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    first, second = ordered[:2]
    alike = first.evidence == second.evidence and not (first.shown and first.name != second.name)
    return None if alike or first.evidence < 1 else first


def may_start(file: str) -> bool:
    """Whether a Python file may be a program by its name."""
    return not _NO_PROGRAMS.search(file)


def named(found: Found, modules: Modules, taken: JobFile | None) -> list[PythonSource]:
    """The Python files of the project that the command lines which are taken start."""
    paths: list[str] = []
    for job in [taken] if taken is not None else found.jobs:
        own = job.file.rpartition("/")[0]
        for each in job.launched:
            folders = folders_of(each, own)
            in_shell = re.findall(r"[\w./-]+\.py\b", each.words[-1]) if each.words[:2] == ["bash", "-c"] else []
            for word in [*each.words, *in_shell]:
                paths += [place_of(word, found, folders).removeprefix(f"{APP}/"), modules.module(word)]
                paths.append(linked_module(word, found))
                if script := found.table.scripts.get(word):
                    paths.append(modules.module(script.text.partition(":")[0]))
    return [modules.sources[path] for path in dict.fromkeys(normpath(p) for p in paths if p) if path in modules.sources]


def started(found: Found, modules: Modules, taken: JobFile | None) -> list[PythonSource]:
    """The Python files of the project that the command lines which are taken start; else that of its program."""
    if by_lines := named(found, modules, taken):
        return by_lines
    program = chosen(candidates(found, modules))
    if program is None:
        return []
    file = modules.module(program.script.text.partition(":")[0]) if program.script is not None else program.name
    return [modules.sources[file]] if file in modules.sources else []


def by_program(found: Found, draft: Draft) -> None:
    """The command of a project that no job script starts; none where nothing says which it is."""
    modules = Modules(found)
    ordered = candidates(found, modules)
    program = chosen(ordered)
    if found.build is not None and not lists_python(draft):
        # What is compiled is the project; its Python files are tools beside it.
        program = None
    if draft.programs and (program is None or not draft.has_any(("python_packages", *RANKS))):
        name, path = next(iter(draft.programs.items()))
        build = found.build
        where = build.programs[0].where if build is not None and build.programs else None
        more = f"; others: {some(list(draft.programs)[1:])}" if len(draft.programs) > 1 else ""
        draft.put(("run", "command"), [path], f"the program {name} that is compiled{more}", where)
        return
    names = [each.name for each in ordered]
    if program is None:
        said = f"several files may be the program, none of them clearly: {some(names, 8)}" if names else ""
        text = said or NO_PROGRAM
        if not said and (shown := [e.file for e in found.sources if e.program and _EXAMPLES.search(e.file)]):
            text += f" but for its examples: {some(shown, 8)}"
        draft.remark(f"{text}; name yours as `command` below `run`, or behind `--` of `hpcgen run` and `hpcgen submit`")
        return
    others = [each for each in names if each != program.name]
    also = f"; others: {some(others)}" if others else ""
    if program.script is not None:
        _start_script(program, program.script, also, found, draft)
    elif program.source is not None:
        _start_source(program, program.source, also, modules, found, draft)


def lists_python(draft: Draft) -> bool:
    """Whether files of the project name Python packages, or a framework is there."""
    named = [draft.options_of(name) for name in ("python_packages", "conda_packages")]
    return draft.has_any(tuple(RANKS)) or any(each.get("files") or each.get("packages") for each in named)


def _start_script(program: ProgramCandidate, script: FileWord, also: str, found: Found, draft: Draft) -> None:
    why = f"the command {program.name} of the project, from its files{also}"
    draft.put(("run", "command"), ["python3", "-c", script_code(script, found)], why, script.where)


def _start_source(
    program: ProgramCandidate, source: PythonSource, also: str, modules: Modules, found: Found, draft: Draft
) -> None:
    words = ["python3", f"{APP}/{source.file}"]
    folder = source.file.rpartition("/")[0]
    package = source.file.endswith("/__main__.py") or found.tree.has(f"{folder}/__init__.py")
    if folder and package and not modules.needs_folder(source):
        words = ["python3", "-m", modules.dotted(source.file)]
    reached = modules.reached([source])
    parallel = next((each.parallel for each in reached if each.parallel), None)
    spawns = next((each.spawns for each in reached if each.spawns), None)
    if spawns is None and parallel is not None and (block := told_by(draft, True)):
        why = f"{parallel.text}: it computes on several ranks; ranks.py gives each its place"
        wrap_reason(draft, why, parallel.where)
        words = ["python3", RANKS[block], *words]
    by = "as the README starts it" if program.shown else "by its name and content"
    draft.put(("run", "command"), words, f"the program of the project, {by}{also}", program.where)


def find_modules(found: Found, draft: Draft) -> None:
    """The folders that a program of the project imports from, where that is not its own."""
    modules = Modules(found)
    roots: dict[str, str] = {}
    for word in [word for words in commands_of(draft.data["run"]) for word in words]:
        source = modules.sources.get(word.removeprefix(f"{APP}/")) if word.startswith(f"{APP}/") else None
        if source is not None:
            roots |= dict.fromkeys(modules.roots(source), source.file)
            spawns = next((each.spawns for each in modules.reached([source]) if each.spawns), None)
            if spawns is not None and "mpi" not in draft.blocks:
                text = f"{spawns.text} starts its own processes on the node: `--gpus N` gives it N GPUs"
                draft.remark(text, spawns.where)
    for words in commands_of(draft.data["run"]):
        if "-m" in words[:-1] and (path := modules.module(words[words.index("-m") + 1])):
            roots[modules.top(path)] = path
            roots |= dict.fromkeys(modules.roots(modules.sources[path]) if path in modules.sources else [], path)
    if roots:
        value = ":".join(f"{APP}/{root}".rstrip("/") for root in roots)
        why = f"{next(iter(roots.values()))} imports modules of the project from there"
        draft.put(("run", "environment", "PYTHONPATH"), value, why)
