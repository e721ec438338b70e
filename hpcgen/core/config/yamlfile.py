"""YAML files as plain data, with the place of everything in them.

Profiles, recipes and release tables are data and nothing more: mappings, lists
and scalars. What YAML can do beyond that (anchors, tags, several documents,
merge keys) is refused, because it either surprises people or lets a small file
become a huge one.

Scalars: only ``null``, ``true`` and ``false`` (and their ``Null``/``TRUE``
spellings, ``~``, and an absent value) have a meaning of their own. Everything
else that is written without quotes stays the text that was written, so that
``2.10``, ``on``, ``no``, ``2021-05-01`` and ``1:30:00`` arrive as they stand.
:mod:`hpcgen.core.config.decoding` turns text into numbers where a record has numbers.

Reading is one pass over the parser's events, several times faster than PyYAML's
own node tree; that tree is made only when somebody asks for a position. Files of
the built-in collection are read from what was kept of an earlier reading
(:mod:`hpcgen.core.config.compiled_yaml`), without PyYAML.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hpcgen.core.config import compiled_yaml
from hpcgen.core.errors import InputError, Position
from hpcgen.core.support.hashing import read_plain


class Limit(NamedTuple):
    """How large a file may be, in bytes, and what to do about a larger one."""

    bytes: int
    remedy: str = "split it, or check that it is the right file"


MAX_BYTES = 1024 * 1024
_USUAL = Limit(MAX_BYTES)
LONG_LIST = Limit(16 * 1024 * 1024)
"""For what grows with what it lists: a fleet, a release table."""


class Document:
    """The contents of one file, with positions.

    data: the file's mapping: ``dict``, ``list``, ``str``, ``bool`` and ``None``, nothing else.
    name: the file as shown to people.
    file: the file itself; None if it is from elsewhere.
    """

    def __init__(self, data: dict[str, Any], name: str, text: str, file: Path | None = None) -> None:
        self.data = data
        self.name = name
        self.file = file
        self._text = text
        self._root: Any = None
        self._children: dict[int, dict[str | int, tuple[Any, Any]]] = {}

    def files(self) -> list[str]:
        """The files that the data is from, the nearest first."""
        return [self.name]

    def file_of(self, path: Sequence[str | int]) -> Path | None:
        """The file that says what is at ``path``; None if that is in no file."""
        return self.file

    def said_by(self, path: Sequence[str | int]) -> str:
        """The name of the file that says what is at ``path``: that of :meth:`position`, without reading it again."""
        return self.name

    def has(self, path: Sequence[str]) -> bool:
        """Whether the mappings of the file say something at ``path``."""
        return says(self.data, path)

    def position(self, path: Sequence[str | int] = (), key: bool = False) -> Position:
        """Where the value at ``path`` starts; of the nearest existing parent, if there is no such value.

        ``path``: mapping keys and list indices from the top, such as ``("partitions", "cpu", 0)``. ``key``: give the
        place of the last key instead of its value.
        """
        if self._root is None:
            from hpcgen.core.config.plain_yaml import compose

            self._root = compose(self._text)
        name_node, node = self._root, self._root
        for step in path:
            found = self._nodes_under(node).get(step)
            if found is None:
                key = False
                break
            name_node, node = found
        mark = (name_node if key else node).start_mark
        return Position(self.name, mark.line + 1, mark.column + 1)

    def _nodes_under(self, node: Any) -> dict[str | int, tuple[Any, Any]]:
        """Key or index → (key's node, value's node); kept, since one file may have many problems."""
        known = self._children.get(id(node))
        if known is None:
            known = {}
            if node.id == "mapping":
                known = {key.value: (key, value) for key, value in node.value}
            elif node.id == "sequence":
                known = {index: (item, item) for index, item in enumerate(node.value)}
            self._children[id(node)] = known
        return known


def says(data: Any, path: Sequence[str | int]) -> bool:
    """Whether plain data has a value at ``path``."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def load(path: Path, shown: str | None = None, limit: Limit = _USUAL) -> Document:
    """Read a YAML file.

    path: the file.
    shown: how to name it in messages, if not by ``path``.
    limit: of its size.
    InputError: it cannot be read, or is not the plain kind of YAML that :func:`loads` takes.
    """
    name = str(path) if shown is None else shown
    try:
        raw = read_plain(path, limit.bytes)
    except FileNotFoundError:
        raise InputError("there is no such file", name, remedy="check the spelling of its path") from None
    except IsADirectoryError:
        raise InputError("this is a directory", name, "a YAML file", "name a file in it") from None
    except PermissionError:
        raise InputError(
            "you are not allowed to read this file", name, remedy="ask its owner, or change its mode"
        ) from None
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise InputError(f"this file cannot be read: {reason}", name) from None
    _check_size(len(raw), name, limit)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        before = failure.object[: failure.start].decode("utf-8", "replace")
        raise InputError(
            f"the byte 0x{failure.object[failure.start]:02x} is not UTF-8",
            _place(before, len(before), name),
            "a text file in UTF-8",
            "save the file as UTF-8",
        ) from None
    data = compiled_yaml.read(path, raw)
    if data is not None:
        return Document(data, name, text, path)
    document = _read(text, name, path)
    compiled_yaml.keep(path, raw, document.data)
    return document


def loads(text: str, name: str, limit: Limit = _USUAL) -> Document:
    """Read YAML from ``text``; ``name`` is shown in messages in place of a file.

    InputError: with all that is wrong, each with its place: not YAML; no mapping at the top; a key that stands twice or
    is not text; an anchor, alias, tag, merge key or second document; control characters; more bytes than ``limit``
    allows, or more than ``MAX_DEPTH`` levels.
    """
    _check_size(len(text.encode("utf-8", "surrogatepass")), name, limit)
    return _read(text.removeprefix("\ufeff"), name)


def _read(text: str, name: str, file: Path | None = None) -> Document:
    from hpcgen.core.config import plain_yaml

    refused = plain_yaml.REFUSED.search(text)
    if refused:
        raise InputError(
            f"the character U+{ord(refused[0]):04X} is not allowed here",
            _place(text, refused.start(), name),
            "printable text",
            "remove the character",
        )
    return Document(plain_yaml.PlainReader(text, name).read(), name, text, file)


def _check_size(size: int, name: str, limit: Limit) -> None:
    if size > limit.bytes:
        raise InputError("this file is too large", name, f"at most {limit.bytes} bytes", limit.remedy)


def _place(text: str, offset: int, name: str) -> Position:
    start_of_line = text.rfind("\n", 0, offset) + 1
    return Position(name, text.count("\n", 0, offset) + 1, offset - start_of_line + 1)
