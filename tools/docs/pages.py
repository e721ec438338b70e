"""The reference pages of the documentation, made from the code: a hook of MkDocs, named in mkdocs.yml.

Each maker returns pages by their path, so a command, field, block, site, stack or message that is added has its
place in the documentation without a further line. Links that lead out of docs/ (to CONTRIBUTING.md, say) become the
files' names, since the built site does not hold them.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any

import built
import combinations
import commands
import fields
import interface
import messages
import named
from mkdocs.structure.files import File, Files

_EXAMPLE = re.compile(r"(?m)^```console example$")
"""The fence of commands that no test runs; the Markdown of the site takes two words there for no fence at all."""
_ROW = re.compile(r"(?m)^\|.*\|$")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_NO_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>")
"""The head of a table whose columns need none."""
_NO_PROMPT = re.compile(r'<span class="gp">(?!\$)([^<]*)</span>')
"""A comment in what a command prints: the highlighter takes it for the prompt of root."""
_WEIGHTS = (
    ("tasks/", 2.0),
    ("when-a-", 2.0),
    ("internals/", 0.3),
    ("architecture", 0.3),
    ("reference/errors/", 0.7),
    ("reference/", 0.3),
)
"""How much a page counts in a search, by the beginning of its path: what people ask for first, then how, then lists."""
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Called by MkDocs with the pages below docs/."""
    made = {
        path: text
        for maker in (combinations, commands, fields, interface, named, messages)
        for path, text in maker.pages().items()
    }
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
    weight = next((weight for start, weight in _WEIGHTS if page.file.src_uri.startswith(start)), 1.0)
    page.meta.setdefault("search", {"boost": weight})

    def shown(found: re.Match[str]) -> str:
        label, target = found.groups()
        inside = not posixpath.normpath(posixpath.join(here, target)).startswith("..")
        file = target.partition("#")[0].replace("../", "")
        return found[0] if inside else label if label.strip("`") == file else f"{label} (`{file}`)"

    return _ROW.sub(_bars, _LINK.sub(shown, _EXAMPLE.sub("```console", markdown)))


def _bars(row: re.Match[str]) -> str:
    """A row of a table as this Markdown wants it: within code no backslash before a bar, which others need."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with the page as HTML; a warning ends a strict build."""
    html = _NO_PROMPT.sub(r"\1", _NO_HEAD.sub("", html))
    for fault in built.faults(page.markdown, html):
        logging.getLogger("mkdocs.hooks").warning("%s: %s", page.file.src_uri, fault)
    return html


def on_post_page(output: str, **_: Any) -> str:
    """Called by MkDocs with the whole page: the theme's search has no name for those who hear the page."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">')
