"""What the block rank_test and the MPI library print → what is known of a job's ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from hpcgen.blocks.rank_test import LABEL, MPI_FILE, OPEN_MPI_COMPONENT, OPEN_MPI_OFI, OPEN_MPI_PROVIDERS, PROVIDER_IS

# These may stand behind a label, or behind the half of a line of another rank: launchers pass on pieces of what the
# ranks print, and Intel MPI writes its own lines in two ("[0] MPI startup(): rank 2 of 4 on n2").
_RANK = re.compile(r"rank (\d+) of (\d+) on (.+)")
_MAPS = re.compile(r"rank (\d+) maps (/.+)")
_OTHER = re.compile(r"rank (\d+) has library (.+)")
_LIBRARY = re.compile(rf"{LABEL}?library (.+)")
_MPI = re.compile(MPI_FILE)
_PROVIDER = re.compile(f"{PROVIDER_IS}([A-Za-z0-9_;]+)")
_OPEN_MPI = re.compile(OPEN_MPI_COMPONENT)
_OPEN_MPI_OFI = re.compile(f"{OPEN_MPI_OFI}(?P<name>[A-Za-z0-9_;]+)")


class Ranks(msgspec.Struct, frozen=True):
    """The ranks of a job.

    Parameters
    ----------
    seen: number and size of the job that each rank told, in the order that they came.
    maps: by rank, the MPI and fabric libraries mapped into it.
    version: what the library says it is.
    others: by rank, what it says where that is not what it says in rank 0.
    provider: the provider of libfabric that was chosen, ``ucx`` for UCX; "" if the MPI does not say.
    nodes: the names of the nodes that they ran on, sorted.
    """

    seen: list[tuple[int, int]]
    maps: dict[int, list[str]]
    version: str = ""
    provider: str = ""
    others: dict[int, str] = {}
    nodes: list[str] = []

    def mpi(self, rank: int) -> list[str]:
        """The MPI libraries mapped into a rank, sorted."""
        return sorted({path for path in self.maps.get(rank, []) if _MPI.search(path)})


def read_ranks(lines: Iterable[str]) -> Ranks:
    """Read the output of rank_test, in which the lines of the ranks are mixed."""
    seen: list[tuple[int, int]] = []
    maps: dict[int, list[str]] = {}
    others: dict[int, str] = {}
    nodes: set[str] = set()
    version = provider = component = below = ""
    for line in lines:
        if found := _RANK.search(line):
            seen.append((int(found[1]), int(found[2])))
            nodes.add(found[3])
        elif found := _MAPS.search(line):
            maps.setdefault(int(found[1]), []).append(found[2])
        elif found := _OTHER.search(line):
            others[int(found[1])] = found[2]
        elif found := _LIBRARY.fullmatch(line):
            version = version or found[2]
        elif found := _PROVIDER.search(line):
            provider = provider or found[1]
        elif found := _OPEN_MPI.search(line):
            component = component or found[1]
        elif found := _OPEN_MPI_OFI.search(line):
            below = below or found["name"]
    by_component = below if component == "cm" else OPEN_MPI_PROVIDERS.get(component, "")
    return Ranks(seen, maps, version, provider or by_component, others, sorted(nodes))


def version_of(library: str) -> str:
    """The version in the text of MPI_Get_library_version; "" if there is none.

    ``Intel(R) MPI Library 2021.17 for Linux* OS``, ``Intel(R) MPI Library 2019 Update 6 for Linux* OS``,
    ``MPICH Version: 4.3.2``, ``Open MPI v4.1.4, package: …``, ``MPI VERSION : CRAY MPICH version 8.1.27.26 (…)``.
    """
    found = re.search(r"(?:Library|Version:|Open MPI v|version)\s*(\d+(?:\.\d+)*)(?: Update (\d+))?", library)
    if found is None:
        return ""
    return f"{found[1]}.{found[2]}" if found[2] else found[1]


def agree(one: str, other: str) -> bool:
    """Whether two versions are the same as far as both go: 2021.17 and 2021.17.2 are, 2021.16 and 2021.17.2 not."""
    first, second = (re.split(r"[.\-+]", text) for text in (one, other))
    return all(a == b for a, b in zip(first, second, strict=False))
