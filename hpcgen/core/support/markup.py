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


_PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#212529;"
    "background:#fff}table{border-collapse:collapse}th,td{padding:.2rem .5rem;text-align:left}"
    "th{border-bottom:1px solid #868e96}.wide{overflow-x:auto}.yes{background:#b2f2bb}.cpu{background:#ffec99}"
    ".no{background:#ffc9c9}.bug{background:#e599f7}td.yes,td.cpu,td.no,td.bug{color:#212529}svg{max-width:100%}"
    "svg text{fill:currentColor}@media(prefers-color-scheme:dark){body{color:#e9ecef;background:#1e2129}}"
)


def html_page(title: str, *inside: object) -> str:
    """A whole page in one file, which loads nothing; its colours follow the reader's choice of light or dark."""
    head = joined(
        [
            Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
            element("title", title),
            element("style", Markup(_PAGE_STYLE)),
        ]
    )
    body = element("body", element("h1", title), *inside)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'
