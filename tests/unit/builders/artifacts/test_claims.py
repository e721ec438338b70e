"""Who wants what another is compiling waits for it, and for nobody who is gone."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from hpcgen.builders.artifacts.claims import ClaimTimes, claimed

QUICK = ClaimTimes(look_s=0.05, touch_s=0.1, tell_s=60, gone_s=1.0, longest_s=60)


def _hold(path: Path, ready: Path) -> None:
    with claimed(path, "mpich", print, QUICK):
        ready.write_text("")
        time.sleep(60)


@pytest.fixture
def held(tmp_path: Path) -> multiprocessing.Process:
    """A process that has the claim ``ab/claim`` of the test's folder."""
    other = multiprocessing.get_context("spawn").Process(target=_hold, args=(tmp_path / "ab/claim", tmp_path / "ready"))
    other.start()
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    return other  # type: ignore[return-value]


def test_a_killed_owner_is_not_waited_for(held: multiprocessing.Process, tmp_path: Path) -> None:
    held.kill()
    held.join()
    assert (tmp_path / "ab/claim").exists()
    begun = time.monotonic()
    with claimed(tmp_path / "ab/claim", "mpich", print):
        assert time.monotonic() - begun < 1
    assert not (tmp_path / "ab/claim").exists()


def test_one_that_is_at_work_is_waited_for_and_named_until_it_is_too_long(
    held: multiprocessing.Process, tmp_path: Path
) -> None:
    told: list[str] = []
    begun = time.monotonic()
    # Far longer than one that nobody touches would last.
    times = ClaimTimes(look_s=0.05, touch_s=0.1, tell_s=60, gone_s=1.0, longest_s=3)
    with claimed(tmp_path / "ab/claim", "mpich", told.append, times):
        assert 3 <= time.monotonic() - begun < 10
    held.kill()
    held.join()
    assert len(told) == 1 and told[0].startswith("waiting for mpich, which is being compiled on ")


def test_one_of_another_machine_that_nobody_touches_any_more_is_gone(tmp_path: Path) -> None:
    (tmp_path / "claim").write_text("another-node")
    begun = time.monotonic()
    with claimed(tmp_path / "claim", "mpich", print, QUICK):
        assert 1 <= time.monotonic() - begun < 10
