"""Which facts are compared how, and how grave it is when they differ.

One row for each kind of fact, whatever the site. ``node.`` stands for the partition that the node belongs to.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from hpcgen.machine.detect.seen import NODE
from hpcgen.machine.doctor.report import Severity
from hpcgen.machine.doctor.values import (
    Compare,
    Difference,
    by_compressor,
    by_cpus,
    by_fabric,
    by_model,
    by_number,
    by_pmi,
    by_provider,
    by_size,
    by_system,
    by_target,
    by_text,
    by_truth,
    by_version,
)


class Rule(msgspec.Struct, frozen=True):
    """How facts of one path are compared.

    Parameters
    ----------
    path: ``*`` stands for one name.
    lower, higher, other: how grave it is if the machine has less, more, or something else.
    means: what follows, for people. more: the same where the machine has more.
    judged_by: the path of the seen fact that it is held against, if not its own.
    """

    path: str
    compare: Compare
    lower: Severity
    higher: Severity
    other: Severity
    means: str
    more: str = ""
    judged_by: str = ""

    def severity(self, difference: Difference) -> Severity:
        """How grave a difference is."""
        return {"lower": self.lower, "higher": self.higher, "other": self.other}[difference]

    def meaning(self, difference: Difference) -> str:
        """What follows from a difference."""
        return self.more if difference == "higher" and self.more else self.means


_E: Severity = "error"
_W: Severity = "warning"

RULES: tuple[Rule, ...] = (
    Rule("system.os", by_system, _E, _E, _W, "the host's libraries and modules are those of a different system"),
    Rule("system.os_version", by_version, _W, _W, _W, "the system is another release; its libraries may differ"),
    Rule("system.kernel", by_version, _W, _W, _W, "the kernel is a different one"),
    Rule("system.glibc", by_version, _E, _W, _E, "images are chosen by the C library that the host's libraries need"),
    Rule("system.user_namespaces", by_truth, _E, _W, _E, "unprivileged engines need user namespaces"),
    Rule("system.architecture", by_text, _E, _E, _E, "programs for another architecture do not start"),
    Rule(
        "node.cpu.target",
        by_target,
        _E,
        _W,
        _E,
        "code for a CPU that the node does not have ends with an illegal instruction",
        "the node runs this code, but could run faster code",
    ),
    Rule("node.cpu.model", by_model, _W, _W, _W, "the node has another CPU"),
    Rule("node.cpu.cores", by_number, _E, _W, _E, "jobs are laid out by the cores of a node"),
    Rule("node.cpu.sockets", by_number, _W, _W, _W, "ranks are spread over the sockets of a node"),
    Rule("node.cpu.numa_domains", by_number, _W, _W, _W, "ranks are spread over the NUMA domains of a node"),
    Rule("node.cpu.threads_per_core", by_number, _W, _W, _W, "jobs may use the hardware threads of a core"),
    Rule("node.memory.total_gb", by_size, _E, _W, _E, "ranks are given a share of the node's memory"),
    Rule("node.gpu.vendor", by_text, _E, _E, _E, "images contain programs for another vendor's GPUs"),
    Rule("node.gpu.model", by_model, _E, _E, _E, "images are made for other GPUs"),
    Rule("node.gpu.count", by_number, _E, _W, _E, "jobs request the GPUs of a node"),
    Rule("node.gpu.cpus", by_cpus, _W, _W, _W, "ranks are kept to the CPUs next to their GPU"),
    Rule("node.gpu.memory_gb", by_size, _E, _W, _E, "programs are laid out by the memory of a GPU"),
    Rule(
        "node.gpu.capability", by_version, _E, _E, _E, "GPU programs are chosen and compiled by the compute capability"
    ),
    Rule("node.gpu.target", by_text, _E, _E, _E, "GPU programs are compiled for one instruction set"),
    Rule("node.gpu.driver", by_version, _E, _W, _E, "the driver limits the CUDA or ROCm of the image"),
    Rule("node.gpu.data_center", by_truth, _E, _W, _E, "a CUDA newer than the driver runs only on data-centre GPUs"),
    Rule("fabric.kind", by_fabric, _E, _E, _E, "the image's MPI has the libraries of another fabric"),
    Rule(
        "fabric.provider",
        by_provider,
        _E,
        _E,
        _E,
        "the image's MPI is set to a provider that does not support this fabric",
        judged_by="fabric.kind",
    ),
    Rule("mpi.flavour", by_text, _E, _E, _E, "a different MPI replaces the image's"),
    Rule("mpi.abi", by_text, _E, _E, _E, "the host's MPI cannot replace the image's"),
    Rule("mpi.version", by_version, _E, _W, _E, "the image's MPI must not be newer than the host's"),
    Rule(
        "mpi.glibc", by_version, _W, _E, _E, "the image's C library must be at least as new as the host's MPI requires"
    ),
    Rule("mpi.pmi", by_pmi, _E, _E, _E, "with no common PMI every rank starts alone"),
    Rule("containers.engines.*.version", by_version, _E, _W, _E, "scripts use options of this version of the engine"),
    Rule("containers.engines.*.fakeroot", by_truth, _W, _W, _W, "images are built with --fakeroot"),
    Rule(
        "containers.engines.*.squashfs",
        by_compressor,
        _E,
        _W,
        _E,
        "squashfs and SIF files that are compressed so cannot be mounted",
        "they could be compressed by zstd, which is faster",
    ),
    Rule("containers.unprivileged_build", by_truth, _E, _W, _E, "users build images without privileges"),
    Rule("scheduler.kind", by_text, _E, _E, _E, "job scripts are written for another batch system"),
    Rule(
        "scheduler.parallel_environment", by_text, _E, _E, _E, "jobs ask for a parallel environment that no queue has"
    ),
    Rule("scheduler.max_array_size", by_number, _E, _W, _E, "arrays are cut to Slurm's limit"),
    Rule("network.proxy.*", by_text, _W, _W, _W, "builds go through the proxy"),
)


def rule_for(path: str) -> Rule | None:
    """The rule of a seen fact's path; None for a fact that is not compared."""
    return next((rule for rule in RULES if _pattern(rule.path).fullmatch(path)), None)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\*", r"[^.]+"))


def seen_path(path: str, partition: str) -> str | None:
    """The path under which a fact of the profile would be seen; None for a node of another partition."""
    steps = path.split(".")
    if steps[0] != "partitions":
        return path
    # A partition's name may hold dots itself.
    own = f"partitions.{partition}."
    if path.startswith(f"{own}fabric."):
        return path.removeprefix(own)
    return f"{NODE}.{path.removeprefix(own)}" if partition and path.startswith(own) else None
