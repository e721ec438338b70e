"""The page of which stack renders on which kind of node, as a heat map with the reasons.

To plan all of them takes minutes of a processor, so it is made where $HPCGEN_DOCS_MATRIX is set.
"""

from __future__ import annotations

import os
from collections.abc import Container
from html import escape

from hpcgen.catalog.catalog import Catalog
from hpcgen.plugins.fleet.matrix import LEGEND, below_grid, combinations, grid, reasons, remembered

_KINDS = {"yes": "good", "cpu": "half", "no": "none", "BUG": "none", "-": "none"}


def pages() -> dict[str, str]:
    """reference/matrix.md, or nothing."""
    if not os.environ.get("HPCGEN_DOCS_MATRIX"):
        return {}
    catalog = Catalog()
    found = list(remembered(catalog, combinations(catalog), os.cpu_count() or 1))
    stacks, rows = grid(found)
    explained = reasons(found)
    heads = "".join(f'<th scope="col"><a href="../stacks/{name}/"><span>{name}</span></a></th>' for name in stacks)
    body = "".join(_row(name, marks, stacks, explained) for name, *marks in rows)
    table = f'<table class="matrix"><thead><tr><td></td>{heads}</tr></thead><tbody>{body}</tbody></table>'
    head = f"---\nhide: [toc, navigation]\n---\n\n# Which stack renders where, now\n\n{LEGEND}.\n"
    grid_of_all = f'<div class="md-typeset__scrollwrap">{table}</div>'
    rest = below_grid(found)
    return {"reference/matrix.md": f"{head}A mark leads to its reason.\n\n{grid_of_all}\n\n{rest}"}


def _row(node: str, marks: list[str], stacks: list[str], explained: Container[str]) -> str:
    """A kind of node: a cell for each stack, which leads to the stack's reasons where there are any."""
    cells = []
    for stack, mark in zip(stacks, marks, strict=True):
        text = f'<a href="#{stack}">{mark}</a>' if stack in explained else mark
        cells.append(f'<td class="{_KINDS[mark.rstrip("*")]}" title="{escape(node)}, {stack}">{text}</td>')
    site = node.partition(":")[0]
    return f'<tr><th scope="row"><a href="../sites/{site}/">{escape(node)}</a></th>{"".join(cells)}</tr>'
