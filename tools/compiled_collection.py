"""The built-in collection as it is read, put into a wheel: a build hook of hatchling, set up in pyproject.toml.

A checkout keeps what it has read where Python keeps byte code (:mod:`hpcgen.core.config.compiled_yaml`). Where a wheel
is installed its users often may not write, so the wheel brings these files with it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COLLECTION = "hpcgen/collection"


class CompiledCollection(BuildHookInterface):
    """Adds a file to the wheel for each YAML file of the collection."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs the wheel; an editable one reads the checkout."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from hpcgen.core.config.compiled_yaml import compiled
        from hpcgen.core.config.yamlfile import LONG_LIST, loads

        self.made = Path(tempfile.mkdtemp())
        for folder, place in self.build_config.force_include.items():
            for path in sorted(Path(folder).rglob("*.yaml")) if place.startswith(f"{COLLECTION}/") else ():
                raw = path.read_bytes()
                data = loads(raw.decode("utf-8-sig"), str(path), LONG_LIST).data
                kept = Path(place, path.relative_to(folder).parent, "__pycache__", f"{path.name}.msgpack")
                (self.made / kept).parent.mkdir(parents=True, exist_ok=True)
                (self.made / kept).write_bytes(compiled(raw, data))
                build_data["force_include"][str(self.made / kept)] = str(kept)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is packed."""
        if version != "editable":
            shutil.rmtree(self.made)
