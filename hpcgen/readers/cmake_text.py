"""The commands of CMake's language, as they stand in a file, and the blocks that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpcgen.core.errors import Position

_CALL = re.compile(r"(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*\(([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)")
_LONG_COMMENT = re.compile(r"#\[(=*)\[")
_COMMENT = re.compile(r"#.*")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s";]+)')
_TOKEN = re.compile(r'"[^"]*"|[()]|[^\s()"]+')
_VARIABLE = re.compile(r"\$\{([^${}]*)\}")
_ENVIRONMENT = re.compile(r"\$ENV\{[^{}]*\}")
LOOKS = re.compile(r"(?i)\b(find_(?!package_handle)|pkg_|fetchcontent|externalproject)\w*\s*\(")
"""Commands that look for files of the machine, or fetch some."""


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


def branches(body: Sequence[CMakeCall]) -> list[tuple[CMakeCall, list[CMakeCall]]]:
    """The branches of an ``if`` without its end, each with the command that begins it."""
    depth = 0
    found: list[tuple[CMakeCall, list[CMakeCall]]] = [(body[0], [])]
    for call in body[1:]:
        depth += (call.name == "if") - (call.name == "endif")
        if depth == 0 and call.name in ("elseif", "else"):
            found.append((call, []))
        else:
            found[-1][1].append(call)
    return found


def items_of(loop: CMakeCall) -> list[str]:
    """What a ``foreach`` goes through, lists as variables."""
    words = [word for word in loop.words[1:] if word not in ("IN", "ITEMS")]
    return [f"${{{word}}}" for word in words[1:]] if words[:1] == ["LISTS"] else words


def gives_up(body: Sequence[CMakeCall]) -> bool:
    """Whether a function ends with an error where it was not left before."""
    depth = 0
    for each in body:
        depth += (each.name in ("if", "foreach", "while")) - (each.name in ("endif", "endforeach", "endwhile"))
        if not depth and each.name == "message" and each.words[:1] == ["FATAL_ERROR"]:
            return True
    return False
