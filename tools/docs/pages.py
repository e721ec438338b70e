"""The reference pages of the documentation, made from the code: a hook of MkDocs, named in mkdocs.yml.

Each maker returns pages by their path, so a command, field, block, site, stack or message that is added has its
place in the documentation without a further line. Links that lead out of docs/ (to CONTRIBUTING.md, say) become the
files' names, since the built site does not hold them.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import commands
import fields
import messages
import named
from mkdocs.structure.files import File, Files

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Called by MkDocs with the pages below docs/."""
    for maker in (commands, fields, named, messages):
        for path, text in maker.pages().items():
            files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page, generated or not."""
    here = posixpath.dirname(page.file.src_uri)

    def shown(found: re.Match[str]) -> str:
        label, target = found.groups()
        inside = not posixpath.normpath(posixpath.join(here, target)).startswith("..")
        file = target.partition("#")[0].replace("../", "")
        return found[0] if inside else label if label.strip("`") == file else f"{label} (`{file}`)"

    return _LINK.sub(shown, markdown)
