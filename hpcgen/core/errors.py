"""Problems as data, and the exceptions that carry them.

Everything that can go wrong because of what the user wrote or asked is a
:class:`Problem`: where it is, what is wrong, what was expected, what to do.
An :class:`HpcgenError` carries all the problems of one attempt at once; the
command prints them and exits with the class's ``exit_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in a file. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(msgspec.Struct, frozen=True):
    """One mistake, for the user to read.

    message: what is wrong, one sentence without the place.
    where: the place, if there is one; a :class:`Position` or a word such as ``--set``.
    expected: what would have been right.
    remedy: what to do now.

    What may be a secret in these texts, which are often a user's own words, is masked as soon as there is a problem.
    """

    message: str
    where: Position | str | None = None
    expected: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        # Loaded where something is wrong, not at every start.
        from hpcgen.core.secret_rules import without_secrets

        for name in ("message", "expected", "remedy"):
            msgspec.structs.force_setattr(self, name, without_secrets(getattr(self, name)))

    def at(self, where: Position | str | None) -> Problem:
        """The same problem, at the place that the caller knows."""
        return Problem(self.message, where, self.expected, self.remedy)

    @property
    def on_one_line(self) -> str:
        """Message and remedy on one line, without the place."""
        message = "; ".join(line.strip().removeprefix("- ") for line in self.message.splitlines())
        return message.replace(":;", ":") + (f" → {self.remedy.splitlines()[0]}" if self.remedy else "")

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where is not None else ""
        lines = [f"{place}{self.message}"]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.remedy:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)


class Problems(list[Problem]):
    """All mistakes of one attempt, collected so that they are told at once."""

    def add(self, message: str, where: Position | str | None = None, expected: str = "", remedy: str = "") -> None:
        """One more :class:`Problem`."""
        self.append(Problem(message, where, expected, remedy))

    @contextmanager
    def caught(self, where: Callable[[], Position | str | None] | None = None) -> Iterator[None]:
        """Go on after an error: its problems are added, at the place that the caller knows, if it does."""
        try:
            yield
        except HpcgenError as error:
            place = where() if where is not None else None
            self += [problem if where is None else problem.at(place) for problem in error.problems]

    def raise_as(self, kind: type[HpcgenError]) -> None:
        """The error with all of them, if there are any."""
        if self:
            raise kind(self)


class Remedy(msgspec.Struct, frozen=True):
    """A change of what was asked with which there is a plan.

    settings: what ``--set`` says instead, by BLOCK.OPTION; None where it is left out.
    stack: what the stack says instead, by ``BLOCK.version`` or ``BLOCK.provider``; None where it says nothing, and by
        ``BLOCK`` where it does not name that.
    partition: the kind of node that is named instead.
    without: names that ``--add`` had.
    added: names that ``--add`` has as well.
    job: what is asked of the job instead, by the field (``nodes``); None where it is left out.
    text: the change in words.
    """

    settings: Mapping[str, str | None] = {}
    stack: Mapping[str, str | None] = {}
    partition: str | None = None
    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    job: Mapping[str, int | str | None] = {}
    text: str = ""


class HpcgenError(Exception):
    """Base of all errors that the user can mend. ``exit_code`` is documented in docs/exit-codes.md.

    ``problems``: all of one attempt; or the message of the only one, with its other fields behind it.

    ``remedies``: changes of what was asked that were tried, the smallest first.
    """

    exit_code = 1
    remedies: tuple[Remedy, ...] = ()

    def __init__(
        self,
        problems: str | Problem | Iterable[Problem],
        where: Position | str | None = None,
        expected: str = "",
        remedy: str = "",
    ) -> None:
        if isinstance(problems, str):
            problems = Problem(problems, where, expected, remedy)
        if isinstance(problems, Problem):
            problems = (problems,)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class InputError(HpcgenError):
    """A profile, recipe, release table or block that cannot be used as it is written."""

    exit_code = 3


class UnknownNameError(HpcgenError):
    """A site, stack, block, option or version that does not exist."""

    exit_code = 4


class ConflictError(HpcgenError):
    """No choice of versions fits everything that was asked."""

    exit_code = 5


class PolicyError(HpcgenError):
    """The site does not allow it, or the job does not fit the machine."""

    exit_code = 6


class OutputError(HpcgenError):
    """The result could not be written; what was there before is untouched."""

    exit_code = 7


class BuildFailedError(HpcgenError):
    """A container engine did not build the image; nothing is left under the image's final name."""

    exit_code = 8


class TestFailedError(HpcgenError):
    """A self-test or a promise between image and host does not hold."""

    exit_code = 9


class JobFailedError(HpcgenError):
    """A program in the image, or a job of the batch system, ended with an error."""

    exit_code = 10


class FetchError(HpcgenError):
    """An input could not be fetched, or is not what the lock says; what was fetched stays for the next run."""

    exit_code = 11


class ConversionFailedError(HpcgenError):
    """A model was not converted, or what it was converted to computes something else."""

    exit_code = 12


class MissingToolError(HpcgenError):
    """A program that is needed is not installed here; the same status as the scripts of a kit have."""

    exit_code = 69


def nearest(word: str, known: Sequence[str]) -> str:
    """``did you mean X?`` for the nearest known words; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def did_you_mean(word: str, known: Sequence[str], listing: str = "") -> str:
    """The remedy for an unknown word: the nearest known ones, or all of them if there are few.

    ``listing``: the command that lists them all; without it some are named where there are many.
    """
    if near := nearest(word, known):
        return near
    if not known:
        return "none is known here"
    if len(known) <= 20:
        return f"known: {', '.join(sorted(known))}"
    if listing:
        return f"{len(known)} are known, but none is close: `{listing}` lists them"
    return f"none of the {len(known)} known is close: {', '.join(sorted(known)[:20])} …"
