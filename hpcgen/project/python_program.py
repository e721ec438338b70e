"""What is started where no job script says it: the program that is compiled, or a Python program of the project."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import PythonSource
from hpcgen.core.support.units import some
from hpcgen.project.command_words import RANKS, module_root, run_module
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found

_USUAL = ("main.py", "train.py", "run.py", "app.py", "solve.py", "simulate.py", "inference.py", "predict.py")
_NOT_PROGRAMS = re.compile(
    r"(^|/)(tests?|docs?|examples?|benchmarks?|conftest\.py|setup\.py|noxfile\.py|tasks\.py)(/|$)|(^|/)test_"
)


def ranks_by_mpi(draft: Draft, why: str, where: Position) -> None:
    """MPI for ranks that the site's launcher starts, and why the command is as it is."""
    draft.add_block("mpi", "the ranks are started by the site's MPI", where)
    draft.because(("run", "command"), None, why, where)


def told_by(draft: Draft, parallel: bool) -> str:
    """The block whose program tells ranks their place, where a program computes on several."""
    return (
        next((block for block in RANKS if block in draft.blocks and "horovod" not in draft.blocks), "")
        if parallel
        else ""
    )


def by_program(found: Found, draft: Draft) -> None:
    """The command of a project that no job script starts."""
    programs = [each for each in found.sources if not _NOT_PROGRAMS.search(each.file)]
    source = _source(programs)
    if draft.programs and (source is None or not draft.has_any(("python_packages", "conda_packages"))):
        name, path = next(iter(draft.programs.items()))
        build = found.build
        where = build.programs[0].where if build is not None and build.programs else None
        others = f"; others: {some(list(draft.programs)[1:])}" if len(draft.programs) > 1 else ""
        draft.put(("run", "command"), [path], f"the program {name} that is compiled{others}", where)
    elif _script_entry(found, draft):
        return
    elif source is not None:
        _start_source(source, programs, found, draft)
    else:
        why = "init sees no program in this folder: put yours here, or behind `--` of a command"
        draft.put(("run", "command"), ["python3", "--version"], why)


def _script_entry(found: Found, draft: Draft) -> bool:
    """The command of [project.scripts], the project's own name first; its module is found without an installation."""
    scripts = found.table.scripts
    own = found.table.name.text if found.table.name is not None else ""
    for name in sorted(scripts, key=lambda each: (each != own, list(scripts).index(each))):
        module, _, function = scripts[name].text.partition(":")
        if (root := module_root(module, found)) is not None:
            first = function.partition(".")[0]
            code = f"import sys; sys.path.insert(0, {root!r}); from {module} import {first}; sys.exit({function}())"
            others = f"; others: {some([each for each in scripts if each != name])}" if len(scripts) > 1 else ""
            why = f"the command {name} of the project, from its files{others}"
            draft.put(("run", "command"), ["python3", "-c", code], why, scripts[name].where)
            return True
    return False


def _source(programs: list[PythonSource]) -> PythonSource | None:
    """The file that most likely is the program."""
    here = [each for each in programs if "/" not in each.file]
    usual = [each for name in _USUAL for each in here if each.file == name]
    marked = [each for each in here if each.program is not None]
    inside = [each for each in programs if each.file.endswith("/__main__.py")]
    return next(iter([*usual, *marked, *(here if len(here) == 1 else []), *inside]), None)


def _start_source(source: PythonSource, programs: list[PythonSource], found: Found, draft: Draft) -> None:
    words = ["python3", f"{APP}/{source.file}"]
    package = source.file.removesuffix("/__main__.py").removeprefix("src/")
    if source.file.endswith("/__main__.py") and (root := module_root(package.replace("/", "."), found)) is not None:
        words = run_module(package.replace("/", "."), root)
    if source.parallel is not None and (block := told_by(draft, True)):
        ranks_by_mpi(
            draft,
            f"{source.parallel.text}: it computes on several ranks; ranks.py gives each its place",
            source.parallel.where,
        )
        words = ["python3", RANKS[block], *words]
    others = [each.file for each in programs if each.program is not None and each is not source]
    also = f"; others: {some(others)}" if others else ""
    draft.put(
        ("run", "command"),
        words,
        f"the program of the project, by its name{also}",
        source.program or Position(source.file, 1, 1),
    )
