"""A terminal as an animated SVG: what real commands print, line after line. Still where animation is not wanted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

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


def recorded(commands: Sequence[str]) -> str:
    """The commands, run one after the other in an empty folder with hpcgen on PATH, as a picture."""
    lines: list[tuple[str, bool]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {
            **os.environ,
            "PATH": path,
            "HPCGEN_CONFIG": "",
            "HPCGEN_COLLECTIONS": "",
            "COLUMNS": str(COLUMNS),
            "LC_ALL": "C.UTF-8",
        }
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
            )
            lines += [(f"$ {command}", True), *((line, False) for line in done.stdout.splitlines()), ("", False)]
    return _drawn(lines[:-1])


def _drawn(lines: Sequence[tuple[str, bool]]) -> str:
    width, height = round(COLUMNS * _LETTER + 40), _TOP + _LINE * len(lines) + 10
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        "role='img' aria-label='hpcgen in a terminal'>",
        f"<style>{_STYLE}</style><rect width='{width}' height='{height}' rx='10' fill='#0d1117'/>",
        *(
            f"<circle cx='{20 + 18 * n}' cy='18' r='6' fill='{colour}'/>"
            for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    seconds = 0.0
    for number, (line, command) in enumerate(lines):
        seconds += _PAUSE if command and number else _TICK
        shown = line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1].rstrip()}…"
        mark = " class='c'" if command else ""
        if shown:
            delay = f" style='animation-delay:{seconds:.2f}s'"
            parts.append(f"<text x='20' y='{_TOP + _LINE * number + 8}'{mark}{delay}>{escape(shown)}</text>")
    return "\n".join([*parts, "</svg>", ""])
