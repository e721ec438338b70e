"""Files that say something of a project which init does not read: they are named, with what to do."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hpcgen.core.errors import Position
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found

_UNREAD = {
    "Dockerfile": "name its software as blocks and its files under `copy`",
    "Containerfile": "name its software as blocks and its files under `copy`",
    "Singularity": "name its software as blocks and its files under `copy`",
    "*.def": "name its software as blocks and its files under `copy`",
    "Pipfile.lock": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "Pipfile": "`pipenv requirements --hash > requirements.txt` writes the same as a file that is read",
    "setup.py": "it would have to be run; write its requirements into requirements.txt",
    "setup.cfg": "write its requirements into requirements.txt or pyproject.toml",
    "pixi.toml": "`pixi lock` writes pixi.lock, which is read",
    "spack.yaml": "name the blocks that it asks for; `hpcgen list blocks`",
    "meson.build": "`build:` in the stack says how it is compiled",
    "configure": "`build:` in the stack says how it is compiled",
    "configure.ac": "`build:` in the stack says how it is compiled",
    "Cargo.toml": "no block provides Rust; `os_packages: [cargo]` does, and `build:` compiles",
    "Project.toml": "no block provides Julia",
    "renv.lock": "no block provides R packages; `os_packages: [r-base]` provides R",
    "DESCRIPTION": "no block provides R packages; `os_packages: [r-base]` provides R",
}
_COVERED = {
    "setup.py": "python_packages",
    "setup.cfg": "python_packages",
    "pixi.toml": "conda_packages",
    "Pipfile": "python_packages",
    "Pipfile.lock": "python_packages",
}
"""Files that are not needed once another file is taken for that block."""


def name_unread(found: Found, draft: Draft) -> None:
    """A remark for each."""
    for pattern, what in _UNREAD.items():
        for top in found.tree.tops:
            taken = _COVERED.get(top.name) in draft.blocks
            if not top.folder and fnmatchcase(top.name, pattern) and not taken:
                draft.remark(f"{top.name} was skipped: {what}", Position(top.name, 1, 1))
    if not found.tree.whole:
        draft.remark("the folder has more files than init looks at; `copy` may need more under `ignore`")
