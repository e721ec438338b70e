"""A plan's graph as a picture; equal plans give equal SVG."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.core.support.markup import Markup, element
from hpcgen.planning.explain.graph import GraphNode, PlanGraph
from hpcgen.planning.explain.graph_layout import layered

_HEIGHT, _GAP, _BETWEEN, _MARGIN, _TITLE = 44.0, 18.0, 46.0, 24.0, 46.0
_LETTER = 8.1
"""Pixels of a letter at the size of names; a little more than those of common fonts."""
FILLS = {"named": "#0b4f6c", "image": "#d8ecf3", "build": "#f4f1ea", "input": "#ffffff"}
TEXTS = {"named": "#ffffff", "image": "#12303b", "build": "#5b5346", "input": "#555555"}
_STYLE = ".line{fill:none;stroke:#7d95a0;stroke-width:1.4}text{font-family:system-ui,'DejaVu Sans',sans-serif}"
_LEGEND = (("named", "asked for by the stack"), ("image", "in the image"), ("build", "only builds it"))


def svg(graph: PlanGraph) -> str:
    """The picture, with a title and what its colours mean."""
    widths = {node.name: max(len(node.name), len(_below(node))) * _LETTER + 22 for node in graph.nodes}
    layout = layered(widths, [(edge.source, edge.target) for edge in graph.drawn()], _HEIGHT, _GAP, _BETWEEN)
    kinds = {_kind(node) for node in graph.nodes}
    legend = [each for each in _LEGEND if each[0] in kinds]
    width = max(layout.width, len(graph.title) * 10, 190 * len(legend)) + 2 * _MARGIN
    height = layout.height + _TITLE + 2 * _MARGIN + 40
    left = round((width - layout.width) / 2, 1)
    lines = [element("path", d=_curve(points), class_="line") for points in layout.lines.values()]
    boxes = [_box(node, *layout.centres[node.name], widths[node.name]) for node in graph.nodes]
    drawing = element("g", *lines, *boxes, transform=f"translate({left} {_TITLE + _MARGIN})")
    title = element("text", graph.title, x=_MARGIN, y=34, font_size=18, font_weight="bold", fill="#12303b")
    style = element("style", Markup(_STYLE))
    look = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}", "height": f"{height:.0f}"}
    names = {"role": "img", "aria_label": graph.title, "xmlns": "http://www.w3.org/2000/svg"}
    ground = element("rect", width="100%", height="100%", fill="#ffffff")
    return element("svg", style, ground, title, drawing, _legend(legend, height - _MARGIN), **look, **names)


def _kind(node: GraphNode) -> str:
    return "input" if node.kind == "input" else "named" if node.named else node.stage


def _below(node: GraphNode) -> str:
    """The second line of a box."""
    return " · ".join(filter(None, [node.version, node.said]))


def _box(node: GraphNode, x: float, y: float, width: float) -> Markup:
    kind = _kind(node)
    dashes = {"stroke_dasharray": "5 4"} if kind in ("build", "input") else {}
    edge = {"fill": FILLS[kind], "stroke": "#0b4f6c", "stroke_width": 1.2, "rx": 6, **dashes}
    rect = element("rect", x=_px(x - width / 2), y=_px(y - _HEIGHT / 2), width=_px(width), height=_HEIGHT, **edge)
    below = _below(node)
    text = {"x": _px(x), "text_anchor": "middle", "fill": TEXTS[kind]}
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
        dashes = {"stroke_dasharray": "4 3"} if kind == "build" else {}
        look = {"fill": FILLS[kind], "stroke": "#0b4f6c", **dashes}
        parts.append(element("rect", x=at, y=y - 12, width=22, height=14, rx=3, **look))
        parts.append(element("text", said, x=at + 30, y=y, font_size=13, fill="#333333"))
        at += 56 + len(said) * _LETTER
    return element("g", *parts)


def _px(value: float) -> str:
    return f"{round(value, 1):g}"
