"""Recipes of HPC Container Maker, read by their syntax: https://github.com/NVIDIA/hpc-container-maker."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.install_lines import Installing
from hpcgen.readers.python_source import tree_of

_LARGEST = 256 * 1024
_LISTS = {
    "apt_get": (("apt-get", "install"), ("ospackages",)),
    "yum": (("yum", "install"), ("ospackages",)),
    "packages": (("apt-get", "install"), ("ospackages", "apt")),
    "pip": (("pip", "install"), ("packages",)),
    "conda": (("conda", "install"), ("packages",)),
}
"""Building blocks that install what they are given, as the commands that do the same, and the names of their lists."""
_NOTHING = {"comment", "copy", "label", "workdir", "runscript", "Stage", "python", "environment", "append", "format"}


def read_hpccm(folder: ProjectFolder, path: str) -> ContainerFile | None:
    """What a recipe asks for; None where the file is none. InputError where it is no text."""
    text = folder.text(path, most=_LARGEST)
    if "Stage0" not in text and "hpccm" not in text:
        return None
    if (tree := tree_of(text)) is None:
        return None
    installing = Installing(path)
    base: FileWord | None = None
    for call in _added(tree):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        where = Position(path, call.lineno, call.col_offset + 1)
        given = {each.arg: each.value for each in call.keywords if each.arg}
        if name == "baseimage":
            image = next(iter(_texts(given.get("image"))), "")
            base = FileWord(image, where) if image else base
        elif name in _LISTS:
            command, lists = _LISTS[name]
            words = [word for each in lists for word in _texts(given.get(each))]
            installing.command([*command, *words], where)
        elif name == "shell":
            for line in _texts(given.get("commands")):
                installing.shell(line, where.line, {})
        elif name and name not in _NOTHING:
            installing.leave(f"the building block {name}", where)
    return ContainerFile(path, base, installing.installed())


def _added(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls whose result is added to a stage."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target = node.target
            if isinstance(target, ast.Name) and target.id.startswith("Stage"):
                values = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
                yield from (each for each in values if isinstance(each, ast.Call))


def _texts(node: ast.expr | None) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [text for each in node.elts[:500] for text in _texts(each)]
    return []
