"""What is wrong with a page as it was built, held against its Markdown: the hook of MkDocs warns of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

_FENCE = re.compile(r"(?ms)^( *)(```+|~~~+).*?^\1\2 *$")
_HEADING = re.compile(r"(?m)^#{1,6} ")
_NAME = re.compile(r"\{[a-z_]+\}")


class _Built(HTMLParser):
    """A page's text outside and inside of code, its headings and the cells of its tables' heads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.headings = 0
        self.text = ""
        self.inline = ""
        self.blocks = ""
        self.heads: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.headings += bool(re.fullmatch("h[1-6]", tag))
        if tag in ("th", "code", "pre"):
            self._open.append(tag)
        if tag == "th":
            self.heads.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            self._open.remove(tag)

    def handle_data(self, data: str) -> None:
        if "th" in self._open:
            self.heads[-1] += data.strip()
        if "pre" in self._open:
            self.blocks += data
        elif "code" in self._open:
            self.inline += data
        else:
            self.text += data


def faults(markdown: str, html: str) -> Iterator[str]:
    """Each fault as a sentence; ``html`` is what ``markdown`` became, without the theme around it."""
    page = _Built(html)
    written = len(_HEADING.findall(_FENCE.sub("", markdown)))
    if page.headings != written:
        yield f"{written} headings are written, {page.headings} were built: is a block of code not closed?"
    if "```" in page.text + page.inline + page.blocks:
        yield "the fence of a block of code stands in the text"
    if "\\|" in page.text + page.inline:
        yield "a bar of a table stands with its backslash"
    if name := _NAME.search(page.text):
        yield f"{name[0]} was not filled in"
    if "" in page.heads:
        yield "a column of a table has no head"
