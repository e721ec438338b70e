"""Wheels of a project in versions that no release table has, held against node and driver by what is known of them.

When a plan is made that is what tables say of ranges of releases, and a lock's own list of wheels. `hpcgen lock` knows
all that a wheel brings with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hpcgen.blocks.requirements import refusing_facts
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.project import BLOCK, ProjectPackage
from hpcgen.core.model.release import Release
from hpcgen.core.support.units import counted, some
from hpcgen.planning.contract.case import Check, ContractCase, gpus_asked
from hpcgen.planning.contract.wheel_names import NAME, cuda_driver, cuda_of, gpu_vendor, said

_LIBRARIES = re.compile(r"(nvidia-(cublas|cuda-runtime|cudnn)|jax-cuda\d+-(plugin|pjrt))(-.*)?")
"""Packages with which a framework brings CUDA; others are used by what runs without them too."""


def untried(case: ContractCase) -> Iterator[Check]:
    """Each such wheel by its line, what tables say against it, and what a complete lock of the project lacks."""
    project = case.plan.project
    for package, _ in _packages(case):
        block, _, near, agrees = case.untried[package.name]
        beside = "is in no release table" if package.asked != package.name else "goes with what no release table has"
        reason = f"{said(package)} {beside}: your own wheel of it is installed, untried"
        remedy = f"`hpcgen lock` holds it against node and driver; the nearest release of the block {block} is {near}"
        yield Check(NAME, "doubtful", reason, remedy)
        for other, option in agrees.items():
            there = case.plan.block(other)
            if there is not None and there.options.get(option) != "pip":
                reason = f"{said(package)} is compiled for the {other} of the package index, and the image's is of"
                told = f"{other}.{option}={there.options.get(option)}: it would not load"
                yield Check(NAME, "broken", f"{reason} {told}", f"--set {other}.{option}=pip", f"{other}.{option}=pip")
    yield from _by_tables(case)
    if project is not None and project.hashed:
        yield from brought(case, project.packages)


def _packages(case: ContractCase) -> list[tuple[ProjectPackage, Release]]:
    project = case.plan.project
    packages = project.packages if project is not None else []
    return [(each, case.untried[each.name].release) for each in packages if each.name in case.untried]


def names(case: ContractCase) -> str:
    """The wheels with their lines, for messages; empty where there are none."""
    return some([said(package) for package, _ in _packages(case)])


def _by_tables(case: ContractCase) -> Iterator[Check]:
    """The driver and the GPU, of which a table says what the index's wheels in a range of releases are for."""
    gpu = case.partition.gpu
    if gpu is None or not gpus_asked(case):
        return
    path = f"partitions.{case.plan.partition}.gpu"
    known = {"driver": gpu.driver, "capability": gpu.capability}
    facts = {name: (value, f"{path}.{name}") for name, value in known.items() if value is not None}
    for package, release in _packages(case):
        refused = [refusing_facts(each, facts) for each in _for_gpu(case, package, release, gpu)]
        if refused and all(refused):
            name, versions = next(iter(refused[0].items()))
            reason = f"{said(package)}, as the package index has it, is for {name} {versions}, and the node has"
            remedy = "choose another release in your file"
            found = f"{facts[name][0]} ({gpu.model})"
            yield Check(NAME, "broken", f"{reason} {found}", remedy, f"{name} {versions}", f"{path}.{name}")


def _for_gpu(case: ContractCase, package: ProjectPackage, release: Release, gpu: Gpu) -> list[Release]:
    """Rows as they would be for the ways in which the index has a release for the node's GPU."""
    extras = re.findall(r"[\w-]+", package.asked.partition("[")[2].partition("]")[0])
    found = []
    for way in release.ways:
        here = not way.architectures or case.site.system.architecture in way.architectures
        packed = "install" not in way.only or "pip" in way.only["install"]
        computing = way.only.get("accelerator", [])
        asked = not extras or not computing or bool({*extras} & {*computing})
        if way.gpu == gpu.vendor and here and packed and asked and not way.wheels:
            found.append(Release(host={**release.host, **way.host}, targets=way.targets))
    return found


def brought(case: ContractCase, every: Sequence[ProjectPackage]) -> Iterator[Check]:
    """What such wheels bring with them, or lack, for the GPUs that the job asks for.

    ``every``: all that is installed, such wheels and what they require among it.
    """
    gpu, theirs = case.partition.gpu, names(case)
    if gpu is None or not theirs or not gpus_asked(case):
        return
    path = f"partitions.{case.plan.partition}.gpu"
    if _is_for_cpus(case, every, gpu):
        reason = f"the job asks for {counted(gpus_asked(case), 'GPU')} per node ({gpu.model}), and {theirs}, with all"
        reason += f" that the package index brings for {case.site.system.architecture}, computes on the CPU alone"
        remedy = "choose a release that has a build for them, or --gpus 0 for a job on CPUs only"
        yield Check(NAME, "broken", reason, remedy, f"a wheel for GPUs of {gpu.vendor}", path)
    for each in every if gpu.vendor == "nvidia" else ():
        number = cuda_of(each)
        if _LIBRARIES.fullmatch(each.name) and (oldest := cuda_driver(case, number, gpu.driver)):
            reason = f"{theirs} brings {each.name} {each.version} for CUDA {number}, which needs driver {oldest}, and"
            remedy = "choose an older release in your file"
            found = f"the node has {gpu.driver}"
            yield Check(NAME, "broken", f"{reason} {found}", remedy, f"driver {oldest} or newer", f"{path}.driver")
            return


def _is_for_cpus(case: ContractCase, every: Iterable[ProjectPackage], gpu: Gpu) -> bool:
    """Whether the user's packages are to use the GPUs, and none of them is built for these."""
    using = [block for block, has in case.capabilities.items() if gpu.vendor in has.gpu_vendors]
    if using != [BLOCK]:
        return False
    built = any(gpu_vendor(each) == gpu.vendor or each.name.endswith("-gpu") for each in every)
    return not built and not any(_for_gpu(case, package, release, gpu) for package, release in _packages(case))
