"""All that is guessed of a project, in the order in which one guess rests on another."""

from __future__ import annotations

from pathlib import Path

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.project.compiled import choose_build
from hpcgen.project.copied import choose_copied
from hpcgen.project.draft import Draft
from hpcgen.project.found import look_at
from hpcgen.project.identity import identify
from hpcgen.project.os_packages import choose_os_packages
from hpcgen.project.others import name_unread
from hpcgen.project.packages import choose_packages
from hpcgen.project.started import choose_command

READ = (
    "requirements.txt, pylock.toml, uv.lock, poetry.lock, pdm.lock, pyproject.toml, environment.yml, pixi.lock, "
    "conda-lock.yml, apt.txt, CMakeLists.txt, a Makefile, a job script or a Python program"
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
    choose_os_packages(found, draft)
    choose_build(found, draft)
    if not (draft.blocks or "build" in draft.data or found.sources or found.jobs or found.problems):
        name_unread(found, draft)
        there = "".join(f"\n- {each.text}" for each in draft.remarks)
        raise InputError(
            f"init found nothing in this folder to make a stack from{there}",
            str(top),
            READ,
            "run it in the folder of a project; `hpcgen stack new NAME` writes a stack to fill in",
        )
    choose_command(found, draft)
    choose_copied(found, draft)
    name_unread(found, draft)
    draft.problems[:0] = found.problems
    draft.settle()
    return draft
