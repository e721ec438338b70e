"""What the stack of a project is called."""

from __future__ import annotations

import re

from hpcgen.core.support.quoting import NAME_PATTERN
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found

_LONGEST = 60


def identify(found: Found, draft: Draft) -> None:
    """Name and title, from pyproject.toml or the folder."""
    table = found.table
    folder = found.top.resolve().name
    said = table.name.text if table.name is not None else folder
    name = re.sub(r"[^a-z0-9._-]+", "-", said.lower())[:_LONGEST].strip("._-")
    if not re.search(NAME_PATTERN, name):
        draft.put(("name",), "project", f"the folder's name, {folder!a}, cannot be that of a stack")
    elif table.name is not None:
        draft.put(("name",), name, "the project's name", table.name.where)
    else:
        draft.put(("name",), name, "the folder's name")
    text = table.description.text if table.description is not None else ""
    if text and len(text) <= 200:
        draft.put(
            ("title",),
            text,
            "the project's own words",
            table.description.where if table.description is not None else None,
        )
    else:
        draft.put(("title",), f"The project {draft.data['name']}", "one line that describes the software")
