"""Why a build failed, and what to do: known causes, found in what the engine printed.

The knowledge is data, in remedies.yaml beside this module; it is read when a build has failed and never before.
A cause is looked for in the words of the step that failed alone: what an earlier step complained of did not stop it,
and the commands that engines repeat (``STEP 3/9: RUN …``, ``+ curl …``) are the recipe's words, not what happened.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines.building import BuildFolder, Work
from hpcgen.backends.engines.steps import STEP_BEGINS
from hpcgen.core.support.units import size

_DATA = Path(__file__).with_name("remedies.yaml")

# Where the output of a step begins: buildah and podman, ch-image 0.31 and 0.45, a definition file of hpcgen, Apptainer.
_BEGINS = re.compile(
    r"(\[\d+/\d+\] )?STEP \d+(/\d+)?:"
    r"|\s*\d+[.*] (FROM|RUN|COPY|ARG|ENV|LABEL|WORKDIR|SHELL)(\.[A-Z])? "
    rf"|{STEP_BEGINS}"
    r"|INFO:\s+(Starting build|Running testscript|Creating (SIF|sandbox))"
)
# Commands as they are repeated: by `set -x`, by BuildKit before a step and in its summary.
_COMMAND = re.compile(r"\++ |\[[^\]]*\d+/\d+\] (RUN|COPY|FROM) |\s*> \[|\s*\d+ \| |\s*\d+ \| *>>> ")
_QUOTED = (
    (re.compile(r'(building at STEP) ".*":'), r"\1:"),
    (re.compile(r'(process) "/bin/sh -c .*" (did not complete)'), r"\1 \2"),
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BUILDKIT = re.compile(r"#(\d+) (\d+\.\d+ )?")


FULL_DISK = "full disk"
"""The known cause for which the folders of the build are measured: see :class:`Disks`."""

PLACES = {"block": "NAME", "built": "IMAGE", "site": "SITE"}
"""What texts say of a build where nobody tells which block, image and site it is about."""


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A known cause.

    name: a short name, for tests and for the documentation.
    patterns: regular expressions; one that is found in a line is enough. Their named groups fill ``{…}`` of the texts.
    details: further regular expressions whose named groups are looked for in the other lines.
    otherwise: what fills a ``{…}`` that no group filled.
    engines: the only engines that it can happen with; all if empty.
    statuses: statuses of the engine itself that say it without any line; negative for signals.
    chance: the same command is likely to be good when it is given once more, so hpcgen does.
    cause: what happened.
    remedy: what to do, by engine; ``any`` stands for those that are not named.
    """

    name: str
    cause: str
    remedy: dict[str, str]
    patterns: list[str] = []
    details: list[str] = []
    otherwise: dict[str, str] = {}
    engines: list[str] = []
    statuses: list[int] = []
    chance: bool = False

    def text(self, engine: str, found: dict[str, str]) -> tuple[str, str]:
        """Cause and remedy for people."""
        words = {"engine": engine, **PLACES, **self.otherwise, **found}
        remedy = self.remedy.get(engine, self.remedy["any"])
        return _filled(self.cause, words), _filled(remedy, words)


@functools.cache
def remedies() -> tuple[KnownFailure, ...]:
    """All known causes; of two that fit, the earlier one is the cause and the later one what came of it."""
    return msgspec.yaml.decode(_DATA.read_bytes(), type=tuple[KnownFailure, ...])


def explain(
    lines: Sequence[str], engine: str, status: int | None = None, about: Mapping[str, str] = PLACES
) -> tuple[str, str] | None:
    """Cause and remedy of a failed build; None if nothing that is known is in its output.

    lines: what the engine printed, best of all everything.
    engine: its name, as in records (``buildah``, ``ch-image``, …).
    status: how it ended: its exit status, or the negative number of a signal.
    about: the block, the image and the site that the texts name.
    """
    found = find(lines, engine, status)
    return None if found is None else found[0].text(engine, {**about, **found[1]})


def find(lines: Sequence[str], engine: str, status: int | None = None) -> tuple[KnownFailure, dict[str, str]] | None:
    """The known cause, and what its texts are filled with; see :func:`explain`."""
    words = failing_words(lines)
    for remedy in remedies():
        if remedy.engines and engine not in remedy.engines:
            continue
        groups = {} if status is not None and status in remedy.statuses else _last_match(remedy.patterns, words)
        if groups is not None:
            details = (_last_match([pattern], words) or {} for pattern in remedy.details)
            return remedy, {name: value for each in (*details, groups) for name, value in each.items()}
    return None


def failing_step(lines: Sequence[str]) -> list[str]:
    """The lines from the beginning of the last step on, as they are; all lines where no step is named."""
    begins = [number for number, line in enumerate(lines) if _BEGINS.match(_COLOUR.sub("", line))]
    return list(lines[begins[-1] :]) if begins else list(lines)


def failing_words(lines: Iterable[str]) -> list[str]:
    """The lines of the step that failed, without the commands that engines repeat."""
    kept: list[tuple[str, str]] = []
    broken = ""
    for line in lines:
        text = _COLOUR.sub("", line)
        numbered = _BUILDKIT.match(text)
        number, text = (numbered[1], text[numbered.end() :]) if numbered is not None else ("", text)
        if number and text.startswith("ERROR"):
            broken = number
        if not number and _BEGINS.match(text):
            kept.clear()
        elif not _COMMAND.match(text):
            for pattern, shorter in _QUOTED:
                text = pattern.sub(shorter, text)
            kept.append((number, text))
    # BuildKit does several steps at once, each line with its step's number.
    return [text for number, text in kept if not broken or number in ("", broken)]


def _last_match(patterns: Sequence[str], lines: Sequence[str]) -> dict[str, str] | None:
    """The named groups of the last line in which one of the patterns is found."""
    compiled = [re.compile(pattern) for pattern in patterns]
    for line in reversed(lines):
        for pattern in compiled:
            match = pattern.search(line)
            if match is not None:
                return {name: value for name, value in match.groupdict().items() if value}
    return None


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda place: words[place[1]], " ".join(text.split()))


# Which disk a build has filled. An engine removes its temporary files as it fails, and then there is room again: so the
# folders that a build writes to are measured while it runs, and what counts is the least that was free. A disk that was
# filled between two looks is known by the file that the engine could not write.

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

        ``engine``: :meth:`hpcgen.backends.engines.base.Engine.places`.
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
