"""What PBS and Torque print of themselves → attributes of server, queues and nodes, each with its place.

Read are ``qmgr -c 'print server'`` (or node), ``pbsnodes -a``, ``qstat -Qf`` and ``qstat -Bf``, the last three also as
``-F json``. Sources: qmgr(8B), pbsnodes(8B) and qstat(1B) of OpenPBS and of Torque.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Position, Problem
from hpcgen.readers.folder import ProjectFolder

MAX_BYTES = 64 * 1024 * 1024
"""Ten thousand nodes have some ten megabytes."""
MOST_LINES, MOST_OBJECTS = 2_000_000, 200_000
_MOST_PROBLEMS, _LONGEST_LIST = 20, 100_000
_OBJECTS = {"server": "server", "s": "server", "queue": "queue", "q": "queue", "node": "node", "n": "node"}
_COMMAND = re.compile(r"(?i)(create|c|set|s)\s+(server|s|queue|q|node|n)\b\s*(.*)")
_OTHER = re.compile(r"(?i)(create|set|unset|active|import|export|print|list|delete|p|l|max)\s.*|exit|quit")
_SET = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,127})\s*(\+=|-=|=)\s*(.*)")
_HEAD = re.compile(r"(?:(Queue|Server):\s*)?([A-Za-z0-9][^\s=]{0,254})")


class PbsAttribute(msgspec.Struct, frozen=True):
    """A value as text, and where it stands."""

    value: str
    how: str


class PbsObject(msgspec.Struct):
    """A server, queue or node: its attributes by lower-case name, and where it is named."""

    name: str
    how: str
    said: dict[str, PbsAttribute] = {}

    def get(self, name: str) -> str:
        """The value of an attribute; "" without it."""
        found = self.said.get(name)
        return found.value if found is not None else ""

    def at(self, name: str) -> str:
        """Where an attribute stands, else the object."""
        found = self.said.get(name)
        return found.how if found is not None else self.how

    def true(self, name: str) -> bool:
        """Whether an attribute is set to true."""
        return self.get(name).lower() in ("true", "t", "1", "y", "yes")


class PbsData(msgspec.Struct):
    """All that was read, by name; several outputs say different things of the same queue."""

    server: dict[str, PbsObject] = {}
    queue: dict[str, PbsObject] = {}
    node: dict[str, PbsObject] = {}

    def object(self, kind: str, name: str, how: str) -> PbsObject:
        """The one of that name, which may be new."""
        known: dict[str, PbsObject] = getattr(self, kind)
        if name not in known and len(known) >= MOST_OBJECTS:
            raise InputError(f"more than {MOST_OBJECTS} of one kind", how, remedy="check that it is the right file")
        return known.setdefault(name, PbsObject(name, how))


def read_output(folder: ProjectFolder, file: str, data: PbsData) -> None:
    """Add what a file says. InputError: with the lines that none of these commands prints."""
    text, shown = folder.text(file, None, MAX_BYTES), folder.shown(file)
    if text.lstrip().startswith("{"):
        _json(text, shown, data)
        return
    problems = list[Problem]()
    current: PbsObject | None = None
    for number, line in _lines(text):
        how = f"{shown}:{number}"
        stripped = re.sub(r"^Qmgr:\s*", "", line.strip())
        if not stripped or stripped.startswith("#"):
            continue
        if line[0] in " \t" and current is not None and (match := _SET.fullmatch(stripped)):
            _put(current, match[1], match[2], match[3], how)
        elif match := _COMMAND.fullmatch(stripped):
            _command(data, _OBJECTS[match[2].lower()], match[3], how)
            current = None
        elif _OTHER.fullmatch(stripped):
            current = None
        elif match := _HEAD.fullmatch(stripped):
            current = data.object((match[1] or "node").lower(), match[2], how)
        else:
            expected = "output of qmgr -c 'print server', pbsnodes -a or qstat -Qf"
            problems.append(Problem(f"{stripped[:80]!r} is not a valid line", Position(shown, number, 1), expected))
            if len(problems) >= _MOST_PROBLEMS:
                break
    if problems:
        raise InputError(problems)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that begins with a tab and has no `` = `` goes on with the one before."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if number > MOST_LINES:
            return
        if begun and line.startswith("\t") and " = " not in line:
            begun += line.strip()
            continue
        if begun:
            yield first, begun
        begun, first = line.rstrip(), number
    if begun:
        yield first, begun


def _command(data: PbsData, kind: str, rest: str, how: str) -> None:
    """``queue NAME ATTRIBUTE = VALUE``; creating allows several, with commas between; a server needs no name."""
    match = _SET.fullmatch(rest) if kind == "server" else None
    name, _, said = ("", "", rest) if match else rest.partition(" ")
    for each in _names(name):
        found = data.object(kind, each, how)
        if match := _SET.fullmatch(said.strip()):
            # Values with commas are lists of users and hosts; of what creates an object, further attributes.
            first, *more = re.split(r",\s*(?=[a-z_.]+\s*=)", match[3])
            _put(found, match[1], match[2], first, how)
            for other in more:
                key, _, value = other.partition("=")
                _put(found, key.strip(), "=", value.strip(), how)


def _names(text: str) -> list[str]:
    """Names of a command, which may be several with commas between; a server's is ""."""
    return [name for name in text.split(",") if name] or [""]


def _put(found: PbsObject, name: str, sign: str, value: str, how: str) -> None:
    key, value = name.lower(), value.strip().strip('"')
    before = found.get(key)
    if len(before) > _LONGEST_LIST:
        return
    if sign == "+=" and before:
        value = f"{before},{value}"
    elif sign == "-=":
        value = ",".join(word for word in before.split(",") if word.strip() not in value.split(","))
    found.said[key] = PbsAttribute(value, how)


def _json(text: str, shown: str, data: PbsData) -> None:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as failure:
        message = f"this is not valid JSON: {str(failure)[:80]}"
        raise InputError(message, shown, remedy="give what the command prints without -F json") from None
    found = False
    for key, kind in (("Server", "server"), ("Queue", "queue"), ("nodes", "node")):
        objects = read.get(key) if isinstance(read, dict) else None
        for name, said in (objects if isinstance(objects, dict) else {}).items():
            how = f"{shown}: {key}.{name}"
            one = data.object(kind, "" if kind == "server" else str(name), how)
            for attribute, value in _flat(said):
                one.said[attribute.lower()] = PbsAttribute(value, how)
            found = True
    if isinstance(read, dict) and isinstance(read.get("pbs_version"), str):
        how = f"{shown}: pbs_version"
        data.object("server", "", how).said["pbs_version"] = PbsAttribute(read["pbs_version"], how)
    if not found:
        expected = "the output of pbsnodes -a -F json, qstat -Qf -F json or qstat -Bf -F json"
        raise InputError("it has neither nodes nor Queue nor Server", shown, expected)


def _flat(said: Any) -> Iterator[tuple[str, str]]:
    """``{"resources_max": {"walltime": …}}`` as ``resources_max.walltime``."""
    for name, value in said.items() if isinstance(said, dict) else ():
        if isinstance(value, dict):
            yield from (
                (f"{name}.{key}", str(each)) for key, each in value.items() if not isinstance(each, (dict, list))
            )
        elif not isinstance(value, list):
            yield name, str(value)
