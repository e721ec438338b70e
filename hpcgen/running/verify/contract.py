"""The promises between image and host, held against what was seen while the image ran. Pure: no start happens here."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hpcgen.backends.engines import engine_for
from hpcgen.backends.hardware.fabrics import FAST, SLOW, SOCKETS, USUAL, drivers
from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.blocks.rank_test import RANK_TEST, rank_words
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import TestResult
from hpcgen.core.support.units import some
from hpcgen.launch.collectives import gpu_network
from hpcgen.launch.parts import mpi_folders, swapped_in
from hpcgen.recipe.selftest import DRIVER_FILE, GPU_DEVICES
from hpcgen.running.here import status_text
from hpcgen.running.verify.lines import CONTRACT, Ranks, agree, read_ranks, version_of
from hpcgen.running.verify.node import ObservedNode, engine_version
from hpcgen.running.verify.starts import StartResult

_FEW = 6
_DRIFT = "`hpcgen site doctor` shows other changes"
_LAUNCH = "try the same with one node and two ranks; the output above is the launcher's"
_MPI = "start it as the site's job script does; `hpcgen explain mpi` shows the expected MPI"
NO_MPI = "the stack runs without MPI"
NO_GPU = "the partition has no GPU"


class SkippedTest(Exception):
    """What a test needs is not there; the text says what."""


class BrokenPromise(Exception):
    """A promise does not hold; the text says which and how, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def run_check(name: str, check: Callable[[], str], output: str = "", seconds: float = 0.0) -> TestResult:
    """One test of the contract: ``check`` gives a remark, or raises :class:`SkippedTest` or :class:`BrokenPromise`."""
    result = TestResult(group=CONTRACT, name=name, result="passed", seconds=seconds)
    try:
        return msgspec.structs.replace(result, reason=check())
    except SkippedTest as why:
        return msgspec.structs.replace(result, result="skipped", reason=str(why), seconds=0.0)
    except BrokenPromise as why:
        return msgspec.structs.replace(result, result="failed", reason=str(why), remedy=why.remedy, output=output)


# the machine


def engine_tests(plan: Plan, ended: StartResult) -> list[TestResult]:
    """The engine is there, and not older than the profile says."""

    def check() -> str:
        name = engine_for(plan.engine, None).command_name()
        if ended.status != 0:
            raise BrokenPromise(f"{name} does not start here", "load its module, or test on a node that has it")
        here = engine_version(ended.lines)
        known = plan.site.containers.engines.get(plan.engine)
        wanted = known.version if known is not None else None
        if not here:
            return f"{plan.engine} of unknown version"
        if wanted is None:
            return f"{plan.engine} {here}; the profile names none"
        if older(here, wanted):
            raise BrokenPromise(
                f"{plan.engine} {here} is installed, but the profile of {plan.site.name} says {wanted}",
                f"load the newer one, or correct the profile: {_DRIFT}",
            )
        return f"{plan.engine} {here}" + ("" if agree(here, wanted) else f"; the profile says {wanted}")

    return [run_check("engine", check, ended.output, ended.seconds)]


def node_tests(plan: Plan, node: ObservedNode | None, ended: StartResult, built_for: str = "") -> list[TestResult]:
    """The CPU has what the image was compiled for; the GPU, its driver and its devices are seen inside.

    ``built_for``: archspec's name of that CPU, where it is another than the plan's.
    """

    def seen() -> ObservedNode:
        if node is None:
            how = "took too long" if ended.status is None else f"ended with {status_text(ended.status)}"
            raise SkippedTest(f"the start {how}")
        return node

    return [
        run_check("CPU", lambda: _cpu(plan, built_for, seen()), seconds=ended.seconds),
        run_check("GPU device", lambda: _gpu_device(plan, seen())),
        run_check("GPU driver", lambda: _gpu_driver(plan, seen())),
    ]


def _cpu(plan: Plan, built_for: str, node: ObservedNode) -> str:
    """The image's own target first: a program with instructions that the CPU has not ends with SIGILL."""
    known = plan.site.partitions[plan.partition].cpu.target
    built_for = built_for or known
    if not node.features:
        raise SkippedTest("/proc/cpuinfo names no features of the CPU")
    for target, said in (
        (built_for, f"the image is for {built_for}, and this CPU lacks %s: its programs end with SIGILL"),
        (known, f"the profile of {plan.site.name} says {known}, and this CPU lacks %s"),
    ):
        missing = sorted(code_features(target) - node.features)
        if missing:
            raise BrokenPromise(said % some(missing, _FEW), "test on a node of the partition, or build for this CPU")
    return f"it has all features that code for {built_for} uses"


def _gpu_device(plan: Plan, node: ObservedNode) -> str:
    gpu = plan.site.partitions[plan.partition].gpu
    if gpu is None:
        raise SkippedTest(NO_GPU)
    device = GPU_DEVICES[gpu.vendor]
    if device not in node.devices:
        raise SkippedTest(
            f"no {device} inside the image: this machine has no such GPU, or the engine started without GPUs"
        )
    return device


def _gpu_driver(plan: Plan, node: ObservedNode) -> str:
    gpu = plan.site.partitions[plan.partition].gpu
    if gpu is None:
        raise SkippedTest(NO_GPU)
    if gpu.vendor != "nvidia":
        raise SkippedTest(f"how the driver of {gpu.vendor} reports its version is unknown")
    if not node.driver:
        raise SkippedTest(f"no {DRIVER_FILE}: the driver is not loaded on this machine")
    if gpu.driver is not None and older(node.driver, gpu.driver):
        who = "the plan assumes" if gpu.driver_assumed else f"the profile of {plan.site.name} says"
        says = f"{who} {gpu.driver}, for which CUDA was chosen"
        raise BrokenPromise(
            f"driver {node.driver} is loaded, {says}",
            f"test on a node of the partition, or correct the profile: {_DRIFT}",
        )
    if not node.libraries:
        raise BrokenPromise(
            f"driver {node.driver} is loaded, but its libcuda.so.1 is not found inside the image",
            "start the engine with its option for NVIDIA GPUs, as the job script does",
        )
    said = gpu.driver is not None and not gpu.driver_assumed
    return f"driver {node.driver}" + (f"; the profile says {gpu.driver}" if said else "")


# the ranks


def rank_tests(plan: Plan, ended: StartResult | None) -> list[TestResult]:
    """One job of the wanted size, one MPI in it, the right one, in the right version, over the right provider.

    ``ended``: how the rank test ended; None where the stack runs without MPI or the image has no rank test.
    """
    output = ended.output if ended is not None else ""
    ranks = read_ranks(ended.lines) if ended is not None else Ranks([], {})

    def started() -> Ranks:
        if ended is None:
            raise SkippedTest(no_ranks(plan))
        if not ranks.seen:
            raise SkippedTest("no rank started")
        return ranks

    def counted() -> str:
        if ended is None:
            raise SkippedTest(no_ranks(plan))
        return _count(plan, ranks, ended)

    seconds = ended.seconds if ended is not None else 0.0
    several = [run_check("nodes", lambda: _nodes(plan, started()), output)] if plan.job.nodes > 1 else []
    return [
        run_check("ranks", counted, output, seconds),
        *several,
        run_check("MPI library", lambda: _library(plan, started()), output),
        run_check("one MPI library", lambda: _one_library(started()), output),
        run_check("MPI version", lambda: _version(plan, started()), output),
        run_check("fabric provider", lambda: _provider(plan, started()), output),
        run_check("within a node", lambda: _within(started()), output),
    ]


def no_ranks(plan: Plan) -> str:
    """Why no ranks are started, "" where they are."""
    if not plan.stack.run.mpi or plan.block("mpi") is None:
        return NO_MPI
    if rank_words(plan):
        return ""
    lacks = f"no {RANK_TEST}" if plan.found is None else "no Python 3 that could load its MPI"
    return f"the image has {lacks}"


def _count(plan: Plan, ranks: Ranks, ended: StartResult) -> str:
    wanted = plan.job.ranks
    if not ranks.seen:
        how = "it took too long" if ended.status is None else status_text(ended.status)
        raise BrokenPromise(f"no rank of {wanted} started: {how}", _LAUNCH)
    sizes = sorted({size for _, size in ranks.seen})
    if sizes != [wanted]:
        jobs = f"jobs of {', '.join(map(str, sizes))} instead of one of {wanted}"
        raise BrokenPromise(
            f"{len(ranks.seen)} ranks came up as {jobs}: the launcher's PMI does not match the MPI in use",
            "correct mpi.pmi of the profile: `srun --mpi=list` lists Slurm's",
        )
    numbers = sorted(number for number, _ in ranks.seen)
    if numbers != list(range(wanted)):
        missing = sorted(set(range(wanted)) - set(numbers))
        raise BrokenPromise(
            f"rank {some([str(number) for number in missing], _FEW)} of {wanted} did not come up", _LAUNCH
        )
    if ended.status != 0:
        how = "it took too long to end" if ended.status is None else f"the start ended with {status_text(ended.status)}"
        raise BrokenPromise(f"all {wanted} ranks came up, but {how}", _LAUNCH)
    return f"{wanted} of {wanted}"


def _nodes(plan: Plan, ranks: Ranks) -> str:
    if len(ranks.nodes) != plan.job.nodes:
        raise BrokenPromise(
            f"ranks came up on {some(ranks.nodes, _FEW)}, not on {plan.job.nodes} nodes",
            "test in an allocation of as many nodes",
        )
    return some(ranks.nodes, _FEW)


def _library(plan: Plan, ranks: Ranks) -> str:
    whose, folders = mpi_folders(plan)
    below = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    wrong = []
    for rank in sorted({number for number, _ in ranks.seen}):
        paths = ranks.mpi(rank)
        if not paths:
            raise BrokenPromise(f"rank {rank} has not loaded an MPI library", _MPI)
        wrong += [f"rank {rank}: {path}" for path in paths if not path.startswith(below)]
    if wrong:
        raise BrokenPromise(f"not {whose} from {' or '.join(folders)}: {some(wrong, _FEW)}", _MPI)
    return f"{whose}: {', '.join(ranks.mpi(ranks.seen[0][0]))}"


def _one_library(ranks: Ranks) -> str:
    sets: dict[tuple[str, ...], list[int]] = {}
    for rank in sorted({number for number, _ in ranks.seen}):
        sets.setdefault(tuple(ranks.mpi(rank)), []).append(rank)
    if () in sets:
        raise BrokenPromise(f"rank {some([str(rank) for rank in sets[()]], _FEW)} has not loaded an MPI library", _MPI)
    if len(sets) > 1:
        told = [f"rank {some([str(rank) for rank in who], _FEW)}: {', '.join(paths)}" for paths, who in sets.items()]
        raise BrokenPromise(f"the ranks of one job use different libraries: {'; '.join(told)}", _MPI)
    if ranks.others:
        told = [f"rank {rank}: {version}" for rank, version in sorted(ranks.others.items())]
        raise BrokenPromise(
            f"ranks of one job use different releases: rank 0: {ranks.version}; {some(told, _FEW)}", _MPI
        )
    return f"the same for {'all ' if len(ranks.seen) > 1 else ''}{len(ranks.seen)}"


def _version(plan: Plan, ranks: Ranks) -> str:
    host, block = swapped_in(plan), plan.block("mpi")
    wanted, whose = "", ""
    if host is not None:
        wanted, whose = host.version, f"the profile of {plan.site.name} says"
    elif block is not None:
        wanted, whose = block.version, "the image was planned with"
    here = version_of(ranks.version)
    if not here:
        raise SkippedTest(f"the library does not report its version: {ranks.version or 'it says nothing'}")
    if not agree(here, wanted):
        raise BrokenPromise(
            f"{ranks.version} is used, {whose} {wanted}",
            f"load the right module, or correct the profile: {_DRIFT}",
        )
    return ranks.version


def _provider(plan: Plan, ranks: Ranks) -> str:
    fabric = plan.fabric
    if fabric.kind == "none":
        raise SkippedTest("the site has no fabric")
    if fabric.provider is None and fabric.kind not in FAST:
        raise SkippedTest(f"the profile names no provider for {fabric.kind}")
    if not ranks.provider:
        raise SkippedTest(f"the MPI does not say which provider it uses: {ranks.version or 'nor its version'}")
    # A layer over it is named too: verbs;ofi_rxm.
    used = ranks.provider.split(";")[0]
    if fabric.provider is None:
        wrong, wanted = used in SLOW, f"nodes have {fabric.kind}, which {' or '.join(USUAL[fabric.kind])} drives"
    else:
        wrong, wanted = used not in drivers(fabric.provider), f"the profile says {fabric.provider} for {fabric.kind}"
    if wrong:
        raise BrokenPromise(
            f"{ranks.provider} is used, but {wanted}",
            "see whether the image sees the fabric's devices; FI_PROVIDER in its environment matters too",
        )
    return ranks.provider


def _within(ranks: Ranks) -> str:
    """How fast that has to be nobody has said: it is a remark."""
    if not ranks.within:
        raise SkippedTest("no two ranks of a node exchanged messages")
    return "; ".join(f"{node}: {text}" for node, text in sorted(ranks.within.items()))


def collectives_tests(plan: Plan, used: list[str] | None) -> list[TestResult]:
    """GPUs of several nodes reach each other over the network that is meant.

    ``used``: the networks that NCCL or RCCL named in a test that passed; None where there was none.
    """

    def check() -> str:
        if not plan.gpu_collectives:
            raise SkippedTest("no library of collectives between GPUs: MPI and Gloo do not report a network")
        if used is None:
            raise SkippedTest("no test between GPUs passed; the block nccl_tests has one")
        if not used:
            raise SkippedTest("NCCL does not say which network it goes over")
        if used == [plan.stack.run.environment.get("NCCL_NET")]:
            return f"{used[0]}, which the stack names (NCCL_NET)"
        meant = gpu_network(plan, engine_for(plan.engine, None))
        if meant is not None and used != [meant.name]:
            raise BrokenPromise(
                f"{' and '.join(used)} is used, and {meant.text} is meant",
                "`hpcgen explain NCCL_NET` shows the job's setting; NCCL_DEBUG=INFO shows why NCCL chose another",
            )
        kind = plan.site.gpu_fabric_of(plan.partition)
        if meant is None and kind in FAST and SOCKETS in used:
            raise BrokenPromise(
                f"NCCL goes over TCP sockets, although the nodes have {kind}",
                "`hpcgen contract` shows what image or site lacks for it; NCCL_DEBUG=INFO shows why NCCL chose sockets",
            )
        return " and ".join(used)

    return [run_check("collectives", check)]


def older(here: str, wanted: str) -> bool:
    """Whether a version is older than another as far as both go; one that cannot be read is not."""
    from packaging.version import InvalidVersion, Version

    try:
        return not agree(here, wanted) and Version(here) < Version(wanted)
    except InvalidVersion:
        return False
