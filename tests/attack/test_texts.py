"""Every text of a profile, a stack, a job, a fleet and a lock × hostile payloads: refused, or nothing but a text.

A fixed sample is in the unit tier, where the files are looked at; the slow tier has more than a hundred thousand cases
and runs thousands of the scripts (root tier: some) in an empty root, where ``canary`` would leave a trace.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from hpcgen.core.errors import HpcgenError
from tests.attack import payloads
from tests.attack.bounded import Outcome, attempt, in_processes
from tests.attack.cases import case, files_of, places, total
from tests.attack.empty_root import make_root, run_scripts
from tests.attack.shell_texts import shell_texts
from tests.attack.subjects import RECORDS, said_fields, text_fields
from tests.attack.tame import wild

SAMPLE, SOME, MANY, SCRIPTS = 300, 3_000, 120_000, 3_000
TURNS, OF_A_PLACE = 14, 160
"""Schedulers and engines that a case is written for; kits whose scripts are kept of one place."""


def numbers(count: int) -> list[int]:
    """So many of all cases, evenly spread over places and payloads."""
    step = total() // count
    # With a step that shares a divisor with the number of places, some of these would never be met.
    while any(len(places()) % d == 0 and step % d == 0 for d in range(2, 100)):
        step -= 1
    return list(range(0, total(), step))


def tried(number: int) -> str:
    one = case(number)
    if said := wild(files_of(one)):
        raise AssertionError(f"{one}: {said}")
    return "accepted"


def kept(number: int, folder: Path, seen: Counter[tuple[object, ...]]) -> str:
    """Try it, and keep the scripts that have its payload for the empty root."""
    one = case(number)
    for turn in range(TURNS):
        try:
            files = files_of(one, turn)
        except HpcgenError:
            # Another engine or scheduler than that of the first turn may refuse what that one takes.
            if turn == 0:
                raise
            continue
        if said := wild(files):
            raise AssertionError(f"{one}: {said}")
        scripts = [text for text in shell_texts(files) if payloads.CANARY in text or "/trace" in text]
        if not scripts or seen[one.subject, one.path] >= OF_A_PLACE:
            break
        seen[one.subject, one.path] += 1
        for text in scripts:
            (folder / hashlib.sha256(text.encode()).hexdigest()).write_text(f"{text}\n# {number}\n", "utf-8")
    return "accepted"


def collected(count: int, folder: Path) -> Outcome:
    seen: Counter[tuple[object, ...]] = Counter()
    outcome = in_processes(numbers(count), lambda number: kept(number, folder, seen))
    print(outcome)
    assert not outcome.failures, f"{len(outcome.failures)} cases failed:\n" + "\n".join(outcome.failures[:20])
    return outcome


def executed(count: int, folder: Path, root: Path) -> int:
    found = sorted(path.read_text("utf-8") for path in folder.iterdir())
    scripts = found[:: max(1, len(found) // count)]
    left = run_scripts(make_root(root), scripts)
    assert not left, "\n".join(f"{line}: {case(int(_number(scripts, line)))}" for line in left[:20])
    return len(scripts)


def _number(scripts: list[str], line: str) -> str:
    return scripts[int(line.rpartition("/")[2])].rstrip("\n").rpartition("# ")[2]


@pytest.mark.parametrize("name", RECORDS)
def test_every_text_field_is_attacked(name: str) -> None:
    data, kind = RECORDS[name]
    # What a profile extends is looked up as a name and merged before there is a record; what a stack starts from has to
    # be an image that was read; memory is one of two words.
    assert text_fields(kind) - said_fields(data, kind) <= {("extends",), ("from",), ("memory",)}


def test_a_sample_is_refused_or_a_text() -> None:
    outcome = Outcome()
    attempt(numbers(SAMPLE), tried, outcome)
    assert not outcome.failures, outcome.failures[:5]
    assert outcome.counts["accepted"] > 30 and outcome.counts["refused"] > 100


@pytest.mark.root
def test_scripts_of_a_sample_start_nothing(tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    collected(SOME, tmp_path / "found")
    assert executed(150, tmp_path / "found", tmp_path / "root") >= 50


@pytest.mark.root
def test_the_empty_root_shows_what_runs(tmp_path: Path) -> None:
    scripts = [
        "$(canary)",
        "srun apptainer exec x /usr/bin/env A=1 bash -c 'echo `canary`'",
        "echo '$(canary)'",
        "> /trace/x",
    ]
    left = run_scripts(make_root(tmp_path / "root"), scripts)
    assert sorted({int(line.rpartition("/")[2]) for line in left}) == [0, 1, 3]


@pytest.mark.slow
def test_more_than_a_hundred_thousand_start_nothing(tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    outcome = collected(MANY, tmp_path / "found")
    assert outcome.counts.total() > 100_000
    ran = executed(SCRIPTS, tmp_path / "found", tmp_path / "root")
    print(f"{ran} scripts executed, no trace")
    assert ran >= 2_000
