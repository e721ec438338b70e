"""A terminal as an animated SVG: what real commands printed, line after line. Still where animation is not wanted.

tests/containers/test_first_screen.py types the commands and writes what it sees, shortened, into terminal.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

RECORDING = Path(__file__).with_name("terminal.txt")
COLUMNS = 106
_LINE, _LETTER, _TOP = 18, 7.8, 46
_PAUSE, _TICK = 1.2, 0.04
"""Seconds before a command and before each line of what it prints."""
_STYLE = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;"
    "fill:#d0d7de}"
    ".c{fill:#7ee787;font-weight:600}@keyframes a{from{opacity:0}to{opacity:1}}"
    "@media(prefers-reduced-motion:no-preference){text{animation:a .1s backwards}}"
)
_SHORTER = (
    (r"/\S+/(?=[\w.-]+)", ""),
    (r" \(record \w+\)", ""),
    (r"(sha256:\w{12})\w+", r"\1…"),
    (r"(?m)^(\[\d+/\d+\] [^;\n]*?)(?:;.*)? … (?:\d+ s|cached)$", r"\1"),
    (r" in \d+ s(?=: )", ""),
    (r"succeeded after \d+ s", "succeeded"),
)
"""What differs from run to run, or is longer than a picture has room for."""
_LEFT_OUT = r"hpcgen: (?:note|warning|\d+ of)|\[\d+/\d+\] (?:hpcgen: (?:copy|base)|distribution|site)"


def shortened(lines: Iterable[str]) -> list[str]:
    """What a command printed without folders, hashes and times; `…` for steps and notes that are left out."""
    text = "\n".join(line for line in lines if line.strip())
    for pattern, new in _SHORTER:
        text = re.sub(pattern, new, text)
    kept: list[str] = []
    for line in text.splitlines():
        shown = "…" if re.match(_LEFT_OUT, line) else line
        shown = shown if len(shown) <= COLUMNS else f"{shown[: COLUMNS - 1].rstrip()}…"
        if not shown == "…" == (kept[-1] if kept else ""):
            kept.append(shown)
    return kept


def drawn(text: str) -> str:
    """A recording as a picture; lines that begin with `$` are commands."""
    lines = text.splitlines()
    width, height = round(COLUMNS * _LETTER + 40), _TOP + _LINE * len(lines) + 10
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        "role='img' aria-label='hpcgen in a terminal'>",
        f"<style>{_STYLE}</style><rect width='{width}' height='{height}' rx='10' fill='#0d1117'/>",
        *(
            f"<circle cx='{20 + 18 * n}' cy='18' r='6' fill='{colour}'/>"
            for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
        *_rows(lines),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _rows(lines: Sequence[str]) -> Iterable[str]:
    seconds = 0.0
    for number, line in enumerate(lines):
        command = line.startswith("$ ")
        seconds += _PAUSE if command and number else _TICK
        if line:
            mark = " class='c'" if command else ""
            delay = f" style='animation-delay:{seconds:.2f}s'"
            yield f"<text x='20' y='{_TOP + _LINE * number + 8}'{mark}{delay}>{escape(line)}</text>"
