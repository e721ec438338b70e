"""Checks of an image that hpcgen did not build, by what its files show."""

from __future__ import annotations

import posixpath
import re

from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.blocks.requirements import in_range
from hpcgen.core.model.image_facts import GpuCode, ImageFacts
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase, Outcome, holds, release_of, skipped, unknown

_VENDORS = re.compile(r"/lib(?:cu\w+|nccl|rccl|roc\w+|hip\w+|MIOpen)\.so|/(?:rocblas|hipblaslt)/library")
_LEVEL = re.compile(r"x86[-_]64[-_]v([2-4])")
_OTHER_TAG = "take another tag of the image, or build what it has for this machine (hpcgen build --dockerfile FILE)"


def cpu(case: ContractCase, facts: ImageFacts) -> list[Check]:
    """The image's programs are for the processor of the nodes, and what they say they need it has."""
    name, site, target = "CPU", case.site, case.partition.cpu.target
    architecture = facts.system.architecture
    if architecture is None:
        return [unknown(name, "no file of the image shows for which processor it is")]
    here = site.system.architecture
    if architecture.value not in (here, PLATFORMS.get(here)):
        reason = f"{architecture.file} is for {architecture.value}, and the nodes of {case.plan.partition} are {here}"
        return [Check(name, "broken", reason, "take the image for that architecture", here, "system.architecture")]
    path = f"partitions.{case.plan.partition}.cpu.target"
    for level in facts.system.cpu:
        match = _LEVEL.search(level.value)
        missing = sorted(code_features(f"x86_64_v{match[1]}") - code_features(target)) if match is not None else []
        if missing:
            reason = f"{level.file} needs {level.value}, and {target} lacks {some(missing)}: it ends there with SIGILL"
            return [Check(name, "broken", reason, _OTHER_TAG, level.value, path)]
    needs = " and ".join(dict.fromkeys(level.value for level in facts.system.cpu))
    said = f"files say that they need {needs}" if needs else "no file says that it needs more"
    return [holds(name, f"the image is for {here}; {said}")]


def compatibility(facts: ImageFacts, versions: str) -> str:
    """The folder of CUDA's compatibility libraries in an image that are of such a driver; "" where there is none."""
    for each in facts.gpu.libraries:
        if each.name == "compat" and each.version is not None and in_range(each.version.value, versions):
            return posixpath.dirname(each.file)
    return ""


def gpu_code(name: str, facts: ImageFacts, gpu: Gpu, partition: str) -> list[Check]:
    """What in the image has code for GPUs has it for those of the nodes."""
    codes = _counting(
        [each for each in facts.gpu.code if (each.gfx if gpu.vendor == "amd" else each.cubins or each.ptx)]
    )
    if gpu.vendor not in ("nvidia", "amd") or not codes:
        return [skipped(name, f"no code for GPUs of {gpu.vendor} was found in the image")]
    fact = gpu.target if gpu.vendor == "amd" else gpu.capability
    field = "target" if gpu.vendor == "amd" else "capability"
    path = f"partitions.{partition}.gpu.{field}"
    if fact is None:
        return [unknown(name, f"the profile names no {field} of {gpu.model}", path)]
    lacking = [each for each in codes if not _fits(each, gpu.vendor, fact)]
    # Of several files each may be a library that the program never loads for this GPU.
    if not lacking:
        return [holds(name, f"{some([each.file for each in codes])} has code for {field} {fact}")]
    told = "; ".join(f"{each.file} has code for {_says(each, gpu.vendor)}" for each in lacking[:3])
    reason = f"{told}, and {gpu.model} is {fact}"
    outcome: Outcome = "broken" if len(lacking) == len(codes) else "doubtful"
    return [Check(name, outcome, reason, _OTHER_TAG, f"code for {field} {fact}", path)]


def _counting(codes: list[GpuCode]) -> list[GpuCode]:
    """What says for which GPUs an image is: the list that a framework keeps, else its own libraries' code.

    Vendors' libraries have parts for single generations, and more than their sections show: libcufft 11.2 for CUDA 12.4
    has 5.2 alone there, and runs on all.
    """
    own = [each for each in codes if not _VENDORS.search(each.file)]
    return [each for each in codes if each.by == "list"] or own or codes


def _fits(code: GpuCode, vendor: str, fact: str) -> bool:
    """Whether a GPU runs it: machine code of its own generation that is not newer, or what its driver translates.

    Source: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
    """
    if vendor == "amd":
        return any(each.split(":")[0] == fact for each in code.gfx)
    here = release_of(fact)
    same = (release_of(each) for each in code.cubins)
    return any(each[:1] == here[:1] and each <= here for each in same) or any(
        release_of(each) <= here for each in code.ptx
    )


def _says(code: GpuCode, vendor: str) -> str:
    if vendor == "amd":
        return some(code.gfx)
    ptx = [f"{each} (PTX)" for each in code.ptx]
    return some([*code.cubins, *ptx])
