"""The image uses the GPUs that the job asks for, the driver is new enough, and the code is built for the GPU."""

from __future__ import annotations

import msgspec

from hpcgen.blocks.requirements import in_range
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.release import Release
from hpcgen.core.support.units import counted
from hpcgen.planning.contract.case import Check, ContractCase, gpus_asked, holds, skipped, unknown
from hpcgen.planning.contract.mpi import NO_MPI

NO_GPU = "the partition has no GPU"
COMPATIBILITY = "cuda-compat-"
"""NVIDIA's packages of a newer driver's libraries.

They run on data-centre GPUs, some RTX cards of certified servers, and Jetson.
Source: docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html.
"""


def use(case: ContractCase) -> list[Check]:
    """The requested GPUs are used: something in the image computes on them, and nothing is for others."""
    name, gpu = "GPU use", case.partition.gpu
    if gpu is None:
        return [_without_gpus(case)]
    asked = gpus_asked(case)
    if not asked:
        return [skipped(name, f"the job asks for none of the node's {counted(gpu.count, 'GPU')}")]
    at_run = {block.name: case.capabilities.get(block.name) for block in case.plan.blocks if not block.build_only}
    vendors = {block: has.gpu_vendors for block, has in at_run.items() if has is not None and has.gpu_vendors}
    path = f"partitions.{case.plan.partition}.gpu"
    found = [
        _unused(
            case, f"{block} {_version(case, block)} computes on GPUs of {' or '.join(of)}, and the node has {_one(gpu)}"
        )
        for block, of in vendors.items()
        if gpu.vendor not in of
    ]
    unused = {block: has.gpu_unused for block, has in at_run.items() if has is not None and has.gpu_unused is not None}
    idle = [f"{block} {_version(case, block)} computes on the CPU: {why.reason}; " for block, why in unused.items()]
    users = [block for block, of in vendors.items() if gpu.vendor in of and (not idle or block in _asked(case))]
    if not users and not found:
        asks = f"the job asks for {counted(asked, 'GPU')} per node ({_one(gpu)}), but the image cannot use them"
        wasted = "".join(idle) + asks
        if case.untried:
            from hpcgen.planning.contract.untried import names

            wasted += f": {names(case)} is not known to compute on them"
        check = _unused(case, wasted, any(why.by_driver for why in unused.values()))
        found.append(_not_seen(check) if case.facts is not None and not idle else check)
    return [msgspec.structs.replace(each, path=path) for each in found] or [
        holds(name, f"{', '.join(users)} can use the {_one(gpu)}")
    ]


def _without_gpus(case: ContractCase) -> Check:
    """On a node without GPUs: the stack does not name what programs for GPUs alone are compiled with."""
    known, asked = case.capabilities, _asked(case)
    named = [each for each in case.plan.blocks if each.name in asked and each.name in known]
    runtimes = [f"{each.name} {each.version}" for each in named if known[each.name].gpu_runtime]
    if not runtimes:
        return skipped("GPU use", NO_GPU)
    reason = f"{NO_GPU}, and the stack names {' and '.join(runtimes)}: a program that needs a GPU ends when it starts"
    with_gpus = [name for name, each in case.site.partitions.items() if each.gpu is not None]
    return Check(
        "GPU use", "doubtful", reason, f"--partition {' or '.join(with_gpus)}" if with_gpus else "a site with GPUs"
    )


def memory(case: ContractCase) -> Check:
    """The image's MPI sends from and to the GPUs' memory; without that, programs have to copy each message."""
    name, gpu, plan = "GPU memory", case.partition.gpu, case.plan
    if gpu is None or case.mpi is None or not plan.stack.run.mpi:
        return skipped(name, NO_GPU if gpu is None else NO_MPI)
    if case.swapped:
        return skipped(name, "it is a question of the host's MPI")
    brought = [block for block, has in case.capabilities.items() if has.gpu_runtime == gpu.vendor]
    if not brought:
        return skipped(name, "no block brings CUDA or ROCm for programs over MPI")
    sending = [each for each in (case.mpi, plan.block("ucx")) if each is not None]
    able = [each.name for each in sending if case.capabilities[each.name].gpu_memory == gpu.vendor]
    if len(able) == len(sending):
        return holds(name, f"{' and '.join(able)} can send from and to the memory of the {_one(gpu)}")
    lacking = " and ".join(each.name for each in sending if each.name not in able)
    return skipped(name, f"{lacking} of the image sends from the node's memory alone: programs must copy to it first")


def _asked(case: ContractCase) -> set[str]:
    """Blocks that stack and files name, without what those need: a vendor's libraries compute nothing by themselves."""
    project = case.plan.project
    return {*case.plan.stack.blocks, *(each.block for each in (project.handed_over if project is not None else ()))}


def _not_seen(check: Check) -> Check:
    """In an image that hpcgen did not build there may be what nothing in it tells."""
    told = "the job asks for GPUs, and nothing that computes on them was found in the image"
    return msgspec.structs.replace(check, outcome="doubtful", reason=told)


def _unused(case: ContractCase, reason: str, by_driver: bool = False) -> Check:
    """Broken; doubtful if the user asked for GPUs explicitly and may start a program of their own.

    by_driver: another driver would change that.
    """
    said = any(
        isinstance(r, JobReason) and r.field == "gpus_per_node" and r.rule == "asked" for r in case.plan.job.reasons
    )
    without = [name for name, each in case.site.partitions.items() if each.gpu is None]
    gpu = case.partition.gpu
    remedies = []
    if gpu is not None and gpu.driver_assumed and by_driver:
        from hpcgen.planning.drivers import said_by

        remedies.append(said_by(gpu, case.plan.partition))
    remedies.append("a stack or provider that can use them")
    remedies.append("--gpus 0 for a job on CPUs only")
    remedies += [f"--partition {' or '.join(without)}"] if without else []
    return Check("GPU use", "doubtful" if said else "broken", reason, ", or ".join(remedies))


_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


def _one(gpu: Gpu) -> str:
    return gpu.model if gpu.vendor in gpu.model.lower() else f"{_VENDORS[gpu.vendor]} {gpu.model}"


def driver(case: ContractCase) -> list[Check]:
    """The host's driver is in the range of every block; a newer driver's libraries are only for data centres."""
    name, gpu = "GPU driver", case.partition.gpu
    if gpu is None:
        return [skipped(name, NO_GPU)]
    asked = {block: row.host["driver"] for block, row in case.releases.items() if "driver" in row.host}
    newer = [package for package in case.packages if package.startswith(COMPATIBILITY)]
    if not asked and not newer and case.forward is None:
        return [skipped(name, "no block requires a driver")]
    found = [_forward(case, gpu, newer)] if newer else []
    path = f"partitions.{case.plan.partition}.gpu.driver"
    if case.forward is not None and gpu.driver is not None:
        found += _brought(case.forward, gpu, case.plan.partition)
    if asked and gpu.driver is None:
        needed = ", ".join(f"{block} {_version(case, block)}: {asked[block]}" for block in asked)
        return [*found, unknown(name, f"the profile names no driver ({needed})", path)]
    seen = _as_programs_see(case, gpu)
    for block, versions in asked.items():
        if not in_range(seen, versions):
            reason = f"{block} {_version(case, block)} needs driver {versions}, and the node has {gpu.driver_label}"
            remedy = f'use an older one: --set "{block}.version=<{_version(case, block)}"'
            remedy = remedy if case.facts is None else "take a tag of the image for an older CUDA"
            brought = _brought_by_image(case, gpu, reason, versions)
            found.append(brought or Check(name, "broken", reason, remedy, f"driver {versions}", path))
    enough = f"driver {gpu.driver} is enough for {', '.join(asked)}"
    return found or [unknown(name, f"{enough}, but only assumed", path) if gpu.driver_assumed else holds(name, enough)]


def _as_programs_see(case: ContractCase, gpu: Gpu) -> str:
    """The driver that programs run by; the node's is replaced only by libraries in the image, which few images have."""
    if case.forward is None:
        return gpu.driver or ""
    from hpcgen.planning.forward import driver_of

    return driver_of(gpu, case.forward) or ""


def _brought(release: Release, gpu: Gpu, partition: str) -> list[Check]:
    """The libraries of a newer driver that a block brings; they rest under one that is as new."""
    from hpcgen.planning.forward import older, wrong_driver

    name, path = "GPU driver", f"partitions.{partition}.gpu"
    label = f"the CUDA libraries of driver {release.values['driver']}"
    if wrong := wrong_driver(gpu, release):
        remedy = "leave the compatibility libraries out, and use a CUDA that the driver runs by itself"
        return [Check(name, "broken", f"{label} cannot be used: {wrong}", remedy, "", path)]
    if not older(gpu, release):
        return []
    said = f"{label} serve programs instead of those of {gpu.driver_label}"
    if gpu.data_center is None:
        doubt = f"{said}, which is for data-centre GPUs; the profile does not say whether {gpu.model} is one"
        return [Check(name, "doubtful", doubt, "", "", f"{path}.data_center")]
    return [unknown(name, said, f"{path}.driver") if gpu.driver_assumed else holds(name, said)]


def _brought_by_image(case: ContractCase, gpu: Gpu, reason: str, versions: str) -> Check | None:
    """That an image of others has the libraries of a new enough driver; None where it has not, or they do not serve."""
    from hpcgen.planning.contract.observed import compatibility

    folder = compatibility(case.facts, versions) if case.facts is not None and gpu.data_center is not False else ""
    if not folder:
        return None
    told = f"{reason}; {folder} of the image has the libraries of a driver that is"
    remedy = f"data-centre GPUs can use them under drivers that they support: -- env LD_LIBRARY_PATH={folder} COMMAND"
    return Check("GPU driver", "doubtful", told, remedy, f"driver {versions}")


def _forward(case: ContractCase, gpu: Gpu, packages: list[str]) -> Check:
    name, path = "GPU driver", f"partitions.{case.plan.partition}.gpu.data_center"
    what = f"{', '.join(packages)} is for a newer driver, which only data-centre GPUs can use"
    remedy = f"omit it, and use a CUDA that the driver {gpu.driver or ''} runs by itself".replace("  ", " ")
    if gpu.data_center:
        return holds(name, what)
    if gpu.data_center is None:
        return Check(
            name, "doubtful", f"{what}, and the profile does not say whether {gpu.model} is one", remedy, "", path
        )
    return Check(name, "broken", f"{what}; {gpu.model} is none: CUDA does not start", remedy, "a data-centre GPU", path)


def architecture(case: ContractCase) -> list[Check]:
    """Every block that has code for GPUs has it for this one."""
    name, gpu = "GPU architecture", case.partition.gpu
    if gpu is None:
        return [skipped(name, NO_GPU)]
    if case.facts is not None:
        from hpcgen.planning.contract.observed import gpu_code

        return gpu_code(name, case.facts, gpu, case.plan.partition)
    knows = []
    for block, row in case.releases.items():
        if "capability" in row.host and gpu.vendor == "nvidia":
            knows.append(_known(case, block, gpu.capability, "capability", row.host["capability"]))
        if row.targets and gpu.vendor == "amd":
            knows.append(_known(case, block, gpu.target, "target", row.targets))
    found = [check for check in knows if check.outcome != "holds"]
    if not knows:
        return [skipped(name, "no block has GPU code")]
    return found or [holds(name, "; ".join(check.reason for check in knows))]


def _known(case: ContractCase, block: str, value: str | None, fact: str, wanted: str | list[str]) -> Check:
    """One block and this GPU, by a range of versions or a list of names."""
    name, path = "GPU architecture", f"partitions.{case.plan.partition}.gpu.{fact}"
    label = f"{block} {_version(case, block)}"
    says = wanted if isinstance(wanted, str) else ", ".join(wanted)
    if value is None:
        return unknown(name, f"the profile names no {fact}; {label} is for {says}", path)
    fits = in_range(value, wanted) if isinstance(wanted, str) else value in wanted
    if fits:
        return holds(name, f"{label} has code for {fact} {value}")
    gpu = case.partition.gpu
    model = gpu.model if gpu is not None else ""
    reason = f"{label} has no code for {fact} {value} ({model}): it is for {says}"
    return Check(name, "broken", reason, f"use another release: --set {block}.version=…", f"{fact} {says}", path)


def _version(case: ContractCase, block: str) -> str:
    return next((each.version for each in case.plan.blocks if each.name == block), "")
