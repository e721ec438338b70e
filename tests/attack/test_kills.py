"""Everything that writes is stopped at every call that changes names or waits for the disk, and run again.

Killed there, or told that the disk is full or broken; then the same command again makes the same, or says what to
remove. And two at once leave whole results. ``-s`` shows the counts; $HPCGEN_TEST_ROUNDS says how often two meet.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.stopped import Outcome, Runner
from tests.helpers.writers import WRITERS, View

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("HPCGEN_TEST_ROUNDS", "20"))
STOPS = {"kill": 0, "ENOSPC": errno.ENOSPC, "EIO": errno.EIO}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    found = Runner(tmp_path_factory.mktemp("writers"))
    yield found
    found.end()


def in_words(outcome: Outcome) -> None:
    """It ended well, or said why not as hpcgen says it."""
    bug = re.search(r"Traceback|bug in hpcgen|internal error", outcome.said)
    assert outcome.status in (0, 3, 4, 7, 8) and not bug, outcome
    assert outcome.status == 0 or "hpcgen: error: " in outcome.said, outcome


def names_what_to_remove(outcome: Outcome, folder: Path) -> bool:
    """Whether it is a refusal that says what is in the way, by a path that is there."""
    words = re.findall(r"[^\s:;,]+", outcome.said)
    return bool(re.search(r"remove|rm -r|move it|delete", outcome.said)) and any(
        (folder / word).exists() for word in words if "/" in word or "." in word
    )


def files(view: View) -> View:
    """Without empty folders, which a disk that refuses to remove them leaves, and without what hpcgen hides."""
    return {name: text for name, text in view.items() if not re.search(r"(^|/)\.hpcgen-|/$", name)}


@pytest.mark.parametrize("name", WRITERS)
def test_stopped_at_every_call(runner: Runner, name: str) -> None:
    writer, folder = WRITERS[name], runner.work / "w"
    for _ in range(2):  # The first keeps byte code, too.
        runner.begin(name)
        [peace] = runner.run(name)
        assert peace.status == 0, peace
    expected = runner.view(name)
    counts = dict.fromkeys(("calls", "same", "refused"), 0)
    counts["calls"] = peace.calls
    assert peace.calls > 0
    for number, (kind, error) in itertools.product(range(1, peace.calls + 1), STOPS.items()):
        what = f"{name}: {kind} at call {number} of {peace.calls}"
        runner.begin(name)
        [stopped] = runner.run(name, call=number, error=error)
        if error:
            in_words(stopped)
            if stopped.status == 0:
                done = files(runner.view(name))
                if "record could not be written" in stopped.said:
                    done["a record"] = "True"
                assert done == files(expected), (what, stopped)
        else:
            assert stopped.status == -9, (what, stopped)
        [again] = runner.run(name)
        in_words(again)
        found = runner.view(name)
        if error:
            found = files(found)
        if again.status == 0 or (writer.once and files(found) == files(expected)):
            assert found == (files(expected) if error else expected), (what, stopped, again)
            counts["same"] += 1
        else:
            assert names_what_to_remove(again, folder), (what, again)
            counts["refused"] += 1
    print(
        f"\n{name}: {counts['calls']} calls, stopped in 3 ways: {counts['same']} the same, {counts['refused']} refused"
    )


@pytest.mark.parametrize("name", WRITERS)
def test_two_at_once(runner: Runner, name: str) -> None:
    whole = []
    for order in ((0,), (1,), (0, 1), (1, 0)):
        runner.begin(name)
        for number in order:
            runner.run(name, (number,))
        whole.append(runner.view(name))
    done = refused = 0
    for _ in range(ROUNDS):
        runner.begin(name)
        outcomes = runner.run(name, (0, 1))
        for each in outcomes:
            in_words(each)
        good = [number for number, each in enumerate(outcomes) if each.status == 0]
        assert good, outcomes
        assert runner.view(name) in (whole[2:] if len(good) == 2 else [whole[good[0]]]), outcomes
        done += len(good)
        refused += 2 - len(good)
    print(f"\n{name}: {ROUNDS} rounds of two at once, {done} done, {refused} refused, every result whole")
