"""``extends``: a profile or a stack recipe laid over its one parent.

The rules, also written in docs/site-profiles.md and docs/stacks.md:

* mappings are merged key by key,
* lists and single values of the child replace the parent's,
* ``null`` in the child removes the key, and with it the parent's sources of what is gone,
* ``name``, ``aliases``, ``extends``, ``abstract``, ``archived``, ``suits`` and a stack's defaults are never inherited.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcgen.core.config.yamlfile import Document, says
from hpcgen.core.errors import Position

NOT_INHERITED = (
    "name",
    "aliases",
    "extends",
    "abstract",
    "archived",
    "suits",
    "site",
    "partition",
    "engine",
    "account",
)


class Merged(Document):
    """A document over its parent; the position of a fact is where the nearest of the two says it."""

    def __init__(self, child: Document, parent: Document) -> None:
        inherited = {key: value for key, value in parent.data.items() if key not in NOT_INHERITED}
        data = merge(inherited, child.data)
        _drop_sources(data, child.data)
        super().__init__(data, child.name, "")
        self._child = child
        self._parent = parent

    def files(self) -> list[str]:
        """The document's own file, and those of its parents."""
        return [*self._child.files(), *self._parent.files()]

    def file_of(self, path: Sequence[str | int]) -> Path | None:
        """As :meth:`position`: the child's file if it says it, else the parent's."""
        return self._nearest(path).file_of(path)

    def said_by(self, path: Sequence[str | int]) -> str:
        """As :meth:`position`, the file's name alone."""
        return self._nearest(path).said_by(path)

    def position(self, path: Sequence[str | int] = (), key: bool = False) -> Position:
        """The place of a fact, in the child if it says it (or a removed or replaced parent of it)."""
        return self._nearest(path).position(path, key)

    def _nearest(self, path: Sequence[str | int]) -> Document:
        inherited = path and not says(self._child.data, path) and says(self._parent.data, path)
        return self._parent if inherited else self._child


def merge(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """Lay a mapping over another by the rules above; neither is changed."""
    result = dict(parent)
    for key, value in child.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def _drop_sources(data: dict[str, Any], child: dict[str, Any]) -> None:
    """Leave out inherited sources of facts that the child removed; the child's own mistakes stay, to be told."""
    sources, own = data.get("sources"), child.get("sources")
    if isinstance(sources, dict):
        kept = own if isinstance(own, dict) else {}
        data["sources"] = {path: s for path, s in sources.items() if path in kept or says(data, path.split("."))}
