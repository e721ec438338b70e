"""Advisories of OSV files, read from the disk, against packages of images.

Source: https://ossf.github.io/osv-schema: package and ranges; Debian's and Ubuntu's are of source packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.component import Component
from hpcgen.core.support.hashing import read_plain

_MOST_BYTES, _MOST_FILES = 16 * 1024 * 1024, 100_000
_POOL = re.compile(r"/pool/[^/]+/(?:lib)?[^/]/([^/]+)/[^/]+\.deb$")
"""Where archives of Debian and Ubuntu have a package: its last folder is the source's name."""
_KINDS = {"pypi": "pypi", "debian": "deb", "ubuntu": "deb"}
"""What package URLs call the ecosystems that locks pin packages of."""


class _Package(msgspec.Struct, frozen=True):
    ecosystem: str = ""
    name: str = ""


class _Range(msgspec.Struct, frozen=True):
    type: str
    events: list[dict[str, str]] = []


class _Affected(msgspec.Struct, frozen=True):
    package: _Package = _Package()
    ranges: list[_Range] = []
    versions: list[str] = []


class Advisory(msgspec.Struct, frozen=True):
    """One of OSV's: what is affected by it; other fields are passed over."""

    id: str
    affected: list[_Affected] = []
    summary: str = ""
    aliases: list[str] = []
    withdrawn: str = ""

    @property
    def title(self) -> str:
        """Its name, the other names, what it is."""
        known = f" ({', '.join(self.aliases)})" if self.aliases else ""
        return f"{self.id}{known}" + (f": {self.summary}" if self.summary else "")


def read_advisories(path: Path) -> list[Advisory]:
    """Those of a file, or of the ``.json`` files of a folder; what was withdrawn is left out.

    Raises
    ------
    InputError: a file is no advisory, all of them named.
    """
    files = sorted(path.glob("*.json"))[: _MOST_FILES + 1] if path.is_dir() else [path]
    problems = Problems()
    if not files or len(files) > _MOST_FILES:
        problems.add(
            f"{path} has {'no' if not files else f'more than {_MOST_FILES}'} .json files", expected="OSV files"
        )
    found = []
    for file in files[:_MOST_FILES]:
        try:
            found.append(msgspec.json.decode(read_plain(file, _MOST_BYTES), type=Advisory))
        except (OSError, ValueError, RecursionError) as failure:
            problems.add(
                f"{file} is no advisory in OSV's format: {failure}", expected="a JSON file with id and affected"
            )
    problems.raise_as(InputError)
    return [each for each in found if not each.withdrawn]


def hits(advisory: Advisory, components: list[Component]) -> Iterator[tuple[Component, str]]:
    """The packages that an advisory is about, each with the version that mends it; "" where none is said."""
    for affected in advisory.affected:
        ecosystem, _, release = affected.package.ecosystem.partition(":")
        kind = _KINDS.get(ecosystem.lower())
        for component in components if kind is not None else ():
            if _is_of(component, kind, ecosystem.lower(), release, affected.package.name):
                mended = _judged(affected, component.version, _ORDERS[kind or ""])
                if mended is not None:
                    yield component, mended


def unjudged(advisory: Advisory) -> list[str]:
    """The ecosystems of an advisory that nothing here knows; "" where it names no package at all."""
    named = {each.package.ecosystem for each in advisory.affected} or {""}
    return sorted(name for name in named if name.partition(":")[0].lower() not in _KINDS)


def _is_of(component: Component, kind: str | None, ecosystem: str, release: str, name: str) -> bool:
    from packageurl import PackageURL

    from hpcgen.core.support.python_names import normal_name

    if not component.purl.startswith(f"pkg:{kind}/"):
        return False
    if kind == "pypi":
        return normal_name(component.name) == normal_name(name)
    url = PackageURL.from_string(component.purl)
    qualifiers: Any = url.qualifiers
    where = f"{ecosystem}-{release.partition(':')[0]}"
    source = _POOL.search(component.url)
    same = name in (component.name, source[1] if source else component.name)
    return same and url.namespace == ecosystem and (not release or qualifiers.get("distro", "").startswith(where))


def _judged(affected: _Affected, version: str, key: Callable[[str], Any]) -> str | None:
    """The version that mends an affected one; None of one that is not affected."""
    mended = [fixed for each in affected.ranges if (fixed := _in_range(each, version, key)) is not None]
    if mended:
        return mended[0]
    return "" if version in affected.versions else None


def _in_range(each: _Range, version: str, key: Callable[[str], Any]) -> str | None:
    if each.type == "GIT":
        return None
    inside = False
    try:
        own = key(version)
        for event in each.events:
            ((what, at),) = event.items()
            if what == "introduced":
                inside = inside or at == "0" or own >= key(at)
            elif what == "fixed" and inside:
                if own < key(at):
                    return at
                inside = False
            elif what == "last_affected" and inside:
                if own <= key(at):
                    return ""
                inside = False
    except ValueError:
        return None
    return "" if inside else None


def _python_order(version: str) -> Any:
    from packaging.version import Version

    return Version(version)


def _debian_order(version: str) -> Any:
    from debian.debian_support import Version

    return Version(version)


_ORDERS: dict[str, Callable[[str], Any]] = {"pypi": _python_order, "deb": _debian_order}
