"""The machines of hwloc's own tests: what Linux said on them, and what hwloc makes of it.

    python -m tests.helpers.hwloc CHECKOUT

prints a line for each: cores, threads per core, sockets and domains of memory as hwloc has them and as detection does.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tests.helpers.trees import seen_in

FACTS = ("cores", "threads_per_core", "sockets", "numa_domains")
Counts = tuple[int | None, ...]

OTHERWISE: dict[str, tuple[Counts, str]] = {
    "16amd64-4n4c-cgroup-distance-merge": ((16, 1, 4, 4), "hwloc shows what a cgroup allows; by the tree's name"),
    "16em64t-4s2ca2c-cpusetreorder": ((16, 1, 4, 1), "hwloc shows what a cgroup allows; by the tree's name"),
    "32amd64-4s2n4c-cgroup2": ((32, 1, 4, 8), "hwloc shows what a cgroup allows; by the tree's name"),
    "4fake-4gr1nu1pu": ((4, 1, 1, 4), "hwloc shows what a cgroup allows; by the tree's name"),
    "40intel64-4n10c+pci-conflicts": ((40, 1, 4, 4), "one of four sockets has a false set, and hwloc leaves it out"),
    "20s390-2g6s4c": ((20, 1, None, 1), "the number of each package is -1: Linux does not know them"),
    "256ppc-8n8s4t": ((64, 4, None, 8), "the number of each package is -1: Linux does not know them"),
}
"""What a node has where hwloc's file says something else, with the reason."""

_READ = re.compile(
    r"[^/]+/(?:fsroot/)?(sys/devices/system/(?:cpu/(?:online|cpu\d+/(?:online|topology/\w+))|node/node\d+/cpu(?:list|map))"
    r"|proc/cpuinfo)"
)


def machines(checkout: Path) -> Iterator[tuple[str, Counts, Counts]]:
    """Name, expected and detected counts of every machine that hwloc has a tree of.

    Those of tests/hwloc/x86 are none: they are answers of the instruction cpuid.

    Raises
    ------
    FileNotFoundError: there is no hwloc at this place.
    """
    folder = checkout / "tests" / "hwloc"
    archives = sorted((folder / "linux").glob("*.tar.bz2")) + sorted((folder / "x86+linux").glob("*.tar.bz2"))
    if not archives:
        raise FileNotFoundError(f"{folder}/linux has no archive: it is no checkout of hwloc")
    for archive in archives:
        name = archive.name.removesuffix(".tar.bz2")
        cores, threads, sockets, domains = max(counts(target) for target in _targets(archive))
        expected = (cores, threads, sockets or None, domains)
        yield name, OTHERWISE[name][0] if name in OTHERWISE else expected, detected(archive)


def _targets(archive: Path) -> list[Path]:
    """What hwloc prints of a tree, with several options: the most is what there is."""
    texts = [path.read_text() for path in archive.parent.glob("*.test")]
    found = [dict(re.findall(r"^(source|target):\s*(\S+)", text, re.MULTILINE)) for text in texts]
    return [archive.parent / each["target"] for each in found if each["source"] == archive.name]


def detected(archive: Path) -> Counts:
    """The facts that detection finds in a tree."""
    with tempfile.TemporaryDirectory() as aside, tarfile.open(archive) as tar:
        root = Path(aside) / "root"
        root.mkdir()
        for member in tar:
            if (match := _READ.fullmatch(member.name)) and member.isfile():
                place = root / match[1]
                place.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                place.write_bytes(content.read())
        seen = seen_in(Path(aside))
    return tuple(seen.value(f"node.cpu.{fact}") for fact in FACTS)


def counts(target: Path) -> tuple[int, int, int, int]:
    """The same facts in what hwloc prints, as XML or as lines; 0 where it has none."""
    if target.suffix == ".xml":
        machine = ElementTree.parse(target).find("object")
        assert machine is not None
    else:
        machine = _lines(target.read_text())
    cores = _count(machine, "Core") or _count(machine, "PU")
    domains = sum(1 for each in machine.iter("object") if _is_domain(each))
    return cores, max(1, _count(machine, "PU") // cores), _count(machine, "Package"), domains


def _lines(text: str) -> ElementTree.Element:
    """The lines above ``depth 0:``, in which indentation says what is part of what, as elements."""
    top = ElementTree.Element("object")
    open_: list[tuple[int, ElementTree.Element]] = [(-1, top)]
    for line in text.split("\ndepth 0:")[0].split("\n"):
        if match := re.match(r"( *)([A-Za-z0-9]+)", line):
            while open_[-1][0] >= len(match[1]):
                open_.pop()
            element = ElementTree.SubElement(open_[-1][1], "object", {"type": match[2]})
            open_.append((len(match[1]), element))
    return top


def _count(element: ElementTree.Element, kind: str) -> int:
    return sum(1 for each in element.iter("object") if each.get("type") == kind)


def _is_domain(element: ElementTree.Element) -> bool:
    """Whether it has CPUs and memory of its own, and no part of it has: hwloc has memory at sockets as well."""
    below = [each for each in element.iter("object") if each is not element and _has_memory(each)]
    return _has_memory(element) and not below and _count(element, "PU") > 0


def _has_memory(element: ElementTree.Element) -> bool:
    if str(element.get("type")).startswith("Mem"):
        return False
    return any(
        each.get("type") == "NUMANode" or (str(each.get("type")).startswith("Mem") and _count(each, "NUMANode"))
        for each in element.findall("object")
    )


if __name__ == "__main__":
    for name, expected, found in machines(Path(sys.argv[1])):
        print(f"{name:44} {expected!s:20} {found!s:20} {'' if expected == found else 'DIFFERENT'}")
