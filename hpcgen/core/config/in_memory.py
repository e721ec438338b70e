"""Records and plain data that were made in Python, checked like files: a mistake names the field instead of a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position

T = TypeVar("T")


class FieldPlace(Position, frozen=True):
    """A field of something outside of files; ``file`` is its name in messages, such as ``site lab``."""

    field: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.field)))


class InMemory(Document):
    """A record, or plain data, instead of a file.

    value: the record or mapping; paths in it may be :class:`pathlib.Path`.
    name: what messages call it, such as ``site lab``.
    InputError: it has text that cannot be written, as Python makes of bytes that are no UTF-8.
    """

    def __init__(self, value: Any, name: str) -> None:
        data = msgspec.to_builtins(value, enc_hook=str, str_keys=True)
        try:
            msgspec.json.encode(data)
        except UnicodeEncodeError as failure:
            said = f"{ascii(failure.object)[:60]} cannot be written as UTF-8"
            raise InputError(said, FieldPlace(name, 0, 0), "text without lone surrogates") from None
        super().__init__(data, name, "")
        self._value = value

    def has(self, path: Sequence[str]) -> bool:
        """Whether there is such a field; one that has its default is there too."""
        value = self._value
        for step in path:
            known = isinstance(value, Mapping) and step in value
            if not known and not hasattr(value, step):
                return False
            value = value[step] if known else getattr(value, step)
        return True

    def position(self, path: Sequence[str | int] = (), key: bool = False) -> Position:
        """The field of that path, whether it is there or not."""
        return FieldPlace(self.name, 0, 0, ".".join(map(str, path)))


def checked(record: T, name: str) -> T:
    """The record anew, with every field held against its type.

    InputError: with all that is wrong, each with its field.
    """
    return convert(InMemory(record, name), type(record))
