"""What the packages of wheel lists require, from the wheels' own metadata in a package index: ``requires.json``."""

from __future__ import annotations

import email.parser
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from hpcgen.catalog.beside_blocks import REQUIRES, read_wheel_facts, read_wheel_list
from hpcgen.core.errors import FetchError, Problem, Problems
from hpcgen.core.model.wheel_facts import WheelFacts
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_lines import parse_line
from hpcgen.core.support.writing import write_file
from hpcgen.supply.net.index_pages import IndexFile
from hpcgen.supply.net.package_index import PackageIndex, local_path
from hpcgen.supply.net.web import WebError
from hpcgen.supply.net.wheel_index import wheel_metadata
from hpcgen.supply.net.wheel_metadata import remote_metadata
from hpcgen.supply.pin.uv_resolver import ARCHITECTURES

_AT_ONCE = 8


class _Answer(NamedTuple):
    """Of one package: requirements by version, and the releases that have wheels by architecture and Python."""

    name: str
    needs: dict[str, list[str] | None]
    pythons: dict[str, dict[str, str]]
    problems: list[Problem]


def update_wheel_facts(
    folder: Path,
    pythons: Sequence[str],
    names: Sequence[str] = (),
    indexes: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
    *,
    loopback_http: bool = False,
) -> Path:
    """Write ``requires.json`` of a folder of wheel lists: what is missing is fetched, what is there stays.

    pythons: minor versions, such as ``3.12``, for which it is told which releases have wheels.
    names: packages of which all releases are looked up, since people pin them, and not only those of lists.
    indexes: as for :func:`hpcgen.supply.net.package_index.find_files`.
    FetchError: an index does not have a listed wheel, or does not give its metadata.
    InputError: a list, or the file that is there, cannot be read.
    """
    path = folder / REQUIRES
    known = read_wheel_facts(path, str(path)) if path.is_file() else WheelFacts()
    index = PackageIndex(indexes, loopback_http=loopback_http)
    wanted = _listed(folder)
    for name in map(normal_name, names):
        for version, sha256 in _released(name, index, pythons).items():
            wanted.setdefault((name, version), {sha256})
    missing: dict[str, dict[str, set[str]]] = {}
    for (name, version), hashes in wanted.items():
        if f"{name}=={version}" not in known.needs:
            missing.setdefault(name, {})[version] = hashes
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda name: _asked(name, missing[name], index, pythons), sorted(missing)))
    Problems(problem for answer in answers for problem in answer.problems).raise_as(FetchError)
    for answer in answers:
        new = {f"{answer.name}=={version}": lines for version, lines in answer.needs.items()}
        known = WheelFacts(new, {answer.name: answer.pythons} if answer.pythons else {}).beside(known)
    say(f"{sum(map(len, missing.values()))} of {len(wanted)} versions looked up")
    write_file(path, _text(known))
    return path


def _released(name: str, index: PackageIndex, pythons: Sequence[str]) -> dict[str, str]:
    """The releases with a wheel for Linux on x86-64 and one of the Pythons, each with the sha256 of the last such.

    Also those that were withdrawn, which pip still takes where they are pinned.
    """
    found: dict[str, str] = {}
    files = (msgspec.structs.replace(each, yanked=False) for each in index.project(name)[0])
    for file, version, minors in sorted(_wheels(files, pythons), key=lambda each: each[0].file):
        if "x86_64" in minors and file.sha256:
            found[str(version)] = file.sha256
    return found


def _listed(folder: Path) -> dict[tuple[str, str], set[str]]:
    """The sha256 of each version in the lists of a folder."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for text in read_wheel_list(path, str(path)).lines:
            if (line := parse_line(text)) is not None:
                found.setdefault((normal_name(line.name), line.version), set()).update(line.hashes)
    return found


def _asked(name: str, wanted: Mapping[str, set[str]], index: PackageIndex, pythons: Sequence[str]) -> _Answer:
    """What the index says of one package."""
    needs: dict[str, list[str] | None] = {}
    problems = []
    wheels: list[str] = []
    for version, hashes in sorted(wanted.items()):
        files = [each for each in index.files(name, version) if each.sha256 in hashes or index.own_hash(each) in hashes]
        by_wheel: dict[str, list[str]] = {}
        try:
            for each in {each.file: each for each in files if each.file.endswith(".whl")}.values():
                by_wheel[each.file] = _requirements(_metadata(each, index))
        except (WebError, OSError, KeyError) as failure:
            problems.append(Problem(f"no metadata of {name} {version}: {failure}", remedy="try again"))
        if not files:
            problems.append(Problem(f"no package index has a listed file of {name} {version}", remedy="try again"))
        needs[version] = _together(by_wheel) if by_wheel else None
        wheels += by_wheel
    compiled = any(not file.endswith("-any.whl") for file in wheels)
    return _Answer(name, needs, _pythons(index.project(name)[0], pythons) if compiled else {}, problems)


def _metadata(file: IndexFile, index: PackageIndex) -> str:
    if file.url.startswith("file:"):
        return wheel_metadata(local_path(file.url))
    return remote_metadata(index.web, file.url, loopback_http=index.loopback_http)


def _requirements(metadata: str) -> list[str]:
    """The requirements in one spelling, without those of extras, which nobody has who does not ask for the extra."""
    found = set()
    for text in email.parser.HeaderParser().parsestr(metadata).get_all("Requires-Dist", []):
        try:
            said = Requirement(str(text))
        except InvalidRequirement:
            continue
        if "extra" not in str(said.marker or ""):
            said.name = normal_name(said.name)
            found.add(str(said))
    return sorted(found)


def _together(by_wheel: Mapping[str, Sequence[str]]) -> list[str]:
    """Requirements of all wheels of a version; what not all of them have is bound to the Python of those that do."""
    common = set.intersection(*(set(each) for each in by_wheel.values()))
    found = set(common)
    for file, lines in by_wheel.items():
        minors = sorted(
            {
                f'python_version == "{minor}"'
                for tag in parse_wheel_filename(file)[3]
                if (minor := _minor(tag.interpreter))
            }
        )
        for said in map(Requirement, sorted(set(lines) - common)):
            marker = " or ".join(minors) + (f" and {said.marker}" if said.marker and minors else str(said.marker or ""))
            said.marker = None
            found.add(f"{said}; {marker}" if marker else str(said))
    return sorted(found)


def _minor(interpreter: str) -> str:
    """``3.12`` of ``cp312``; empty for what no single Python is."""
    digits = interpreter.removeprefix("cp3")
    return f"3.{digits}" if interpreter.startswith("cp3") and digits.isdecimal() else ""


def _pythons(files: Iterable[IndexFile], pythons: Sequence[str]) -> dict[str, dict[str, str]]:
    """Which releases have a wheel, by architecture and Python, as ranges; empty where all have one for all."""
    found: dict[str, dict[str, str]] = {}
    there: dict[str, dict[str, set[Version]]] = {architecture: {} for architecture in ARCHITECTURES}
    for _, version, by_architecture in _wheels(files, pythons):
        for architecture, minors in by_architecture.items():
            for minor in minors:
                there[architecture].setdefault(minor, set()).add(version)
    for architecture, by_minor in there.items():
        every = {version for versions in by_minor.values() for version in versions}
        ranges = {minor: _range(by_minor[minor], every) for minor in pythons if minor in by_minor}
        if ranges and (any(ranges.values()) or len(ranges) < len(pythons)):
            found[architecture] = ranges
    return found


def _wheels(
    files: Iterable[IndexFile], pythons: Sequence[str]
) -> Iterator[tuple[IndexFile, Version, dict[str, set[str]]]]:
    """The wheels of final releases, each with its version and the Pythons that take it on Linux, by architecture."""
    for each in files:
        if not each.file.endswith(".whl") or each.yanked:
            continue
        try:
            _, version, _, tags = parse_wheel_filename(each.file)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        minors: dict[str, set[str]] = {}
        for tag in tags if not version.is_prerelease else ():
            for architecture in ARCHITECTURES:
                if tag.platform == "any" or (tag.platform.endswith(architecture) and "manylinux" in tag.platform):
                    minors.setdefault(architecture, set()).update(_minors(tag.interpreter, tag.abi, pythons))
        if any(minors.values()):
            yield each, version, {architecture: each for architecture, each in minors.items() if each}


def _minors(interpreter: str, abi: str, pythons: Sequence[str]) -> list[str]:
    """The Pythons that take a wheel with these tags."""
    if interpreter in ("py3", "py2"):
        return list(pythons) if interpreter == "py3" else []
    minor = _minor(interpreter)
    if abi == "abi3" and minor:
        return [each for each in pythons if _number(each) >= _number(minor)]
    return [minor] if minor in pythons and abi.rstrip("m") in (interpreter, "none") else []


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


def _range(versions: set[Version], every: set[Version]) -> str:
    """The oldest and the newest, as far as they are not those of all."""
    oldest, newest = min(versions), max(versions)
    lower = [f">={oldest}"] if oldest > min(every) else []
    return ",".join([*lower, *([f"<={newest}"] if newest < max(every) else [])])


def _text(facts: WheelFacts) -> str:
    """One package a line, so that a change is a line."""

    def entries(values: Mapping[str, object]) -> str:
        lines = (
            f"  {json.dumps(key)}: {msgspec.json.encode(value, order='sorted').decode()}"
            for key, value in sorted(values.items())
        )
        return ",\n".join(lines)

    return f'{{\n "needs": {{\n{entries(facts.needs)}\n }},\n "pythons": {{\n{entries(facts.pythons)}\n }}\n}}\n'
