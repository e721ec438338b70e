"""What the doctor finds, as data; which facts are compared how, and how grave it is when they differ.

One row for each kind of fact, whatever the site. ``node.`` stands for the partition that the node belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from hpcgen.core.errors import Position
from hpcgen.core.support.cpu_lists import read_list
from hpcgen.core.support.templates import table
from hpcgen.machine.detect.seen import NODE

Severity = Literal["error", "warning", "note"]
Difference = Literal["lower", "higher", "other"]
"""How the seen value differs from the said one."""

Compare = Callable[[Any, Any], "Difference | None"]

_PRE_RELEASE = ("a", "alpha", "b", "beta", "dev", "pre", "rc")
_MEMORY_BELOW, _MEMORY_ABOVE = 0.92, 1.03
"""Of what is sold, firmware and kernel keep a part, up to 8 % where the CPU has graphics; never is there more."""


def _parts(version: str) -> list[int | str]:
    words = re.findall(r"\d+|[a-z]+", version.lower())
    if words[:1] == ["v"]:
        del words[0]
    return [int(word) if word.isdigit() else word for word in words]


def by_version(said: Any, seen: Any) -> Difference | None:
    """Versions, number by number; where one says less than the other, what it says decides.

    ``4.18`` agrees with ``4.18.0-553.el8``, ``2.28`` is newer than ``2.3``, ``4.1.0rc1`` older than ``4.1.0``.
    """
    first, second = _parts(str(said)), _parts(str(seen))
    for old, new in zip(first, second, strict=False):
        if old == new:
            continue
        if isinstance(old, int) != isinstance(new, int):
            # A number follows where the other has letters: 4.1.1 is newer than 4.1.rc2.
            return "lower" if isinstance(new, str) else "higher"
        return "higher" if new > old else "lower"  # type: ignore[operator]
    rest_said, rest_seen = first[len(second) :], second[len(first) :]
    if rest_seen and rest_seen[0] in _PRE_RELEASE:
        return "lower"
    if rest_said and rest_said[0] in _PRE_RELEASE:
        return "higher"
    return None


def by_number(said: Any, seen: Any) -> Difference | None:
    """Counts, which must be the same."""
    first, second = _number(said), _number(seen)
    if first is None or second is None:
        return by_text(said, seen)
    return None if first == second else "higher" if second > first else "lower"


def by_size(said: Any, seen: Any) -> Difference | None:
    """Gigabytes of memory: what is sold against what the system shows of it."""
    first, second = _number(said), _number(seen)
    if first is None or second is None:
        return by_text(said, seen)
    share = second / first
    return None if _MEMORY_BELOW <= share <= _MEMORY_ABOVE else "higher" if share > 1 else "lower"


def by_text(said: Any, seen: Any) -> Difference | None:
    """Names and yes or no."""
    return None if str(said) == str(seen) else "other"


def by_truth(said: Any, seen: Any) -> Difference | None:
    """Yes or no: what is possible less than said is ``lower``."""
    first, second = str(said).lower() in ("true", "yes"), str(seen).lower() in ("true", "yes")
    return None if first == second else "higher" if second else "lower"


def by_compressor(said: Any, seen: Any) -> Difference | None:
    """Compressors of squashfs: what reads zstd reads gzip too, which is all that ``gzip`` is known to read."""
    if said == seen:
        return None
    return "lower" if seen == "gzip" else "higher"


def by_system(said: Any, seen: Any) -> Difference | None:
    """Names of operating systems; ``linux`` stands for one that is not known."""
    return None if str(said) == "linux" else by_text(said, seen)


def by_model(said: Any, seen: Any) -> Difference | None:
    """Names of hardware, by the words that tell models apart: one name may have fewer of them, but no others.

    ``Xeon Gold 6148`` agrees with ``Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz``, ``GTX 1080`` not with ``GTX 1080 Ti``.
    """
    (first, first_kind), (second, second_kind) = _model_words(str(said)), _model_words(str(seen))
    return None if first_kind == second_kind and (first <= second or second <= first) else "other"


_KINDS = {"ti", "super", "xt", "xtx", "max", "ultra"}


def _model_words(name: str) -> tuple[set[str], set[str]]:
    """Words with a digit in them, but sizes and clock rates; and those that make another model of the same number."""
    plain = re.sub(r"@.*$|\b[\d.]+ ?[gt]i?b\b|\b[\d.]+ ?[mg]hz\b|\b\d+-core\b", " ", name.lower())
    words = set(re.findall(r"[a-z0-9]+", plain))
    return {word for word in words if re.search(r"\d", word)}, words & _KINDS


def by_target(said: Any, seen: Any) -> Difference | None:
    """CPUs by archspec's names: ``higher`` where the seen one is a newer one that runs all code for the said one.

    An older one for which compilers write the same code is no difference: hypervisors hide the rest.
    """
    if str(said) == str(seen):
        return None
    import archspec.cpu

    from hpcgen.backends.hardware.microarchitecture import code_features

    first, second = (archspec.cpu.TARGETS.get(str(name)) for name in (said, seen))
    if first is None or second is None:
        return "other"
    if first in second.ancestors:
        return "higher"
    code = code_features(first.name)
    if second in first.ancestors:
        return None if code and code <= code_features(second.name) else "lower"
    return "other"


def by_pmi(said: Any, seen: Any) -> Difference | None:
    """What is offered to ranks: all that is said must be there, more does no harm.

    Hydra is no offer of the batch system: the MPI's own mpiexec brings it.
    """
    there = {str(each) for each in (seen if isinstance(seen, list) else [seen])}
    wanted = [str(each) for each in (said if isinstance(said, list) else [said])]
    return None if all(each in there or each == "hydra" for each in wanted) else "lower"


def by_cpus(said: Any, seen: Any) -> Difference | None:
    """Lists of CPUs, one for each GPU: those that are said are among those that are seen, which some are kept from."""
    pairs = list(zip(map(read_list, said), map(read_list, seen), strict=False))
    return None if len(said) == len(seen) and all(set(old) <= set(new) for old, new in pairs) else "other"


_PROVIDERS = {
    "omni-path": ("psm2", "opx", "psm3"),
    "infiniband": ("verbs", "mlx", "ucx", "psm3"),
    "slingshot": ("cxi",),
    "efa": ("efa",),
    "ethernet": ("tcp", "sockets", "udp", "verbs", "psm3"),
    "none": ("tcp", "sockets", "udp", "shm"),
}
"""Providers of libfabric that drive a kind of fabric. Source: libfabric's fi_psm2(7), fi_opx(7), fi_psm3(7),
fi_verbs(7), fi_cxi(7), fi_efa(7); Intel MPI brings ``mlx``, which is UCX."""


def by_provider(said: Any, seen: Any) -> Difference | None:
    """A provider of libfabric against the kind of fabric that is there: which of several is chosen no device tells."""
    # TCP works on every network that has addresses.
    return None if str(said) in (*_PROVIDERS.get(str(seen), ()), "tcp") else "other"


def by_fabric(said: Any, seen: Any) -> Difference | None:
    """Kinds of fabric; between Ethernet and none there is no other difference than a batch system."""
    if {str(said), str(seen)} == {"none", "ethernet"}:
        return None
    return by_text(said, seen)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


COMPARISONS: dict[str, Compare] = {
    each.__name__.removeprefix("by_"): each
    for each in (
        *(by_version, by_number, by_size, by_text, by_truth, by_compressor, by_system, by_model, by_target, by_pmi),
        *(by_cpus, by_provider, by_fabric),
    )
}
"""By the name that ``rules.yaml`` has for each."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How facts of one path are compared.

    path: ``*`` stands for one name.
    compare: the name of one of ``COMPARISONS``.
    grave: how grave it is if the machine has less, more, or something else.
    means: what follows, for people. more: the same where the machine has more.
    judged_by: the path of the seen fact that it is held against, if not its own.
    """

    path: str
    compare: str
    grave: dict[Difference, Severity]
    means: str
    more: str = ""
    judged_by: str = ""

    def meaning(self, difference: Difference) -> str:
        """What follows from a difference."""
        return self.more if difference == "higher" and self.more else self.means


def rules() -> tuple[Rule, ...]:
    """All of them, of ``rules.yaml``."""
    return table(Path(__file__).with_suffix(".yaml"), tuple[Rule, ...])


def rule_for(path: str) -> Rule | None:
    """The rule of a seen fact's path; None for a fact that is not compared."""
    return next((rule for rule in rules() if _pattern(rule.path).fullmatch(path)), None)


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


ORDER: tuple[Severity, ...] = ("error", "warning", "note")


class Drift(msgspec.Struct, frozen=True):
    """One fact of the profile that does not hold on the machine.

    fact: its path in the profile, such as ``partitions.thin.cpu.cores``.
    severity: ``error`` breaks images or jobs; ``warning`` is an update that the profile has not followed.
    said: the profile's value. seen: the machine's; None for what is gone.
    where: the file and line that say it, the profile's own or a parent's.
    how: where the machine's value was read.
    means: what follows from it.
    remedy: what to do.
    depends: stacks, locks and kits that rest on the fact.
    """

    fact: str
    severity: Severity
    said: Any
    seen: Any
    where: Position
    how: str
    means: str
    remedy: str
    depends: tuple[str, ...] = ()


class Unseen(msgspec.Struct, frozen=True):
    """A fact of the profile that this machine does not show, and why."""

    fact: str
    said: Any
    where: Position
    why: str


class Report(msgspec.Struct, frozen=True):
    """All of one examination.

    partition: the kind of node that this one was compared as; "" for a login node. chosen: why that one.
    agree: facts that hold.
    unsaid: what the machine shows and the profile leaves open: path → value.
    """

    site: str
    partition: str
    chosen: str
    drift: tuple[Drift, ...]
    unseen: tuple[Unseen, ...]
    agree: tuple[str, ...]
    unsaid: dict[str, Any]

    def count(self, severity: Severity) -> int:
        """How many of a severity; notes are the facts that could not be detected."""
        return len(self.unseen) if severity == "note" else sum(each.severity == severity for each in self.drift)
