"""One wheel list for several Pythons: what they share stands in it once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hpcgen.blocks.declared import listed_for
from hpcgen.core.support.wheel_lines import marker_of
from hpcgen.core.support.wheel_tags import minor_of, newest_glibc
from hpcgen.supply.pin.uv_resolver import Resolved
from hpcgen.supply.pin.wheels import ListRequest, WheelList, WheelLists, list_head


def in_one_file(asked: ListRequest, found: WheelLists) -> WheelLists:
    """The lists of each architecture as one; a package that some of the Pythons alone have says which."""
    lists = [_one(asked, architecture, of) for architecture, of in _by_architecture(found.lists).items()]
    return WheelLists(tuple(lists), found.skipped)


def _by_architecture(lists: Sequence[WheelList]) -> Mapping[str, list[WheelList]]:
    found: dict[str, list[WheelList]] = {}
    for each in lists:
        found.setdefault(each.architecture, []).append(each)
    return found


def _one(asked: ListRequest, architecture: str, lists: Sequence[WheelList]) -> WheelList:
    minors = [minor_of(each.python) for each in lists]
    name = listed_for(asked.name, architecture)
    packages = tuple(dict.fromkeys(package for each in lists for package in each.packages))
    options = [word for each in lists for word in ("--python", each.python)] + ["--one-file"]
    header = list_head(asked, " ".join(minors), options, architecture)
    glibc = {minor: newest_glibc(p.file for p in each.packages) for minor, each in zip(minors, lists, strict=True)}
    text = merged(header, {minor: each.packages for minor, each in zip(minors, lists, strict=True)}, glibc)
    return WheelList(f"{name}.txt", " ".join(minors), architecture, packages, text)


def merged(header: Sequence[str], packages: Mapping[str, Sequence[Resolved]], glibc: Mapping[str, str]) -> str:
    """The text of the list. ``packages``, ``glibc``: by Python (``3.12``), as in the list for that alone."""
    lines = list(header)
    for version in sorted({each for each in glibc.values() if each}):
        lines.append(f"# glibc {version}: {' '.join(python for python, each in glibc.items() if each == version)}")
    of: dict[tuple[str, str], list[str]] = {}
    for python, found in packages.items():
        for each in found:
            of.setdefault((each.name, each.line), []).append(python)
    for (_, line), pythons in sorted(of.items(), key=lambda item: (item[0][0], list(packages).index(item[1][0]))):
        marker = f" ; {marker_of(pythons)}" if len(pythons) < len(packages) else ""
        lines.append(re.sub(r"(?= --hash=)", marker, line, count=1))
    return "\n".join(lines) + "\n"
