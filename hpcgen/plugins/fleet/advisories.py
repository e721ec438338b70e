"""Advisories of OSV files, read from the disk, against packages of images.

Source: https://ossf.github.io/osv-schema: "Evaluation", and "affected[].package field": those of distributions are of
source packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.component import Component
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.rpm_versions import rpm_version_key

_MOST_BYTES, _MOST_FILES = 16 * 1024 * 1024, 100_000
_POOL = re.compile(r"/pool/[^/]+/(?:lib)?[^/]/([^/]+)/[^/]+\.deb$")
"""Where archives of Debian and Ubuntu have a package: its last folder is the source's name."""
_MODULE = ".module"
"""In the release of a package of a module of Enterprise Linux, whose streams have versions of their own."""
_KINDS = {"pypi": "pypi", "debian": "deb", "ubuntu": "deb", "rocky linux": "rpm", "opensuse": "rpm"}
"""What package URLs call the ecosystems that locks pin packages of."""
_DISTRIBUTIONS = {"rocky linux": "rocky", "opensuse": "opensuse-leap"}
"""What os-release calls those that have another name there."""


class _Package(msgspec.Struct, frozen=True):
    ecosystem: str = ""
    name: str = ""


class _Event(msgspec.Struct, frozen=True):
    """A version at which something changes."""

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None
    limit: str | None = None


class _Range(msgspec.Struct, frozen=True):
    type: str
    events: list[_Event] = []


class Rating(msgspec.Struct, frozen=True):
    """How grave it is, in the way of its ``type``: a vector of CVSS, or a word of Ubuntu's."""

    type: str = ""
    score: str = ""


class _Affected(msgspec.Struct, frozen=True):
    package: _Package = _Package()
    ranges: list[_Range] = []
    versions: list[str] = []
    severity: list[Rating] | None = None
    ecosystem_specific: Any = None
    database_specific: Any = None

    @property
    def binaries(self) -> set[str]:
        """The packages that are built from the source package, which Ubuntu's and openSUSE's advisories name."""
        listed = self.ecosystem_specific.get("binaries") if isinstance(self.ecosystem_specific, dict) else None
        named = []
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict):
                # Ubuntu: {"binary_name": NAME, …}; openSUSE: {NAME: VERSION, …}.
                named += [each["binary_name"]] if "binary_name" in each else [*each]
        return {name for name in named if isinstance(name, str)}


class Advisory(msgspec.Struct, frozen=True):
    """One of OSV's: what is affected by it; other fields are passed over."""

    id: str
    affected: list[_Affected] | None = None
    summary: str = ""
    aliases: list[str] | None = None
    withdrawn: str | None = None
    severity: list[Rating] | None = None
    database_specific: Any = None

    @property
    def title(self) -> str:
        """Its name, the other names, what it is."""
        known = f" ({', '.join(self.aliases)})" if self.aliases else ""
        return f"{self.id}{known}" + (f": {self.summary}" if self.summary else "")


class Judgement(msgspec.Struct, frozen=True):
    """What an advisory says of a package: ``mended`` is the version that mends an affected one, where it is known."""

    verdict: Literal["affected", "not affected", "unknown"]
    mended: str = ""
    why: str = ""


def read_advisories(path: Path) -> list[Advisory]:
    """Those of a file, or of the ``.json`` files of a folder. InputError: a file is no advisory, all of them named."""
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
                f"{file} is not an advisory in OSV's format: {failure}", expected="a JSON file with id and affected"
            )
    problems.raise_as(InputError)
    return found


def judged(advisory: Advisory, components: list[Component]) -> Iterator[tuple[Component, Judgement]]:
    """The packages that an advisory names, each with what it says of the version."""
    for affected in advisory.affected or ():
        ecosystem, _, release = affected.package.ecosystem.lower().partition(":")
        kind = _KINDS.get(ecosystem)
        for component in components if kind is not None else ():
            if kind in _JUDGES and _is_package(component, affected, f"{kind}/{_distribution(ecosystem)}", release):
                yield component, _JUDGES[kind](affected, component.source_version or component.version)
            elif kind == "pypi" and _is_python(component, affected):
                found = _judged(affected, component.version, _python_order)
                if component.kind != "python" and found.verdict == "affected":
                    how = "conda" if component.kind == "conda" else "source"
                    found = Judgement("unknown", why=f"it is from {how}, the advisory on a package of PyPI")
                yield component, found


def unjudged(advisory: Advisory) -> list[str]:
    """The ecosystems of an advisory that nothing here knows; "" where it names no package at all."""
    named = {each.package.ecosystem for each in advisory.affected or ()} or {""}
    return sorted(name for name in named if name.partition(":")[0].lower() not in _KINDS)


def sources_of(advisory: Advisory, distribution: str, release: str) -> list[str]:
    """The source packages of a distribution that an advisory names without those that are built from them."""
    return [
        each.package.name
        for each in advisory.affected or ()
        if not each.binaries and _is_of(each.package.ecosystem, distribution, release)
    ]


def python_packages(advisory: Advisory) -> list[str]:
    """The Python packages that an advisory names."""
    return [each.package.name for each in advisory.affected or () if each.package.ecosystem.lower() == "pypi"]


def _distribution(ecosystem: str) -> str:
    """The id in os-release of the distribution that an ecosystem is of."""
    return _DISTRIBUTIONS.get(ecosystem, ecosystem)


def _is_of(ecosystem: str, distribution: str, release: str) -> bool:
    """Whether an ecosystem is that of a distribution with that id, in that release."""
    name, _, said = ecosystem.lower().partition(":")
    return _distribution(name) == distribution and _is_release(said, release)


def _is_release(said: str, release: str) -> bool:
    """Whether the end of an ecosystem such as Debian:12, Ubuntu:Pro:18.04:LTS or openSUSE:Leap 15.6 is a release.

    Not Ubuntu:Pro:FIPS:…, whose packages are others, in archives of their own.
    """
    parts = [part.removeprefix("leap ") for part in said.split(":") if part not in ("", "pro", "lts")]
    return parts in ([], [release], [release.partition(".")[0]])


def _is_package(component: Component, affected: _Affected, space: str, release: str) -> bool:
    """Whether it is one that is built from the source; ``space``: where package URLs have it, such as deb/debian."""
    from packageurl import PackageURL

    if not component.purl.startswith(f"pkg:{space}/"):
        return False
    archive = _POOL.search(component.url)
    own = {component.name, component.source, archive[1] if archive else ""} - {""}
    if not own & {affected.package.name, *affected.binaries}:
        return False
    qualifiers: Any = PackageURL.from_string(component.purl).qualifiers
    return _is_release(release, qualifiers.get("distro", "").rpartition("-")[2])


def _is_python(component: Component, affected: _Affected) -> bool:
    """Whether it is that package of Python, or the same software from conda or from source."""
    from hpcgen.core.support.package_names import normal_name

    of_name = normal_name(component.name) == normal_name(affected.package.name)
    return of_name and component.kind in ("python", "conda", "software")


def _judged(affected: _Affected, version: str, key: Callable[[str], Any]) -> Judgement:
    """A version is affected if it lies in one of the ranges or is listed; a range that cannot be read may hold it."""
    ranges = [each for each in affected.ranges if each.type != "GIT"]
    found = [_in_range(each, version, key) for each in ranges]
    inside = next((each for each in found if each.verdict == "affected"), None)
    if inside is not None:
        return inside
    if _is_listed(version, affected.versions, key):
        return Judgement("affected")
    if not ranges and not affected.versions:
        why = "it has ranges of commits, but none of versions" if affected.ranges else "it names no versions"
        return Judgement("unknown", why=why)
    return next((each for each in found if each.verdict == "unknown"), Judgement("not affected"))


def _is_listed(version: str, versions: list[str], key: Callable[[str], Any]) -> bool:
    if version in versions:
        return True
    try:
        own = key(version)
    except ValueError:
        return False
    for each in versions:
        try:
            if key(each) == own:
                return True
        except ValueError:
            continue
    return False


def _in_range(each: _Range, version: str, key: Callable[[str], Any]) -> Judgement:
    """OSV's own evaluation, with "unknown" where a version of it has no order."""
    if each.type not in ("ECOSYSTEM", "SEMVER"):
        return Judgement("unknown", why=f"it has a range of the type {each.type[:40]!r}")
    try:
        own = (1, key(version))
        events = sorted(
            ((_place(what, text, key), what, text) for event in each.events for what, text in _said(event)),
            key=lambda one: one[0],
        )
    except ValueError as failure:
        return Judgement("unknown", why=str(failure))
    if not any(what == "introduced" for _, what, _ in events):
        return Judgement("unknown", why="one of its ranges has no start")
    limits = [at for at, what, _ in events if what == "limit"]
    inside = False
    for at, what, text in events:
        if what == "introduced" and at <= own:
            inside = True
        elif (what == "fixed" and at <= own) or (what == "last_affected" and at < own):
            inside = False
        elif what == "fixed" and inside and _before(own, limits):
            return Judgement("affected", text)
    return Judgement("affected" if inside and _before(own, limits) else "not affected")


def _said(event: _Event) -> Iterator[tuple[str, str]]:
    for what in ("introduced", "fixed", "last_affected", "limit"):
        if (text := getattr(event, what)) is not None:
            yield what, text


def _place(what: str, text: str, key: Callable[[str], Any]) -> tuple[Any, ...]:
    """Where an event is in the order of versions: "0" begins before any of them, "*" has no end."""
    if what == "introduced" and text == "0":
        return (0,)
    return (2,) if what == "limit" and "*" in text else (1, key(text))


def _before(own: tuple[Any, ...], limits: list[tuple[Any, ...]]) -> bool:
    return not limits or any(own < limit for limit in limits)


def _python_order(version: str) -> Any:
    """Without a local part: 2.3.0+cpu is built from the same sources as 2.3.0."""
    from packaging.version import Version

    return Version(Version(version).public)


def _debian_order(version: str) -> Any:
    from debian.debian_support import Version

    return Version(version)


def _judged_deb(affected: _Affected, version: str) -> Judgement:
    return _judged(affected, version, _debian_order)


def _judged_rpm(affected: _Affected, version: str) -> Judgement:
    """Versions of a module's streams are not in one order with each other, nor with those outside of it."""
    found = _judged(affected, version, rpm_version_key)
    modules = [_MODULE in each for each in (version, found.mended)]
    if found.verdict != "affected" or not any(modules):
        return found
    if all(modules):
        return Judgement("unknown", why="it is of a module, and the advisory on one of its streams")
    return Judgement("not affected") if found.mended else found


_JUDGES = {"deb": _judged_deb, "rpm": _judged_rpm}
"""How the packages of distributions are judged, by the kinds of package URLs."""
