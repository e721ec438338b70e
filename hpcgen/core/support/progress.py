"""Progress of fetching and checking: a few plain lines in a log, bars on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from hpcgen.core.support.units import files, size

LINE_S = 15.0
"""In a log: seconds between two lines that say how far it is."""


class TransferProgress:
    """How far one piece of work is. Threads add to it, the main thread shows it.

    ``title``: such as ``fetching``. ``files``, ``total``: how many files and bytes there are; ``total`` is what is
    known of the sizes.
    """

    def __init__(self, title: str, files: int, total: int) -> None:
        self.title, self.files, self.total = title, files, total
        self.files_done = 0
        self.bytes_done = 0
        self.running: dict[str, int] = {}
        self._lock = threading.Lock()

    def begin(self, name: str) -> None:
        """Count a file as begun, and name it."""
        with self._lock:
            self.running[name] = 0

    def moved(self, name: str, count: int) -> None:
        """So many bytes more of a file; fewer if negative, when it begins anew."""
        with self._lock:
            self.bytes_done += count
            self.running[name] = self.running.get(name, 0) + count

    def end(self, name: str, done: bool = True) -> None:
        """A file is done, or given up."""
        with self._lock:
            self.running.pop(name, None)
            self.files_done += done

    def line(self) -> str:
        """``fetching: 12 of 240 files, 103.2 MB of 1.2 GB``"""
        of = f" of {size(self.total)}" if self.total else ""
        return f"{self.title}: {self.files_done} of {files(self.files)}, {size(self.bytes_done)}{of}"


class Watch:
    """The base of progress displays; shows nothing."""

    def begin(self, progress: TransferProgress) -> None:
        """Called as work begins."""

    def tick(self) -> None:
        """Called several times a second while the work goes on."""

    def end(self) -> None:
        """The work has ended, well or not."""

    def say(self, text: str) -> None:
        """A line for the user."""


class ProgressLines(Watch):
    """A line now and then."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.progress: TransferProgress | None = None
        self.said = 0.0

    def begin(self, progress: TransferProgress) -> None:
        """The title and the size of the work."""
        self.progress = progress
        self.said = time.monotonic()
        self.say(f"{progress.title}: {files(progress.files)}, {size(progress.total)}")

    def tick(self) -> None:
        """How far it is, every :data:`LINE_S` seconds."""
        if self.progress is not None and time.monotonic() - self.said > LINE_S:
            self.said = time.monotonic()
            self.say(self.progress.line())

    def end(self) -> None:
        self.progress = None

    def say(self, text: str) -> None:
        self._say(text)


class ProgressBar(ProgressLines):
    """A bar for all of it, and below it the files that move now."""

    def __init__(self, say: Callable[[str], None], out: TextIO) -> None:
        super().__init__(say)
        self.out = out
        self.bars: Any = None
        self.whole: Any = None
        self.shown: dict[str, Any] = {}

    def begin(self, progress: TransferProgress) -> None:
        from rich import progress as rich
        from rich.console import Console
        from rich.table import Column

        self.progress = progress
        columns = (
            rich.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            rich.BarColumn(),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            rich.TimeRemainingColumn(),
        )
        self.bars = rich.Progress(*columns, console=Console(file=self.out), transient=True, auto_refresh=False)
        self.whole = self.bars.add_task(progress.title, total=progress.total or None)
        self.shown = {}
        self.bars.start()

    def tick(self) -> None:
        if self.bars is None or self.progress is None:
            return
        now = self.progress
        done = f"{now.title} {now.files_done}/{now.files}"
        self.bars.update(self.whole, completed=max(now.bytes_done, 0), description=done)
        running = dict(now.running)
        for name in [name for name in self.shown if name not in running]:
            self.bars.remove_task(self.shown.pop(name))
        for name, count in running.items():
            if name not in self.shown:
                self.shown[name] = self.bars.add_task(f"  {name.rpartition('/')[2][:36]}", total=None)
            self.bars.update(self.shown[name], completed=max(count, 0))
        self.bars.refresh()

    def end(self) -> None:
        if self.bars is not None:
            self.bars.stop()
            self.bars = None
        self.progress = None

    def say(self, text: str) -> None:
        """The line, above the bars."""
        if self.bars is None:
            self._say(text)
        else:
            from rich.text import Text

            self.bars.console.print(Text(f"hpcgen: {text}"))
