"""The lines of a Makefile that its conditions leave in, as far as they are known; flags for GNU's compilers.

Form: https://www.gnu.org/software/make/manual/make.html#Conditionals
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord

USED = re.compile(r"\$[({](\w+)[)}]")
"""A variable where its value is put in."""


_ROW = re.compile(r"\$[({](\w*)\$[({](\w+)[)}][)}]")
_ELSEWHERE = re.compile(
    r"(?<!\S)(?:-fast(?:sse)?|-fno-alias|-q?openmp|-ipo?\d*|-x(?:Host|HOST|CORE-\S+|AVX\S*|MIC-\S+)|-no-prec-div|"
    r"-fp-model[ =]\S+|-mp(?:=\S+)?|-M(?:list|preprocess|ipa\S*|vect\S*|info\S*|noframe|unroll\S*)|-traceback|"
    r"-(?:no-)?ftz|-align \S+|-assume \S+|-check \S+|-warn \S+|-qopt-\S+|-fpp|-[ir]8)(?=\s|$)"
)
"""Options of compilers by Intel and PGI that GNU's refuse, or take for something else: -openmp is -o with a name.

Source: their manuals, from memory; that GCC 12 refuses -fast, -fno-alias, -qopenmp, -mp, -fpp and -r8, and takes
-openmp so, was tried.
"""
_SAME = {"-openmp": "-fopenmp", "-qopenmp": "-fopenmp", "-mp": "-fopenmp", "-fpp": "-cpp", "-r8": "-fdefault-real-8"}
_OF_ANOTHER = re.compile(
    r"(?i)(^|_)(intel|icc|icx|oneapi|pgi|nv\w*|cuda|cray|cce|sun|xlf?|ibm|pathscale|aocc|arm|clang|fujitsu|hip\w*)(_|$)"
)


def gnu_row(values: dict[str, str], assigned: dict[str, FileWord]) -> dict[str, FileWord]:
    """GNU's row of a table of flags by compilers, ``$(FLAGS_$(COMPILER))``, where nothing chooses one."""
    found: dict[str, FileWord] = {}
    for flags, name in (each for value in values.values() for each in _ROW.findall(value)):
        rows = [row for row in ("GNU", "GCC", "gnu", "gcc") if f"{flags}{row}" in assigned]
        if rows and not values.get(name):
            found.setdefault(name, FileWord(rows[0], assigned[f"{flags}{rows[0]}"].where))
    return found


def for_gnu(name: str, value: FileWord, others: list[FileWord]) -> FileWord | None:
    """Flags as GNU's compilers take them; None where these are.

    ``name``: of the variable; flags of one compiler among others stay. ``others``: what the file has in comments, of
    which the first without variables and another compiler's options is taken.
    """
    if not _ELSEWHERE.search(value.text) or _OF_ANOTHER.search(name):
        return None
    plain = " ".join(_ELSEWHERE.sub(lambda match: _SAME.get(match[0], ""), value.text).split())
    good = (each for each in others if "$" not in each.text and not _ELSEWHERE.search(each.text))
    return next(good, FileWord(plain, value.where))


class MakeVariables(Protocol):
    """What is known so far: by name, and in a text."""

    values: dict[str, str]

    def value(self, text: str) -> str: ...


def active(path: str, text: str, known: MakeVariables) -> Iterator[tuple[Position, str, bool]]:
    """Whole lines, continued ones joined, that no condition leaves out, and whether that is sure."""
    stack: list[bool | None] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line, start = lines[number], number + 1
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1]} {lines[number].strip()}"
        number += 1
        words = line.strip()
        if match := re.match(r"(else\s+)?(ifn?(?:eq|def))\b(.*)", words):
            if match[1] and stack:
                before = stack.pop()
                stack.append(False if before else _condition(match[2], match[3], known))
            else:
                stack.append(_condition(match[2], match[3], known))
        elif words.startswith("else") and stack and re.fullmatch(r"else\b\s*(#.*)?", words):
            before = stack.pop()
            stack.append(None if before is None else not before)
        elif re.match(r"endif\b", words) and stack:
            stack.pop()
        elif False not in stack:
            yield Position(path, start, 1), line, None not in stack


def _condition(how: str, text: str, known: MakeVariables) -> bool | None:
    if how in ("ifdef", "ifndef"):
        defined = text.split("#")[0].strip() in known.values
        return defined is (how == "ifdef")
    match = re.match(r"\s*\(\s*(.*?)\s*,\s*(.*?)\s*\)\s*(#.*)?$", text) or re.match(
        r"\s*[\"'](.*?)[\"']\s+[\"'](.*?)[\"']", text
    )
    if match is None:
        return None
    # Of a variable that nothing sets make makes an empty text; functions are not worked out.
    left, right = (USED.sub("", known.value(re.sub(r"\$\(strip (.*?)\)", r"\1", part))) for part in match.group(1, 2))
    if "$" in left + right:
        return None if "findstring" not in left + right else how == "ifneq"
    return (left == right) is (how == "ifeq")
