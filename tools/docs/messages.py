"""Every error that hpcgen can say, with what was expected and what to do: read from the code, so none is missing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from writing import cell, prose, table

import hpcgen
from hpcgen import errors

_FIELDS = ("message", "where", "expected", "remedy")
_CLASSES = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.HpcgenError) and each is not errors.HpcgenError
}


def pages() -> dict[str, str]:
    """reference/errors.md, by exit code; what is filled in while hpcgen runs stands as ``…``."""
    root = Path(hpcgen.__file__).parent
    by_class: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for file in sorted(root.rglob("*.py")):
        for kind, said in _said(ast.parse(file.read_text("utf-8"))):
            by_class[kind].setdefault(said["message"], [said["message"], said["expected"], said["remedy"]])
    text = ["# Errors\n", "By their literal text. `…` stands for what is filled in: a name, a path, a number.\n"]
    for name, each in sorted(_CLASSES.items(), key=lambda pair: pair[1].exit_code):
        if name in by_class:
            text += [f"## Exit code {each.exit_code}\n", prose((each.__doc__ or "").split("\n")[0]) + "\n"]
            text.append(table(["message", "expected", "what to do"], _rows(by_class[name])))
    text += ["## Mistakes in files\n", "Reported together, each with file, line and column; mostly with exit code 3.\n"]
    text.append(table(["message", "expected", "what to do"], _rows(by_class[""])))
    return {"reference/errors.md": "\n".join(text)}


def _rows(messages: dict[str, list[str]]) -> list[list[str]]:
    return [[cell(part) for part in messages[message]] for message in sorted(messages, key=str.lower)]


def _said(tree: ast.Module) -> Iterator[tuple[str, dict[str, str]]]:
    """The class of each error that a module makes ("" for a problem of a list), and its texts."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        adds = name == "add" and isinstance(node.func, ast.Attribute) and "problems" in ast.unparse(node.func.value)
        if name not in _CLASSES and name != "Problem" and not adds:
            continue
        given = dict(zip(_FIELDS, node.args, strict=False)) | {
            each.arg: each.value for each in node.keywords if each.arg
        }
        texts = {field: _text(given[field]) if field in given else "" for field in _FIELDS}
        if texts["message"].strip("… "):
            yield name if name in _CLASSES else "", texts


def _text(node: ast.expr) -> str:
    """A text of the code as it is printed, with … for what is not known before."""
    if isinstance(node, ast.Constant):
        return str(node.value) if node.value is not None else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return " or ".join(dict.fromkeys(filter(None, (_text(node.body), _text(node.orelse)))))
    return "…"
