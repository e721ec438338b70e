"""hpcgen's own templates, which become text in one way, and its tables in YAML, which become records.

In a template ``@{name}`` stands for a value, and a line ``#: name`` begins a part. There are no loops and no
conditions: who fills it decides which parts there are. An engine for templates would take longer to load than
everything else that a render loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpcgen.core.support.traced import together, without_last_break

_PLACE = re.compile(r"(?m)^(?P<indent>[ \t]*)@\{(?P<alone>[a-z_]+)\}\n|@\{(?P<inside>[a-z_]+)\}")
_PART = re.compile(r"(?m)^#: (.+)\n")
Records = TypeVar("Records")


class Template:
    """A text file beside the module that fills it.

    What comes before the first line ``#: name`` is the part "". A comment there is for readers of the template.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, part: str = "", /, **values: str | Iterable[str]) -> str:
        """The text of a part with every ``@{name}`` replaced.

        ``values``: already quoted for the places that they stand in. A place that is alone on its line takes several
        lines from a list, each indented as the place is, and the line goes where there is no value. KeyError: a value
        is missing, or the part has no place for one.
        """
        unused = dict.fromkeys(values)

        def value(place: re.Match[str]) -> str:
            name = place["inside"] or place["alone"]
            unused.pop(name, None)
            found = values[name]
            if place["inside"]:
                return found if isinstance(found, str) else " ".join(found)
            lines = [without_last_break(found)] if isinstance(found, str) else found
            return together(part for line in lines if line for part in (place["indent"], line, "\n"))

        pieces, done = [], 0
        template = _parts(self.path)[part]
        for place in _PLACE.finditer(template):
            pieces += [template[done : place.start()], value(place)]
            done = place.end()
        text = together([*pieces, template[done:]])
        if unused:
            raise KeyError(f"{self.path.name} {part} has no {', '.join(unused)}")
        return text


@cache
def _parts(path: Path) -> dict[str, str]:
    first, *rest = _PART.split(path.read_text("utf-8"))
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def table(path: Path, kind: type[Records]) -> Records:
    """A table of hpcgen's own in YAML, as records of a kind; it is read once."""
    found: Records = _table(path, kind)  # type: ignore[arg-type]  # a class is hashable
    return found


@cache
def _table(path: Path, kind: Any) -> Any:
    return msgspec.yaml.decode(path.read_bytes(), type=kind)
