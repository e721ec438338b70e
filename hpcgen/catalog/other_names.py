"""What may be meant by a name that nothing has: names that look alike, and what people call a site besides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from hpcgen.core.errors import HpcgenError, did_you_mean

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog

SHOWN = 3


def what_is_meant(catalog: Catalog, kind: str, name: str) -> str:
    """The remedy for an unknown name of a site, stack or block."""
    names = catalog.names(kind)
    if kind == "block" and (successor := successor_of(catalog, name)):
        return successor
    known: dict[str, list[str]] = {}
    for spelt, meant in [*((each, each) for each in names), *(_aliases(catalog, names) if kind == "site" else ())]:
        known.setdefault(_plain(spelt), []).append(meant)
    near = [_plain(name)] if _plain(name) in known else get_close_matches(_plain(name), known, n=SHOWN)
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(meant for each in near for meant in known[each]))}?"
    return did_you_mean(name, names, f"hpcgen list {kind}s")


def sites_extending(catalog: Catalog, name: str) -> list[str]:
    """The profiles that name this one as their parent."""
    return [each for each, data in _profiles(catalog, catalog.names("site")) if data.get("extends") == name]


def sites_of_host(catalog: Catalog, host: str) -> list[str]:
    """The sites that a host's name may mean: a part of it is the site's name, an alias, or its parent's name."""
    parts = {_plain(part) for label in host.lower().split(".") for part in (label, *re.split(r"[-_]|\d+$", label))}
    found = []
    for name, data in _profiles(catalog, catalog.names("site")):
        aliases = data.get("aliases")
        called = [name, data.get("extends"), *(aliases if isinstance(aliases, list) else ())]
        if not data.get("abstract") and parts & {_plain(str(each)) for each in called if each}:
            found.append(name)
    return found


def _aliases(catalog: Catalog, names: list[str]) -> Iterator[tuple[str, str]]:
    for name, data in _profiles(catalog, names):
        said = data.get("aliases")
        for alias in said if isinstance(said, list) else ():
            yield str(alias), name


def successor_of(catalog: Catalog, name: str) -> str:
    """The remedy for the name of software that is gone and that a block took the place of; "" for other names."""
    for block in catalog.names("block"):
        with suppress(HpcgenError):
            for document in catalog.release_documents(block):
                said = document.data.get("successor_of")
                for gone, why in said.items() if isinstance(said, dict) else ():
                    if _plain(str(gone)) == _plain(name):
                        return f"use {block} in its place: {why}"
    return ""


def _profiles(catalog: Catalog, names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The profiles as they are written, without their parents; one that cannot be read helps nobody here."""
    from hpcgen.core.config.yamlfile import load

    for name in names:
        with suppress(HpcgenError):
            yield name, load(catalog.find("site", name)).data


def _plain(name: str) -> str:
    """A name as people remember it: without case, hyphens and dots."""
    return re.sub(r"[-_. ]", "", name.lower())
