"""Python packages in folders of this machine → a recipe that finds them beside it, by their hash."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from hpcgen.blocks.steps import ArchiveFile, Run, Wheels, command
from hpcgen.core.errors import MissingToolError
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.recipe.artifacts import FOLDER
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.supply.net.package_index import PackageIndex, local_path, pinned

_PLACE = f"{SCRATCH}/wheels"
_NAME = re.compile(r"[A-Za-z0-9._+!-]+")
"""What the specification of wheels and source packages lets a file's name be made of."""

_Files = Mapping[str, tuple[str, Path]]
"""Name and place of each file, by its sha256."""


def with_local_wheels(assembly: Assembly, tell: Callable[[str], None]) -> Assembly:
    """The same image by steps of pip that have the files of their hashed lists which lie in folders of this machine.

    The folders are those that :func:`hpcgen.supply.net.pip_settings.look_in` was told, and pip's own where there is
    one. Other packages come from the index as before, and pip holds each file to the hashes of its list. ``tell`` is
    told what was found.

    InputError: as of :func:`hpcgen.supply.net.pip_settings.pip_settings`.
    """
    try:
        index = PackageIndex()
    except MissingToolError:
        index = PackageIndex([])
    lists = {item.name: item for _, item in assembly.inputs if isinstance(item, Wheels) and item.hashed}
    files = {name: dict(_local(index, item)) for name, item in lists.items()}
    found = {path for each in files.values() for _, path in each.values()}
    for path in sorted(found):
        tell(f"{path.name} is taken from {path.parent}")
    if not found:
        tell("--wheel-dir: no file there has a hash of this recipe's package lists; hpcgen lock --wheel-dir pins them")
        return assembly
    return replace(assembly, builder=_stage(assembly.builder, files), final=_stage(assembly.final, files))


def _local(index: PackageIndex, wheels: Wheels) -> Iterator[tuple[str, tuple[str, Path]]]:
    for pin in pinned(wheels.requirements):
        for each in index.files(pin.name, pin.version, remote=False):
            if _NAME.fullmatch(each.file) and (sha256 := index.own_hash(each)) in pin.hashes:
                yield sha256, (each.file, local_path(each.url))


def _stage(stage: Stage, files: Mapping[str, _Files]) -> Stage:
    steps = [(label, _step(step, f"{stage.name}-{at}", files)) for at, (label, step) in enumerate(stage.steps, 1)]
    return stage if steps == stage.steps else replace(stage, steps=steps, kept=0)


def _step(step: Run, own: str, files: Mapping[str, _Files]) -> Run:
    """``own``: a folder of its own, since steps that share a layer have all their files before the first of them."""
    place = f"{_PLACE}/{own}"
    archives = {
        name: ArchiveFile(f"{FOLDER}/wheels/{own}/{name}", f"{place}/{name}", path, sha256)
        for each in step.installs
        for sha256, (name, path) in files.get(each.name, {}).items()
    }
    if not archives:
        return step
    begin, end = (command("export", f"PIP_FIND_LINKS={place}"), command("unset", "PIP_FIND_LINKS"))
    return replace(
        step,
        commands=(begin, *step.commands, end, command("rm", "-r", place)),
        archives=(*step.archives, *archives.values()),
    )
