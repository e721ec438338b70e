"""YAML files as plain data, with the place of everything in them.

Profiles, recipes and release tables are data and nothing more: mappings, lists
and scalars. What YAML can do beyond that (anchors, tags, several documents,
merge keys) is refused, because it either surprises people or lets a small file
become a huge one.

Scalars: only ``null``, ``true`` and ``false`` (and their ``Null``/``TRUE``
spellings, ``~``, and an absent value) have a meaning of their own. Everything
else that is written without quotes stays the text that was written, so that
``2.10``, ``on``, ``no``, ``2021-05-01`` and ``1:30:00`` arrive as they stand.
:mod:`hpcgen.config.decoding` turns text into numbers where a record wants numbers.

Reading is one pass over the parser's events, several times faster than PyYAML's
own node tree; that tree is made only when somebody asks for a position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from hpcgen.errors import InputError, Position, Problem

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32

# libyaml where it is built in; the pure-Python parser gives the same events, slower.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

# Control characters; line ends other than \n and \r\n, which would make line numbers differ from
# the editor's; and the bidirectional controls, with which text reads differently from what it is.
_REFUSED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)"
)

# What the parser says, in part (libyaml and the Python parser differ), and what people need to hear.
_SYNTAX_HINTS = (
    ("'\\t'", "a tab where only spaces may stand", "indent with spaces"),
    (
        "character that cannot start",
        "a character that cannot start a value",
        "put the value in quotes; indent with spaces, not tabs",
    ),
    (
        "mapping values are not allowed",
        "a `key:` where none can be",
        "check the indentation; put a value that contains `: ` in quotes",
    ),
    ("could not find expected ':'", "a key without `:`", "write `key: value`, with a space after the colon"),
    (
        "unexpected end of stream",
        "the file ends inside a quoted text",
        "close the quote that was opened here",
    ),
    (
        "block end",
        "a line that does not fit the lines above it",
        "indent all keys of one mapping, and all `-` of one list, by the same number of spaces",
    ),
    (
        "did not find expected key",
        "a line that does not fit the lines above it",
        "indent all keys of one mapping by the same number of spaces",
    ),
    (
        "did not find expected '-' indicator",
        "a line that does not fit the list above it",
        "start each item of the list with `- `, all indented by the same number of spaces",
    ),
    ("expected ',' or", "a `[` or `{` that is not closed", "close it, and separate the items with commas"),
)


class Document:
    """What one file holds, and where.

    Attributes
    ----------
    data: the file's mapping: ``dict``, ``list``, ``str``, ``bool`` and ``None``, nothing else.
    name: the file as shown to people.
    """

    def __init__(self, data: dict[str, Any], name: str, text: str) -> None:
        self.data = data
        self.name = name
        self._text = text
        self._root: Any = None
        self._children: dict[int, dict[str | int, tuple[Any, Any]]] = {}

    def files(self) -> list[str]:
        """The files that the data is from, the nearest first."""
        return [self.name]

    def has(self, path: Sequence[str]) -> bool:
        """Whether the mappings of the file say something at ``path``."""
        value: Any = self.data
        for step in path:
            if not isinstance(value, dict) or step not in value:
                return False
            value = value[step]
        return True

    def position(self, path: Sequence[str | int] = (), key: bool = False) -> Position:
        """Where the value at ``path`` starts; of the nearest existing parent, if there is no such value.

        Parameters
        ----------
        path: mapping keys and list indices from the top, such as ``("partitions", "cpu", 0)``.
        key: give the place of the last key instead of its value.
        """
        if self._root is None:
            self._root = yaml.compose(self._text, Loader=_Loader)
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
            if isinstance(node, yaml.MappingNode):
                known = {key.value: (key, value) for key, value in node.value}
            elif isinstance(node, yaml.SequenceNode):
                known = {index: (item, item) for index, item in enumerate(node.value)}
            self._children[id(node)] = known
        return known


def load(path: Path, shown: str | None = None) -> Document:
    """Read a YAML file.

    Parameters
    ----------
    path: the file.
    shown: how to name it in messages, if not by ``path``.

    Raises
    ------
    InputError: it cannot be read, or is not the plain kind of YAML that :func:`loads` takes.
    """
    name = str(path) if shown is None else shown
    try:
        with path.open("rb") as stream:
            # One byte more than allowed tells too long from just fitting, whatever the file's kind.
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refusal(name, "there is no such file", remedy="check the spelling of its path") from None
    except IsADirectoryError:
        raise _refusal(name, "this is a directory", "a YAML file", "name a file in it") from None
    except PermissionError:
        raise _refusal(
            name, "you are not allowed to read this file", remedy="ask its owner, or change its mode"
        ) from None
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise _refusal(name, f"this file cannot be read: {reason}") from None
    _check_size(len(raw), name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        before = failure.object[: failure.start].decode("utf-8", "replace")
        raise _refusal(
            _place(before, len(before), name),
            f"the byte 0x{failure.object[failure.start]:02x} is not UTF-8",
            "a text file in UTF-8",
            "save the file as UTF-8",
        ) from None
    return _read(text, name)


def loads(text: str, name: str) -> Document:
    """Read YAML from ``text``; ``name`` is shown in messages in place of a file.

    Raises
    ------
    InputError: with all that is wrong, each with its place: not YAML; no mapping at the top; a key that
    stands twice or is not text; an anchor, alias, tag, merge key or second document; control characters;
    more than ``MAX_BYTES`` bytes or ``MAX_DEPTH`` levels.
    """
    _check_size(len(text.encode("utf-8", "surrogatepass")), name)
    return _read(text.removeprefix("\ufeff"), name)


def _read(text: str, name: str) -> Document:
    refused = _REFUSED.search(text)
    if refused:
        raise _refusal(
            _place(text, refused.start(), name),
            f"the character U+{ord(refused[0]):04X} is not allowed here",
            "printable text",
            "remove the character",
        )
    return Document(_Reader(text, name).read(), name, text)


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise _refusal(
            name,
            "this file is too large",
            f"at most {MAX_BYTES} bytes",
            "split it, or check that it is the right file",
        )


def _place(text: str, offset: int, name: str) -> Position:
    start_of_line = text.rfind("\n", 0, offset) + 1
    return Position(name, text.count("\n", 0, offset) + 1, offset - start_of_line + 1)


def _refusal(where: Position | str, message: str, expected: str = "", remedy: str = "") -> InputError:
    return InputError(Problem(message, where, expected, remedy))


class _Reader:
    """One pass over the events of one text; collects all problems but those after which it cannot go on."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.parser = _Loader(text)
        self.next: Any = self.parser.get_event
        self.problems: list[Problem] = []

    def read(self) -> dict[str, Any]:
        data: Any = None
        try:
            self.next()  # the start of the stream
            event = self.next()
            if isinstance(event, yaml.DocumentStartEvent):
                event = self.next()
                first = event
                data = self.value(event, 1)
                self.next()  # the end of the document
                event = self.next()
                if data is None and not self.problems:
                    self.add(first, "this file is empty", "a mapping, that is, lines such as `name: value`")
                elif not isinstance(data, dict) and not self.problems:
                    kind = "a list" if isinstance(data, list) else "a single value"
                    self.add(
                        first,
                        f"this file holds {kind}",
                        "a mapping, that is, lines such as `name: value`",
                        "start the file with a key",
                    )
                if isinstance(event, yaml.DocumentStartEvent):
                    self.add(
                        event,
                        "a second document starts here",
                        "one document in a file",
                        "remove the `---` line, or put what follows into a file of its own",
                    )
            else:
                self.problems.append(
                    Problem(
                        "this file is empty",
                        Position(self.name, 1, 1),
                        "a mapping, that is, lines such as `name: value`",
                    )
                )
        except yaml.MarkedYAMLError as failure:
            self.problems.append(self.syntax_problem(failure))
        except yaml.YAMLError as failure:
            self.problems.append(Problem(f"this is not valid YAML: {failure}", self.name))
        finally:
            self.parser.dispose()
        if self.problems:
            raise InputError(self.problems)
        result: dict[str, Any] = data
        return result

    def value(self, event: Any, depth: int) -> Any:
        """The value that starts with ``event``."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self.refuse_specials(event)
            value: str = event.value
            if not event.style:
                # Only a word written without quotes can mean null, true or false.
                return _CONSTANTS.get(value, value)
            if event.style == '"':
                self.check_escapes(event)
            return value
        if kind is yaml.AliasEvent:
            self.refuse_alias(event)
            return None
        self.refuse_specials(event)
        if depth > MAX_DEPTH:
            # Nothing below can be trusted to end: stop here, with what was found so far.
            self.add(event, "this is nested too deeply", f"at most {MAX_DEPTH} levels")
            raise InputError(self.problems)
        if kind is yaml.MappingStartEvent:
            return self.mapping(depth)
        items = []
        while type(event := self.next()) is not yaml.SequenceEndEvent:
            items.append(self.value(event, depth + 1))
        return items

    def mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while type(event := self.next()) is not yaml.MappingEndEvent:
            key = self.key(event, depth)
            value = self.value(self.next(), depth + 1)
            if key is None:
                continue
            if key in result:
                self.add(
                    event,
                    f"`{key}` stands twice in the same mapping, first in line {lines[key]}",
                    "each key once",
                    "remove one of the two, or give it another name",
                )
            else:
                result[key] = value
                lines[key] = event.start_mark.line + 1
        return result

    def key(self, event: Any, depth: int) -> str | None:
        """The key that starts with ``event``; None when it is refused."""
        if type(event) is not yaml.ScalarEvent:
            found = len(self.problems)
            self.value(event, depth + 1)
            if len(self.problems) == found:
                self.add(event, "a list or mapping cannot be a key", "text", "write a word as the key")
            return None
        self.refuse_specials(event)
        key: str = event.value
        if not key.isprintable():
            self.add(
                event,
                f"the key {key!r} contains a character that cannot be seen",
                "printable text on one line",
                "remove the character",
            )
            return None
        if not event.style:
            if key in _CONSTANTS:
                self.add(
                    event,
                    f"`{key}` cannot be a key" if key else "a value without a key",
                    "text",
                    f'if it is meant as text, write it in quotes: "{key}"' if key else "write `key: value`",
                )
                return None
            if key == "<<":
                self.add(
                    event,
                    "merge keys (`<<`) are not read here",
                    "",
                    "write the keys out where they are needed",
                )
                return None
        return key

    def refuse_specials(self, event: Any) -> None:
        if event.anchor is not None:
            self.add(
                event,
                f"anchors (`&{event.anchor}`) are not read here",
                "plain values",
                "write the value out where it is needed; put text that starts with `&` in quotes",
            )
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.add(
                event,
                f"tags (`{tag}`) are not read here",
                "plain values",
                "remove the tag; put text that starts with `!` in quotes",
            )

    def refuse_alias(self, event: Any) -> None:
        self.add(
            event,
            f"aliases (`*{event.anchor}`) are not read here",
            "plain values",
            "write the value out here; put text that starts with `*` in quotes",
        )

    def check_escapes(self, event: Any) -> None:
        r"""Refuse control characters that were written as an escape, such as ``"\x1b"``."""
        value: str = event.value
        refused = None if value.isprintable() else _REFUSED.search(value)
        if refused:
            self.add(
                event,
                f"this text contains the character U+{ord(refused[0]):04X}, written as an escape",
                "printable text",
                "remove the escape; use single quotes if the backslash is meant",
            )

    def add(self, event: Any, message: str, expected: str = "", remedy: str = "") -> None:
        mark = event.start_mark
        where = Position(self.name, mark.line + 1, mark.column + 1)
        self.problems.append(Problem(message, where, expected, remedy))

    def syntax_problem(self, failure: Any) -> Problem:
        said = failure.problem or ""
        mark = failure.problem_mark or failure.context_mark
        if failure.context_mark is not None and re.search("unexpected end of stream|expected ',' or", said):
            # Where the parser gave up tells little; where the quote or bracket was opened does.
            mark = failure.context_mark
        where = Position(self.name, mark.line + 1, mark.column + 1)
        if self.text[mark.index : mark.index + 1] == "\t":
            said = "'\\t'"
        for part, message, remedy in _SYNTAX_HINTS:
            if part in said:
                return Problem(message, where, "valid YAML", remedy)
        return Problem(f"this is not valid YAML: {said}", where, "", "check the line and the one above it")
