"""What of the project goes into the image, and what stays behind."""

from __future__ import annotations

from fnmatch import fnmatchcase
from glob import escape

from hpcgen.catalog.copied import check_public, files_of
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.stack import Copied
from hpcgen.core.secret_rules import secret_file
from hpcgen.core.support.units import size
from hpcgen.project.command_words import commands_of
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.places import APP

_OWN = ("hpcgen.yaml", "hpcgen.lock", "*.sif", "*.sqfs")
"""What hpcgen itself leaves in the folder; a changed stack would be other code."""
_LEFT = ("slurm-*.out", "*.o[0-9]*", "*.e[0-9]*", "*.o", "*.pyc", "*.egg-info")
_CACHES = ("node_modules", "wandb", "mlruns", "lightning_logs")
_LARGE = 1024**3
"""Bytes of a folder that is data rather than code."""


def choose_copied(found: Found, draft: Draft) -> None:
    """The ``copy`` of the stack, where the project has code that is compiled or started."""
    named = any(word.startswith(f"{APP}/") for words in commands_of(draft.data["run"]) for word in words)
    if not (found.sources or "build" in draft.data or named):
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
            ignore[top.name] = "a link to a folder, or out of this one"
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
