"""What a node is like while a test runs on it: the processors of each rank, their clock, other work, TCP's losses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from hpcgen.core.support.cpu_lists import list_text, read_list
from hpcgen.core.support.units import counted

_MARK = "hpcgen-node:"
# One line for each rank and time, so that lines of several ranks do not mix. By what every image has.
_LOOK = (
    "look() { cpus=$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status); "
    "clock=/sys/devices/system/cpu/cpu${cpus%%[-,]*}/cpufreq; "
    f'echo "{_MARK} $(uname -n) $1 cpus=$cpus of=$(grep -c ^processor /proc/cpuinfo)'
    " running=$(cut -d ' ' -f 4 /proc/loadavg)"
    " waits=$(sed -n 's/^some .*total=//p' /proc/pressure/cpu 2> /dev/null) at=$(cut -d ' ' -f 1 /proc/uptime)"
    " clock=$(cat $clock/scaling_cur_freq $clock/scaling_max_freq $clock/cpuinfo_max_freq 2> /dev/null | tr '\\n' ,)"
    " tcp=$(sed -n 's/^Tcp: \\([0-9].*\\)/\\1/p' /proc/net/snmp 2> /dev/null | tr ' ' ,)\"; }"
)
_SEEN = re.compile(
    rf"{_MARK} (\S+) (before|after) cpus=([0-9,-]+) of=(\d+) running=(\d+)/\d+ "
    r"waits=(\d*) at=([0-9.]+) clock=([0-9,]*) tcp=([0-9,-]*)"
)
_SENT, _SENT_AGAIN = 10, 11
"""Columns of /proc/net/snmp: OutSegs and RetransSegs."""
_FEW_SEGMENTS, _MANY_SEGMENTS = 20, 20_000
"""So few are sent again by chance; so many are not sent by what else speaks TCP while a benchmark runs."""
_WAITS = 0.25
"""The share of a test in which some program waited for a processor, from which on the node is busy. Ranks that wait for
messages keep one processor each, so those of a test alone make no program wait but for moments."""
_MOMENT_S = 1
"""Seconds in which the start of a test alone makes programs wait."""
_SLOW_CLOCK, _LOWERED_CLOCK, _LOSSES = 0.7, 0.9, 0.002
"""Shares: of a clock after work, of the limit set for it, and of TCP segments sent again, that slow a test down."""


class NodeCondition(msgspec.Struct, frozen=True):
    """What a rank saw of its node, ``before`` the test or ``after`` it.

    cpus: those that it may use. processors: how many the node has. running: programs that ran or waited for one.
    clock: of its first processor now, its limit, and what it can do, in kHz; empty where the kernel does not tell.
    tcp: segments that the node sent, and sent again, since it started; empty where the kernel does not tell.
    waits: seconds in which some program waited for a processor, since the node started, of which seconds; empty where
        the kernel does not tell (Documentation/accounting/psi.rst of torvalds/linux).
    """

    node: str
    when: str
    cpus: list[int]
    processors: int
    running: int
    clock: list[int]
    tcp: list[int]
    waits: list[float] = []


def watched(command: str) -> str:
    """Shell that runs a command between two looks at the node, and ends as it does."""
    return f"{_LOOK}; look before; ( {command} ); status=$?; look after; exit $status"


def is_look(line: str) -> bool:
    """Whether a line is a look's, and not the test's."""
    return _MARK in line


def read_conditions(lines: Iterable[str]) -> list[NodeCondition]:
    """What the looks printed."""
    found = []
    for match in filter(None, map(_SEEN.search, lines)):
        clock, tcp = ([int(each) for each in match[index].split(",") if each] for index in (8, 9))
        tcp = [tcp[_SENT], tcp[_SENT_AGAIN]] if len(tcp) > _SENT_AGAIN else []
        cpus = read_list(match[3])
        clock = clock if len(clock) == 3 else []
        waits = [int(match[6]) / 1e6, float(match[7])] if match[6] else []
        found.append(NodeCondition(match[1], match[2], cpus, int(match[4]), int(match[5]), clock, tcp, waits))
    return found


def looked_at(seen: list[NodeCondition]) -> list[str]:
    """What of the nodes could be seen."""
    clock = ["clock"] if any(each.clock for each in seen) else []
    return ["binding", *clock, "load"] if seen else []


def faults_on_nodes(seen: list[NodeCondition]) -> list[str]:
    """What of the nodes makes a test slow, in words."""
    return [cause for name, looks in _by_node(seen) for cause in _faults(name, looks)]


def other_work(seen: list[NodeCondition]) -> list[str]:
    """By what it shows that other programs used the nodes during a test, in words."""
    return [words for name, looks in _by_node(seen) for words in _other_work(name, looks)]


def _by_node(seen: list[NodeCondition]) -> list[tuple[str, list[NodeCondition]]]:
    nodes: dict[str, list[NodeCondition]] = defaultdict(list)
    for each in seen:
        nodes[each.node].append(each)
    return sorted(nodes.items())


def by_tcp(seen: list[NodeCondition]) -> str:
    """In words, that a test's messages went by TCP, as far as the nodes' counts show it; "" where they do not."""
    for name in sorted({each.node for each in seen}):
        sent, _ = _tcp([each for each in seen if each.node == name])
        if sent > _MANY_SEGMENTS:
            return f"{name} sent {sent} TCP segments meanwhile"
    return ""


def _faults(name: str, seen: list[NodeCondition]) -> list[str]:
    before, after = ([each for each in seen if each.when == when] for when in ("before", "after"))
    found = []
    cpus = sorted({cpu for each in before for cpu in each.cpus})
    if len(cpus) < len(before):
        found.append(
            f"binding: {len(before)} ranks on {name} share {counted(len(cpus), 'processor')} ({list_text(cpus)})"
        )
    for now, limit, most in (each.clock for each in after if each.clock):
        if limit < _LOWERED_CLOCK * most or now < _SLOW_CLOCK * most:
            found.append(
                f"clock: {name} runs at {now / 1e6:.1f} of {most / 1e6:.1f} GHz, its limit is {limit / 1e6:.1f}"
            )
            break
    sent, again = _tcp(seen)
    if again > max(_FEW_SEGMENTS, _LOSSES * sent):
        found.append(f"losses: {name} sent {again} of {sent} TCP segments again")
    return found


def _other_work(name: str, seen: list[NodeCondition]) -> list[str]:
    before = [each for each in seen if each.when == "before"]
    waits = [each.waits for each in seen if each.waits]
    if waits:
        waited, lasted = (last - first for first, last in zip(min(waits), max(waits), strict=True))
        if lasted < _MOMENT_S or waited <= _WAITS * lasted:
            return []
        return [f"programs on {name} waited for a processor in {waited / lasted:.0%} of the time"]
    if not before or before[0].running <= before[0].processors + len(before):
        return []
    processors = counted(before[0].processors, "processor")
    return [f"{before[0].running} programs ran on the {processors} of {name} as the test began"]


def _tcp(seen: list[NodeCondition]) -> tuple[int, int]:
    """Segments of TCP that a node sent, and sent again, between the first and the last look."""
    first = min((each.tcp for each in seen if each.tcp and each.when == "before"), default=[0, 0])
    last = max((each.tcp for each in seen if each.tcp and each.when == "after"), default=first)
    return last[0] - first[0], last[1] - first[1]
