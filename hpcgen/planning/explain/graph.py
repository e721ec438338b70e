"""A plan as a graph: blocks, their needs, their places, the files that the build fetches; and that graph as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from hpcgen.core.model.fields import Record
from hpcgen.core.model.plan import Plan, PlannedBlock


class GraphNode(Record, frozen=True):
    """A block, or something that its build fetches.

    ``stage``: whether it is in the ``image`` or only builds it (``build``). ``named``: the stack itself asks for it.
    ``said``: what virtual it stands for, or what kind of input it is.
    """

    name: str
    kind: Literal["block", "input"]
    version: str = ""
    stage: Literal["image", "build"] = "image"
    named: bool = False
    said: str = ""


class GraphEdge(Record, frozen=True):
    """``source`` needs ``target``, as ``what`` if that is a virtual. ``implied``: other edges lead there as well."""

    source: str
    target: str
    what: str = ""
    implied: bool = False


class PlanGraph(Record, frozen=True):
    """The nodes, what the stack asks for first and in its order, and the edges between them."""

    title: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]

    def drawn(self) -> list[GraphEdge]:
        """The edges that a picture has: without what others imply, such as that nearly everything needs the base."""
        return [edge for edge in self.edges if not edge.implied]

    def node(self, name: str) -> GraphNode:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)


def graph_of(plan: Plan, inputs: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> PlanGraph:
    """The graph of a plan.

    ``inputs``: kind and name of each thing that the build of a block fetches, by the block's name.
    """
    names = {name: block for block in plan.blocks for name in (block.name, *block.provides)}
    named = list({names[each].name: names[each] for each in plan.stack.blocks if each in names}.values())
    rest = [block for block in reversed(plan.blocks) if block not in named]
    nodes = [_block(block, block in named) for block in (*named, *rest)]
    edges = _edges(plan)
    for block, items in (inputs or {}).items():
        for kind, name in items:
            nodes.append(GraphNode(name=f"{block}: {name}", kind="input", said=kind))
            edges.append(GraphEdge(source=block, target=f"{block}: {name}"))
    title = f"{plan.stack.name} for {plan.site.name}, partition {plan.partition}"
    return PlanGraph(title=title, nodes=nodes, edges=edges)


def _block(block: PlannedBlock, named: bool) -> GraphNode:
    return GraphNode(
        name=block.name,
        kind="block",
        version=block.version,
        stage="build" if block.build_only else "image",
        named=named,
        said=", ".join(block.provides),
    )


def _edges(plan: Plan) -> list[GraphEdge]:
    known = {block.name for block in plan.blocks}
    needs = {
        block.name: {chosen: asked for asked, chosen in block.needs.items() if chosen in known and chosen != block.name}
        for block in plan.blocks
    }
    # What names no need of its own is still put into the base, the first of all.
    base = plan.blocks[0].name
    needs |= {name: {base: "base"} for name, wanted in needs.items() if not wanted and name != base}
    # In build order, so that what a block needs has been looked at before.
    below: dict[str, set[str]] = {}
    for name in (block.name for block in plan.blocks):
        below[name] = set(needs[name]).union(*(below.get(each, set()) for each in needs[name]))
    return [
        GraphEdge(
            source=name,
            target=target,
            what=asked if asked != target else "",
            implied=any(target in below.get(other, ()) for other in wanted if other != target),
        )
        for name, wanted in needs.items()
        for target, asked in wanted.items()
    ]


# A plan's graph as text: a tree for terminals, DOT for Graphviz, Mermaid for pages that draw it.


def label(node: GraphNode) -> str:
    """Name and version."""
    return f"{node.name} {node.version}".strip()


def tree(graph: PlanGraph) -> str:
    """The stack's blocks, and below each its needs; blocks that are further up are not repeated."""
    needed = {edge.target for edge in graph.edges}
    tops = [node for node in graph.nodes if node.named or node.name not in needed]
    shown: set[str] = set()
    lines = [graph.title]
    for node in tops:
        lines += _branch(graph, node, "", node is tops[-1], shown)
    return "\n".join(lines)


def _branch(graph: PlanGraph, node: GraphNode, indent: str, last: bool, shown: set[str]) -> Iterator[str]:
    below = [graph.node(edge.target) for edge in graph.drawn() if edge.source == node.name]
    again = bool(below) and node.name in shown
    notes = [*([node.said] if node.said else []), *(["only builds"] if node.stage == "build" else [])]
    said = f"  ({', '.join(notes)})" if notes else ""
    yield f"{indent}{'└─' if last else '├─'} {label(node)}{said}{' …' if again else ''}"
    if again:
        return
    shown.add(node.name)
    for child in below:
        yield from _branch(graph, child, f"{indent}{'   ' if last else '│  '}", child is below[-1], shown)


def dot(graph: PlanGraph) -> str:
    """For Graphviz: ``dot -Tpdf``."""
    lines = [f"digraph {_quoted(graph.title)} {{", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    for node in graph.nodes:
        style = {"build": "dashed", "image": "solid"}[node.stage] if node.kind == "block" else "dotted"
        shape = ", penwidth=2" if node.named else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(_two_lines(node))}, style={style}{shape}];")
    for edge in graph.drawn():
        what = f" [label={_quoted(edge.what)}]" if edge.what else ""
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{what};")
    return "\n".join([*lines, "}"])


def mermaid(graph: PlanGraph) -> str:
    """For pages that draw it by themselves, such as those of GitHub and GitLab."""
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart TB"]
    for node in graph.nodes:
        # What a label may not have is written by its code point, as Mermaid does.
        text = re.sub(r'[<>&"#;`\\]', lambda found: f"#{ord(found[0])};", label(node))
        kind = node.kind if node.kind == "input" else "named" if node.named else node.stage
        lines.append(f'  {ids[node.name]}["{text}"]:::{kind}')
    lines += [
        f"  {ids[edge.source]} -->{f'|{edge.what}|' if edge.what else ''} {ids[edge.target]}" for edge in graph.drawn()
    ]
    looks = {"named": "stroke-width:3px", "build": "stroke-dasharray:5 4", "input": "stroke-dasharray:2 3"}
    return "\n".join([*lines, *(f"  classDef {name} {look}" for name, look in looks.items())])


def _two_lines(node: GraphNode) -> str:
    return f"{node.name}\n{node.version}" if node.version else node.name


def _quoted(text: str) -> str:
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'
