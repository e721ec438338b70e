"""A profile's facts, what was seen of a machine, what is there of all it names → the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hpcgen.core.config.provenance import Fact, shown_value
from hpcgen.machine.detect.commands import COMMANDS
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import NODE, Seen, SeenFact
from hpcgen.machine.doctor.rules import (
    COMPARISONS,
    ORDER,
    Drift,
    Report,
    Severity,
    Unseen,
    by_text,
    rule_for,
    seen_path,
)

_ENGINES = "containers.engines."
_WIDE = 80


class _Examination:
    """Collects what the parts of one examination find."""

    def __init__(self, own_file: str, facts: Sequence[Fact], seen: Seen, partition: str) -> None:
        self.own_file = own_file
        self.facts = facts
        self.said = {fact.path: fact for fact in facts}
        self.seen = seen
        self.known = _flat(seen.facts)
        self.partition = partition
        self.drift: list[Drift] = []
        self.unseen: list[Unseen] = []
        self.agree: list[str] = []

    def differs(self, fact: Fact, severity: Severity, seen: Any, how: str, means: str) -> None:
        """Note that a fact does not hold."""
        remedy = self.remedy(fact, severity, seen)
        self.drift.append(Drift(fact.path, severity, fact.value, seen, fact.where, how, means, remedy))

    def not_seen(self, fact: Fact, why: str) -> None:
        """Note that nothing can be said of a fact."""
        self.unseen.append(Unseen(fact.path, fact.value, fact.where, why))

    def remedy(self, fact: Fact, severity: Severity, seen: Any) -> str:
        """What to write where; in a parent's file it concerns others too."""
        place = f"{fact.where.file}:{fact.where.line}"
        value = shown_value(seen)
        if seen is None or len(value) > _WIDE:
            line = f"correct it in {place}"
        else:
            line = f"write `{fact.path.rpartition('.')[2]}: {value}` in {place}, with its source and date"
        if fact.where.file != self.own_file:
            line += f"; that is a parent: write it in {self.own_file} if it holds only for this system"
        return line if severity == "warning" else f"have the machine corrected, or {line}"

    def why_not(self, path: str) -> str:
        """Why something was not seen: as detection says it of the path, or of what is above."""
        steps = path.split(".")
        above = (".".join(steps[:end]) for end in range(len(steps), 0, -1))
        return next((self.seen.unseen[each] for each in above if each in self.seen.unseen), "no evidence here")


def examine(
    site: str,
    own_file: str,
    facts: Sequence[Fact],
    seen: Seen,
    presences: Iterable[Presence],
    partition: str,
    chosen: str = "",
) -> Report:
    """Compare a profile with a machine.

    own_file: the profile's own file, as the facts name it.
    facts: of :func:`hpcgen.core.config.provenance.facts_of`.
    presences: of :func:`hpcgen.machine.doctor.examine.look`.
    partition: which the node belongs to; "" for a login node, of which no fact of a node is compared.
    chosen: why this partition.
    """
    work = _Examination(own_file, facts, seen, partition)
    _values(work)
    _engines(work)
    _gpus(work)
    _queues(work)
    _presences(work, presences)
    drift = sorted(work.drift, key=lambda each: (ORDER.index(each.severity), each.where, each.fact))
    return Report(site, partition, chosen, tuple(drift), tuple(work.unseen), tuple(work.agree), _unsaid(work))


def _flat(facts: Mapping[str, SeenFact]) -> dict[str, SeenFact]:
    """Seen mappings with their parts, each under its own path."""
    found = dict(facts)
    for path, fact in facts.items():
        if isinstance(fact.value, dict):
            found.update({f"{path}.{key}": SeenFact(f"{path}.{key}", v, fact.how) for key, v in fact.value.items()})
    return found


def _values(work: _Examination) -> None:
    """Facts that have a rule and were seen."""
    for fact in work.facts:
        path = seen_path(fact.path, work.partition)
        rule = rule_for(path) if path is not None else None
        if path is None or rule is None:
            continue
        known = work.known.get(rule.judged_by or path)
        if known is None:
            if not path.startswith((f"{NODE}.gpu.", _ENGINES)) or _counterpart(work, path):
                work.not_seen(fact, work.why_not(path))
        elif path == "containers.unprivileged_build" and _by_module(work) and known.value is False:
            work.not_seen(fact, "engines come with modules, which are not loaded here")
        elif (difference := COMPARISONS[rule.compare](fact.value, known.value)) is None:
            work.agree.append(fact.path)
        elif rule.judged_by:
            how = f"{rule.judged_by} is {shown_value(known.value)} ({known.how})"
            work.differs(fact, rule.grave[difference], None, how, rule.meaning(difference))
        else:
            work.differs(fact, rule.grave[difference], known.value, known.how, rule.meaning(difference))


def _counterpart(work: _Examination, path: str) -> bool:
    """Whether the GPU or the engine is there at all; if not, that is told once."""
    if path.startswith(_ENGINES):
        name = path.split(".")[2]
        return any(each.startswith(f"{_ENGINES}{name}") for each in work.known)
    return f"{NODE}.gpu" in work.seen.unseen or f"{NODE}.gpu.vendor" in work.known


def _by_module(work: _Examination) -> bool:
    """Whether an engine comes with a module, and the kernel would let users build."""
    modules = any(path.startswith(_ENGINES) and path.endswith(".modules") for path in work.said)
    return modules and work.seen.value("system.user_namespaces") is True


def _engines(work: _Examination) -> None:
    """Engines that the profile allows and the machine has not."""
    names = dict.fromkeys(path.split(".")[2] for path in work.said if path.startswith(_ENGINES))
    preferred = work.said.get("containers.preferred")
    for name in names:
        path = f"{_ENGINES}{name}"
        allowed = work.said.get(f"{path}.allowed")
        if (allowed is not None and allowed.value is False) or any(
            each == path or each.startswith(f"{path}.") for each in work.known
        ):
            continue
        own = [fact for fact in work.facts if fact.path == path or fact.path.startswith(f"{path}.")]
        fact = next((each for each in own if each.path.endswith(".version")), own[0])
        if f"{path}.modules" in work.said:
            work.not_seen(fact, "it comes with a module, which is not loaded here")
        elif f"{name}-version" not in COMMANDS:
            work.not_seen(fact, "it has no program that reports its version")
        else:
            first = preferred is not None and preferred.value == name
            how = f"{COMMANDS[f'{name}-version'].argv[0]} was not found"
            work.differs(fact, "error" if first else "warning", None, how, f"{name} starts no image here")


def _gpus(work: _Examination) -> None:
    """GPUs that only one of the two has."""
    if not work.partition:
        return
    above = f"partitions.{work.partition}."
    own = [fact for fact in work.facts if fact.path.startswith(f"{above}gpu.")]
    there = work.known.get(f"{NODE}.gpu.vendor")
    if own and there is None and f"{NODE}.gpu" not in work.seen.unseen:
        fact = next((each for each in own if each.path.endswith(".model")), own[0])
        work.differs(fact, "error", None, "no GPU among the PCI devices", "images are made for GPUs that do not exist")
    elif there is not None and not own:
        beside = next(fact for fact in work.facts if fact.path.startswith(above))
        gpu = work.known.get(f"{NODE}.gpu.model", there)
        fact = Fact(f"{above}gpu", None, where=beside.where)
        work.differs(fact, "warning", {"model": gpu.value}, gpu.how, "the profile names no GPU, so none is used")


def _queues(work: _Examination) -> None:
    """Queues of the node's partition: their names, the job sizes and times that they take."""
    fact, known = work.said.get(f"partitions.{work.partition}.queues"), work.known.get(f"{NODE}.queues")
    if not work.partition or fact is None or not isinstance(fact.value, list):
        return
    if known is None:
        work.not_seen(fact, work.why_not(f"{NODE}.queues"))
        return
    there = {queue["name"]: queue for queue in known.value}
    # Queues with directives of their own are no partitions of the scheduler's, such as a QOS.
    said = [queue for queue in fact.value if not queue.get("directives")]
    gone = [str(queue["name"]) for queue in said if queue["name"] not in there]
    if gone:
        how = f"{known.how} has {', '.join(there) or 'none'} for this node, not {', '.join(gone)}"
        work.differs(fact, "error", None, how, "jobs that name this queue are refused")
        return
    for queue in said:
        for field in ("min_nodes", "max_nodes", "max_time"):
            limit, real = queue.get(field), there[queue["name"]].get(field)
            if limit is not None and real is not None and by_text(_plain_time(limit), _plain_time(real)):
                means = f"{queue['name']} takes jobs of other sizes: {field} is {real}, not {limit}"
                work.differs(fact, "warning", list(there.values()), known.how, means)
                return
    work.agree.append(fact.path)


def _plain_time(value: Any) -> str:
    """Hours without zeros before them."""
    return str(value).lstrip("0")


def _presences(work: _Examination, presences: Iterable[Presence]) -> None:
    """Paths and modules that the profile names."""
    for each in presences:
        fact = each.fact
        if each.unknown:
            # A captured tree holds little: only that detection saw it elsewhere speaks against the profile.
            known = work.known.get(fact.path)
            if known is None or not each.gone or each.found or _covered(each.gone, known.value):
                work.not_seen(fact, each.unknown)
            else:
                work.differs(fact, each.kind.severity, known.value, known.how, each.kind.means)
        elif each.gone:
            work.differs(fact, each.kind.severity, None, f"missing: {', '.join(each.gone)}", each.kind.means)
        else:
            work.agree.append(fact.path)


def _covered(paths: Iterable[str], seen: Any) -> bool:
    """Whether all paths are among the seen ones, or below them."""
    there = [
        each.get("source") if isinstance(each, dict) else each for each in (seen if isinstance(seen, list) else [seen])
    ]
    return all(any(f"{path}/".startswith(f"{each}/") for each in there) for path in paths)


def _unsaid(work: _Examination) -> dict[str, Any]:
    """What was seen and could be compared, had the profile said it."""
    said = {seen_path(path, work.partition) for path in work.said}
    found = {}
    for path, fact in work.known.items():
        node = path.startswith(f"{NODE}.")
        if path in said or rule_for(path) is None or (node and (not work.partition or ".gpu." in path)):
            continue
        found[path.replace(NODE, f"partitions.{work.partition}", 1) if node else path] = fact.value
    return found


class FactKind(msgspec.Struct, frozen=True):
    """A kind of fact that names paths or modules.

    ``path``: as a regular expression. ``severity``: how grave it is if one is gone. ``means``: what follows.
    """

    path: str
    severity: Severity
    means: str


class Presence(msgspec.Struct, frozen=True):
    """What became of one such fact.

    ``gone``: what is not there. ``unknown``: why nothing can be said of it; "" where it was looked for. ``found``: how
    many of its paths are there.
    """

    fact: Fact
    kind: FactKind
    gone: tuple[str, ...]
    unknown: str
    found: int = 0


_MPI = "the host's MPI does not replace the image's"
PATHS = (
    FactKind(r"mpi\.root", "error", _MPI),
    FactKind(r"mpi\.(gpu\.[^.]+\.)?(libraries|preload)", "error", _MPI),
    FactKind(r"mpi\.(gpu\.[^.]+\.)?binds", "error", "a missing path cannot be bound, so the container does not start"),
    FactKind(r"(partitions\..+\.)?fabric\.devices", "error", "ranks fall back to a slower network, or do not start"),
    FactKind(r"partitions\..+\.copy_devices", "warning", "UCX of images copies another way there, which is slower"),
    FactKind(r"(partitions\..+\.)?fabric\.libraries", "error", "the image has no libraries for this fabric"),
    FactKind(r"system\.module_paths", "warning", "the job script looks for modules there"),
    FactKind(r"containers\.image_directory", "error", "jobs look for their images there"),
    FactKind(r"network\.ca_certificates", "error", "builds copy the certificate into the image first"),
    FactKind(r"file_systems\.[^.]+\.path", "warning", "users are directed to that file system"),
)
MODULES = FactKind(
    r"(mpi|mpi\.gpu\.[^.]+|scheduler|containers\.engines\.[^.]+)\.(bind_)?modules",
    "warning",
    "the job script loads this module",
)
_NODE_ONLY = re.compile(r"(partitions\..+\.)?(fabric\.devices|copy_devices)")


def look(machine: Machine, facts: Iterable[Fact], login: bool = False) -> list[Presence]:
    """Look for everything that the facts of a profile name.

    ``login``: it is a login node, which has no need of the compute nodes' devices.
    """
    found, facts = [], list(facts)
    prepared = any(re.fullmatch(r"system\.(module_paths|setup)", fact.path) and fact.value for fact in facts)
    for fact in facts:
        if login and _NODE_ONLY.fullmatch(fact.path):
            found.append(Presence(fact, _kind(fact) or MODULES, (), "this is a login node"))
        elif kind := _kind(fact):
            paths = _paths(fact.value)
            gone = tuple(path for path in paths if not machine.exists(path))
            unknown = "" if machine.is_live or not gone else f"the captured tree has no {', '.join(gone)}"
            found.append(Presence(fact, kind, gone, unknown, len(paths) - len(gone)))
        elif re.fullmatch(MODULES.path, fact.path):
            seen = _modules(machine, fact)
            unknown = "jobs see others, by system.module_paths and system.setup" if prepared and seen.gone else ""
            found.append(Presence(fact, MODULES, (), unknown) if unknown else seen)
    return found


def _kind(fact: Fact) -> FactKind | None:
    return next((kind for kind in PATHS if re.fullmatch(kind.path, fact.path)), None)


def _paths(value: Any) -> list[str]:
    """The paths of a fact; of a bind its source."""
    items = value if isinstance(value, list) else [value]
    paths = [item.get("source") if isinstance(item, dict) else item for item in items]
    return [path for path in paths if isinstance(path, str)]


def _modules(machine: Machine, fact: Fact) -> Presence:
    answer = machine.output("module-avail")
    if answer.text is None:
        return Presence(fact, MODULES, (), answer.why or "modules cannot be listed")
    known = {line.strip().removesuffix("(default)").removesuffix("/") for line in answer.text.split("\n")}
    gone = [name for name in _paths(fact.value) if not any(f"{each}/".startswith(f"{name}/") for each in known)]
    return Presence(fact, MODULES, tuple(gone), "")
