"""A program's source that nothing pins: fetched once, and its commit or hash written into the request."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

from hpcgen.core.errors import FetchError, InputError, Position
from hpcgen.core.support.hashing import CHUNK
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.units import harmless
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.tuning.requests.records import Build
from hpcgen.supply.net.web import Web, WebError, shown

_TIMEOUT_S = 120.0
_FILE = re.compile(r"\.(?!git$)[A-Za-z][A-Za-z0-9]{0,9}$")
"""How the name of an archive or another file ends; a repository's does not, or with .git."""


def pinned_address(build: Build) -> str:
    """The address with what pins it: ``URL@COMMIT`` of the newest commit, or ``URL#sha256=HASH``.

    FetchError: nothing answers there.
    """
    if _FILE.search(build.src.rpartition("/")[2].partition("@")[0]):
        return f"{build.src}#sha256={_hash_at(build.src)}"
    address, name = build.src.rstrip("/"), "HEAD"
    if "@" in address.rpartition("/")[2]:
        address, _, name = address.rpartition("@")
    require_program("git", f"find the newest commit of {shown(address)}", "install git")
    try:
        done = subprocess.run(
            ["git", "ls-remote", "--", address, name, f"{name}^{{}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{shown(address)} does not answer", remedy="try again later") from None
    found = re.findall(r"(?m)^([0-9a-f]{40})\t", done.stdout)
    if not found:
        why = (done.stderr.strip().splitlines() or [f"it has no {name}"])[-1]
        remedy = "name a repository, a branch or tag of it after @, or the address of an archive"
        raise FetchError(f"{shown(address)}: {harmless(why)}", remedy=remedy)
    # Of an annotated tag the second line is the commit.
    return f"{address}@{found[-1]}"


def _hash_at(url: str) -> str:
    """The sha256 of what lies at an address now."""
    digest = hashlib.sha256()
    try:
        answer = Web().get(url, {}, False, lambda _: None)
        try:
            while data := answer.read(CHUNK):
                digest.update(data)
        finally:
            answer.close()
    except (WebError, OSError) as error:
        raise FetchError(f"{shown(url)}: {error}", remedy="try again later, or correct the address") from None
    return digest.hexdigest()


def write_back(path: Path, where: Position, old: str, new: str) -> None:
    """Put the pinned address into the request's file, in the place of the old one.

    InputError: the file does not have the address as it is.
    """
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    at = (where.line or 1) - 1
    line = lines[at] if at < len(lines) else ""
    if line.count(old) != 1:
        raise InputError(
            f"{old} stands there more than once or not as it is", where, remedy=f"write {new} in its place"
        )
    lines[at] = line.replace(old, new)
    write_file(path, "".join(lines))
