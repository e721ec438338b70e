"""HTML and SVG from plain text: the one place where what strangers wrote is made safe for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def safe(value: object) -> Markup:
    """A value as text of a page, or of an attribute in double quotes; markup as it is."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=True))


def element(name: str, *inside: object, **attributes: object) -> Markup:
    """One element; ``class_`` and ``stroke_width`` stand for ``class`` and ``stroke-width``."""
    words = [f' {key.rstrip("_").replace("_", "-")}="{safe(value)}"' for key, value in attributes.items()]
    return Markup(f"<{name}{''.join(words)}>{''.join(safe(each) for each in inside)}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Several pieces one after the other."""
    return Markup(safe(between).join(safe(each) for each in parts))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> Markup:
    """A table; ``numbers``: the columns whose cells stand at the right."""

    def cells(name: str, row: Sequence[object]) -> Markup:
        marks = [{"class_": "number"} if place in numbers else {} for place in range(len(row))]
        return joined(element(name, each, **mark) for each, mark in zip(row, marks, strict=True))

    top = element("thead", element("tr", cells("th", head)))
    body = element("tbody", joined((element("tr", cells("td", row)) for row in rows), "\n"))
    return element("div", element("table", top, body), class_="wide")
