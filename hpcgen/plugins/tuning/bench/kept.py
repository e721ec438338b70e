"""Rounds as files of a folder, so that several processes may share a measurement, and a later one go on with it.

A round is kept whole, when its last variant has run: what is compared was measured on one node, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.tuning.bench.running import BenchOutcome, Rate
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload

MAX_BYTES = 16 * 1024 * 1024
_ADDED = "added.json"


class KeptRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file: of what it is a round, and of each variant its rate, or why it has none."""

    about: dict[str, str]
    results: list[Rate | str]


class KeptRounds:
    """The rounds of some outcomes in a folder.

    folder: made with the first round.
    outcomes: all that is measured; those of a workload one after the other.
    seconds: how long steps are timed.
    """

    def __init__(self, folder: Path, outcomes: Sequence[BenchOutcome], seconds: float) -> None:
        self.folder = folder
        self._outcomes = outcomes
        self._seconds = seconds

    def read(self, rounds: int) -> None:
        """Give the outcomes what is there of so many rounds.

        InputError: a file cannot be read, is damaged, or is of something else.
        """
        for workload in self._workloads():
            for number in range(rounds):
                data = self._bytes(self._path(workload, number))
                if data is not None:
                    self._take(self._decoded(data, workload, number), workload, number)

    def has(self, workload: BenchWorkload, number: int) -> bool:
        """Whether a round is there by now, from whoever."""
        return self._path(workload, number).exists()

    def keep(self, workload: BenchWorkload, number: int) -> None:
        """Write a round that has ended; OutputError where that cannot be."""
        cells = self._of(workload)
        kept = KeptRound(self._about_of(cells), [each.rates.get(number) or each.reason for each in cells])
        write_file(self._path(workload, number), msgspec.json.encode(kept) + b"\n", folders=True)

    def is_added(self) -> bool:
        """Whether all rates that the outcomes have became measurements before."""
        data = self._bytes(self.folder / _ADDED)
        try:
            return data is not None and set(msgspec.json.decode(data, type=list[str])) >= set(self._names())
        except msgspec.MsgspecError as failure:
            raise _damaged(self.folder / _ADDED, failure) from failure

    def note_added(self) -> None:
        """Remember that the rates became measurements, so that they do so once."""
        write_file(self.folder / _ADDED, msgspec.json.encode(self._names()) + b"\n")

    def _names(self) -> list[str]:
        """Files of the rounds in which something has a rate."""
        numbers = {(each.workload.name, number) for each in self._outcomes for number in each.rates}
        return sorted(f"{name}-round-{number + 1}.json" for name, number in numbers)

    def _path(self, workload: BenchWorkload, number: int) -> Path:
        return self.folder / f"{workload.name}-round-{number + 1}.json"

    def _workloads(self) -> Iterable[BenchWorkload]:
        return {each.workload.name: each.workload for each in self._outcomes}.values()

    def _of(self, workload: BenchWorkload) -> list[BenchOutcome]:
        return [each for each in self._outcomes if each.workload is workload]

    def _about_of(self, cells: Sequence[BenchOutcome]) -> dict[str, str]:
        """All that its results depend on, beside the workload."""
        plans = [each.case.job.plan for each in cells]
        words: dict[str, Iterable[str]] = {
            "hpcgen": [__version__],
            "seconds": [f"{self._seconds:g}"],
            "nodes": [str(plan.job.nodes) for plan in plans],
            "machines": [f"{plan.site.name}/{plan.partition}" for plan in plans],
            "engines": [each.case.engine for each in cells],
            "images": [each.case.identity for each in cells],
            "variants": [str(each.variant) for each in cells],
        }
        return {name: ", ".join(dict.fromkeys(each)) for name, each in words.items()}

    def _decoded(self, data: bytes, workload: BenchWorkload, number: int) -> KeptRound:
        path = self._path(workload, number)
        try:
            kept = msgspec.json.decode(data, type=KeptRound)
        except (msgspec.MsgspecError, RecursionError) as failure:
            raise _damaged(path, failure) from failure
        cells = self._of(workload)
        about = self._about_of(cells)
        other = sorted(name for name in about.keys() | kept.about.keys() if about.get(name) != kept.about.get(name))
        if other or len(kept.results) != len(cells):
            what = "; ".join(f"{name} {kept.about.get(name, 'none')}, not {about.get(name, 'none')}" for name in other)
            remedy = "give the same command again, or --keep another folder"
            raise InputError(
                f"this round belongs to another command: {what or 'more variants'}", str(path), remedy=remedy
            )
        return kept

    def _take(self, kept: KeptRound, workload: BenchWorkload, number: int) -> None:
        for cell, result in zip(self._of(workload), kept.results, strict=True):
            if isinstance(result, Rate):
                cell.rates[number] = result
            else:
                cell.reason = cell.reason or result

    def _bytes(self, path: Path) -> bytes | None:
        try:
            data = read_plain(path, MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as failure:
            raise InputError(
                f"this file cannot be read: {failure.strerror}",
                str(path),
                remedy="make it readable, or take it out of the folder of --keep",
            ) from failure
        if len(data) > MAX_BYTES:
            raise _damaged(path, "it is too large")
        return data


def _damaged(path: Path, why: Any) -> InputError:
    return InputError(f"this file is damaged: {why}", str(path), remedy="remove it: the round is measured again")
