"""Conda packages fit the image's C library and MPI and the node's driver, and duplicate nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.plan import PlannedConda
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase, holds, release_of, skipped, unknown

NAME = "conda packages"
MPIS = {"mpich": "mpich", "mvapich": "mpich", "impi_rt": "mpich", "openmpi": "openmpi"}
"""Packages of conda-forge that are an MPI, and whose binary interface each has."""
_EXTERNAL = "external_"
"""Builds of these that are empty, and take what is there."""
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
    found = [*_c_library(asked), *_driver(case, asked), *_mpi(case, asked.packages), *_twice(case, asked)]
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


def _mpi(case: ContractCase, packages: Sequence[CondaPackage]) -> Iterator[Check]:
    """Of what a lock has; where packages are chosen, they are held to this."""
    family = case.mpi_capabilities.mpi_abi
    for each in packages:
        theirs = MPIS.get(each.name)
        if theirs is None:
            continue
        outer = each.build.startswith(_EXTERNAL)
        if case.mpi is None:
            said = "needs an MPI of the image, and the stack has none" if outer else "is an MPI of its own"
            reason = f"{each.exact} of the lock {said}: jobs on several nodes are not checked against the host's"
            yield Check(NAME, "doubtful", reason, "add `mpi` to the blocks of the stack, and lock an external build")
        elif outer and theirs != family:
            reason = f"packages of the lock are made for {theirs}, and the image has {case.mpi.name} {case.mpi.version}"
            yield Check(NAME, "broken", reason, f"lock them for {family}: mpi=*={family}, {family}=*=external_*")
        elif not outer:
            reason = f"{each.exact} of the lock is a second MPI besides {case.mpi.name} {case.mpi.version} of the image"
            yield Check(NAME, "broken", reason, f"lock the build that takes the image's: {family}=*=external_*")


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
