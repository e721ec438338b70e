"""All that is guessed of a project, in the order in which one guess rests on another."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, Position
from hpcgen.core.support.quoting import NAME_PATTERN
from hpcgen.project.compiled import choose_build, missing_submodules, submodules_text, without_build_beside
from hpcgen.project.containers import choose_container_packages, choose_container_run, read_container
from hpcgen.project.copied_files import choose_copied
from hpcgen.project.draft import Draft
from hpcgen.project.extensions import choose_extensions
from hpcgen.project.found import Found, look_at
from hpcgen.project.languages import choose_julia, choose_r
from hpcgen.project.libraries import choose_os_packages
from hpcgen.project.notebooks import (
    are_the_program,
    choose_notebook_packages,
    choose_server,
    read_notebooks,
    without_programs_beside,
)
from hpcgen.project.packages import choose_packages
from hpcgen.project.spack import choose_spack
from hpcgen.project.started import choose_command
from hpcgen.project.system_packages import choose_container_os_packages, choose_shown_os_packages

# Files that say something of a project which init does not read: they are named, with what to do.

_UNREAD = {
    "Pipfile.lock": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "Pipfile": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "pixi.toml": "`pixi lock` writes pixi.lock, which is read",
    "configure": "`build:` in the stack says how it is compiled",
}
_COVERED = {
    "pixi.toml": "conda_packages",
    "Pipfile": "python_packages",
    "Pipfile.lock": "python_packages",
}
"""Files that are not needed once another file is taken for that block."""


def name_unread(found: Found, draft: Draft) -> None:
    """A remark for each."""
    for pattern, what in _UNREAD.items():
        for top in found.tree.tops:
            taken = _COVERED.get(top.name) in draft.blocks or (top.name == "configure" and found.build is not None)
            if not top.folder and fnmatchcase(top.name, pattern) and not taken:
                draft.remark(f"{top.name} was skipped: {what}", Position(top.name, 1, 1))
    if not found.tree.whole:
        draft.remark("the folder has more files than init looks at; `copy` may need more under `ignore`")


READ = (
    "requirements.txt, pylock.toml, uv.lock, poetry.lock, pdm.lock, pyproject.toml, environment.yml, pixi.lock, "
    "conda-lock.yml, spack.yaml, apt.txt, renv.lock, Project.toml, CMakeLists.txt, meson.build, Cargo.toml, "
    "configure.ac, a Makefile, a job script, notebooks, a program in Python, R or Julia, or a container file that "
    "installs something"
)
"""What a folder may have from which a stack is made."""


def draft_of(top: Path, catalog: Catalog, command: str = "") -> Draft:
    """A stack for the project in a folder.

    top: the folder. Its files are read, bounded; nothing of them is run, and nothing is written.
    command: which of the project's command lines is taken, by its number or a part of its text; else the likeliest.
    InputError: the folder cannot be read, or there is nothing in it from which a stack could be made, or no such
        command line.
    """
    found = look_at(top)
    draft = Draft()
    identify(found, draft)
    notebooks = read_notebooks(found)
    found = without_programs_beside(notebooks, found)
    choose_packages(found, catalog, draft, command)
    container = read_container(found, draft)
    if container is not None:
        choose_container_packages(container, found, catalog, draft)
    found = without_build_beside(found, draft)
    if interactive := are_the_program(notebooks, found, draft):
        choose_notebook_packages(notebooks, found, catalog, draft)
    choose_spack(found, draft)
    choose_os_packages(found, draft)
    if container is not None:
        choose_container_os_packages(container, found, draft)
    choose_shown_os_packages(found, draft)
    choose_build(found, draft)
    choose_extensions(found, catalog, draft)
    choose_r(found, container, notebooks, catalog, draft)
    choose_julia(found, catalog, draft)
    if not (
        draft.blocks or "build" in draft.data or "open" in draft.data or found.sources or found.jobs or found.problems
    ):
        name_unread(found, draft)
        if missing := missing_submodules(found):
            draft.remark(submodules_text(missing), missing[0][1])
        if container is not None:
            draft.remark(f"{container.file} says nothing that a stack has a place for")
        there = "".join(f"\n- {each.text}" for each in draft.remarks)
        raise InputError(
            f"init found nothing in this folder to make a stack from{there}",
            str(top),
            READ,
            "run it in the folder of a project; `hpcgen stack new NAME` writes a stack to fill in",
        )
    choose_command(found, draft, command, scripts=not interactive)
    if container is not None:
        choose_container_run(container, found, draft)
    if interactive:
        choose_server(notebooks, draft)
    choose_copied(found, draft)
    name_unread(found, draft)
    draft.problems[:0] = found.problems
    draft.settle()
    return draft


_LONGEST = 60


def identify(found: Found, draft: Draft) -> None:
    """Name and title, from pyproject.toml or the folder."""
    table = found.table
    folder = found.top.resolve().name
    said = table.name.text if table.name is not None else folder
    name = re.sub(r"[^a-z0-9._-]+", "-", said.lower())[:_LONGEST].strip("._-")
    if not re.search(NAME_PATTERN, name):
        draft.put(("name",), "project", f"the folder's name, {folder!a}, cannot be that of a stack")
    elif table.name is not None:
        draft.put(("name",), name, "the project's name", table.name.where)
    else:
        draft.put(("name",), name, "the folder's name")
    text = table.description.text if table.description is not None else ""
    if text and len(text) <= 200:
        draft.put(
            ("title",),
            text,
            "the project's own words",
            table.description.where if table.description is not None else None,
        )
    else:
        draft.put(("title",), f"The project {draft.data['name']}", "one line that describes the software")
