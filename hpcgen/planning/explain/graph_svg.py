"""A plan's graph as a picture; equal plans give equal SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hpcgen.core.support.markup import Markup, element
from hpcgen.planning.explain.graph import GraphNode, PlanGraph

# Where the nodes of a graph lie in a picture: in layers, what is needed below what needs it, few lines crossing.
#
# The usual way of layered drawings (Sugiyama, Tagawa, Toda 1981): layers by the longest path, long edges through a
# place of their own in every layer between, the order in each layer by the mean of the neighbours' places.
_ROUNDS = 24
_PASSAGE = 14.0
"""The width that a long edge has in a layer."""

Edge = tuple[str, str]


class Drawing(msgspec.Struct, frozen=True):
    """``centres``: x and y of each node's middle; ``lines``: for each edge the points that it goes through."""

    centres: dict[str, tuple[float, float]]
    lines: dict[Edge, list[tuple[float, float]]]
    width: float
    height: float


def layered(widths: Mapping[str, float], edges: Sequence[Edge], height: float, gap: float, between: float) -> Drawing:
    """Lay out a graph without circles.

    widths: of each node, in the order in which they are placed at first; pixels, as all lengths.
    edges: from what needs to what is needed.
    height: of a layer's nodes. gap: between two of them. between: from layer to layer.
    """
    layer = _layers(list(widths), edges)
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for name in widths:
        rows[layer[name]].append(name)
    size = dict(widths)
    chains: dict[Edge, list[str]] = {}
    for number, (source, target) in enumerate(edges):
        passages = [f"{number}/{row}" for row in range(layer[source] + 1, layer[target])]
        for row, name in enumerate(passages, layer[source] + 1):
            rows[row].append(name)
            size[name] = _PASSAGE
        chains[source, target] = [source, *passages, target]
    links = [(chain[at], chain[at + 1]) for chain in chains.values() for at in range(len(chain) - 1)]
    above, below = _neighbours(links), _neighbours([(target, source) for source, target in links])
    _order(rows, below, above)
    x = _places(rows, size, {name: [*above.get(name, []), *below.get(name, [])] for name in size}, gap)
    left = min((x[name] - size[name] / 2 for name in size), default=0)
    right = max((x[name] + size[name] / 2 for name in size), default=0)
    place = {
        name: (x[name] - left, number * (height + between) + height / 2)
        for number, row in enumerate(rows)
        for name in row
    }
    return Drawing(
        centres={name: place[name] for name in widths},
        lines={edge: [place[name] for name in chain] for edge, chain in chains.items()},
        width=right - left,
        height=len(rows) * (height + between) - between,
    )


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The longest way to each from a node that nothing needs; such a node lies just above the highest it needs."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in edges:
            layer[target] = max(layer[target], layer[source] + 1)
    needs = {name: [target for source, target in edges if source == name] for name in names}
    needed = {target for _, target in edges}
    for name in names:
        if name not in needed and needs[name]:
            layer[name] = min(layer[target] for target in needs[name]) - 1
    return layer


def _neighbours(links: Sequence[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one, other in links:
        found.setdefault(one, []).append(other)
    return found


def _order(rows: list[list[str]], above: Mapping[str, list[str]], below: Mapping[str, list[str]]) -> None:
    """Sort every layer, downward and upward in turn, by where the neighbours are; what has none stays."""
    for turn in range(_ROUNDS):
        sides = above if turn % 2 == 0 else below
        order = range(1, len(rows)) if turn % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in order:
            beside = rows[number - 1 if turn % 2 == 0 else number + 1]
            at = {name: place for place, name in enumerate(beside)}
            own = {name: place for place, name in enumerate(rows[number])}
            wanted = {
                name: _mean([at[each] for each in sides.get(name, ()) if each in at], place)
                for name, place in own.items()
            }
            rows[number].sort(key=lambda name, wanted=wanted, own=own: (wanted[name], own[name]))  # type: ignore[misc]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _places(
    rows: list[list[str]], size: Mapping[str, float], near: Mapping[str, list[str]], gap: float
) -> dict[str, float]:
    """The middle of each along its layer: near the mean of its neighbours, in its layer's order, none over another."""
    x: dict[str, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            x[name] = at + size[name] / 2
            at += size[name] + gap
    for turn in range(_ROUNDS * 2):
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = [_mean([x[each] for each in near.get(name, ())], x[name]) for name in row]
            for name, place in zip(row, _apart(wanted, [size[name] for name in row], gap), strict=True):
                x[name] = place
    return x


def _apart(wanted: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Places in order that lie as near to the wanted ones as they can without overlapping (pooled neighbours)."""
    offsets, at = [], 0.0
    for number, size in enumerate(sizes):
        at += (sizes[number - 1] + size) / 2 + gap if number else 0.0
        offsets.append(at)
    groups: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while groups and groups[-1][0] > mean:
            other, number = groups.pop()
            mean, count = (mean * count + other * number) / (count + number), count + number
        groups.append((mean, count))
    shifts = [mean for mean, count in groups for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]


_HEIGHT, _GAP, _BETWEEN, _MARGIN, _TITLE = 44.0, 18.0, 46.0, 24.0, 46.0
_LETTER = 8.1
"""Pixels of a letter at the size of names; a little more than those of common fonts."""
FILLS = {
    "named": ("#e8eefc", "#3b5bdb"),
    "image": ("#fff3d6", "#d9860a"),
    "build": ("#f4f5f7", "#868e96"),
    "input": ("#ffffff", "#868e96"),
}
"""Fill and border of a box, as in the pictures of the documentation."""
_TEXT, _FAINT = "#212529", "#495057"
_DARK = {
    "#ffffff": "#1e2129",
    _TEXT: "#e9ecef",
    _FAINT: "#ced4da",
    "#f4f5f7": "#2b2f36",
    "#e8eefc": "#1d2d5c",
    "#3b5bdb": "#748ffc",
    "#fff3d6": "#463408",
    "#d9860a": "#fab005",
}
_STYLE = (
    ".line{fill:none;stroke-width:1.4}text{font-family:system-ui,'DejaVu Sans',sans-serif}"
    "@media(prefers-color-scheme:dark){"
    + "".join(f'[fill="{old}"]{{fill:{new}}}[stroke="{old}"]{{stroke:{new}}}' for old, new in _DARK.items())
    + "}"
)
_ARROW = "needs"
_LEGEND = (
    ("named", "requested by the stack"),
    ("image", "in the image"),
    ("build", "only builds it"),
    ("input", "download"),
    (_ARROW, "needs"),
)


def svg(graph: PlanGraph) -> str:
    """The picture, with a title and what its colours mean."""
    widths = {node.name: max(len(node.name), len(_below(node))) * _LETTER + 22 for node in graph.nodes}
    layout = layered(widths, [(edge.source, edge.target) for edge in graph.drawn()], _HEIGHT, _GAP, _BETWEEN)
    kinds = {_kind(node) for node in graph.nodes}
    legend = [each for each in _LEGEND if each[0] in kinds or (each[0] == _ARROW and layout.lines)]
    width = max(layout.width, len(graph.title) * 10, 190 * len(legend)) + 2 * _MARGIN
    height = layout.height + _TITLE + 2 * _MARGIN + 40
    left = round((width - layout.width) / 2, 1)
    lines = [
        element("path", d=_curve(points), class_="line", stroke=_FAINT, marker_end="url(#tip)")
        for points in layout.lines.values()
    ]
    boxes = [_box(node, *layout.centres[node.name], widths[node.name]) for node in graph.nodes]
    drawing = element("g", *lines, *boxes, transform=f"translate({left} {_TITLE + _MARGIN})")
    title = element("text", graph.title, x=_MARGIN, y=34, font_size=18, font_weight="bold", fill=_TEXT)
    style = element("style", Markup(_STYLE))
    look = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}", "height": f"{height:.0f}"}
    names = {"role": "img", "aria_label": graph.title, "xmlns": "http://www.w3.org/2000/svg"}
    ground = element("rect", width="100%", height="100%", fill="#ffffff")
    return element("svg", style, _tip(), ground, title, drawing, _legend(legend, height - _MARGIN), **look, **names)


def _tip() -> Markup:
    """The head of the arrows."""
    look = {"viewBox": "0 0 10 10", "refX": 9, "refY": 5, "markerWidth": 7, "markerHeight": 7}
    head = element("path", d="M0 0L10 5L0 10z", fill=_FAINT)
    return element("defs", element("marker", head, id="tip", orient="auto", **look))


def _kind(node: GraphNode) -> str:
    return "input" if node.kind == "input" else "named" if node.named else node.stage


def _below(node: GraphNode) -> str:
    """The second line of a box."""
    return " · ".join(filter(None, [node.version, node.said]))


def _box(node: GraphNode, x: float, y: float, width: float) -> Markup:
    kind = _kind(node)
    dashes = {"stroke_dasharray": "5 4"} if kind in ("build", "input") else {}
    fill, border = FILLS[kind]
    edge = {"fill": fill, "stroke": border, "stroke_width": 1.2, "rx": 6, **dashes}
    rect = element("rect", x=_px(x - width / 2), y=_px(y - _HEIGHT / 2), width=_px(width), height=_HEIGHT, **edge)
    below = _below(node)
    text = {"x": _px(x), "text_anchor": "middle", "fill": _TEXT}
    first = element("text", node.name, y=_px(y - 3 if below else y + 5), font_size=14, font_weight="bold", **text)
    second = element("text", below, y=_px(y + 14), font_size=12, **text)
    return element("g", rect, first, *([second] if below else []))


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A line that leaves the upper box downward and comes into the lower one from above."""
    half = _HEIGHT / 2
    x, y = points[0][0], points[0][1] + half
    words = [f"M{_px(x)} {_px(y)}"]
    for number, (to, centre) in enumerate(points[1:], 1):
        top = centre - half
        middle = (y + top) / 2
        words.append(f"C{_px(x)} {_px(middle)} {_px(to)} {_px(middle)} {_px(to)} {_px(top)}")
        x, y = to, top
        if number < len(points) - 1:
            y = centre + half
            words.append(f"L{_px(x)} {_px(y)}")
    return "".join(words)


def _legend(entries: Sequence[tuple[str, str]], y: float) -> Markup:
    parts, at = [], _MARGIN
    for kind, said in entries:
        if kind == _ARROW:
            way = f"M{_px(at)} {_px(y - 5)}L{_px(at + 22)} {_px(y - 5)}"
            parts.append(element("path", d=way, class_="line", stroke=_FAINT, marker_end="url(#tip)"))
        else:
            fill, border = FILLS[kind]
            dashes = {"stroke_dasharray": "4 3"} if kind in ("build", "input") else {}
            look = {"fill": fill, "stroke": border, **dashes}
            parts.append(element("rect", x=at, y=y - 12, width=22, height=14, rx=3, **look))
        parts.append(element("text", said, x=at + 30, y=y, font_size=13, fill=_TEXT))
        at += 56 + len(said) * _LETTER
    return element("g", *parts)


def _px(value: float) -> str:
    return f"{round(value, 1):g}"
