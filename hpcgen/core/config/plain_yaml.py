"""One pass over the events of a YAML text: plain data, or all that is wrong with it."""

from __future__ import annotations

import re
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from hpcgen.core.errors import InputError, Position, Problem

MAX_DEPTH = 32
MAX_PROBLEMS = 100
"""After so many nobody reads on: a text can be made to have a hundred thousand."""

# libyaml where it is built in; the pure-Python parser gives the same events, slower.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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
REFUSED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)"
)

# What the parser says, in part (libyaml and the Python parser differ), and what people need to hear.
_SYNTAX_HINTS = (
    ("'\\t'", "a tab where only spaces are allowed", "indent with spaces"),
    (
        "character that cannot start",
        "a character that cannot start a value",
        "put the value in quotes; indent with spaces, not tabs",
    ),
    (
        "mapping values are not allowed",
        "a `key:` where none is allowed",
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
        "a line that does not match the lines above it",
        "indent all keys of one mapping, and all `-` of one list, by the same number of spaces",
    ),
    (
        "did not find expected key",
        "a line that does not match the lines above it",
        "indent all keys of one mapping by the same number of spaces",
    ),
    (
        "did not find expected '-' indicator",
        "a line that does not match the list above it",
        "start each item of the list with `- `, all indented by the same number of spaces",
    ),
    ("expected ',' or", "a `[` or `{` that is not closed", "close it, and separate the items with commas"),
)


def compose(text: str) -> Any:
    """PyYAML's tree of nodes, which know their places, of a text that was read before."""
    return yaml.compose(text, Loader=LOADER)


class PlainReader:
    """One pass over the events of one text; collects all problems but those after which it cannot go on."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.parser = LOADER(text)
        self.next: Any = self.parser.get_event
        self.problems: list[Problem] = []

    def read(self) -> dict[str, Any]:
        """The text's mapping; InputError with all problems."""
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
                        f"this file contains {kind}",
                        "a mapping, that is, lines such as `name: value`",
                        "start the file with a key",
                    )
                if isinstance(event, yaml.DocumentStartEvent):
                    self.add(
                        event,
                        "a second document starts here",
                        "one document per file",
                        "remove the `---` line, or move what follows to another file",
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
                return self.plain_scalar(value)
            if event.style == '"':
                self.check_escapes(event)
            return value
        if kind is yaml.AliasEvent:
            self.refuse_alias(event)
            return None
        self.refuse_specials(event)
        if depth > MAX_DEPTH:
            # Nothing below can be trusted to end: stop here, with what was found so far.
            self.problems.append(self.too_deep(event.start_mark))
            raise InputError(self.problems)
        if kind is yaml.MappingStartEvent:
            return self.mapping(depth)
        items = []
        while type(event := self.next()) is not yaml.SequenceEndEvent:
            items.append(self.value(event, depth + 1))
        return items

    def plain_scalar(self, value: str) -> Any:
        """The value of text without quotes, which alone can mean null, true or false."""
        return _CONSTANTS.get(value, value)

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
                    f"`{key}` occurs twice in the same mapping, first on line {lines[key]}",
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
                f"the key {key!r} contains an invisible character",
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
                    f'if you mean text, write it in quotes: "{key}"' if key else "write `key: value`",
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
        refused = None if value.isprintable() else REFUSED.search(value)
        if refused:
            self.add(
                event,
                f"this text contains the character U+{ord(refused[0]):04X}, written as an escape",
                "printable text",
                "remove the escape; use single quotes if you mean a backslash",
            )

    def add(self, event: Any, message: str, expected: str = "", remedy: str = "") -> None:
        mark = event.start_mark
        where = Position(self.name, mark.line + 1, mark.column + 1)
        self.problems.append(Problem(message, where, expected, remedy))
        if len(self.problems) >= MAX_PROBLEMS:
            raise InputError(self.problems)

    def too_deep(self, mark: Any) -> Problem:
        where = Position(self.name, mark.line + 1, mark.column + 1)
        return Problem(
            "this is nested too deeply", where, f"at most {MAX_DEPTH} levels", remedy="check that it is the right file"
        )

    def syntax_problem(self, failure: Any) -> Problem:
        said = failure.problem or ""
        mark = failure.problem_mark or failure.context_mark
        if failure.context_mark is not None and re.search("unexpected end of stream|expected ',' or", said):
            # Where the parser gave up tells little; where the quote or bracket was opened does.
            mark = failure.context_mark
        where = Position(self.name, mark.line + 1, mark.column + 1)
        if "maximum nesting depth" in said:
            # libyaml ends by itself at 1000 levels, before it has given the events of the first ones.
            return self.too_deep(mark)
        if self.text[mark.index : mark.index + 1] == "\t":
            said = "'\\t'"
        for part, message, remedy in _SYNTAX_HINTS:
            if part in said:
                return Problem(message, where, "valid YAML", remedy)
        return Problem(f"this is not valid YAML: {said}", where, "", "check the line and the one above it")
