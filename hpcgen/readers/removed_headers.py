"""Headers that C libraries and compilers had once: a source that includes one is not compiled in an image of today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import ProjectFolder


class RemovedHeader(NamedTuple):
    """``since``: the release that dropped it; ``instead``: what to write in its place."""

    since: str
    instead: str


REMOVED = {
    "sys/sysctl.h": RemovedHeader("glibc 2.32", "sysconf() and the files below /proc say the same"),
    "rpc/rpc.h": RemovedHeader("glibc 2.32", "libtirpc-dev has it, with -I/usr/include/tirpc and -ltirpc"),
    "xlocale.h": RemovedHeader("glibc 2.26", "locale.h has what it declared"),
    "ustat.h": RemovedHeader("glibc 2.28", "sys/statvfs.h has statvfs()"),
    "sys/ustat.h": RemovedHeader("glibc 2.28", "sys/statvfs.h has statvfs()"),
    "stropts.h": RemovedHeader("glibc 2.30", "Linux never had STREAMS; sys/ioctl.h has ioctl()"),
    "iostream.h": RemovedHeader("GCC 4.3", "<iostream>, with std::"),
    "fstream.h": RemovedHeader("GCC 4.3", "<fstream>, with std::"),
}
"""Sources: glibc's NEWS of 2.32 and 2.26, https://fedoraproject.org/wiki/Changes/SunRPCRemoval and
https://gcc.gnu.org/gcc-4.3/porting_to.html; the releases of ustat.h and stropts.h are from memory, not verified. That
Debian 12 (glibc 2.36, GCC 12) has none of them was tried."""
_INCLUDED = re.compile(r"\s*#\s*include\s*([<\"])([\w./+-]+)[>\"]")
_CONDITION = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b\s*(.*)")
_HERE = r"__linux__|__linux|linux|__unix__|__unix|__GNUC__"
_ELSEWHERE = r"__APPLE__|__APPLE_CC__|__MACH__|__(Free|Net|Open)BSD__|BSD|_WIN32|WIN32|_MSC_VER|__CYGWIN__|_AIX|__sun"


def removed_header(folder: ProjectFolder, path: str) -> FileWord | None:
    """The line of a source that surely includes such a header, in words; None where none does.

    Conditions on the system are followed; behind any other one an include is not sure.
    """
    for each in includes(folder, path):
        if each.sure and each.system and (header := REMOVED.get(each.name)) is not None:
            text = f"#include <{each.name}>: {header.since} dropped it, and the build stops at it; {header.instead}"
            return FileWord(text, Position(path, each.line, 1))
    return None


class Include(NamedTuple):
    """``system``: its name stands in <>. ``sure``: no condition leaves it out."""

    name: str
    line: int
    system: bool
    sure: bool


def includes(folder: ProjectFolder, path: str) -> Iterator[Include]:
    """The files that a source includes; conditions on the system are followed."""
    stack: list[bool | None] = []
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if match := _CONDITION.match(line):
            _follow(match[1], match[2], stack)
        elif match := _INCLUDED.match(line):
            yield Include(match[2], number, match[1] == "<", all(stack))


def _follow(word: str, rest: str, stack: list[bool | None]) -> None:
    if word.startswith("if"):
        stack.append(_holds(word, rest.strip()))
    elif stack and word == "endif":
        stack.pop()
    elif stack and word == "else":
        stack[-1] = None if stack[-1] is None else not stack[-1]
    elif stack:
        # What is not sure before stays so; behind a branch that is taken nothing is.
        stack[-1] = False if stack[-1] else None if stack[-1] is None else _holds("if", rest.strip())


def _holds(word: str, text: str) -> bool | None:
    """None where it is not known. The guard of a header is none that leaves anything out."""
    name = re.match(r"!?\s*(?:defined\s*\(?\s*)?(\w+)\)?\s*(?:/[/*].*)?$", text)
    if name is None:
        return None
    negated = (word == "ifndef") != text.startswith("!")
    if re.fullmatch(_HERE, name[1]) or re.fullmatch(_ELSEWHERE, name[1]):
        return bool(re.fullmatch(_HERE, name[1])) is not negated
    return True if word == "ifndef" and re.search(r"_(H|HH|HPP|H_INCLUDED)_*$", name[1], re.I) else None
