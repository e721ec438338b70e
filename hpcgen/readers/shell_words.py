"""The commands of a shell script as words in their quotes, by the rules of POSIX sh and bash. Nothing is run.

Time is bounded by the length of the text: what is nested too deeply, or never closed, ends the reading, as it would
end the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_DEEPEST = 40
_PLAIN = re.compile(r"[^ \t\r\n'\"\\$`|&;<>()]+")
_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n|\\\Z)+")
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-?|<>|>>|>\||>&|<&|&>>|&>|<(?!\()|>(?!\())")
_OPERATOR = re.compile(r";;&|;&|;;|\|\||&&|\|&|[|&;()\n]")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=\(")
_NAME = re.compile(r"[A-Za-z_]\w*|[\d@*#?$!-]")
_INSIDE_QUOTES = re.compile(r'[^"\\$`]+')


class ShellCommand(NamedTuple):
    """A simple command.

    ``words``: as they stand there. ``spans``: where each stands in the text. ``behind``: redirections, as they stand.
    ``document``: the text of a here-document. ``end``: the operator behind it.
    """

    words: list[str]
    spans: list[tuple[int, int]]
    line: int
    column: int
    behind: list[str]
    document: str
    end: str


class UnclosedError(ValueError):
    """A quote or a bracket that is never closed, or is nested too deeply; ``at``: where in the text."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def commands_in(text: str) -> Iterator[ShellCommand]:
    """The commands of a script, in their order; words that are part of the language are words too.

    UnclosedError: the text ends within a quote or a bracket; what stood before it was given.
    """
    return _Tokens(text).commands()


_GOES_ON = ("then", "do", "else", "{", "!")


def on_one_line(text: str) -> str:
    """A script as one line that does the same; "" where it has brackets, a here-document or a word of several lines."""
    parts = []
    try:
        for each in commands_in(text):
            said = " ".join([*(text[start:end] for start, end in each.spans), *each.behind])
            if each.document or "\n" in said or each.end not in ("\n", ";", "&&", "||", "|", "|&", "&"):
                return ""
            end = (
                (";" if each.words[-1:] not in [[word] for word in _GOES_ON] else "") if each.end == "\n" else each.end
            )
            parts.append(f"{said}{end}" if end in (";", "") else f"{said} {end}")
    except UnclosedError:
        return ""
    return " ".join(parts).removesuffix(";")


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self._counted = 0
        self._documents: list[tuple[str, bool]] = []
        self._begin(0)

    def _begin(self, at: int) -> None:
        self.words: list[str] = []
        self.spans: list[tuple[int, int]] = []
        self.behind: list[str] = []
        self.first = at

    def commands(self) -> Iterator[ShellCommand]:
        """One after the other."""
        text = self.text
        while self.at < len(text):
            if match := _BLANK.match(text, self.at):
                self.at = match.end()
            elif text[self.at] == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif match := _REDIRECTION.match(text, self.at):
                self._redirection(match)
            elif text.startswith("((", self.at) and (not self.words or self.words == ["for"]):
                self.at = _close(text, self.at, ")", 1)
            elif match := _OPERATOR.match(text, self.at):
                self.at = match.end()
                document = self._document() if match[0] == "\n" else ""
                if self.words or self.behind or match[0] in "()" or match[0].startswith(";;"):
                    yield self._command(match[0], document)
                self._begin(self.at)
            else:
                start = self.at
                self.at = max(start + 1, word_end(text, start))
                self.words.append(text[start : self.at])
                self.spans.append((start, self.at))
        if self.words:
            yield self._command("\n", "")

    def _command(self, end: str, document: str) -> ShellCommand:
        start = self.spans[0][0] if self.spans else self.first
        self.line += self.text.count("\n", self._counted, start)
        self._counted = max(start, self._counted)
        column = start - self.text.rfind("\n", 0, start)
        return ShellCommand(self.words, self.spans, self.line, column, self.behind, document, end)

    def _redirection(self, match: re.Match[str]) -> None:
        start = match.start()
        blank = _BLANK.match(self.text, match.end())
        self.at = blank.end() if blank else match.end()
        if self.at < len(self.text) and not _OPERATOR.match(self.text, self.at):
            word = self.at
            self.at = word_end(self.text, word)
            if match[1] in ("<<", "<<-"):
                self._documents.append((re.sub(r"['\"\\]", "", self.text[word : self.at]), match[1] == "<<-"))
        self.behind.append(self.text[start : self.at])

    def _document(self) -> str:
        """The text of the here-documents that the line before began."""
        found = ""
        for mark, tabs in self._documents:
            pattern = re.compile(rf"^{'	*' if tabs else ''}{re.escape(mark)}$", re.M)
            end = pattern.search(self.text, self.at)
            found = self.text[self.at : end.start() if end else len(self.text)]
            self.at = end.end() if end else len(self.text)
        self._documents = []
        return found


def word_end(text: str, at: int) -> int:
    """Where the word ends that begins here. UnclosedError: it does not."""
    start = at
    while at < len(text):
        if match := _PLAIN.match(text, at):
            at = match.end()
        elif text[at] == "(" and _ARRAY.match(text, start, at + 1):
            at = _close(text, at, ")", 1)
        elif text[at] in "<>" and text[at + 1 : at + 2] == "(" and at == start:
            at = _close(text, at + 1, ")", 1)
        elif text[at] in " \t\r\n|&;<>()":
            return at
        else:
            at = piece_end(text, at, 0)
    return at


def piece_end(text: str, at: int, depth: int) -> int:
    """The end of what a backslash, a quote or a dollar sign begins here."""
    sign = text[at]
    if depth > _DEEPEST:
        raise UnclosedError(at)
    if sign == "\\":
        return min(at + 2, len(text))
    if sign == "'":
        return _found(text, "'", at + 1, at)
    if sign == "`":
        end = at + 1
        while end < len(text) and text[end] != "`":
            end += 2 if text[end] == "\\" else 1
        if end >= len(text):
            raise UnclosedError(at)
        return end + 1
    if sign == '"':
        return _quoted_end(text, at, depth)
    following = text[at + 1 : at + 2]
    if following == "(":
        return _close(text, at + 1, ")", depth + 1)
    if following == "{":
        return _close(text, at + 1, "}", depth + 1)
    if following == "'":
        end = at + 2
        while end < len(text) and text[end] != "'":
            end += 2 if text[end] == "\\" else 1
        return min(end + 1, len(text))
    match = _NAME.match(text, at + 1)
    return match.end() if match else at + 1


def _quoted_end(text: str, at: int, depth: int) -> int:
    end = at + 1
    while end < len(text):
        if match := _INSIDE_QUOTES.match(text, end):
            end = match.end()
        elif text[end] == '"':
            return end + 1
        elif text[end] == "$" and text[end + 1 : end + 2] not in ("(", "{"):
            end += 1
        else:
            end = piece_end(text, end, depth + 1)
    raise UnclosedError(at)


def _close(text: str, at: int, closing: str, depth: int) -> int:
    """The end of what the bracket here opens."""
    opening, start, inner = text[at], at, 0
    if depth > _DEEPEST:
        raise UnclosedError(at)
    while at < len(text):
        if text[at] == opening:
            inner += 1
            at += 1
        elif text[at] == closing:
            inner -= 1
            at += 1
            if not inner:
                return at
        elif text[at] in "\\'\"`$" and not (closing == "}" and text[at] == "'"):
            at = piece_end(text, at, depth)
        elif text[at] == "#" and closing == ")" and text[at - 1].isspace():
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        else:
            at += 1
    raise UnclosedError(start)


def _found(text: str, sign: str, at: int, start: int) -> int:
    end = text.find(sign, at)
    if end < 0:
        raise UnclosedError(start)
    return end + 1
