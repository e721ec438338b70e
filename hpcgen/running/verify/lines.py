"""What ``selftest.sh --lines`` prints → results, as the lines come. What the script prints for people is never read."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

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

    Parameters
    ----------
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
                self._end("failed", "the next test began before this one had ended")
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

        Parameters
        ----------
        status: its exit status; None if it was ended because it took longer than ``limit_s`` seconds.
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
