"""Numbers of CPUs as Linux writes them: lists (``0-3,8``) and masks (``00000001,0000000f``)."""

from __future__ import annotations

import re
from collections.abc import Iterable


def read_list(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``; at most 65536 of them."""
    found: list[int] = []
    for match in re.finditer(r"(\d{1,6})(?:-(\d{1,6}))?", text):
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1)[: 65536 - len(found)])
    return found


def list_text(numbers: Iterable[int]) -> str:
    """Numbers as a list such as ``0-3,8``, in order, as the kernel writes it."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in spans)


def read_mask(text: str) -> list[int]:
    """The numbers of a mask such as ``00000001,0000000f``, whose last digit has the first four; below 65536."""
    digits = text.replace(",", "")
    if not re.fullmatch(r"[0-9a-f]{1,16384}", digits):
        return []
    return [
        4 * place + bit for place, digit in enumerate(digits[::-1]) for bit in range(4) if int(digit, 16) >> bit & 1
    ]
