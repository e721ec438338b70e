"""A Python file of a collection, loaded and tried in a process of its own: ``python -m hpcgen.cli.block_trial``.

A block is code of a user, which may end the process or never end. The parent sets the limit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpcgen.blocks.base import Block
from hpcgen.blocks.guarded import NOT_YIELDED
from hpcgen.catalog.catalog import FOLDERS, Catalog
from hpcgen.core.errors import ConflictError, InputError, PolicyError, Problem, Problems
from hpcgen.core.support.places import shown
from hpcgen.core.support.processes import end, own_module

LIMIT_S = 60.0
SITES = {"nvidia": "slurm-nvidia", "amd": "slurm-amd", "intel": "slurm-intel"}
"""Where a block for GPUs of a vendor is tried; the others on a workstation."""


def trial(path: Path, collections: list[Path]) -> None:
    """InputError with all that is wrong with a collection's Python file."""
    words = own_module("hpcgen.cli.block_trial", *map(str, [path, *collections]))
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        out, said = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        message = f"its code did not end within {LIMIT_S:g} seconds"
        raise InputError(message, str(path), remedy="look for a loop without an end, or a wait") from None
    finally:
        end(process)
    try:
        found = msgspec.json.decode(out, type=list[dict[str, str]])
    except msgspec.DecodeError:
        code = process.returncode
        how = f"with {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        message = f"its code ended the process {how}" + (f": {last}" if last else "")
        raise InputError(message, str(path), remedy="a block only describes what is done; it ends no process") from None
    Problems(Problem(**each) for each in found).raise_as(InputError)


def _problems(path: Path, catalog: Catalog) -> Problems:
    """Of one file; its collection is the catalog's first."""
    problems = Problems()
    with problems.caught():
        if path.parent.name != FOLDERS["block"]:
            _load_other(path)
            return problems
        from hpcgen.catalog.block_checks import class_problems, source_problems

        block = catalog.block(path.stem)
        problems += class_problems(catalog, block, shown(str(path)))
        lost = list(source_problems(path, shown(str(path))))
        if not problems:
            # What the source shows it shows with its line.
            problems += [each for each in _tried(catalog, block) if not lost or NOT_YIELDED not in each.message]
        problems += lost
    return problems


def _load_other(path: Path) -> None:
    from hpcgen.backends.engines import ENGINES
    from hpcgen.backends.schedulers import SCHEDULERS
    from hpcgen.recipe.formats import FORMATS

    for registry in (ENGINES, SCHEDULERS, FORMATS):
        if registry.folder == path.parent.name:
            registry.find(path.stem)


def _tried(catalog: Catalog, block: type[Block]) -> Iterable[Problem]:
    """What is wrong with its steps and packages, on each distribution that a plan may choose by itself for it."""
    from hpcgen.core.model.stack import RunSpec, Stack, StackBlock
    from hpcgen.planning.planner import make_plan
    from hpcgen.recipe.assemble import assemble

    asked = StackBlock(options=dict(block.example))
    stack = Stack(name="trial", title="", blocks={block.name: asked}, run=RunSpec(command=["true"], mpi=False))
    site = catalog.site(SITES.get(block.gpu_vendor, "workstation"))
    found = Problems()
    for base in catalog.virtuals["base"]:
        if all(row.not_default for row in catalog.releases(base).values()):
            continue
        with found.caught():
            try:
                plan = make_plan(catalog, site, stack, settings=[f"base.provider={base}"], allow_unsupported=True)
            except (ConflictError, PolicyError):
                continue
            assemble(plan, catalog)
    return dict.fromkeys(found)


def main() -> None:
    """Problems as JSON on stdout; what the file itself prints goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    path, *collections = map(Path, sys.argv[1:])
    rows = [
        {"message": p.message, "where": str(p.where or path), "expected": p.expected, "remedy": p.remedy}
        for p in _problems(path, Catalog(collections))
    ]
    os.write(out, msgspec.json.encode(rows))


if __name__ == "__main__":
    main()
