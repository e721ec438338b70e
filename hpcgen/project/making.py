"""All that is guessed of a project, in the order in which one guess rests on another."""

from __future__ import annotations

from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.copied import check_public, files_of
from hpcgen.core.errors import HpcgenError, InputError, Position
from hpcgen.core.model.stack import Copied
from hpcgen.core.secret_rules import secret_file
from hpcgen.core.support.units import size
from hpcgen.project.command_words import commands_of
from hpcgen.project.compiled import choose_build
from hpcgen.project.containers import (
    choose_container_os_packages,
    choose_container_packages,
    choose_container_run,
    read_container,
)
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found, look_at
from hpcgen.project.languages import choose_julia, choose_r, choose_script
from hpcgen.project.libraries import choose_os_packages
from hpcgen.project.naming import identify
from hpcgen.project.notebooks import are_the_program, choose_notebook_packages, choose_server, read_notebooks
from hpcgen.project.packages import choose_packages
from hpcgen.project.started import choose_command

# What of the project goes into the image, and what stays behind.

_OWN = ("hpcgen.yaml", "hpcgen.lock", "*.sif", "*.sqfs")
"""What hpcgen itself leaves in the folder; a changed stack would be other code."""
_LEFT = ("slurm-*.out", "*.o[0-9]*", "*.e[0-9]*", "*.o", "*.pyc", "*.egg-info")
_CACHES = ("node_modules", "wandb", "mlruns", "lightning_logs")
_LINK = "a link to a folder, to nothing, or out of this one"
_LARGE = 1024**3
"""Bytes of a folder that is data rather than code."""


def choose_copied(found: Found, draft: Draft) -> None:
    """The ``copy`` of the stack, where the project has code that is compiled or started."""
    named = any(word.startswith(f"{APP}/") for words in commands_of(draft.data["run"]) for word in words)
    if not (found.sources or "build" in draft.data or named or draft.notebooks):
        return
    ignore: dict[str, str] = {".*": "hidden files are caches, settings and secrets (.env)"}
    ignore |= dict.fromkeys(_OWN, "files that hpcgen writes here")
    names = [each.path.rpartition("/")[2] for each in found.tree.files]
    for each in found.tree.files:
        if secret_file(each.path) and not any(part.startswith(".") for part in each.path.split("/")):
            ignore[escape(each.path)] = "it may be a secret, and everybody can read an image"
    for path in found.secret_scripts:
        ignore[escape(path)] = "there may be a secret in it, and everybody can read an image"
        if any(f"{APP}/{path}" in word for words in commands_of(draft.data["run"]) for word in words):
            draft.remark(f"{path} is started and not in the image: take the secrets out of it, and it out of `ignore`")
    for pattern in _LEFT:
        if any(fnmatchcase(name, pattern) for name in names):
            ignore[pattern] = "left by builds and jobs"
    for top in found.tree.tops:
        if top.name.startswith("."):
            continue
        if top.kind == "link":
            ignore[top.name] = _LINK
        elif top.kind == "environment":
            ignore[f"{top.name}/*"] = "an environment of this machine"
        elif top.kind == "cmake":
            ignore[f"{top.name}/*"] = "built for this machine"
        elif top.folder and top.name in _CACHES:
            ignore[f"{top.name}/*"] = "results and downloads"
        elif top.size > _LARGE:
            ignore[f"{top.name}/*" if top.folder else top.name] = (
                f"{size(top.size)} of data, which belongs on the site's file system"
            )
    for path in found.tree.links:
        ignore[escape(path)] = _LINK
    if found.build is not None:
        for program in found.build.programs if found.build.kind == "make" else []:
            if found.tree.has(program.path):
                ignore[program.path] = "compiled for this machine"
    _put(found, draft, ignore)


def _put(found: Found, draft: Draft, ignore: dict[str, str]) -> None:
    entry = {"from": ".", "to": APP, "ignore": list(ignore)}
    draft.put(("copy",), [entry], f"the project's own files; they are in {APP} of the image")
    groups: dict[str, list[str]] = {}
    for pattern, why in ignore.items():
        groups.setdefault(why, []).append(pattern)
    for why, patterns in groups.items():
        draft.because(("copy",), patterns, f"without {' '.join(patterns)}: {why}")
    try:
        copied = Copied(".", APP, list(ignore))
        check_public((path for path, _ in files_of(found.top, copied)), copied)
    except HpcgenError as error:
        draft.problems += error.problems


# Files that say something of a project which init does not read: they are named, with what to do.

_UNREAD = {
    "Pipfile.lock": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "Pipfile": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "pixi.toml": "`pixi lock` writes pixi.lock, which is read",
    "spack.yaml": "name the blocks that it asks for; `hpcgen list blocks`",
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
    "conda-lock.yml, apt.txt, renv.lock, Project.toml, CMakeLists.txt, meson.build, Cargo.toml, configure.ac, a "
    "Makefile, a job script, notebooks, a program in Python, R or Julia, or a container file that installs something"
)
"""What a folder may have from which a stack is made."""


def draft_of(top: Path, catalog: Catalog) -> Draft:
    """A stack for the project in a folder.

    Parameters
    ----------
    top: the folder. Its files are read, bounded; nothing of them is run, and nothing is written.

    Raises
    ------
    InputError: the folder cannot be read, or there is nothing in it from which a stack could be made.
    """
    found = look_at(top)
    draft = Draft()
    identify(found, draft)
    choose_packages(found, catalog, draft)
    container = read_container(found, draft)
    if container is not None:
        choose_container_packages(container, found, catalog, draft)
    notebooks = read_notebooks(found)
    if interactive := are_the_program(notebooks, found, draft):
        choose_notebook_packages(notebooks, found, catalog, draft)
    choose_os_packages(found, draft)
    if container is not None:
        choose_container_os_packages(container, draft)
    choose_build(found, draft)
    choose_r(found, container, notebooks, catalog, draft)
    choose_julia(found, catalog, draft)
    if not (
        draft.blocks or "build" in draft.data or "open" in draft.data or found.sources or found.jobs or found.problems
    ):
        name_unread(found, draft)
        if container is not None:
            draft.remark(f"{container.file} says nothing that a stack has a place for")
        there = "".join(f"\n- {each.text}" for each in draft.remarks)
        raise InputError(
            f"init found nothing in this folder to make a stack from{there}",
            str(top),
            READ,
            "run it in the folder of a project; `hpcgen stack new NAME` writes a stack to fill in",
        )
    choose_command(found, draft)
    if container is not None:
        choose_container_run(container, found, draft)
    if interactive:
        choose_server(notebooks, draft)
    choose_script(found, draft)
    choose_copied(found, draft)
    name_unread(found, draft)
    draft.problems[:0] = found.problems
    draft.settle()
    return draft
