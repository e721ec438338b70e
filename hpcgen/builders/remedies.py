"""Why a build failed, and what to do: known causes, found in what the engine printed.

The knowledge is data, in remedies.yaml beside this module; it is read when a build has failed and never before.
A cause is looked for in the words of the step that failed alone: what an earlier step complained of did not stop it,
and the commands that engines repeat (``STEP 3/9: RUN …``, ``+ curl …``) are the recipe's words, not what happened.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines.steps import STEP_BEGINS

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
"""The known cause for which the folders of the build are measured: see :mod:`hpcgen.builders.disks`."""

PLACES = {"block": "NAME", "built": "IMAGE", "site": "SITE"}
"""What texts say of a build where nobody tells which block, image and site it is about."""


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A known cause.

    Parameters
    ----------
    name: a short name, for tests and for the documentation.
    patterns: regular expressions; one that is found in a line is enough. Their named groups fill ``{…}`` of the texts.
    details: further regular expressions whose named groups are looked for in the other lines.
    otherwise: what fills a ``{…}`` that no group filled.
    engines: the only engines that it can happen with; all if empty.
    statuses: statuses of the engine itself that say it without any line; negative for signals.
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

    Parameters
    ----------
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
