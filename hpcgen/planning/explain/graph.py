"""A plan as a graph: blocks, their needs, their stage, and the downloads of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    Parameters
    ----------
    inputs: kind and name of each thing that the build of a block fetches, by the block's name.
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
