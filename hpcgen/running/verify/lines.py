"""What ``selftest.sh --lines`` and its rank test print → results, as it comes. What people read is never read."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from hpcgen.blocks.rank_test import LABEL, MPI_FILE, OPEN_MPI_COMPONENT, OPEN_MPI_OFI, OPEN_MPI_PROVIDERS, PROVIDER_IS
from hpcgen.core.model.record import TestResult
from hpcgen.recipe.selftest import FAILED, MARK, PASSED, SKIPPED
from hpcgen.running.here import status_text

KEPT_LINES = 400
"""Lines of a test's output that are kept, the last ones."""

Outcome = Literal["passed", "failed", "skipped"]

CONTRACT = "contract"
"""Group of the tests that no block brings."""

WHOLE = "self-test"
"""Name of the test that stands for the script as a whole, where it did not get to its end."""

_BEGIN = f"{MARK} begin "
_END = f"{MARK} end "
# An image has the script of the hpcgen that built it; that of 0.1.0 says "left out", and ends with its summary.
_LAST = re.compile(rf"{MARK} done|\d+ passed, \d+ failed, \d+ left out")
_OUTCOMES: dict[str, Outcome] = {PASSED: "passed", FAILED: "failed", SKIPPED: "skipped", "left out": "skipped"}

OnResult = Callable[[TestResult], None]
OnBegin = Callable[[str, str], None]


class SelfTestLines:
    """Reads the lines one by one.

    on_begin: called with the group and name of a test that begins.
    on_result: called with each result.
    clock: seconds, for the time of a test.
    """

    def __init__(self, on_begin: OnBegin, on_result: OnResult, clock: Callable[[], float] = time.monotonic) -> None:
        self.results: list[TestResult] = []
        self._on_begin = on_begin
        self._on_result = on_result
        self._clock = clock
        self._open: tuple[str, str, float] | None = None
        self._output: deque[str] = deque(maxlen=KEPT_LINES)
        self._outside: deque[str] = deque(maxlen=KEPT_LINES)
        self._complete = False

    def feed(self, line: str) -> None:
        """Take one line that the self-test prints."""
        if line.startswith(_BEGIN):
            if self._open is not None:
                self._end("failed", "the next test started before this one ended")
            label, _, name = line.removeprefix(_BEGIN).partition(": ")
            self._open = (label.split(" ")[0], name or label, self._clock())
            self._output.clear()
            self._on_begin(self._open[0], self._open[1])
        elif line.startswith(_END) and self._open is not None:
            self._end(*_outcome(line.removeprefix(_END)))
        elif self._open is not None:
            self._output.append(line)
        else:
            self._complete = self._complete or _LAST.fullmatch(line) is not None
            self._outside.append(line)

    def finish(self, status: int | None, limit_s: float) -> list[TestResult]:
        """All results, when the script has ended.

        ``status``: its exit status; None if it was ended because it took longer than ``limit_s`` seconds.
        """
        how = f"it was ended after {limit_s:g} s" if status is None else f"the start ended with {status_text(status)}"
        if self._open is not None:
            self._end("failed", f"{how} in the middle of it")
        elif not self._complete:
            after = f"after {len(self.results)} tests" if self.results else "before the first test"
            self._add(
                TestResult(group=CONTRACT, name=WHOLE, result="failed", reason=f"{how} {after}", output=self._said())
            )
        elif status and not any(each.result == "failed" for each in self.results):
            reason = f"every test passed, but {how}"
            self._add(TestResult(group=CONTRACT, name=WHOLE, result="failed", reason=reason, output=self._said()))
        return self.results

    def _said(self) -> str:
        return "\n".join(self._outside)

    def _end(self, result: Outcome, reason: str) -> None:
        assert self._open is not None
        group, name, began = self._open
        self._open = None
        seconds = round(self._clock() - began, 3)
        output = "\n".join(self._output)
        self._add(TestResult(group=group, name=name, result=result, seconds=seconds, reason=reason, output=output))

    def _add(self, result: TestResult) -> None:
        self.results.append(result)
        self._on_result(result)


def _outcome(text: str) -> tuple[Outcome, str]:
    """Result and reason of ``skipped: no /dev/kfd``; what is no known result proves nothing and is a failure."""
    word, _, reason = text.partition(": ")
    return (_OUTCOMES[word], reason) if word in _OUTCOMES else ("failed", reason or text)


# These may stand behind a label, or behind the half of a line of another rank: launchers pass on pieces of what the
# ranks print, and Intel MPI writes its own lines in two ("[0] MPI startup(): rank 2 of 4 on n2").
_RANK = re.compile(r"rank (\d+) of (\d+) on (.+)")
_MAPS = re.compile(r"rank (\d+) maps (/.+)")
_OTHER = re.compile(r"rank (\d+) has library (.+)")
_WITHIN = re.compile(r"within (\S+): (64 MB from rank \d+ to rank \d+ at .+)")
_LIBRARY = re.compile(rf"{LABEL}?library (.+)")
_MPI = re.compile(MPI_FILE)
_PROVIDER = re.compile(f"{PROVIDER_IS}([A-Za-z0-9_;]+)")
_OPEN_MPI = re.compile(OPEN_MPI_COMPONENT)
_OPEN_MPI_OFI = re.compile(f"{OPEN_MPI_OFI}(?P<name>[A-Za-z0-9_;]+)")


class Ranks(msgspec.Struct, frozen=True):
    """The ranks of a job.

    seen: number and size of the job that each rank told, in the order that they came.
    maps: by rank, the MPI and fabric libraries mapped into it.
    version: what the library says it is.
    others: by rank, what it says where that is not what it says in rank 0.
    provider: the provider of libfabric that was chosen, ``ucx`` for UCX; "" if the MPI does not say.
    nodes: the names of the nodes that they ran on, sorted.
    within: by node, how fast and by which way two of its ranks send.
    """

    seen: list[tuple[int, int]]
    maps: dict[int, list[str]]
    version: str = ""
    provider: str = ""
    others: dict[int, str] = {}
    nodes: list[str] = []
    within: dict[str, str] = {}

    def mpi(self, rank: int) -> list[str]:
        """The MPI libraries mapped into a rank, sorted."""
        return sorted({path for path in self.maps.get(rank, []) if _MPI.search(path)})


def read_ranks(lines: Iterable[str]) -> Ranks:
    """Read the output of rank_test, in which the lines of the ranks are mixed."""
    seen: list[tuple[int, int]] = []
    maps: dict[int, list[str]] = {}
    others: dict[int, str] = {}
    within: dict[str, str] = {}
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
        elif found := _WITHIN.search(line):
            within[found[1]] = found[2]
        elif found := _LIBRARY.fullmatch(line):
            version = version or found[2]
        elif found := _PROVIDER.search(line):
            provider = provider or found[1]
        elif found := _OPEN_MPI.search(line):
            component = component or found[1]
        elif found := _OPEN_MPI_OFI.search(line):
            below = below or found["name"]
    by_component = below if component == "cm" else OPEN_MPI_PROVIDERS.get(component, "")
    return Ranks(seen, maps, version, provider or by_component, others, sorted(nodes), within)


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
