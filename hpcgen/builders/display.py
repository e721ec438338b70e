"""What the user sees of a build: plain lines; on a terminal also the step, its time and the last lines, as they go."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TextIO

from hpcgen.backends.engines.building import Target
from hpcgen.builders.progress import BuildProgress
from hpcgen.core.support.progress import LINE_S
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
