"""Which step a build is at, and what the user sees of it: plain lines; on a terminal also times and the last lines."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from hpcgen.backends.engines.building import Target
from hpcgen.backends.engines.steps import Event, Step
from hpcgen.core.model.record import BuiltStep
from hpcgen.core.support.progress import LINE_S
from hpcgen.core.support.units import size
from hpcgen.kit.folder import KitFolder

# Who is told of a build while it goes on.


class Watcher:
    """Told about a build while it goes on; this one says nothing."""

    def began(self, kit: KitFolder, builder: str, target: Target, progress: BuildProgress) -> None:
        """The engine is about to be started."""

    def ended(self, index: int) -> None:
        """A step has ended; ``index`` counts from 0."""

    def line(self, text: str) -> None:
        """The engine printed a line."""

    def tick(self) -> None:
        """Called several times a second while a builder runs, for a display that moves."""

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def finished(self) -> None:
        """The engine has ended, however it did."""


REFRESH_S = 0.2
LINES = 6
"""How many of the engine's last lines are shown."""


def display(say: Callable[[str], None], live: bool) -> PlainDisplay:
    """A live display on a terminal, otherwise plain lines."""
    return LiveDisplay(say, sys.stderr) if live else PlainDisplay(say)


class PlainDisplay(Watcher):
    """A line for each step that has ended."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.told = time.monotonic()

    def began(self, kit: KitFolder, builder: str, target: Target, progress: BuildProgress) -> None:
        self.progress = progress
        plan = kit.plan
        self.say(f"building {plan.stack.name} for {plan.site.name} with {builder} into {target.name}")

    def ended(self, index: int) -> None:
        """The step with its time."""
        self.say(self.progress.line(index))

    def note(self, text: str) -> None:
        self.say(text)

    def tick(self) -> None:
        """Of the image's file, which takes as long to write as many steps, how much is there."""
        if self.progress.written and self.progress.writes() and time.monotonic() - self.told > LINE_S:
            self.told = time.monotonic()
            for index in self.progress.running():
                self.say(self.progress.now(index))


class LiveDisplay(PlainDisplay):
    """The same lines, and below them what goes on now."""

    def __init__(self, say: Callable[[str], None], out: TextIO) -> None:
        super().__init__(say)
        self.out = out
        self.live: Any = None
        self.tail: deque[str] = deque(maxlen=LINES)
        self.started = self.drawn = time.monotonic()

    def began(self, kit: KitFolder, builder: str, target: Target, progress: BuildProgress) -> None:
        from rich.console import Console
        from rich.live import Live

        super().began(kit, builder, target, progress)
        self.live = Live(console=Console(file=self.out), auto_refresh=False, transient=True)
        self.live.start()

    def ended(self, index: int) -> None:
        """The step's line goes above the display."""
        from rich.text import Text

        if self.live is not None:
            self.live.console.print(Text(self.progress.line(index)))
        self.tick()

    def line(self, text: str) -> None:
        """One more line of the tail."""
        if text.strip():
            self.tail.append(text)
        if time.monotonic() - self.drawn > REFRESH_S:
            self.tick()

    def tick(self) -> None:
        if self.live is not None:
            self.drawn = time.monotonic()
            self.live.update(self._drawn(), refresh=True)

    def finished(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _drawn(self) -> Any:
        from rich.text import Text

        drawn = Text(no_wrap=True, overflow="ellipsis")
        for index in self.progress.running():
            drawn.append(f"{self.progress.now(index)}\n", style="bold")
        for line in self.tail:
            drawn.append(f"  {line.expandtabs()}\n", style="dim")
        drawn.append(f"{time.monotonic() - self.started:.0f} s in total")
        return drawn


State = Literal["running", "done", "cached", "failed"]


class BuildProgress:
    """The state of every step.

    steps: the steps of the recipe, in its order.
    alone: one step runs at a time, and ends when the next begins; else steps end when the engine says so.
    stopped: what fails now does so because the user wants it.
    written: how much of the image's file is there, while it is written: ``14 %``, ``312.4 MB``; "" if that is unknown.
    on_end: called with the index of each step that has ended.
    """

    def __init__(self, steps: Sequence[Step], alone: bool, on_end: Callable[[int], None] = lambda index: None) -> None:
        self.steps = list(steps)
        self.alone = alone
        self.on_end = on_end
        self.states: dict[int, State] = {}
        self.seconds: dict[int, float] = {}
        self._begun: dict[int, float] = {}
        self._kept: frozenset[int] = frozenset()
        self.stopped = False
        self.written = ""

    def take(self, event: Event) -> None:
        """Take note of an event."""
        index = event.index
        if index in self._kept:
            return
        if event.kind == "begin":
            self._begin(index)
        elif event.kind == "cached":
            self._begin(index)
            self.states[index] = "cached"
            if not self.alone:
                self._end(index, "cached", 0.0)
        else:
            self._end(index, event.kind, event.seconds)

    def again(self) -> None:
        """The engine is started once more: the step that failed begins anew, those that have ended stay as they are."""
        self._kept = frozenset(index for index, state in self.states.items() if state in ("done", "cached"))
        self.states = {index: self.states[index] for index in self._kept}
        self._begun.clear()

    def running(self) -> list[int]:
        """The steps that have begun and not ended."""
        return [index for index, state in self.states.items() if index in self._begun and state != "failed"]

    def writes(self) -> bool:
        """Whether the image's file is being written now."""
        return any(self.steps[index].keyword == "WRITE" for index in self.running())

    def now(self, index: int) -> str:
        """``[9/9] hpcgen: write the SIF file … 20 s, 312.4 MB``: a step that runs."""
        written = f", {self.written}" if self.written and self.steps[index].keyword == "WRITE" else ""
        return f"[{index + 1}/{len(self.steps)}] {self.steps[index].title} … {self.since(index):.0f} s{written}"

    def since(self, index: int) -> float:
        """Seconds since a running step began."""
        return time.monotonic() - self._begun[index]

    def close(self, failed: bool) -> None:
        """The engine has ended: what still runs is done, or with ``failed`` it is what failed."""
        for index in self.running():
            self._end(index, "failed" if failed and self.states[index] != "cached" else "done")

    def failing(self) -> int | None:
        """The step that failed; the one that began last if none says so."""
        return next((index for index, state in self.states.items() if state == "failed"), None)

    def built_steps(self) -> list[BuiltStep]:
        """The steps that were begun, in the recipe's order, for the record."""
        result: list[BuiltStep] = []
        for index, state in sorted(self.states.items()):
            step = self.steps[index]
            how: Literal["done", "cached", "failed"] = "done" if state == "running" else state
            seconds = round(self.seconds.get(index, 0.0), 1)
            result.append(BuiltStep(block=step.block, about=step.about, seconds=seconds, result=how))
        return result

    def line(self, index: int) -> str:
        """``[3/12] horovod 0.28.1: compile Horovod … 74 s``"""
        state = self.states.get(index, "running")
        took = f"{self.seconds.get(index, 0.0):.0f} s"
        ended = "stopped" if self.stopped else "failed"
        said = {"cached": "cached", "failed": f"{ended} after {took}"}.get(state, took)
        return f"[{index + 1}/{len(self.steps)}] {self.steps[index].title} … {said}"

    def _begin(self, index: int) -> None:
        if index in self._begun or (index in self.states and (not self.alone or self.states[index] == "cached")):
            return
        if self.alone:
            for other in self.running():
                self._end(other, "done")
        self.states[index] = "running"
        self._begun[index] = time.monotonic()

    def _end(self, index: int, state: Literal["done", "cached", "failed"], seconds: float | None = None) -> None:
        begun = self._begun.pop(index, None)
        if begun is None and index in self.states:
            return
        if self.states.get(index) == "cached":
            state, seconds = "cached", 0.0
        self.states[index] = state
        self.seconds[index] = seconds if seconds is not None else time.monotonic() - begun if begun is not None else 0.0
        self.on_end(index)


# How much of an image's file is written: as the program tells, else by the size of what grows.

_PERCENT = re.compile(r"\] +\d+/\d+ +(\d{1,3})%\s*$")
"""The end of a progress bar of mksquashfs."""
LOOK_S = 1.0
"""Seconds between two looks at the files."""


class WriteProgress:
    """Tells a build's progress how much is there.

    ``growing``: folders and patterns of the files that grow; those older than the build belong to others.
    """

    def __init__(self, progress: BuildProgress, growing: Iterable[tuple[Path, str]]) -> None:
        self.progress, self.growing = progress, list(growing)
        self._began = time.time()
        self._looked = 0.0
        self._percent = self._size = ""

    def update(self, text: str) -> None:
        """A program has written something over again in its line."""
        found = _PERCENT.search(text)
        if found is not None and self.progress.writes():
            self._percent = f"{found[1]} %"
            self._tell()

    def look(self) -> None:
        """Measure the files; beside a program's own share, which may stand while a large file is packed."""
        if time.monotonic() - self._looked < LOOK_S or not self.progress.writes():
            return
        self._looked = time.monotonic()
        found = (path for folder, pattern in self.growing for path in folder.glob(pattern))
        count = max((_size(path, self._began) for path in found), default=0)
        self._size = size(count) if count else ""
        self._tell()

    def _tell(self) -> None:
        self.progress.written = ", ".join(filter(None, (self._percent, self._size)))


def _size(path: Path, since: float) -> int:
    try:
        facts = path.stat()
    except OSError:
        return 0
    ours = facts.st_uid == os.geteuid() and facts.st_mtime >= since
    return facts.st_size if ours else 0
