"""The reference pages of the documentation, made from the code: a hook of MkDocs, named in mkdocs.yml.

Each maker returns pages by their path, so a command, field, block, site, stack or message that is added has its
place in the documentation without a further line. Links that lead out of docs/ (to CONTRIBUTING.md, say) become the
files' names, since the built site does not hold them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any

import commands
import fields
import messages
import named
from mkdocs.structure.files import File, Files

_EXAMPLE = re.compile(r"(?m)^```console example$")
"""The fence of commands that no test runs; the Markdown of the site takes two words there for no fence at all."""
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Called by MkDocs with the pages below docs/."""
    made = {path: text for maker in (commands, fields, named, messages) for path, text in maker.pages().items()}
    written = [file.src_uri for file in files.documentation_pages()]
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    more = sorted(set(written) - set(_paths(config["nav"])))
    config["nav"] += [*([{"More": more}] if more else []), {"Reference": _reference(made)}]
    return files


def _paths(nav: Any) -> Iterator[str]:
    """The pages that the navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from _paths(each)


def _reference(made: Iterable[str]) -> list[Any]:
    """Pages by their folders, each with its list first."""
    folders: dict[str, list[Any]] = {}
    alone = []
    for path in sorted(made, key=lambda each: (not each.endswith("/index.md"), each)):
        _, *folder, _ = path.split("/")
        folders.setdefault(folder[0], []).append(path) if folder else alone.append(path)
    return [*alone, *({name.capitalize(): pages} for name, pages in sorted(folders.items()))]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page, generated or not."""
    here = posixpath.dirname(page.file.src_uri)

    def shown(found: re.Match[str]) -> str:
        label, target = found.groups()
        inside = not posixpath.normpath(posixpath.join(here, target)).startswith("..")
        file = target.partition("#")[0].replace("../", "")
        return found[0] if inside else label if label.strip("`") == file else f"{label} (`{file}`)"

    return _LINK.sub(shown, _EXAMPLE.sub("```console", markdown))
