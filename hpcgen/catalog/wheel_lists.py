"""Wheel lists of collections: read and written again, so that nothing but packages with hashes gets through."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.wheel_lines import EXPECTED, fault, logical_lines, parse_line

MAX_BYTES = 16 * 1024 * 1024
_GLIBC = re.compile(r"^# glibc (2\.[0-9]{1,2})$", re.MULTILINE)


class ListedWheels(NamedTuple):
    """The lines of a wheel list, and the C library that its wheels are made for, empty where it does not say it."""

    lines: tuple[str, ...]
    glibc: str = ""


def read_wheel_list(path: Path, name: str) -> ListedWheels:
    """A wheel list, each line as hpcgen writes it.

    Parameters
    ----------
    name: what messages call it.

    Raises
    ------
    InputError: it cannot be read, or has anything but packages with version and hashes: every such line.
    """
    try:
        data = read_plain(path, MAX_BYTES)
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise InputError("not valid UTF-8", name, remedy="save the file as UTF-8") from failure
    except OSError as failure:
        raise InputError(
            f"the wheel list cannot be read: {failure.strerror}", name, remedy="make it a readable file"
        ) from failure
    if len(data) > MAX_BYTES:
        raise InputError(
            f"this is larger than any wheel list: more than {MAX_BYTES // 2**20} MiB",
            name,
            remedy="check that it is the right file",
        )
    found = []
    problems = Problems()
    for number, said in logical_lines(text):
        line = parse_line(said)
        if line is not None:
            found.append(str(line))
            continue
        remedy = "network.mirrors.pip of the site profile says where packages come from" if said.startswith("-") else ""
        problems.add(fault(said), Position(name, number, 1), EXPECTED, remedy)
    problems.raise_as(InputError)
    made_for = _GLIBC.search(text)
    return ListedWheels(tuple(found), made_for[1] if made_for else "")
