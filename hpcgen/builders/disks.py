"""Which disk a build has filled.

An engine removes its temporary files as it fails, and then there is room again: so the folders that a build writes to
are measured while it runs, and what counts is the least that was free. A disk that was filled between two looks is
known by the file that the engine could not write.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from hpcgen.backends.engines.building import BuildFolder, Work
from hpcgen.core.support.units import size

FULL_BELOW = 16_000_000
"""Free bytes below which a disk is called full: engines write in large pieces, and some of it may be freed already."""
_UNWRITTEN = re.compile(r"write (/\S+?): no space left on device")
"""As programs in Go say it, which the engines are: a path of this machine, where steps tell of paths inside."""
LOOK_S = 0.2
"""Seconds between two looks."""


class Disks:
    """The disks below the folders of a build, by device."""

    def __init__(self) -> None:
        self.places: dict[int, list[BuildFolder]] = {}
        self.least: dict[int, tuple[int, int]] = {}
        self._named: set[int] = set()
        self._looked = 0.0

    def watch(self, engine: Iterable[BuildFolder], work: Work) -> None:
        """Measure from now on the folders of the engine, hpcgen's own, and the image's.

        Parameters
        ----------
        engine: :meth:`hpcgen.backends.engines.base.Engine.places`.
        """
        # hpcgen's own folder of one build goes with it; what a person knows is where it lies.
        own = BuildFolder(work.scratch.parent.parent, "temporary files", "set TMPDIR to a folder on a larger disk")
        image = BuildFolder(Path(work.target.name).parent, "the image", "write the image elsewhere with -o")
        for place in [*([image] if work.target.is_file else []), *engine, own]:
            there = next((path for path in (place.path, *place.path.parents) if path.exists()), None)
            if there is not None:
                self.places.setdefault(there.stat().st_dev, []).append(BuildFolder(there, place.holds, place.remedy))
        self.look(at_once=True)

    def look(self, at_once: bool = False) -> None:
        """Measure them, if the last look is :data:`LOOK_S` ago."""
        if not at_once and time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        for device, places in self.places.items():
            try:
                told = os.statvfs(places[0].path)
            except OSError:
                continue
            # What is kept for root is free for root alone.
            free = (told.f_bfree if os.geteuid() == 0 else told.f_bavail) * told.f_frsize
            # Some file systems count no files.
            free = 0 if told.f_files and not told.f_ffree else free
            before = self.least.get(device)
            if before is None or free < before[0]:
                self.least[device] = (free, told.f_blocks * told.f_frsize)

    def said(self, line: str) -> None:
        """A line of the engine's output."""
        full = "o space left on device" in line
        self.look(at_once=full)
        for path in _UNWRITTEN.findall(line) if full else ():
            inside = [
                (len(place.path.parts), device)
                for device, places in self.places.items()
                for place in places
                if Path(path).is_relative_to(place.path)
            ]
            self._named.update(device for _, device in sorted(inside)[-1:])

    def told(self) -> tuple[str, str] | None:
        """Cause and remedy, where a disk was full; None if none of those that were measured was."""
        self.look(at_once=True)
        full = [device for device, (free, _total) in self.least.items() if free < FULL_BELOW] or sorted(self._named)
        causes, remedies = [], []
        for device in full:
            places = self.places[device]
            folders: dict[Path, list[str]] = {}
            for place in places:
                folders.setdefault(place.path, []).append(place.holds)
            free, total = self.least[device]
            named = " and ".join(f"{path} ({', '.join(dict.fromkeys(holds))})" for path, holds in folders.items())
            measured = f": {size(free)} of {size(total)} were free" if free < FULL_BELOW else ""
            causes.append(f"the disk of {named} is full{measured}")
            first = ", or ".join(dict.fromkeys(place.remedy for place in places))
            remedies.append(f"free space in {places[0].path}, or {first}")
        return ("; ".join(causes), "; ".join(remedies)) if full else None
