"""What became of every combination, for people: a grid, counts, and a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.plugins.fleet.matrix import RESULTS, MatrixOutcome, Result, counts

MARKS: dict[Result, str] = {"renders": "yes", "cpu": "cpu", "refused": "no", "bug": "BUG"}
"""The cells of a grid."""
OTHERWISE = "*"
"""After a mark, where another way of installing has another result."""
LEGEND = (
    "yes: renders; cpu: renders, and leaves the node's GPUs alone; no: refused; "
    f"{OTHERWISE}: another way of installing has another result"
)
COUNTED = ["stack", *RESULTS]


def grid(found: Sequence[MatrixOutcome]) -> tuple[list[str], list[list[str]]]:
    """The names of the stacks, and for each partition its name and a mark for each of them."""
    stacks = list(dict.fromkeys(each.stack for each in found))
    cells: dict[str, dict[str, list[MatrixOutcome]]] = {}
    for each in found:
        cells.setdefault(node(each), {}).setdefault(each.stack, []).append(each)
    return stacks, [[name, *(_mark(row.get(stack, [])) for stack in stacks)] for name, row in cells.items()]


def node(outcome: MatrixOutcome) -> str:
    """Site and partition in a word."""
    return f"{outcome.site}:{outcome.partition}"


def _mark(ways: Sequence[MatrixOutcome]) -> str:
    if not ways:
        return "-"
    usual = next((each for each in ways if each.usual), ways[0])
    return MARKS[usual.result] + (OTHERWISE if len({each.result for each in ways}) > 1 else "")


def columns_that_fit(stacks: Sequence[str], first: int, width: int) -> list[list[int]]:
    """The numbers of the columns that stand beside each other in lines of a width; ``first``: of the row's name."""
    groups: list[list[int]] = []
    room = 0
    for number, name in enumerate(stacks):
        needed = max(len(name), len("yes*")) + 2
        if not groups or needed > room:
            groups.append([])
            room = width - first
        groups[-1].append(number)
        room -= needed
    return groups


def count_rows(found: Sequence[MatrixOutcome]) -> list[list[str]]:
    """How many of each result, by stack, and of all."""
    by_stack = counts(found)
    rows = [[stack, *map(str, numbers.values())] for stack, numbers in by_stack.items()]
    total = [str(sum(numbers[result] for numbers in by_stack.values())) for result in RESULTS]
    return [*rows, ["all", *total]]


def markdown(found: Sequence[MatrixOutcome]) -> str:
    """A page: the grid, the counts, and for each stack what is refused or left to the CPU, and why."""
    stacks, rows = grid(found)
    lines = ["# Which stack renders where", "", f"Written by `hpcgen matrix --markdown`. {LEGEND}.", ""]
    lines += _table(["partition", *stacks], rows)
    lines += ["", "## How many", "", *_table(COUNTED, count_rows(found))]
    for stack in stacks:
        reasons: dict[tuple[Result, str], list[str]] = {}
        for each in found:
            if each.stack == stack and each.result != "renders":
                where = node(each) + (f" ({each.way})" if each.way else "")
                reasons.setdefault((each.result, each.why), []).append(where)
        if reasons:
            body = [[MARKS[result], _cell(why), ", ".join(where)] for (result, why), where in reasons.items()]
            lines += ["", f"## {stack}", "", *_table(["result", "why", "where"], body)]
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
