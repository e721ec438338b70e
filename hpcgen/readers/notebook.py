"""Notebooks of Jupyter, also those in Markdown; code cells are parsed and never run.

Formats: https://nbformat.readthedocs.io/en/latest/format_description.html and https://mystmd.org/guide/notebooks-with-markdown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from hpcgen.core.errors import Position
from hpcgen.core.model.own_notebooks import Notebook
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder
from hpcgen.readers.install_lines import Installing
from hpcgen.readers.python_source import tree_of


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    input: str | list[str] = ""


class _Sheet(msgspec.Struct):
    cells: list[_Cell] = []


class _Kernel(msgspec.Struct):
    name: str = ""
    language: str = ""


class _About(msgspec.Struct):
    kernelspec: _Kernel = msgspec.field(default_factory=_Kernel)
    language_info: _Kernel = msgspec.field(default_factory=_Kernel)


class _File(msgspec.Struct):
    """Of the formats 3 and 4, what is used here; results of cells are passed over."""

    nbformat: int
    cells: list[_Cell] = []
    worksheets: list[_Sheet] = []
    metadata: _About = msgspec.field(default_factory=_About)


class _Code(NamedTuple):
    """The text of a cell, and the line of the file where it starts."""

    text: str
    line: int


def read_notebook(folder: ProjectFolder, path: str) -> Notebook | None:
    """What a notebook has; None where the file is none. InputError where it cannot be read."""
    text = folder.text(path, most=MAX_BYTES)
    try:
        file = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    about = file.metadata
    language = about.kernelspec.language or about.language_info.name or about.kernelspec.name
    cells = [*file.cells, *(cell for sheet in file.worksheets for cell in sheet.cells)]
    return _notebook(path, language, _codes(text, cells), as_text=False)


def _codes(text: str, cells: list[_Cell]) -> Iterator[_Code]:
    """The cells with code, each with the line of its text in the file where that can be found."""
    at, line = 0, 1
    for cell in cells:
        said = cell.source or cell.input
        code = said if isinstance(said, str) else "".join(said)
        if cell.cell_type != "code" or not code.strip():
            continue
        first = next(each for each in code.split("\n") if each.strip())
        found = text.find(msgspec.json.encode(first).decode()[1:-1], at)
        if found >= 0:
            line, at = line + text.count("\n", at, found), found
        yield _Code(code, line)


_FRONT = re.compile(r"---\r?\n(.*?)\n---\r?\n", re.DOTALL)
_LANGUAGE = re.compile(r"^kernelspec:[^\S\n]*\n(?:[^\S\n]+.*\n)*?[^\S\n]+(?:language|name):[^\S\n]*(\w+)", re.MULTILINE)
_FENCE = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


def read_myst(folder: ProjectFolder, path: str) -> Notebook | None:
    """What a notebook in Markdown has; None of another text. InputError where it cannot be read."""
    text = folder.text(path)
    front = _FRONT.match(text)
    language = _LANGUAGE.search(front[1] + "\n") if front else None
    if front is None or language is None:
        return None
    codes = (_Code(match[1], text.count("\n", 0, match.start(1)) + 1) for match in _FENCE.finditer(text))
    return _notebook(path, language[1], codes, as_text=True)


_MAGIC = re.compile(r"^([ \t]*)([%!?].*|.*\S\?)$", re.MULTILINE)
_CELL = re.compile(r"\s*%%(\w+)")
_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)", re.MULTILINE)
_PYTHON_CELLS = ("time", "timeit", "capture", "prun")


def _notebook(path: str, language: str, codes: Iterator[_Code], as_text: bool) -> Notebook:
    language = language.lower()
    language = "python" if language.startswith(("python", "ipython")) else "r" if language in ("ir", "r") else language
    imports: dict[str, Position] = {}
    installing = Installing(path)
    for code in codes:
        cell = _CELL.match(code.text)
        if cell is not None and cell[1] in ("bash", "sh", "script"):
            installing.shell(code.text.partition("\n")[2], code.line + 1, {})
        elif language == "r":
            installing.r_code(code.text, Position(path, code.line, 1))
        elif language in ("python", "") and (cell is None or cell[1] in _PYTHON_CELLS):
            for line, magic in enumerate(code.text.split("\n"), code.line):
                if match := re.match(r"\s*[%!]\s*((?:pip3?|uv|conda|mamba|apt-get|apt)\s.*)", magic):
                    installing.shell(match[1], line, {})
            for name, line in _imports(code.text):
                imports.setdefault(name, Position(path, code.line + line - 1, 1))
    return Notebook(path, language, imports, installing.installed(), as_text)


def _imports(code: str) -> list[tuple[str, int]]:
    """Modules that a cell imports, without those within it, each with its line there."""
    plain = _MAGIC.sub(r"\1pass", code)
    tree = tree_of(plain)
    if tree is None:
        found = [(match[1] or match[2], plain.count("\n", 0, match.start()) + 1) for match in _IMPORT.finditer(plain)]
        return [
            (name.split()[0].partition(".")[0], at) for names, at in found for name in names.split(",") if name.split()
        ]
    result = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            result += [(each.name.partition(".")[0], node.lineno) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            result.append((node.module.partition(".")[0], node.lineno))
    return result
