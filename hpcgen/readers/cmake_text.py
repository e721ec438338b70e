"""CMake's language as text: the commands of a file, and what its conditions come to as far as values are known.

Source: https://cmake.org/cmake/help/latest/manual/cmake-language.7.html and …/command/if.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from hpcgen.core.errors import Position

_CALL = re.compile(r"(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*\(([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)")
_LONG_COMMENT = re.compile(r"#\[(=*)\[")
_COMMENT = re.compile(r"#.*")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s";]+)')
_TOKEN = re.compile(r'"[^"]*"|[()]|[^\s()"]+')
_VARIABLE = re.compile(r"\$\{([^${}]*)\}")
_ENVIRONMENT = re.compile(r"\$ENV\{[^{}]*\}")
_TRUE, _FALSE = {"1", "ON", "YES", "TRUE", "Y"}, {"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"}
_OTHER_SYSTEMS = {"WIN32", "APPLE", "MSVC", "MINGW", "CYGWIN", "ANDROID", "IOS", "XCODE", "BORLAND"}
_COMPARED = {"STREQUAL", "MATCHES", "EQUAL", "LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "IN_LIST", "PATH_EQUAL"}
_ASKED = {"TARGET", "COMMAND", "POLICY", "TEST", "EXISTS", "IS_DIRECTORY", "IS_SYMLINK", "IS_ABSOLUTE", "DEFINED"}


class CMakeCall(NamedTuple):
    """A command with its words; ``text``: all between its parentheses."""

    name: str
    words: list[str]
    text: str
    where: Position


def calls(path: str, text: str) -> Iterator[CMakeCall]:
    """The commands of a file, comments left out, in their order."""
    plain = _without_long_comments(text)
    plain = _COMMENT.sub(lambda match: " " * len(match[0]), plain)
    line, counted = 1, 0
    for match in _CALL.finditer(plain):
        words = [quoted or bare for quoted, bare in _WORD.findall(match[2])]
        start = match.start(1)
        line, counted = line + plain.count("\n", counted, start), start
        where = Position(path, line, start - plain.rfind("\n", 0, start))
        yield CMakeCall(match[1].lower(), [" ".join(word.split()) for word in words], match[2], where)


def _without_long_comments(text: str) -> str:
    """With their lines kept; one that does not end goes on to the end of the file."""
    kept: list[str] = []
    at = 0
    while (match := _LONG_COMMENT.search(text, at)) is not None:
        end = text.find(f"]{match[1]}]", match.end())
        end = len(text) if end < 0 else end + len(match[1]) + 2
        kept += [text[at : match.start()], "\n" * text.count("\n", match.start(), end)]
        at = end
    return "".join([*kept, text[at:]])


def end_of(body: Sequence[CMakeCall], start: int) -> int:
    """The number of the command that ends the block that begins there."""
    name, depth = body[start].name, 0
    for number in range(start, len(body)):
        depth += (body[number].name == name) - (body[number].name == f"end{name}")
        if depth == 0:
            return number
    return len(body)


def expanded(text: str, values: dict[str, str]) -> str:
    """A text with the variables that are known; those of the environment are not set in a build."""
    text = _ENVIRONMENT.sub("", text)
    for _ in range(6):
        put = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
        if put == text:
            break
        text = put[:4000]
    return text


def tokens(text: str) -> list[str]:
    """The words of a condition."""
    return _TOKEN.findall(text)


class Condition:
    """What the words of ``if()`` come to: True, False, or None where that is not known.

    Parameters
    ----------
    values: the variables. holds: whether the project has a path. doubted: whether a variable may have another value,
    or one although nothing here sets it. targets: what is built so far.
    """

    def __init__(
        self,
        words: list[str],
        values: dict[str, str],
        holds: Callable[[str], bool],
        doubted: Callable[[str], bool],
        targets: Collection[str],
    ) -> None:
        self._words, self._values, self._holds = words, values, holds
        self._doubted, self._targets = doubted, targets

    def result(self) -> bool | None:
        """Of the whole."""
        return self._any()

    def _next(self) -> str:
        return self._words[0] if self._words else ""

    def _any(self) -> bool | None:
        result = self._all()
        while self._next() == "OR":
            self._words.pop(0)
            other = self._all()
            result = True if result or other else None if None in (result, other) else False
        return result

    def _all(self) -> bool | None:
        result = self._one()
        while self._next() == "AND":
            self._words.pop(0)
            other = self._one()
            result = False if False in (result, other) else None if None in (result, other) else True
        return result

    def _one(self) -> bool | None:
        if not self._words:
            return None
        word = self._words.pop(0)
        if word == "NOT":
            inner = self._one()
            return None if inner is None else not inner
        if word == "(":
            inner = self._any()
            if self._next() == ")":
                self._words.pop(0)
            return inner
        if word in _ASKED and self._words:
            return self._asked(word, self._words.pop(0))
        if self._next() in _COMPARED or self._next().startswith("VERSION_"):
            how = self._words.pop(0)
            return self._compared(word, how, self._words.pop(0) if self._words else "")
        return self._truth(word)

    def _asked(self, how: str, word: str) -> bool | None:
        plain = expanded(word.strip('"'), self._values)
        if how == "TARGET" and (plain in self._targets or ("::" in plain and not self._doubted(plain))):
            return plain in self._targets
        if how == "DEFINED" and self._doubted(plain):
            return None
        if how == "DEFINED":
            return True if plain in self._values else None if plain.startswith("CMAKE_") else False
        if how in ("EXISTS", "IS_DIRECTORY") and "$" not in plain:
            return self._holds(plain)
        return None

    def _compared(self, left: str, how: str, right: str) -> bool | None:
        first = self._values.get(left, expanded(left.strip('"'), self._values))
        second = self._values.get(right, expanded(right.strip('"'), self._values))
        if how != "STREQUAL" or "$" in first + second or (first == left and not left.startswith('"')):
            return None
        return first == second

    def _truth(self, word: str) -> bool | None:
        plain = expanded(word.strip('"'), self._values)
        if self._doubted(plain):
            return None
        if "$" in plain:
            # Of a variable that nothing sets CMake makes an empty text.
            return None if re.search(r"\$\{(CMAKE|PROJECT|\w*_FOUND)", plain) else False
        if plain.upper() in _TRUE or plain == "UNIX":
            return True
        if plain.upper() in _FALSE or plain.upper().endswith("-NOTFOUND") or plain in _OTHER_SYSTEMS:
            return False
        if plain in self._values:
            value = expanded(self._values[plain], self._values).upper()
            return None if "$" in value else value not in _FALSE and not value.endswith("-NOTFOUND")
        # What CMake and its modules set is not known here; of all else an unset variable is false.
        return None if re.match(r"(CMAKE|PROJECT|HAVE)_", plain) or plain.endswith(("FOUND", "_VERSION")) else False
