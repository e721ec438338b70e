"""Where collections are."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

from hpcgen.core.config.compiled_yaml import built_in as built_in
from hpcgen.core.config.user_config import configured
from hpcgen.core.support.registry import entry_points


def collections_from_environment() -> list[Path]:
    """Folders of ``$HPCGEN_COLLECTIONS`` (separated as in PATH), of the user's config file, and of entry points.

    An entry point (of the group ``hpcgen.collections``) names a module whose folder is the collection; it is found,
    never run.
    """
    folders = [Path(part) for part in os.environ.get("HPCGEN_COLLECTIONS", "").split(os.pathsep) if part]
    folders.extend(Path(folder) for folder in configured("collections", ()))
    for _, module in entry_points("hpcgen.collections"):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations:
            folders.append(Path(next(iter(spec.submodule_search_locations))))
    return folders


def collection_names(folders: Iterable[Path]) -> dict[str, Path]:
    """What collections are called in locks, kits and bundles: by their folders' names, no two alike.

    ``folders``: in order of precedence; the same folder twice counts once.
    """
    named: dict[str, Path] = {}
    known: set[Path] = set()
    for folder in folders:
        place = folder.resolve() if ".." in folder.parts else folder.absolute()
        if place in known:
            continue
        known.add(place)
        own = re.sub(r"^[^A-Za-z0-9_]+|[^A-Za-z0-9._-]", "", place.name) or "collection"
        name, number = own, 1
        while name in named:
            number += 1
            name = f"{own}-{number}"
        named[name] = folder
    return named
