"""Damage and malice, by a seed: bytes of a file changed as chance has it, or a value of plain data replaced."""

from __future__ import annotations

import copy
import random
from typing import Any

TOKENS = [
    b"[" * 2000,
    b"- " * 2000,
    b"{" * 2000,
    b"1:" * 5000,
    b"9" * 5000,
    b"\n" * 5000,
    b"&a [*a]",
    b"!!python/object:x 1",
    b"<<: *a",
    b"\xff\xfe",
    b"\0",
    b"\x1b[2J",
    b"\t",
    b"'",
    b'"',
    b"---\n",
    b"null",
    b"-1",
    b".nan",
    b"\xe2\x80\xae",
    b"../../etc/passwd",
]
VALUES: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        10**18,
        10**400,
        1.5,
        "",
        "no",
        "\n",
        "a\n",
        "\0",
        "\x1b[2J",
        "²",
        "../..",
        "$(id)",
        "x" * 70_000,
    ),
    *([], {}, [[]], [5], {"": 5}, {"name": 5}),
]


def mutated(chance: random.Random, data: bytes) -> bytes:
    """The bytes with one to four places flipped, cut out, repeated, or with something hostile put in."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        upto = min(len(data), at + chance.choice([1, 1, 8, 512, 5000]))
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[upto:]
        elif kind == 2:
            data = data[:upto] + data[at:upto] * chance.choice([1, 1, 3, 50]) + data[upto:]
        elif kind == 3:
            data = data[:at] + chance.choice(TOKENS) + data[upto:]
        else:
            data = data[:at] + chance.choice(TOKENS) + data[at:]
    return data


def replaced(chance: random.Random, data: Any) -> Any:
    """Plain data with one to three of its values replaced or left out, at whatever depth."""
    for _ in range(chance.randint(1, 3)):
        places = list(_places(data))
        holder, key = chance.choice(places)
        if isinstance(holder, dict) and chance.randrange(4) == 0:
            del holder[key]
        else:
            # A copy: what is put in may itself be changed by the next round.
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        if not data:
            break
    return data


def _places(data: Any) -> Any:
    rest = [data]
    while rest:
        holder = rest.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(value, (dict, list)):
                rest.append(value)
