"""Notebooks as a kind of project: what they need, and a server that opens them."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_notebooks import Notebook
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.model.project import PackageFile, PackageRequirement
from hpcgen.core.support.package_names import asked_name
from hpcgen.core.support.quoting import command
from hpcgen.core.support.units import counted, some
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.modules import is_standard, packages_with
from hpcgen.project.packages import choose_frameworks
from hpcgen.project.python_program import NO_PROGRAM
from hpcgen.readers.pip_text import Fault, requirement

_NOTEBOOK = re.compile(r".+\.ipynb")
_ASIDE = re.compile(r"(^|/)(docs?|tests?|_static|site-packages)/", re.IGNORECASE)
_MOST, _LARGEST, _ALL = 200, 8 * 1024 * 1024, 64 * 1024 * 1024
_MOST_TEXTS = 200


def read_notebooks(found: Found) -> list[Notebook]:
    """The notebooks, without those of documentation and tests; one that cannot be read is no mistake."""
    from hpcgen.readers.notebook import read_myst, read_notebook

    quiet = found._replace(problems=Problems())
    left = _ALL
    notebooks: list[Notebook] = []
    for each in found.tree.files:
        left -= each.size if _NOTEBOOK.fullmatch(each.path) else 0
        if _NOTEBOOK.fullmatch(each.path) and each.size <= _LARGEST and left >= 0 and not _ASIDE.search(each.path):
            notebook = quiet.read(read_notebook, each.path)
            notebooks += [notebook] if notebook is not None and len(notebooks) < _MOST else []
    texts = [each.path for each in found.tree.files if each.path.endswith(".md") and each.size < 512 * 1024]
    notebooks += [text for path in texts[:_MOST_TEXTS] if (text := quiet.read(read_myst, path)) is not None]
    return sorted(notebooks, key=lambda each: (each.file.count("/"), each.file))


# What they need.

_FOR_JUPYTER = {"jupyterlab", "notebook", "jupyter", "jupyter-core", "voila"}


def choose_notebook_packages(notebooks: list[Notebook], found: Found, catalog: Catalog, draft: Draft) -> None:
    """Jupyter, and what the cells import and install where no list of the project says what it needs."""
    conda = draft.options_of("conda_packages")
    tools = ["jupyterlab", "ipykernel", *(["jupytext"] if any(each.as_text for each in notebooks) else [])]
    first = Position(notebooks[0].file, 1, 1)
    why = f"{counted(len(notebooks), 'notebook')}: a server and a kernel for them"
    if conda:
        _beside_conda(conda, tools, why, first, found, draft)
        return
    asked = [] if draft.options_of("python_packages").get("files") else _imported(notebooks, found, catalog, draft)
    listed = {asked_name(each).lower() for each in _lines(found, draft)}
    new = [each.asked for each in asked if each.name not in listed]
    new += [each for each in tools if each not in listed and not (each in tools[:2] and listed & _FOR_JUPYTER)]
    if "ipykernel" in listed and not listed & _FOR_JUPYTER and "jupyterlab" not in new:
        new.append("jupyterlab")
    if asked:
        _put(draft, new, "what the notebooks import; `hpcgen lock` chooses the versions", asked[0].where)
        choose_frameworks(PackageFile(file=notebooks[0].file, kind="requirements", requirements=asked), catalog, draft)
        draft.because(("blocks", "python_packages"), None, why, first)
    elif new:
        _put(draft, new, why, first)


def _put(draft: Draft, lines: list[str], why: str, where: Position) -> None:
    before = draft.options_of("python_packages")
    options = {**before, "requirements": [*before.get("requirements", []), *lines]}
    draft.put(("blocks", "python_packages"), {"options": options}, why, where)


def _lines(found: Found, draft: Draft) -> list[str]:
    """What the stack asks of pip already, with what its files name."""
    options = draft.options_of("python_packages")
    named = []
    for path in options.get("files", []):
        file = found._replace(problems=Problems()).packages(path)
        named += [each.name for each in file.requirements] if file is not None else []
    return [*options.get("requirements", []), *options.get("packages", []), *named]


def _beside_conda(
    options: dict[str, list[str]], tools: list[str], why: str, where: Position, found: Found, draft: Draft
) -> None:
    """Jupyter among packages of conda; a lock is left as it is."""
    named: set[str] = set()
    locked = False
    for path in options.get("files", []):
        file = found._replace(problems=Problems()).conda(path)
        if file is not None:
            named |= {each.name for each in file.needs} | {each.name for each in file.pip}
            held = [one.name for each in file.environments.values() for part in each.values() for one in part.packages]
            named |= {*held}
            locked = locked or bool(held) or file.kind != "environment"
    named |= {asked_name(each).lower() for each in options.get("packages", [])}
    # An older ``jupyter`` or ``notebook`` for an older Python has a kernel, and not the server that is started.
    new = [each for each in tools if each not in named and not (each == "ipykernel" and named & _FOR_JUPYTER)]
    if new and locked:
        draft.remark(f"the lock has no {' and no '.join(new)}, which notebooks need: update the lock with them", where)
    elif new:
        draft.put(
            ("blocks", "conda_packages"),
            {"options": {**options, "packages": [*options.get("packages", []), *new]}},
            why,
            where,
        )


def _imported(notebooks: list[Notebook], found: Found, catalog: Catalog, draft: Draft) -> list[PackageRequirement]:
    """What cells import and install, as requirements; names that nobody here knows are said."""
    own = {each.path.removesuffix(".py").rpartition("/")[2] for each in found.tree.files if each.path.endswith(".py")}
    own |= {part for each in found.tree.files if each.path.endswith(".py") for part in each.path.split("/")[:-1]}
    asked: dict[str, PackageRequirement] = {}
    unknown: dict[str, Position] = {}
    for notebook in notebooks:
        for each in notebook.installed.python:
            # A preview of the day, or a name that the index has given up, is of the time of the notebook.
            if not _OF_ITS_TIME.match(each.text):
                _add(asked, each)
    named = [item for each in notebooks for item in each.imports.items()]
    named += [(one.package, one.where) for each in found.sources for one in each.imports if one.package]
    for name, where in named:
        if name in own or is_standard(name) or name in ("IPython", "google"):
            continue
        if packages := packages_with(name, catalog.distributions):
            _add(asked, FileWord(packages[0], where))
        elif not any(_alike(name, each) for each in asked):
            unknown.setdefault(name, where)
    if left := [name for name in unknown if not any(_alike(name, each) for each in asked)]:
        text = f"imported, and init does not know from which package: {some(left, 8)}; add those under requirements"
        draft.remark(text, unknown[left[0]])
    return list(asked.values())


_OF_ITS_TIME = re.compile(r"(tf|tb|torch|keras)-nightly|.*-nightly\b|sklearn\b")


def _alike(module: str, package: str) -> bool:
    return module.lower().replace("_", "-") == package


def _add(asked: dict[str, PackageRequirement], word: FileWord) -> None:
    try:
        one = requirement(word.text, word.where)
    except Fault:
        return
    if one.name not in asked:
        asked[one.name] = one


# How they are opened.

# In podman's containers the user is root, whom Jupyter refuses without --allow-root.
_SERVER = ["jupyter", "lab", "--no-browser", "--ip=127.0.0.1", "--port=8888", "--allow-root"]
_PLACEHOLDER = ["python3", "--version"]


_FOR_EACH_PROGRAM = 5
"""So many notebooks are rather the project than one program that lies below one of their folders."""
_OTHER_KINDS = ("Project.toml", "JuliaProject.toml", "DESCRIPTION", "CMakeLists.txt")
"""Files of projects of which notebooks are a part."""


def are_the_program(notebooks: list[Notebook], found: Found, draft: Draft) -> bool:
    """Whether there are notebooks, and nothing that looks more like the program."""
    if not any(each.file.count("/") <= 1 for each in notebooks) or found.tree.named(*_OTHER_KINDS):
        return False
    usual = [each for each in found.sources if "/" not in each.file and each.program is not None]
    jobs = any(each.launched for each in found.jobs)
    return bool(notebooks) and not (usual or jobs or draft.programs or found.table.scripts)


def without_programs_beside(notebooks: list[Notebook], found: Found) -> Found:
    """What was found, without Python files that lie deeper than the many notebooks and that no README starts."""
    program = [each.file for each in found.sources if each.program is not None]
    least = min((each.file.count("/") for each in notebooks), default=0)
    deeper = all(each.file.count("/") > least + 1 for each in found.sources)
    many = len(notebooks) > _FOR_EACH_PROGRAM * len(program)
    shown = found.readme.programs or found.build or found.table.scripts or any(each.launched for each in found.jobs)
    return found._replace(sources=[]) if program and deeper and many and not shown else found


def choose_server(notebooks: list[Notebook], draft: Draft) -> None:
    """A server for the notebooks as the command, where no program of the project was found."""
    run: dict[str, Any] = draft.data["run"]
    words = run.get("command", _PLACEHOLDER)
    if "steps" in run or (words != _PLACEHOLDER and not _is_helper(draft)):
        return
    draft.guesses = [each for each in draft.guesses if each.path != ("run", "command")]
    draft.remarks = [each for each in draft.remarks if not each.text.startswith(NO_PROGRAM)]
    draft.notebooks = True
    first = notebooks[0]
    why = f"{counted(len(notebooks), 'notebook')} and no program: a server for them, in the folder where the job starts"
    draft.put(("run", "command"), list(_SERVER), why, Position(first.file, 1, 1))
    draft.because(
        ("run", "command"),
        None,
        "it prints its address with a token, which is its password; from your own machine `ssh -J LOGIN-NODE -L "
        "8888:127.0.0.1:8888 NODE` reaches it, with NODE from the job's output or `squeue --me`",
    )
    draft.because(
        ("run", "command"),
        None,
        "where users cannot log in to nodes, set --ip to the node's name (other users can then reach it, with the "
        "token), and use `ssh -L 8888:NODE:8888 LOGIN-NODE`",
    )
    plain = next((each for each in notebooks if not each.as_text), None)
    if plain is not None:
        line = f"hpcgen submit -- {command('jupyter', 'execute', '--inplace', plain.file)}"
        draft.because(("run", "command"), None, f"unattended: `{line}` runs all cells and saves the results")
    draft.remark(
        "the server listens on 127.0.0.1 of its node alone: the comments on `command` have the ssh line that reaches "
        "it; docker and podman have a separate network, where it cannot be reached"
    )


def _is_helper(draft: Draft) -> bool:
    """Whether the command is a Python file that shows no sign of a program, taken because it is the only one."""
    why = next((each for each in draft.guesses if each.path == ("run", "command")), None)
    return (
        why is not None and why.where is not None and why.where.line == 1 and why.why.startswith("the program of the")
    )
