"""What the reader of workspace files knows of a value, and that it knows nothing of some."""

from __future__ import annotations

import ast
from typing import Any

STRING_METHODS = frozenset(
    [
        "format",
        "replace",
        "startswith",
        "endswith",
        "split",
        "rsplit",
        "join",
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "partition",
        "rpartition",
        "removeprefix",
        "removesuffix",
        "title",
        "find",
        "rfind",
        "count",
        "isdigit",
        "capitalize",
        "elems",
    ]
)
DICT_METHODS = frozenset(["items", "keys", "values", "get", "update", "pop", "setdefault"])
LIST_METHODS = frozenset(["append", "extend", "insert", "index", "pop", "remove"])


class Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class External:
    """A symbol of a file that is not at hand: ``repository`` is empty for Bazel's own words."""

    def __init__(self, repository: str, symbol: str) -> None:
        self.repository, self.symbol = repository, symbol


class Rule:
    """What ``repository_rule`` returns: a repository made by code, which is not read."""

    def __init__(self, name: str) -> None:
        self.name = name


class Struct:
    """What ``struct`` returns."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields


class Function:
    """A ``def`` and the file it stands in."""

    def __init__(self, file: File, node: ast.FunctionDef | ast.Lambda) -> None:
        self.file, self.node = file, node
        self.name = getattr(node, "name", "lambda")


class File:
    """A loaded file: its repository, folder and names."""

    def __init__(self, repository: str, package: str, shown: str) -> None:
        self.repository, self.package, self.shown = repository, package, shown
        self.names: dict[str, Any] = {}


def known(*values: Any) -> bool:
    return not any(isinstance(value, Unknown | External | Function) for value in values)


def deep(value: Any) -> bool:
    """Whether nothing in it is unknown."""
    if isinstance(value, dict):
        return all(deep(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return all(deep(each) for each in value)
    return known(value)


def place_of(label: str, file: File) -> tuple[str, str]:
    """Repository and path of a label as ``load`` takes it."""
    repository = file.repository
    if label.startswith("@"):
        repository, _, label = label.lstrip("@").partition("//")
        label = "//" + label
    if label.startswith("//"):
        package, _, name = label[2:].partition(":")
    else:
        package, name = file.package, label.lstrip(":")
    return repository, f"{package}/{name}" if package else name
