"""Boxes, arrows and words as SVG: no fonts are fetched, and the same input gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

FONT = "font-family='ui-sans-serif, system-ui, Helvetica, Arial, sans-serif'"
FILLS = {
    "given": ("#e8eefc", "#3b5bdb"),
    "made": ("#e6f6ec", "#2b8a3e"),
    "image": ("#fff3d6", "#d9860a"),
    "host": ("#f3f0f7", "#6741d9"),
    "plain": ("#f4f5f7", "#868e96"),
}
"""Fill and border by what a box stands for."""
DARK = {
    "#ffffff": "#1e2129",
    "#212529": "#e9ecef",
    "#495057": "#ced4da",
    "#6c757d": "#adb5bd",
    "#adb5bd": "#6c757d",
    "#868e96": "#868e96",
    "#f4f5f7": "#2b2f36",
    "#e8eefc": "#1d2d5c",
    "#3b5bdb": "#748ffc",
    "#e6f6ec": "#143d22",
    "#2b8a3e": "#51cf66",
    "#fff3d6": "#463408",
    "#d9860a": "#fab005",
    "#f3f0f7": "#33264f",
    "#6741d9": "#9775fa",
}
"""What each colour becomes for readers who have asked for dark pages."""


@dataclass(frozen=True)
class Box:
    """A rectangle with a title and lines below it; all in pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass
class Picture:
    """One drawing; ``about`` is read to those who do not see it."""

    width: int
    height: int
    about: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: int, y: int, width: int, height: int, title: str, *lines: str, kind: str = "plain") -> Box:
        fill, border = FILLS[kind]
        self.parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='8' fill='{fill}' stroke='{border}' "
            "stroke-width='1.5'/>"
        )
        top = y + (height - 20 * len(lines)) / 2 + 5 if lines else y + height / 2 + 5
        self.words(x + width / 2, top, title, bold=True)
        for number, line in enumerate(lines, 1):
            self.words(x + width / 2, top + 20 * number, line, size=13, colour="#495057")
        return Box(x, y, width, height)

    def frame(self, x: int, y: int, width: int, height: int, title: str) -> None:
        """A dashed frame around several boxes, with its title at the upper left."""
        self.parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='10' fill='none' stroke='#adb5bd' "
            "stroke-dasharray='6 4'/>"
        )
        self.words(x + 12, y + 20, title, size=13, colour="#6c757d", anchor="start")

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 15,
        bold: bool = False,
        colour: str = "#212529",
        anchor: str = "middle",
    ) -> None:
        weight = " font-weight='600'" if bold else ""
        self.parts.append(
            f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' text-anchor='{anchor}'{weight}>"
            f"{escape(text)}</text>"
        )

    def arrow(self, start: Box, end: Box, text: str = "") -> None:
        """From the nearest side of one box to that of another, straight where they face each other."""
        (x1, y1), (x2, y2) = start.middle, end.middle
        if start.x + start.width <= end.x or end.x + end.width <= start.x:
            low, high = max(start.y, end.y), min(start.y + start.height, end.y + end.height)
            y1, y2 = ((low + high) / 2,) * 2 if low < high else (y1, y2)
            x1, x2 = (start.x + start.width, end.x) if x1 < x2 else (start.x, end.x + end.width)
        else:
            low, high = max(start.x, end.x), min(start.x + start.width, end.x + end.width)
            x1 = x2 = (low + high) / 2
            y1, y2 = (start.y + start.height, end.y) if y1 < y2 else (start.y, end.y + end.height)
        self.line(x1, y1, x2, y2)
        if text:
            self.words((x1 + x2) / 2, (y1 + y2) / 2 - 6, text, size=12, colour="#495057")

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
        x2, y2 = x2 - 9 * (x2 - x1) / length, y2 - 9 * (y2 - y1) / length
        self.parts.append(
            f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='#495057' stroke-width='1.6' "
            "marker-end='url(#tip)'/>"
        )

    def svg(self) -> str:
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width} {self.height}' width='{self.width}' "
            f"height='{self.height}' role='img' aria-label='{escape(self.about, {chr(39): '&#39;'})}' {FONT}>"
        )
        tip = (
            "<defs><marker id='tip' viewBox='0 0 10 10' refX='1' refY='5' markerWidth='6' markerHeight='6' "
            "orient='auto'><path d='M0 0L10 5L0 10z' fill='#495057'/></marker></defs>"
        )
        dark = "".join(f"[fill='{old}']{{fill:{new}}}[stroke='{old}']{{stroke:{new}}}" for old, new in DARK.items())
        style = f"<style>@media(prefers-color-scheme:dark){{{dark}}}</style>"
        ground = f"<rect width='{self.width}' height='{self.height}' rx='12' fill='#ffffff'/>"
        return "\n".join([head, style, tip, ground, *self.parts, "</svg>", ""])
