"""JSON Schemas of the files that people write. They come from the types; ``site.json`` lies here for editors."""

from __future__ import annotations

import json


def schema_text(kind: str) -> str:
    """The JSON Schema of site, stack, releases, fleet or config, as text."""
    from hpcgen.model.fleet import Fleet
    from hpcgen.model.release import ReleaseTable
    from hpcgen.model.site import Site
    from hpcgen.model.stack import Stack
    from hpcgen.model.user_config import UserConfig
    from hpcgen.typed import schema

    types: dict[str, type] = {
        "site": Site,
        "stack": Stack,
        "releases": ReleaseTable,
        "fleet": Fleet,
        "config": UserConfig,
    }
    return json.dumps(schema(types[kind]), indent=2, ensure_ascii=False) + "\n"
