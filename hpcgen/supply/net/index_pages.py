"""Pages of a Python package index: what files there are, with their hashes. Reads text, opens nothing.

Source: the simple repository API, https://packaging.python.org/en/latest/specifications/simple-repository-api/
(JSON: PEP 691 and 700; HTML: PEP 503, 592, 629).
"""

from __future__ import annotations

import html.parser
import json
import posixpath
import re
import urllib.parse
from typing import Any

import msgspec

from hpcgen.core.model.fields import FileName

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1, */*;q=0.01"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WHOLE = re.compile(r"https://[a-z0-9.-]+/[A-Za-z0-9/._+%-]+")


class IndexFile(msgspec.Struct, frozen=True):
    """One file that an index has; ``sha256``, ``size`` (bytes) and ``python``, a range, where the index says them."""

    file: str
    url: str
    sha256: str = ""
    size: int | None = None
    yanked: bool = False
    python: str = ""


class PageError(Exception):
    """A page that cannot be understood, in plain words."""


def read_page(data: bytes, content_type: str, url: str) -> list[IndexFile]:
    """The files that a page names, without those whose name or address cannot be used.

    content_type: as the server says it; for a page of this machine ``text/html``.
    url: where the page was read, after redirects: links are relative to it.
    PageError: it is no such page, or of a later major version of the format.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return _usable(_json_files(data, url))
    if kind.endswith("html"):
        return _usable(_html_files(data, url))
    raise PageError(f"it sends {kind[:60] or 'something'!r}, neither JSON nor HTML")


def _json_files(data: bytes, url: str) -> list[IndexFile]:
    try:
        page = json.loads(data)
        _check_version(str(page["meta"]["api-version"]))
        return [_json_file(entry, url) for entry in page["files"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PageError(f"its JSON is not a package index ({type(error).__name__})") from error


def _json_file(entry: dict[str, Any], url: str) -> IndexFile:
    size = entry.get("size")
    known = size if isinstance(size, int) and size >= 0 else None
    address = _joined(url, str(entry["url"])).partition("#")[0]
    hashes = entry["hashes"]
    yanked, python = entry.get("yanked", False) is not False, str(entry.get("requires-python") or "")
    return IndexFile(str(entry["filename"]), address, _sha256(hashes.get("sha256")), known, yanked, python)


def _html_files(data: bytes, url: str) -> list[IndexFile]:
    reader = _Links()
    reader.feed(data.decode("utf-8", "replace"))
    reader.close()
    _check_version(reader.version)
    base = _joined(url, reader.base) if reader.base else url
    files = []
    for href, yanked, python in reader.links:
        address, fragment = urllib.parse.urldefrag(_joined(base, href.strip()))
        # The name is the address's last part, as pip takes it; the text between the tags is only for people.
        path = urllib.parse.urlsplit(address).path
        name = urllib.parse.unquote(posixpath.basename(path))
        sha256 = dict(urllib.parse.parse_qsl(fragment)).get("sha256", "")
        files.append(IndexFile(name, address, _sha256(sha256), None, yanked, python))
    return files


class _Links(html.parser.HTMLParser):
    """The links of a page, its base address and the version of its format."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, bool, str]] = []
        self.base = ""
        self.version = "1.0"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.append((given["href"] or "", "data-yanked" in given, given.get("data-requires-python") or ""))
        elif tag == "base" and not self.base:
            self.base = given.get("href") or ""
        elif tag == "meta" and given.get("name") == "pypi:repository-version":
            self.version = given.get("content") or "1.0"


def _check_version(text: str) -> None:
    if text.partition(".")[0] != "1":
        raise PageError(f"its format has version {text[:20]!r}; only version 1 is supported")


def _usable(files: list[IndexFile]) -> list[IndexFile]:
    """Those that a bundle can hold; an odd name is nobody's package."""
    return [each for each in files if _named(each.file) and each.url]


def _named(name: str) -> bool:
    try:
        msgspec.convert(name, FileName)
    except msgspec.ValidationError:
        return False
    return True


def _sha256(value: object) -> str:
    text = value.lower() if isinstance(value, str) else ""
    return text if _SHA256.fullmatch(text) else ""


def _joined(base: str, link: str) -> str:
    """A link's whole address; empty if it is none."""
    try:
        # Pages have tens of thousands of files, nearly all by their whole address.
        address = link if _WHOLE.fullmatch(link) else urllib.parse.urljoin(base, link)
    except ValueError:
        return ""
    return address if address.isprintable() and " " not in address else ""
