"""Source packages for a resolver that takes wheels alone: for each that may be needed, a wheel without content.

uv would run a source package to learn what it requires, and with ``--no-build`` it takes none, also none of which
``dependency-metadata`` says that (0.13.9). So it is shown a wheel that says it, and first one that requires nothing:
only what uv chooses is fetched and read, and uv asked again.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidSdistFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from hpcgen.core.errors import FetchError
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_tags import WheelTarget, best_wheel
from hpcgen.supply.net.index_pages import IndexFile
from hpcgen.supply.net.package_index import PackageIndex, local_path
from hpcgen.supply.net.web import WebError
from hpcgen.supply.pin.source_metadata import SourcePackage, UnknownSource, read_source

_MOST = 512 * 1024 * 1024
"""The largest source package that is fetched."""
_ATTEMPTS = 3
_AT_ONCE = 8
_READ: dict[str, SourcePackage | str] = {}
"""What was read by this process, or why it could not be, by sha256."""


def stand_in(folder: Path, name: str, version: str, needs: Sequence[str], fields: Sequence[str] = ()) -> Path:
    """A wheel without content, in the place of one that is there already."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in needs), *fields]
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "".join(f"{each}\n" for each in ("Metadata-Version: 2.1", *lines)))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


class Offer(msgspec.Struct):
    """A version that exists as source alone: its file with its sha256, the wheel that stands for it, what was read."""

    file: IndexFile
    sha256: str
    wheel: Path
    read: SourcePackage | None = None


class SourceOffers:
    """What of an index the resolver is offered as source, in a folder where it finds the wheels that stand for it.

    ``asked``: requirements, by which a version that was withdrawn may be pinned.
    """

    def __init__(self, target: WheelTarget, asked: Iterable[str], index: PackageIndex, folder: Path) -> None:
        self.target, self.index, self.folder = target, index, folder
        self.refused: dict[tuple[str, Version], str] = {}
        self._offers: dict[tuple[str, Version], Offer] = {}
        self._pinned = {(normal_name(each.name), str(each.specifier)) for each in map(Requirement, asked)}

    def of(self, name: str, version: str) -> Offer | None:
        """What a package of the answer stands for, if for a source package."""
        return self._offers.get((name, Version(version)))

    def within(self, ranges: Mapping[str, Iterable[str]]) -> bool:
        """Offer the versions of packages in some ranges that have no wheel for the target; False if there are none."""
        found = False
        for name, wanted in ranges.items():
            files = self._only_as_source(name)
            new = [version for version in files if (name, version) not in {**self._offers, **self.refused}]
            for version in new:
                if any(_holds(each, version) for each in wanted):
                    file, wheel = files[version], stand_in(self.folder, name, str(version), ())
                    self._offers[name, version] = Offer(file, file.sha256 or self.index.own_hash(file), wheel)
                    found = True
        return found

    def read(self, chosen: Iterable[tuple[str, str]]) -> bool:
        """Read those of the chosen packages that nobody has read; whether the resolver has to be asked again.

        FetchError: one cannot be fetched.
        """
        keys = [(name, Version(version)) for name, version in chosen]
        todo = [key for key in keys if key in self._offers and self._offers[key].read is None]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return any(list(pool.map(self._read, todo)))

    def _read(self, key: tuple[str, Version]) -> bool:
        (name, version), offer = key, self._offers[key]
        said = _READ.get(offer.sha256)
        if said is None:
            try:
                said = read_source(fetched_source(offer.file, offer.sha256, self.index, self.folder), name)
            except UnknownSource as why:
                said = str(why)
            _READ[offer.sha256] = said
        if isinstance(said, str):
            self.refused[key] = said
            offer.wheel.unlink()
            del self._offers[key]
            return True
        offer.read = said
        fields = [f"Provides-Extra: {each}" for each in offer.read.extras]
        fields += [f"Requires-Python: {offer.read.python}"] if offer.read.python else []
        stand_in(self.folder, name, str(version), offer.read.needs, fields)
        return bool(offer.read.needs or offer.read.python)

    def _only_as_source(self, name: str) -> dict[Version, IndexFile]:
        """The source package of each version without a wheel for the target."""
        wheels: dict[Version, list[str]] = {}
        sources: dict[Version, list[IndexFile]] = {}
        for each in self.index.project(name)[0]:
            if each.file.endswith(".whl"):
                wheels.setdefault(parse_wheel_filename(each.file)[1], []).append(each.file)
            elif (version := self._usable(each)) is not None:
                sources.setdefault(version, []).append(each)
        fitting = {version for version, files in wheels.items() if best_wheel(files, self.target) is not None}
        return {version: min(files, key=_rank) for version, files in sources.items() if version not in fitting}

    def _usable(self, file: IndexFile) -> Version | None:
        """The version of a source package for the Python of the target."""
        try:
            name, version = parse_sdist_filename(file.file)
            for_python = SpecifierSet(file.python).contains(self.target.python, True)
        except (InvalidSdistFilename, InvalidVersion, InvalidSpecifier):
            return None
        kept = not file.yanked or (name, f"=={version}") in self._pinned
        return version if for_python and kept and (file.sha256 or self.index.own_hash(file)) else None


def fetched_source(file: IndexFile, sha256: str, index: PackageIndex, folder: Path) -> Path:
    """The file of a source package, with its hash checked. FetchError: it cannot be fetched, or is another one."""
    if file.url.startswith("file:"):
        return local_path(file.url)
    path = folder / f"{sha256}-{file.file}"
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _fetch(file, sha256, index, path)
            break
        except WebError as failure:
            if attempt == _ATTEMPTS or not failure.again:
                message = f"{file.file} could not be fetched: {failure}"
                raise FetchError(message, remedy="try again; behind a proxy: docs/mirrors.md") from None
    return path


def _fetch(file: IndexFile, sha256: str, index: PackageIndex, path: Path) -> None:
    plain = index.loopback_http and file.url.startswith("http:")
    answer = index.web.get(file.url, {}, plain, lambda socket: None)
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("wb") as target:
            while chunk := answer.read(1 << 18):
                size += len(chunk)
                if size > _MOST:
                    raise WebError(f"it is larger than {_MOST >> 20} MiB", again=False)
                digest.update(chunk)
                target.write(chunk)
    except OSError as failure:
        raise WebError(f"the connection was lost ({failure})") from None
    finally:
        answer.close()
    if digest.hexdigest() != sha256:
        raise WebError("its sha256 is not the one in the index")


_SEARCHED = re.compile(r"Searching for a compatible version of ([A-Za-z0-9._-]+)(?:\[[^\]]*\])? \((.*)\)$")
_SELECTED = re.compile(r"Selecting: ([A-Za-z0-9._-]+)")


def searched_in_vain(said: Iterable[str]) -> dict[str, list[str]]:
    """Ranges in which uv found no wheel of a package, by its name, from what it says with ``--verbose``.

    It goes back to other versions of what requires the package then, and may end with a solution of very old ones.
    """
    found: dict[str, list[str]] = {}
    last: tuple[str, str] | None = None
    for line in said:
        searched, selected = _SEARCHED.search(line), _SELECTED.search(line)
        name = normal_name((searched or selected)[1]) if searched or selected else ""  # type: ignore[index]
        if not name or (searched and last is not None and name == last[0]):
            # It searches in what is left of the range after each version that has no wheel.
            continue
        if last is not None and name != last[0]:
            found.setdefault(last[0], []).append(last[1])
        last = (name, searched[2]) if searched else None
    if last is not None:
        found.setdefault(last[0], []).append(last[1])
    return found


def _holds(wanted: str, version: Version) -> bool:
    """Whether a version is in a range as uv writes it: ``>=1, <2 | ==3``; also where that cannot be read.

    ``<1+`` is below all that comes after 1 and its local versions.
    """
    text = re.sub(r">=?([^\s,|]+)\+(?=[\s,|]|$)", r">\1", re.sub(r"<=?([^\s,|]+)\+(?=[\s,|]|$)", r"<=\1", wanted))
    try:
        return any(SpecifierSet(each.strip().removeprefix("*")).contains(version, True) for each in text.split("|"))
    except InvalidSpecifier:
        return True


def _rank(file: IndexFile) -> tuple[bool, str]:
    return (not file.file.endswith(".tar.gz"), file.file)
