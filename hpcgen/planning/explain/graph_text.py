"""A plan's graph as text: a tree for terminals, DOT for Graphviz, Mermaid for pages that draw it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcgen.planning.explain.graph import GraphNode, PlanGraph


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
