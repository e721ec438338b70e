"""Follow every link of the built site: python tools/docs/dead_links.py site

`mkdocs build --strict` knows the links that pages write; this reads what was built, with the theme's own links, the
pictures and the generated pages. Prints the numbers of pages and links, and what leads nowhere or is fetched from
elsewhere by a reader's browser; exits with 1 then.
"""

from __future__ import annotations

import posixpath
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"script", "img", "link", "iframe", "source"}


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what a browser fetches for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        target = given.get("href", given.get("src"))
        if target is not None and given.get("rel") != "canonical":
            (self.fetched if tag in _FETCHED else self.links).append(target)


def dead(root: Path) -> tuple[int, int, list[str]]:
    """The numbers of pages and of links within the site, and what is wrong with the others."""
    pages = {path.relative_to(root).as_posix(): Page(path.read_text("utf-8")) for path in root.rglob("*.html")}
    links, wrong = 0, []
    for name, page in sorted(pages.items()):
        for target in [*page.links, *page.fetched]:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                wrong += [f"{name} fetches {target}"] if target in page.fetched and url.scheme != "data" else []
                continue
            links += 1
            # The page of what is not found is shown at any address, so its links start at the root.
            at = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), unquote(url.path))).lstrip("/")
            file = name if not url.path else f"{at}/index.html".lstrip("/") if (root / at).is_dir() else at
            known = file in pages and unquote(url.fragment) in pages[file].anchors
            if not (root / file).is_file() or (url.fragment and not known):
                wrong.append(f"{name} links to {target}, which leads nowhere")
    return len(pages), links, wrong


def main() -> int:
    pages, links, wrong = dead(Path(sys.argv[1]))
    print("\n".join([*wrong, f"{pages} pages, {links} links, {len(wrong)} of them wrong"]))
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
