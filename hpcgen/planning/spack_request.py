"""The Spack environment of a plan: what its files ask for, held against what the image has, and the nodes' CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpcgen.backends.hardware.microarchitecture import compiled_for
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.project import SPACK, files_of
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import ConflictError, InputError, Position, Problems
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.site import Site
from hpcgen.core.model.spack import PlannedSpack, SpackFile, SpackSettings, SpackSpec


def planned_spack(
    catalog: Catalog, site: Site, partition: str, blocks: Sequence[PlannedBlock], document: Document | None
) -> PlannedSpack | None:
    """The environment of a plan's block; None where it names no file.

    Raises
    ------
    InputError: a file cannot be read or has mistakes, each with its place. ConflictError: a spec needs what the image
    does not have, or the files do not agree.
    """
    block = next(each for each in blocks if each.name == SPACK)
    names = block.options.get("files")
    files = catalog.project.spack(document, names if isinstance(names, list) else [])
    if not files:
        return None
    folder = catalog.project.folder(document, SPACK)
    compiler = next(each for each in blocks if each.name == "gnu")
    problems = Problems()
    mpi = any("mpi" in each.provides for each in blocks)
    for file in files if not mpi else []:
        if file.mpi:
            text = f"it names {file.mpi}, and the image has no MPI"
            problems.add(text, str(folder / file.file), remedy="--set spack_packages.mpi=true")
    for said in [each for file in files for each in (*file.specs, *file.words)]:
        where = Position(str(folder / said.where.file), said.where.line, said.where.column)
        _gpus(said, bool(block.options.get("cuda")), where, problems)
    problems.raise_as(ConflictError)
    listed = document.position(files_of(SPACK)) if document is not None else None
    return PlannedSpack(
        files={name: digest for each in files for name, digest in each.read.items()},
        specs=list(dict.fromkeys(each.spec for file in files for each in file.specs)),
        packages=_packages(files, listed),
        unify=_unify(files, listed),
        target=compiled_for(site.partitions[partition].cpu.target, "gcc", compiler.version),
        notes=[f"{note.where.file}:{note.where.line}: {note.text}" for each in files for note in each.notes],
    )


def _gpus(said: SpackSpec, cuda: bool, where: Position, problems: Problems) -> None:
    """Spack builds neither CUDA nor ROCm."""
    if re.search(r"\+\s*rocm\b", said.spec):
        problems.add(
            f"{said.spec!r} needs ROCm, and that of the image cannot be given to Spack yet",
            where,
            remedy="ask for ~rocm, or compile the package in `build` of the stack",
        )
    if re.search(r"\+\s*cuda\b", said.spec) and not cuda:
        remedy = "--set spack_packages.cuda=true for the image's CUDA, or ~cuda"
        problems.add(f"{said.spec!r} needs CUDA, and Spack has that of the image on request only", where, remedy=remedy)


def _packages(files: Sequence[SpackFile], where: Position | None) -> dict[str, SpackSettings]:
    found: dict[str, SpackSettings] = {}
    for file in files:
        for name, settings in file.packages.items():
            if found.setdefault(name, settings) != settings:
                raise ConflictError(
                    f"the Spack environments say different things of the package {name}",
                    where,
                    remedy="say the same of it in each file, or in one alone",
                )
    return found


def _unify(files: Sequence[SpackFile], where: Position | None) -> str:
    said = {each.unify for each in files}
    if len(said) > 1:
        raise InputError(
            "the Spack environments have different settings of `concretizer.unify`", where, remedy="set one in all"
        )
    return said.pop()
