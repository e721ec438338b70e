"""The packages of hpcgen as the import contracts of pyproject.toml order them, with what each says of itself."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from drawing import Picture

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
_LEFT, _NAME, _TEXT = 20, 120, 156
_ROW, _PARTS = 34, 24


def packages() -> Picture:
    """A box for each layer of the contract over the whole package, with the layers of its own contract below."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = {each["containers"][0]: each["layers"] for each in contracts if each["type"] == "layers"}
    pure = {name for each in contracts if each["type"] == "forbidden" for name in each["source_modules"]}
    top = layers["hpcgen"]
    height = 74 + sum(_ROW + _PARTS * (f"hpcgen.{name}" in layers) for name in top)
    about = "The packages of hpcgen from top to bottom; each imports only from those below it"
    picture = Picture(920, height, about)
    picture.words(_LEFT, 28, "a package imports only from those below it", size=13, colour="#6c757d", anchor="start")
    picture.words(900, 28, "green: starts no process, opens no socket", size=13, colour="#2b8a3e", anchor="end")
    y = 44
    for name in top:
        y = _row(picture, y, name, layers.get(f"hpcgen.{name}", []), f"hpcgen.{name}" in pure)
    return picture


def _row(picture: Picture, y: int, name: str, parts: list[str], pure: bool) -> int:
    """One package: its box, its own words, its layers from the upper to the lower. Returns where the next begins."""
    height = _ROW + _PARTS * bool(parts)
    picture.box(_LEFT, y, _NAME, height - 6, name, kind="made" if pure else "plain")
    picture.words(_TEXT, y + 19, _said(name), size=13, colour="#212529", anchor="start")
    if parts:
        picture.words(_TEXT, y + 42, " → ".join(parts), size=13, colour="#495057", anchor="start")
    return y + height


def _said(name: str) -> str:
    """The first sentence of a package's or module's docstring."""
    folder = ROOT / "hpcgen" / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text: Any = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].replace("`", "").split())
