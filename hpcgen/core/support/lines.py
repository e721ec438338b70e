"""Lines out of what a program prints, piece by piece: each as long as a person or a parser may want, and no longer."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_LINE = 1024 * 1024
"""Bytes that are kept of one line; what a stranger's program prints may have no end."""


class Update(str):
    """What stands in a line that goes on: a carriage return came after it, and no line break yet."""


class Lines:
    """The lines of one program.

    Parameters
    ----------
    longest: bytes that are kept of a line; of the others it says how many they were.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._kept = self._cut = 0

    def take(self, piece: bytes) -> Iterator[str]:
        """The lines that end in these bytes, and an :class:`Update` if one goes on that is written over."""
        first, *rest = piece.split(b"\n")
        self._add(first)
        for each in rest:
            yield self._end()
            self._add(each)
        # The last of those that came at once is enough for a person.
        last = rest[-1] if rest else first
        if b"\r" in last:
            yield Update(_text(last[-self._longest :]).rpartition("\r")[2])

    def rest(self) -> Iterator[str]:
        """The last line, where no line break came after it."""
        if self._kept or self._cut:
            yield self._end()

    def _add(self, part: bytes) -> None:
        kept = part[: self._longest - self._kept]
        self._begun += [kept] if kept else []
        self._kept += len(kept)
        self._cut += len(part) - len(kept)

    def _end(self) -> str:
        text = _text(b"".join(self._begun))
        if self._cut:
            text += f" … ({self._cut} more bytes of this line were left out)"
        self._begun, self._kept, self._cut = [], 0, 0
        return text


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").rstrip("\r")
