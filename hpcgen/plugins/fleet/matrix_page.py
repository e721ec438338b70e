"""The matrix as one page: what is refused or left to the CPU on which partition, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.core.support.markup import Markup, element, html_page, joined, table
from hpcgen.plugins.fleet.matrix import (
    COUNTED,
    LEGEND,
    MARKS,
    OTHERWISE,
    REASONED,
    MatrixOutcome,
    count_rows,
    grid,
    node,
    reasons,
)

_CLASSES = {mark: mark.lower() for mark in MARKS.values()}


def matrix_page(found: Sequence[MatrixOutcome]) -> str:
    """The page; a field says its reason where the pointer rests on it, and links to the reasons of its stack."""
    stacks, rows = grid(found)
    why: dict[tuple[str, str], list[str]] = {}
    for each in found:
        way = f"{each.way}: " if each.way else ""
        why.setdefault((node(each), each.stack), []).append(f"{way}{each.why or each.software}")

    def field(name: str, stack: str, mark: str) -> Markup:
        said = "\n".join(why.get((name, stack), []))
        plain = mark.removesuffix(OTHERWISE)
        inside = element("a", mark, href=f"#{stack}") if plain in ("no", "cpu") else mark
        return element("td", inside, class_=_CLASSES.get(plain, ""), title=said)

    head = element("tr", element("th", "partition"), *(element("th", stack) for stack in stacks))
    body = [
        element("tr", element("th", name), *(field(name, *pair) for pair in zip(stacks, marks, strict=True)))
        for name, *marks in rows
    ]
    heat = element("div", element("table", element("thead", head), element("tbody", joined(body, "\n"))), class_="wide")
    parts: list[object] = [element("p", LEGEND), heat, element("h2", "How many"), table(COUNTED, count_rows(found))]
    for stack, told in reasons(found).items():
        parts += [element("h2", stack, id=stack), table(REASONED, told)]
    return html_page("Which stack renders where", *parts)
