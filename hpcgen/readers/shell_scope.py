"""The variables of a shell script, and the conditions and loops in which they are set."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.secret_rules import secret_name, without_secret_words, without_secrets
from hpcgen.readers.shell_values import Values, plain, unknown

_FROM_OUTSIDE = re.compile(
    r"(SLURM|PBS|SGE|LSB|PJM|OMPI|PMI|CUDA|CONDA|HIP|ROCR)\w*|[A-Z]*PATH|HOME|USER|HOSTNAME|\d+|[@*#?]"
)
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-lt": lambda a, b: a < b,
    "-ge": lambda a, b: a >= b,
    "-le": lambda a, b: a <= b,
}


def verdict(raw: list[str], values: Values, assigned: Collection[str]) -> bool | None:
    """What a test says; None where the script does not tell.

    ``assigned``: variables to which the script gives some value, known or not; all others are taken to be unset.
    """
    if len(raw) < 3 or raw[0] not in ("[", "[[", "test"):
        return None
    words = raw[1:-1] if raw[0] != "test" else raw[1:]
    negated = words[:1] == ["!"]
    words = words[1:] if negated else words
    found: bool | None = None
    if len(words) == 2 and words[0] in ("-z", "-n"):
        text = _text(words[1], values, assigned)
        found = None if text is None else (text == "") == (words[0] == "-z")
    elif len(words) == 3 and words[1] in (*_TEXTS, *_NUMBERS):
        first, second = _text(words[0], values, assigned), _text(words[2], values, assigned)
        if first is not None and second is not None and "*" not in second:
            if words[1] in _TEXTS:
                found = _TEXTS[words[1]](first, second)
            elif re.fullmatch(r"\d{1,9}", first) and re.fullmatch(r"\d{1,9}", second):
                found = _NUMBERS[words[1]](int(first), int(second))
    return found if found is None or not negated else not found


def _text(raw: str, values: Values, assigned: Collection[str]) -> str | None:
    """What a word is, a variable that nobody sets being empty."""
    text = values.text(raw)
    unset = re.fullmatch(r"\$\{?(\w+)\}?", text)
    if unset and unset[1] not in assigned and not _FROM_OUTSIDE.fullmatch(unset[1]):
        return ""
    return None if unknown(text) else plain(text)


ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?)=(.*)", re.S)
"""A word that gives a variable a value."""


class Frame(NamedTuple):
    """A condition, a loop that is not unrolled, a group: whether it is entered, surely, and what it changed."""

    kind: str
    sure: bool
    active: bool
    saved: Mapping[str, tuple[str | None, list[str] | None]]
    verdict: bool | None = None


class Scope:
    """What the script has set up to here.

    ``skip``: leave out what a condition excludes if nothing is set from outside. ``doubts``: variables that have
    another value if some condition holds. ``assigned``: all that the script sets.
    """

    def __init__(self, skip: bool) -> None:
        self.skip = skip
        self.values = Values()
        self.exported: dict[str, FileWord] = {}
        self.secrets: dict[str, FileWord] = {}
        self.doubts: set[str] = set()
        self.assigned: set[str] = set()
        self._frames: list[Frame] = []
        self._chain: bool | None = True

    def _enter(self, kind: str, sure: bool, decided: bool | None = None) -> None:
        if len(self._frames) < 100:
            self._frames.append(Frame(kind, sure, True, {}, decided))

    def _branch(self, word: str, words: list[str]) -> None:
        if not self._frames or self._frames[-1].kind != "if":
            return
        frame = self._frames[-1]
        if word == "then":
            frame = frame._replace(
                active=frame.verdict is not False or not self.skip, sure=bool(frame.verdict) and self.skip
            )
        else:
            frame = self._restored(frame)
            taken = frame.sure
            decided = None if taken else verdict(words[1:], self.values, self.assigned) if word == "elif" else True
            only = frame.verdict is False and self.skip
            frame = frame._replace(active=not taken, sure=word == "else" and only, verdict=False if taken else decided)
            if word == "elif" and decided and not only:
                frame = frame._replace(verdict=None)
        self._frames[-1] = frame

    def _leave(self, kind: str = "") -> None:
        if self._frames and (not kind or self._frames[-1].kind == kind):
            self._restored(self._frames.pop())

    def _restored(self, frame: Frame) -> Frame:
        """Give variables back what they had before a branch that may not be gone through."""
        if frame.sure and frame.active:
            return frame._replace(saved={})
        for name, (text, several) in frame.saved.items():
            self.values.forget(name)
            if text is not None:
                self.values.plain[name] = text
            if several is not None:
                self.values.lists[name] = several
            self.doubts.add(name)
        return frame._replace(saved={})

    @property
    def _sure(self) -> bool:
        return all(each.sure for each in self._frames) and self._chain is True

    def _declared(self, raw: str, exported: bool, where: Position) -> None:
        match = ASSIGNED.fullmatch(raw)
        if match is None:
            if exported and raw in self.values.plain and re.fullmatch(r"\w+", raw):
                self._assign(raw, self.values.plain[raw], True, where)
            return
        name, adds, text = match.groups()
        array = self.values.array(raw)
        if array is not None:
            self._remember(name)
            self.values.forget(name)
            public, left = without_secret_words(["", *array[1]]).words[1:], len(array[1])
            if len(public) == left:
                self.values.lists[name] = array[1]
            self.assigned.add(name)
            return
        value = self.values.text(text)
        known = name in self.values.plain
        self._assign(name, (self.values.plain[name] if adds and known else "") + value, exported, where)

    def _remember(self, name: str) -> None:
        for number, frame in enumerate(self._frames):
            if name not in frame.saved and not (frame.sure and frame.active):
                old = (self.values.plain.get(name), self.values.lists.get(name))
                self._frames[number] = frame._replace(saved={**frame.saved, name: old})
                break

    def _assign(self, name: str, value: str, exported: bool, where: Position) -> None:
        self.assigned.add(name)
        printable = re.sub(r"\s", " ", value).isprintable()
        open_end = "$(" in value or "`" in value.replace("\\`", "")
        secret = printable and not unknown(value) and (secret_name(name, value) or without_secrets(value) != value)
        self._remember(name)
        self.values.forget(name)
        self.exported.pop(name, None)
        self.secrets.pop(name, None)
        if secret:
            self.secrets[name] = FileWord(name, where)
        elif printable and not open_end and f"${name}" not in value:
            self.values.plain[name] = value
            if exported and not unknown(value) and value.isprintable() and all(each.sure for each in self._frames):
                self.exported[name] = FileWord(f"{name}={plain(value)}", where)
