"""Whose Python runs here: that of the user's own collections, and of others only if the user says so.

A collection is code wherever it is named: its blocks, engines, batch systems and formats are Python, which runs with
the user's rights when something is looked up in it. What the user's own command line, environment or config file names
is the user's word. What a file names, which may be a stranger's, is not: a fleet's list, a bundle. Nor is a folder that
is given to ``hpcgen check``: whoever got it from somebody wants to know what is in it before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from hpcgen.catalog.collections import built_in
from hpcgen.catalog.own_files import collection_hash, has_code
from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import PolicyError, Problem

FIELD = "trusted_collections"
"""Of the user's config file."""


class Offered(msgspec.Struct, frozen=True):
    """A collection that a file names.

    folder: where it lies.
    by: the file that names it, for people.
    key: what is trusted, as the config file has it: the folder, whatever comes to be in it, or ``sha256:…`` of what
        is in it now.
    """

    folder: Path
    by: str
    key: str


Allow = Callable[[Sequence[Offered]], None]
"""Asked before any of them is used; PolicyError with those that the user does not trust."""


def folder_offered(folder: Path, by: str) -> Offered:
    """A folder beside the file that names it, which changes as its people work on it."""
    return Offered(folder, by, str(folder.resolve()))


def content_offered(folder: Path, by: str) -> Offered:
    """What came by a medium or a network: another content is another matter, even in the same place."""
    return Offered(folder, by, f"sha256:{collection_hash(folder, folder.name)}")


def untrusted(offered: Iterable[Offered], own: Iterable[Path] = ()) -> list[Offered]:
    """Those that hold Python, and that the user's config file does not trust. ``own``: folders that the user named."""
    with_code = [each for each in offered if has_code(each.folder)]
    known = {folder.resolve() for folder in [*own, built_in()]} if with_code else set()
    trusted = configured(FIELD, {}) if with_code else {}
    return [each for each in with_code if each.key not in trusted and each.folder.resolve() not in known]


def refuse(offered: Sequence[Offered]) -> None:
    """PolicyError with every collection that the user does not trust."""
    if missing := untrusted(offered):
        raise not_trusted(missing)


def not_trusted(missing: Iterable[Offered]) -> PolicyError:
    """The error, which says how each is allowed."""
    return PolicyError(
        Problem(
            f"{each.by} names the collection {each.folder}; its Python code would run here as you",
            expected="a collection that you trust",
            remedy=f"read it, then hpcgen --trust-collections …, or in your config file: {FIELD}: {{{each.key}: DATE}}",
        )
        for each in missing
    )
