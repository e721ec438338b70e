"""Conda packages fit the image's C library and MPI and the node's driver, and duplicate nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.plan import PlannedConda
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase, holds, release_of, skipped, unknown
from hpcgen.planning.contract.second_mpi import depends
from hpcgen.readers.conda_text import spec_name

NAME = "conda packages"
_EXTERNAL = "external_"
"""Builds of an MPI that are empty, and take what is there."""
_MADE_FOR = re.compile(r"\bmpi_(mpich|openmpi|mvapich|impi)")
"""For which MPI a build is made. Source: recipe/meta.yaml of conda-forge's hdf5 and netcdf-fortran: ``mpi_mpich_*``."""
_OWNED = {
    "pytorch": "pytorch",
    "tensorflow": "tensorflow",
    "tensorflow-base": "tensorflow",
    "jax": "jax",
    "jaxlib": "jax",
    "mpi4py": "mpi4py",
    "horovod": "horovod",
    "onnxruntime": "onnxruntime",
}
"""Packages that blocks bring, too, by the block."""


def packages(case: ContractCase) -> list[Check]:
    """All of that, where a plan asks for conda packages."""
    asked = case.plan.conda
    if asked is None:
        return [skipped(NAME, "none are requested")]
    found = [*_c_library(asked), *_driver(case, asked), *mpi(case, asked.packages), *_requested(case, asked)]
    found += _twice(case, asked)
    return found or [holds(NAME, _reason(asked))]


def _reason(asked: PlannedConda) -> str:
    if not asked.packages:
        return "they are chosen for the base, the node and the image's MPI"
    return f"the lock's {len(asked.packages)} packages suit the base, the node and the image's MPI"


def _needing(packages: Sequence[CondaPackage], virtual: str) -> tuple[str, list[str]]:
    """The newest version that packages ask of a property, and which of them do."""
    asked: dict[str, list[str]] = {}
    for each in packages:
        for need in each.depends:
            name, _, ranges = need.partition(" ")
            for version in re.findall(r">=?\s*([0-9]+(?:\.[0-9]+)*)", ranges) if name == virtual else ():
                asked.setdefault(version, []).append(each.exact)
    newest = max(asked, key=lambda version: release_of(version, 3), default="")
    return newest, asked.get(newest, [])


def _c_library(asked: PlannedConda) -> Iterator[Check]:
    here = asked.virtual.get("__glibc", "")
    wanted, by = _needing(asked.packages, "__glibc")
    if here and wanted and release_of(wanted) > release_of(here):
        yield Check(
            NAME,
            "broken",
            f"{some(by)} of the lock need glibc {wanted}, and the base has {here}",
            "use a newer base, or lock for an older system",
            f"a base with glibc {wanted} or newer",
        )


def _driver(case: ContractCase, asked: PlannedConda) -> Iterator[Check]:
    wanted, by = _needing(asked.packages, "__cuda")
    here, gpu = asked.virtual.get("__cuda", ""), case.partition.gpu
    if not wanted:
        return
    path = f"partitions.{case.plan.partition}.gpu"
    if gpu is None or gpu.vendor != "nvidia":
        yield Check(
            NAME,
            "broken",
            f"{some(by)} of the lock need an NVIDIA GPU; {case.plan.partition} nodes have none",
            "lock the builds for CPUs, or choose another partition",
            "packages without CUDA",
        )
    elif not here:
        yield unknown(NAME, f"the profile names no driver, and {some(by)} need one for CUDA {wanted}", f"{path}.driver")
    elif release_of(wanted) > release_of(here):
        reason = f"{some(by)} of the lock need a driver for CUDA {wanted}, and {gpu.driver} is one for {here}"
        remedy = "lock with an older CUDA: a range of cuda-version, or cuda in system-requirements of pixi"
        yield Check(NAME, "broken", reason, remedy, f"CUDA {here} or older", f"{path}.driver")


def mpi(case: ContractCase, packages: Sequence[CondaPackage]) -> Iterator[Check]:
    """Of what a lock has; where packages are chosen, they are held to this, and then held against it."""
    family = case.mpi_capabilities.mpi_abi
    for each in packages:
        row = case.mpi_packages().mpi_of("conda", each.name)
        if row is None or each.name not in row.itself:
            continue
        theirs = next(abi for abi, library in MPI_LIBRARIES.items() if library == row.library)
        outer = each.build.startswith(_EXTERNAL)
        if case.mpi is None:
            said = "needs an MPI of the image, and the stack has none" if outer else "is a second MPI"
            reason = f"{each.exact} of the lock {said}: jobs on several nodes are not checked against the host's"
            yield Check(NAME, "doubtful", reason, "add `mpi` to the blocks of the stack, and lock an external build")
        elif outer and theirs != family:
            reason = f"packages of the lock are made for {theirs}, and the image has {case.mpi.name} {case.mpi.version}"
            yield Check(NAME, "broken", reason, f"lock them for {family}: mpi=*={family}, {family}=*=external_*")
        elif not outer:
            reason = f"{each.exact} of the lock is a second MPI besides {case.mpi.label} of the image"
            reason += f": {depends(chain)}" if len(chain := _chain(packages, each.name)) > 1 else ""
            yield Check(NAME, "broken", reason, f"lock the build that takes the image's: {family}=*=external_*")


def _chain(packages: Sequence[CondaPackage], name: str) -> list[str]:
    """The shortest way by dependencies to a package, from one that no other needs."""
    needs = {each.name: {need.partition(" ")[0] for need in each.depends} for each in packages}
    needed = {each for names in needs.values() for each in names}
    ways, seen = [[name]], {name}
    for way in ways:
        if way[0] not in needed:
            return way
        users = sorted(user for user, names in needs.items() if way[0] in names and user not in seen)
        seen.update(users)
        ways += [[user, *way] for user in users]
    return [name]


def _requested(case: ContractCase, asked: PlannedConda) -> Iterator[Check]:
    """What is asked for by name, and cannot be had over the image's MPI: no solver finds packages for that."""
    block, family = case.mpi, case.plan.mpi.family
    if block is None or not family:
        return
    for need in asked.needs:
        name = spec_name(need)
        row, made = case.mpi_packages().mpi_of("conda", name), _MADE_FOR.search(need)
        if row is not None and not name.startswith(family):
            reason = f"the conda package {name} is {row.mpi}, a second MPI besides {block.label} of the image"
            remedy = f"leave {name} out: packages that need an MPI take {family}=*=external_*, which uses the image's"
            yield Check(NAME, "broken", reason, remedy, "one MPI")
        elif made is not None and made[1] != family:
            reason = f"the conda packages {need} are made for {made[1]}, and the image has {block.label}"
            yield Check(NAME, "broken", reason, f"ask for {need.replace(made[0], f'mpi_{family}')}", f"mpi_{family}_*")


def _twice(case: ContractCase, asked: PlannedConda) -> Iterator[Check]:
    """The Python and the frameworks of blocks are others than those of the environment, which comes first on PATH."""
    from hpcgen.catalog.conda_asked import asked_names

    at_run = {each.name for each in case.plan.blocks if not each.build_only}
    names = asked_names(asked)
    for name in dict.fromkeys(each for each in names if _OWNED.get(each) in at_run):
        reason = f"{name} is both a conda package and the block {_OWNED[name]}: the one in /opt/conda is used"
        yield Check(NAME, "doubtful", reason, f"remove it from the conda packages, or {_OWNED[name]} from the blocks")
    if "python" in names and "python" in at_run and not any(_OWNED.get(each) in at_run for each in names):
        reason = "the image has two Pythons, and `python` is that of /opt/conda: packages of blocks are in /opt/python"
        remedy = "start the others as /opt/python/bin/python3, or have all packages from one of the two"
        yield Check(NAME, "doubtful", reason, remedy)
