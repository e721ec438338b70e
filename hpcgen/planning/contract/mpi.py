"""The host's MPI in the image's place: binary interface, version, and how ranks are told about each other."""

from __future__ import annotations

from hpcgen.backends.hardware.mpi_abi import (
    MPI_LIBRARIES,
    OTHERWISE_NAMED,
    STANDARD,
    abi_of,
    mpich_of,
    standard_of,
    whose,
)
from hpcgen.backends.schedulers import launched_by
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.planning.contract.case import Check, ContractCase, holds, release_of, skipped, unknown

NO_MPI = "the stack runs without MPI"
OWN_LAUNCHER = "the image's own launcher starts the ranks"
ONLY_STARTED = "the host only starts the ranks; the image keeps its own MPI"

_TRANSPORT_KEY = "OMPI_MCA_orte_precondition_transports"


def abi(case: ContractCase) -> list[Check]:
    """The library that programs were linked with has the name and the binary interface of the host's."""
    name, host, block = "MPI ABI", case.host, case.mpi
    if block is None or host is None:
        return [skipped(name, NO_MPI if not case.plan.stack.run.mpi else OWN_LAUNCHER)]
    if not case.swapped:
        return [skipped(name, ONLY_STARTED)]
    mine = case.mpi_capabilities
    if not mine.mpi_abi:
        return [unknown(name, f"{block.name} does not say which binary interface it has")]
    expected = MPI_LIBRARIES[host.abi]
    if mine.mpi_abi != host.abi or mine.mpi_library not in ("", expected):
        reason = (
            f"{block.name} {block.version} of the image is {mine.mpi_library or mine.mpi_abi}, and the host's "
            f"{host.flavour} {host.version} is {expected}: programs would keep the image's own"
        )
        remedy = f"use an MPI with the binary interface of {whose(host.abi)}: --set mpi.provider=…"
        return [Check(name, "broken", reason, remedy, expected, "mpi.abi")]
    found = _by_standard(case, host) if host.abi == STANDARD else []
    return found or [holds(name, f"{block.name} and the host's {host.flavour} are both {expected}")]


def _by_standard(case: ContractCase, host: HostMpi) -> list[Check]:
    """Blocks that are not linked with the standard's library, and a host that may have it by another name."""
    name, expected, found = "MPI ABI", MPI_LIBRARIES[STANDARD], []
    own, told = case.plan.mpi.family, f"the host's {host.flavour} {host.version}"
    for block in case.plan.blocks:
        if "mpi" not in block.needs or case.capabilities[block.name].linked_mpi == STANDARD:
            continue
        reason = (
            f"{block.label} is linked with {own}'s own library, and not with {expected}, by which {told} would take "
            "its place"
        )
        remedy = f"leave {block.name} out"
        if own == abi_of(host.flavour):
            remedy += f"; or, if the host's MPI also has {MPI_LIBRARIES[own]}, use a profile with `abi: {own}`"
        found.append(Check(name, "broken", reason, remedy, f"programs linked with {expected}", "mpi.abi"))
    if host.flavour == "mpich" and host.version in OTHERWISE_NAMED:
        reason = f"{told} calls its library of {whose(STANDARD)} libmpi_abi.so.0, unless it was renamed"
        remedy = f"look for {expected} in the folders of mpi.libraries, or use MPICH 5.0.2 there"
        found.append(Check(name, "doubtful", reason, remedy, expected, "mpi.version"))
    return found


def private(case: ContractCase) -> Check:
    """No block's own MPI, which nothing may replace, meets the host's or one of the same name in the image."""
    name, host, block = "private MPI", case.host, case.mpi
    mine = {each: has.private_mpi for each, has in case.capabilities.items() if has.private_mpi}
    if not mine:
        return skipped(name, "no block brings a private MPI")
    told = " and ".join(f"{each} brings its own {library}" for each, library in mine.items())
    if host is not None:
        found = f"the host's {host.flavour} {host.version} ({MPI_LIBRARIES[host.abi]})"
    elif block is not None and case.mpi_capabilities.mpi_library in mine.values():
        found = f"that of {block.name} {block.version}, which has the same name,"
    else:
        return holds(name, f"{told}, and no other takes its place")
    reason = f"{told}, and cannot have {found} in its place: its programs would load the wrong one and crash"
    remedy = f"run {', '.join(mine)} on one node without MPI (run.mpi: false), and leave the block mpi out"
    return Check(name, "broken", reason, remedy, "no other MPI", "mpi.abi" if host is not None else "")


def version(case: ContractCase) -> Check:
    """The host's library has every function that the image's has: it is not older, as far as the two compare."""
    name, host, block = "MPI version", case.host, case.mpi
    if block is None or host is None:
        return skipped(name, NO_MPI if not case.plan.stack.run.mpi else OWN_LAUNCHER)
    if not case.swapped:
        return skipped(name, ONLY_STARTED)
    told = f"the image has {block.name} {block.version}, the host {host.flavour} {host.version}"
    if case.plan.mpi.abi == STANDARD:
        return holds(name, f"{told}: both have the functions of MPI 5.0, by whose interface programs are linked")
    image = release_of(block.version)
    if not image:
        return unknown(name, f"{told}: no file of the image shows which release that is")
    flavour = case.plan.mpi.flavour
    if flavour == host.flavour:
        here = release_of(host.version)
        if here == image[: len(here)] and len(here) < len(image):
            return unknown(name, f"{told}: whether that is older, the profile does not say", "mpi.version")
        if here >= image:
            return holds(name, told)
        reason = f"{told}: functions new in the image's MPI would be missing at run time"
        remedy = f'use one that is not newer: --set "{block.name}.version=<={host.version}"'
        return Check(name, "broken", reason, remedy, f"{block.name} {'.'.join(map(str, here))} or older", "mpi.version")
    base = mpich_of(host.version) if host.flavour == "cray-mpich" else ""
    if flavour == "mpich" and base and image[:1] > release_of(base, 1):
        reason = f"{told}, which is derived from MPICH {base}: programs that call newer functions do not start"
        remedy = f'use one of its generation: --set "{block.name}.version=<{release_of(base, 1)[0] + 1}"'
        return Check(name, "doubtful", reason, remedy, f"MPICH {base} or older", "mpi.version")
    if flavour == "mpich" and base:
        return holds(name, f"{told}, which is derived from MPICH {base}")
    if (level := standard_of(host.flavour, host.version)) and level < _may_call(flavour, block.version):
        has = ".".join(map(str, level))
        reason = (
            f"{told}, which has MPI {has}: programs that call newer functions (sessions, 64-bit counts) do not start"
        )
        remedy = '--set "mpich.version=<4", or let programs call only MPI 3'
        return Check(name, "doubtful", reason, remedy, f"functions of MPI {has}", "mpi.version")
    return holds(name, f"{told}: different names, one binary interface, so their version numbers cannot be compared")


def _may_call(flavour: str, version: str) -> tuple[int, int]:
    """The standard whose functions programs may call that are built with an MPI; Intel's has some of 4.0 since 2021."""
    if flavour == "intel" and release_of(version, 1) >= (2021,):
        return (4, 0)
    return standard_of(flavour, version) or (0, 0)


def pmi(case: ContractCase) -> Check:
    """The launcher offers a PMI that the MPI in use understands."""
    name, host, block = "PMI", case.host, case.mpi
    if block is None or host is None:
        return skipped(name, NO_MPI if not case.plan.stack.run.mpi else OWN_LAUNCHER)
    if not host.pmi or case.site.mpi is None:
        return unknown(name, f"the profile does not say which PMI {host.launcher} offers", "mpi.pmi")
    who, understood = _understood(case, host)
    if not case.site.mpi.pmi:
        reason = (
            f"which PMI {host.launcher} offers is not in the profile: it is asked for {host.pmi[0]}, which {who} needs"
        )
        remedy = f"ask the site, or {host.launcher} itself (srun --mpi=list), and name it in mpi.pmi"
        return Check(name, "doubtful", reason, remedy, "", "mpi.pmi")
    if not understood:
        if case.swapped:
            return holds(name, f"the host's own {host.flavour} and {host.launcher} talk to each other")
        return unknown(name, f"{who} does not say which PMI it understands")
    common = [each for each in host.pmi if each in understood]
    own = launched_by(host.launcher, case.site.scheduler)
    # What the job's line will name.
    asked = own.requested_pmi(host.pmi) if own is not None else None
    if common and (asked is None or asked in understood):
        return holds(name, f"{host.launcher} offers {', '.join(common)}, which {who} understands")
    offers = f"{host.launcher} is set to offer {asked}" if common else f"{host.launcher} offers {', '.join(host.pmi)}"
    reason = (
        f"{offers}, and {who} understands {', '.join(understood)}: each rank would be a separate job, with status 0"
    )
    remedy = f"name {common[0]} first in mpi.pmi" if common else "use another MPI or version: --set mpi.version=…"
    if case.swapped and host.flavour == "openmpi" and release_of(host.version, 1) < (5,):
        # Built --with-pmi it understands Slurm's. Source: the message of Open MPI 4 where a start by srun fails.
        reason = (
            f"{offers}: {who} understands that only if it was built with --with-pmi; else each rank is a separate job"
        )
        remedy = "`ompi_info | grep pmi` on the host shows whether it was; see that the preflight counts all ranks"
        return Check(name, "doubtful", reason, remedy, "", "mpi.pmi")
    return Check(name, "broken", reason, remedy, f"one of {', '.join(understood)}", "mpi.pmi")


def transport_key(case: ContractCase) -> Check:
    """Ranks of Open MPI 5 over PSM2 need a key of their job, which not every launcher gives them.

    Source: open-mpi/ompi issues 12886 and 13397: by srun none of 5.0 had it, by mpirun 5.0.8 had not.
    """
    name, host, block = "transport key", case.host, case.mpi
    if block is None or host is None or case.plan.fabric.kind != "omni-path":
        return skipped(name, "it is a question of Open MPI over Omni-Path")
    flavour, version = (host.flavour, host.version) if case.swapped else (case.plan.mpi.flavour, block.version)
    if flavour != "openmpi" or release_of(version, 1) != (5,):
        return holds(name, f"{flavour} {version} needs none")
    own = launched_by(host.launcher, case.site.scheduler) is None
    if own and release_of(version, 3) < (5, 0, 8):
        return holds(name, f"{host.launcher} gives the ranks theirs")
    if _TRANSPORT_KEY in {**case.site.environment, **host.environment}:
        return holds(name, "the profile sets it")
    reason = f"Open MPI {version} over PSM2, started by {host.launcher}, may end with {_TRANSPORT_KEY!r} not present"
    held = case.site.mpi is not None and case.site.mpi.flavour == "openmpi"
    older = "use Open MPI 4.1: --set 'openmpi.version=<5'"
    remedy = "name an Open MPI 4.1 in mpi, if the host has one" if held else older
    return Check(name, "doubtful", reason, remedy, "", "mpi.launcher")


def _understood(case: ContractCase, host: HostMpi) -> tuple[str, tuple[str, ...]]:
    """The MPI in use, and the PMIs that it understands; the host's own library if that replaces the image's."""
    block = case.mpi
    assert block is not None
    image = f"{block.name} {block.version}"
    if not case.swapped:
        return image, case.mpi_capabilities.pmi
    here = f"the host's {host.flavour} {host.version}"
    if host.flavour == "openmpi" and release_of(host.version, 1) >= (5,):
        # Open MPI 5 has PMIx alone.  Source: its NEWS for 5.0.0.
        return here, ("pmix",)
    same = case.plan.mpi.flavour == host.flavour and release_of(block.version, 1) == release_of(host.version, 1)
    return here, case.mpi_capabilities.pmi if same else ()
