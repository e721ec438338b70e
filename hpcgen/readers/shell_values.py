"""What the words of a shell script stand for, as far as the script itself says it. Nothing is run.

A variable whose value the script does not say stays as it is, ``$NAME``; so a word has ``\\$`` where it means the sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hpcgen.readers.shell_words import UnclosedError, piece_end, word_end

_LITERAL = re.compile(r"[^\\'\"`$\s]+")
_LONGEST, _MOST_WORDS = 4096, 1000
_BRACED = re.compile(r"(\w+|[@*#?])(\[[@*\w]+\])?(?:(:?[-=+?])(.*))?", re.S)
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=\((.*)\)", re.S)
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_UNKNOWN = re.compile(r"(?<!\\)[$`]")


def unknown(word: str) -> bool:
    """Whether the script leaves open what a word stands for."""
    return _UNKNOWN.search(word) is not None


def plain(word: str) -> str:
    """A word of which everything is known, as a program gets it."""
    return re.sub(r"\\([$`])", r"\1", word)


class Values:
    """Variables, arrays and arguments, and the words that they are in.

    plain: variables with the text that they have. lists: arrays.
    arguments: of the function that is called; None in the script itself, which is taken to be started without any.
    patterns: words with a ``*`` outside of quotes, for which a shell would put names of files.
    unquoted: words that are one variable, unknown and without quotes.
    """

    def __init__(self) -> None:
        self.plain: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.arguments: list[str] | None = None
        self.patterns: list[str] = []
        self.unquoted: set[str] = set()

    def words(self, raw: str) -> list[str]:
        """What a word becomes, of a list of them or of one without quotes several, or none.

        UnclosedError: it is damaged.
        """
        return [each[:_LONGEST] for each in _Word(self, raw).fields()][:_MOST_WORDS]

    def text(self, raw: str) -> str:
        """What a word becomes where it stays one, as behind ``NAME=``."""
        word = _Word(self, raw)
        word.split = False
        return " ".join(word.fields())[:_LONGEST]

    def array(self, raw: str) -> tuple[str, list[str]] | None:
        """The name and the words of ``NAME=(…)``, also behind those of ``NAME+=(…)``; None for all else."""
        match = _ARRAY.fullmatch(raw)
        if match is None:
            return None
        found = list(self.lists.get(match[1], [])) if match[2] else []
        at, text = 0, match[3]
        while at < len(text) and len(found) < _MOST_WORDS:
            if text[at] == "#":
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text[at] in " \t\r\n|&;<>()" or text.startswith("\\\n", at):
                at += 1
            else:
                end = max(at + 1, word_end(text, at))
                found += self.words(text[at:end])
                at = end
        return match[1], found

    def forget(self, name: str) -> None:
        """The variable has another value from here on, which nothing says."""
        self.plain.pop(name, None)
        self.lists.pop(name, None)

    def __getitem__(self, name: str) -> list[str] | None:
        """The words that a variable, an array or the arguments stand for; None where that is not known."""
        if name in ("@", "*"):
            return self.arguments or []
        if name.isdigit() and self.arguments is not None and name != "0":
            return self.arguments[int(name) - 1 : int(name)] or [""]
        if name in self.lists:
            return self.lists[name]
        return [self.plain[name]] if name in self.plain else None


class _Word:
    """One word on its way."""

    def __init__(self, values: Values, raw: str, depth: int = 0) -> None:
        self.values, self.raw, self.depth = values, raw, depth
        self.split = True
        self.done: list[str] = []
        self.current: str | None = None

    def fields(self) -> list[str]:
        at, star = 0, False
        while at < len(self.raw):
            if match := _LITERAL.match(self.raw, at):
                star = star or "*" in match[0]
                self._add(match[0])
                at = match.end()
            elif self.raw[at].isspace():
                self._add(self.raw[at])
                at += 1
            else:
                end = piece_end(self.raw, at, 0)
                self._piece(self.raw[at:end])
                at = end
        found = [*self.done, *([self.current] if self.current is not None else [])]
        if star and self.split:
            self.values.patterns += found[:1]
        return found

    def _add(self, text: str) -> None:
        self.current = (self.current or "") + text

    def _piece(self, piece: str) -> None:
        if piece[0] == "\\":
            self._add("" if piece[1:] == "\n" else _literal(piece[1:]))
        elif piece[0] == "'":
            self._add(_literal(piece[1:-1]))
        elif piece.startswith("$'"):
            self._add(_literal(re.sub(r"\\(.)", lambda match: _ANSI.get(match[1], match[0]), piece[2:-1], flags=re.S)))
        elif piece[0] == '"':
            self._quoted(piece[1:-1])
        else:
            self._variable(piece, quoted=not self.split)

    def _quoted(self, text: str) -> None:
        at = 0
        self._add("")
        whole = text in ("$@", "${@}") or text.startswith("${@:") or re.fullmatch(r"\$\{\w+\[@\]\}", text) is not None
        if whole and not (self.current or self.values[text.strip("${}").partition("[")[0].partition(":")[0]]):
            self.current = None
        while at < len(text):
            if text[at] == "\\":
                following = text[at + 1 : at + 2]
                self._add(
                    "" if following == "\n" else _literal(following) if following in '$`"\\' else text[at : at + 2]
                )
                at += 2
            elif text[at] in "$`":
                end = piece_end(text, at, 0)
                self._variable(text[at:end], quoted=True)
                at = end
            else:
                self._add(text[at])
                at += 1

    def _variable(self, piece: str, quoted: bool) -> None:
        found = self._value(piece)
        if found is None:
            if not quoted and piece == self.raw:
                self.values.unquoted.add(piece)
            self._add(piece)
            return
        listed = re.search(r"@(\]?)\}?$", piece) is not None or piece.startswith("${@:")
        parts = found if listed and quoted else [" ".join(found)]
        if not quoted:
            text = " ".join(found)
            parts = text.split()
            if text[:1].isspace():
                self._end()
        for number, part in enumerate(parts):
            if number:
                self._end()
            self._add(part)
        if not quoted and parts and " ".join(found)[-1:].isspace():
            self._end()

    def _end(self) -> None:
        if self.current is not None:
            self.done.append(self.current)
        self.current = None

    def _value(self, piece: str) -> list[str] | None:
        """The words of ``$X``, ``${X}`` or ``${X:-3}``; None where the script does not say them."""
        if piece.startswith("$(("):
            return computed(piece[3:-2], self.values.plain)
        if piece[0] == "`" or piece.startswith("$(") or piece == "$":
            return None
        if not piece.startswith("${"):
            return self.values[piece[1:]]
        if re.match(r"\$\{[@*]:\d", piece):
            return (self.values.arguments or [])[max(0, int(piece[4]) - 1) :]
        match = _BRACED.fullmatch(piece[2:-1])
        if match is None:
            return None
        found = self.values[match[1]]
        if match[2] and match[2] not in ("[@]", "[*]") and found is not None:
            number = match[2][1:-1]
            found = found[int(number) : int(number) + 1] if number.isdigit() else None
        if match[3] is None:
            return found
        if self.depth > 8:
            return None
        other = _Word(self.values, match[4], self.depth + 1).fields()
        if "+" in match[3]:
            return other if found else []
        return other if found is None or (":" in match[3] and not "".join(found)) else found


def _literal(text: str) -> str:
    return re.sub(r"[$`]", r"\\\g<0>", text)


_ROUND: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a % b,
}


def computed(text: str, known: Mapping[str, str]) -> list[str] | None:
    """The number that ``$((…))`` gives, if it has whole numbers and ``+ - * / %`` alone; else None."""
    filled = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda match: known.get(match[1], match[0]), text)
    terms = re.findall(r"\d+|[-+*/%]|\S", filled)
    if len(terms) % 2 == 0 or len(terms) > 40 or not all(each.isdecimal() for each in terms[::2]):
        return None
    if any(each not in _ROUND for each in terms[1::2]) or any(len(each) > 12 for each in terms):
        return None
    numbers, signs = [int(terms[0])], []
    for sign, term in zip(terms[1::2], terms[2::2], strict=True):
        if sign in "*/%":
            if sign != "*" and not int(term):
                return None
            numbers[-1] = _ROUND[sign](numbers[-1], int(term))
        else:
            signs.append(sign)
            numbers.append(int(term))
    total = numbers[0]
    for sign, number in zip(signs, numbers[1:], strict=True):
        total = _ROUND[sign](total, number)
    return [str(total)]


__all__ = ["UnclosedError", "Values", "computed", "plain", "unknown"]
