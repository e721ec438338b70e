"""README as a package index shows it, and the project's URLs: a metadata hook of hatchling, set up in pyproject.toml.

README links to files beside it, which a checkout and a source distribution have and an index has not. Where
``[tool.hatch.metadata.hooks.custom]`` says where the sources are on the web, the links lead there; else the files are
named without a link.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LOCAL_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)]+)\)")


class IndexPage(MetadataHookInterface):
    """Fills in ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the ``[project]`` table."""
        repository, files = self.config["repository"].rstrip("/"), self.config["files"].rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")

        def link(found: re.Match[str]) -> str:
            label, path = found.groups()
            return f"[{label}]({files}/{path})" if files else path if label == path else f"{label} ({path})"

        metadata["readme"] = {"content-type": "text/markdown", "text": _LOCAL_LINK.sub(link, text)}
        metadata["urls"] = {"Repository": repository, "Changes": f"{files}/CHANGELOG.md"} if repository else {}
