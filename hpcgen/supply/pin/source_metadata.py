"""What a source package requires and is built with, read from its files; nothing of it is run.

Believed are, in this order: PKG-INFO of metadata 2.2 and newer, where it does not call the requirements dynamic (PEP
643); ``[project]`` of pyproject.toml (PEP 621); ``requires.txt`` of the egg-info, which setuptools wrote when the
package was made; PKG-INFO of tools that make it from declarations alone; and lists that stand in setup.cfg or setup.py
as such. requires.txt has what held on its maker's machine: where setup.py says more on another, ``pip check`` finds it
in the image.
"""

from __future__ import annotations

import email.message
import email.parser
import re
import sys
from collections.abc import Iterator, Mapping
from configparser import Error as ConfigError
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from hpcgen.core.support.package_names import normal_name
from hpcgen.supply.net.source_members import UNREADABLE, source_members

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST = 4 * 1024 * 1024
"""The largest of the files that are read."""
_WANTED = re.compile(r"(?:\./)?[^/]+/(PKG-INFO|pyproject\.toml|setup\.cfg|setup\.py)")
_EGG = re.compile(r"(?:\./)?[^/]+/(?:[^/]+/)?([^/]+)\.egg-info/([^/]+)")
_SOURCES = re.compile(r"\.(c|cc|cpp|cxx|pyx|f|for|f77|f90|rs)$", re.IGNORECASE)
_ASIDE = re.compile(r"(^|/)(tests?|docs?|examples?|benchmarks?)/", re.IGNORECASE)
_EXTENDS = re.compile(r"ext_modules|Extension\(|cythonize|cffi_modules|rust_extensions|cmake", re.IGNORECASE)
_PURE = ("flit", "poetry", "hatchling", "pdm", "uv_build", "whey", "trampolim")
"""Beginnings of build backends that write PKG-INFO from declarations, and compile nothing by themselves."""
_DEFAULT = ("setuptools",)
_IMPORTED = {"Cython": "cython", "cffi": "cffi", "numpy": "numpy", "pybind11": "pybind11", "skbuild": "scikit-build"}
"""What an old setup.py imports without a word of it anywhere, by module."""


class SourcePackage(msgspec.Struct, frozen=True):
    """A source package.

    needs: what it requires, with the markers of extras.
    extras: those that it has.
    python: the range of Pythons that it is for.
    tools: what its build requires.
    compiled: a file of it that has to be compiled; empty where there is none.
    """

    needs: tuple[str, ...]
    extras: tuple[str, ...] = ()
    python: str = ""
    tools: tuple[str, ...] = _DEFAULT
    compiled: str = ""


class UnknownSource(Exception):
    """Why it cannot be told what a source package requires, in plain words."""


def read_source(path: Path, name: str, *, needed: bool = True) -> SourcePackage:
    """The source package in a tar or zip file.

    ``needed``: whether it counts what the package requires, and not only how it is built. UnknownSource: it does not
    say so without being run, or cannot be read.
    """
    texts: dict[str, str] = {}
    sources = []
    try:
        for member, opened in source_members(path):
            wanted, egg = _WANTED.fullmatch(member), _EGG.fullmatch(member)
            if egg is not None and normal_name(egg[1]) == name:
                texts.setdefault("egg-info", "")
            elif _SOURCES.search(member) and not _ASIDE.search(member):
                sources.append(member)
            key = wanted[1] if wanted else egg[2] if egg and egg[2] == "requires.txt" and "egg-info" in texts else ""
            if key and key not in texts:
                data = opened().read(_MOST + 1)
                if len(data) > _MOST:
                    raise UnknownSource(f"its {key} is larger than {_MOST >> 20} MiB")
                texts[key] = data.decode("utf-8", "replace")
    except UNREADABLE as failure:
        raise UnknownSource(f"its archive cannot be read ({failure})") from None
    return _described(texts, sources, needed)


def _described(texts: Mapping[str, str], sources: list[str], needed: bool) -> SourcePackage:
    project = _toml(texts.get("pyproject.toml", ""))
    build = _table(project, "build-system")
    backend, setup = str(build.get("build-backend", "")), texts.get("setup.py", "")
    info = email.parser.HeaderParser().parsestr(texts.get("PKG-INFO", ""))
    needs = tuple(_checked(_needs(texts, project, info, backend))) if needed else ()
    declared = build.get("requires")
    if isinstance(declared, list):
        tools = tuple(_checked(map(str, declared)))
    else:
        lines = re.findall(r"^(?:from|import)[ \t]+(\w+)", setup, re.MULTILINE)
        wanted = {_IMPORTED[each] for each in lines if each in _IMPORTED}
        # pytest-runner is for tests alone.
        wanted |= {each for each in _literal(setup, "setup_requires") or () if not each.startswith("pytest")}
        tools = tuple(_checked(iter((*_DEFAULT, *sorted(wanted)))))
    by_setuptools = not backend or backend.startswith("setuptools.")
    extends = bool(_EXTENDS.search(setup)) if by_setuptools else not backend.startswith(_PURE)
    extras = {*map(str, info.get_all("Provides-Extra", [])), *_table(project, "project", "optional-dependencies")}
    extras |= set(re.findall(r"^\[([^\]:]+)", texts.get("requires.txt", ""), re.MULTILINE))
    python = str(info.get("Requires-Python") or _table(project, "project").get("requires-python") or "").strip()
    return SourcePackage(needs, tuple(sorted(extras)), python, tools, min(sources) if extends and sources else "")


def _needs(
    texts: Mapping[str, str], project: Mapping[str, Any], info: email.message.Message, backend: str
) -> Iterator[str]:
    """Lines of what is required, from the first file that says so."""
    about = _table(project, "project")
    dynamic = {str(each).strip().lower() for each in info.get_all("Dynamic", [])}
    if _is_static(info) and "requires-dist" not in dynamic:
        yield from map(str, info.get_all("Requires-Dist", []))
    elif about and not {"dependencies", "optional-dependencies"} & set(about.get("dynamic", ())):
        yield from map(str, about.get("dependencies", ()))
        for extra, lines in _table(project, "project", "optional-dependencies").items():
            yield from (_with_marker(str(line), f'extra == "{extra}"') for line in lines)
    elif "egg-info" in texts:
        yield from _of_egg(texts.get("requires.txt", ""))
    elif "PKG-INFO" in texts and backend.startswith(_PURE):
        yield from map(str, info.get_all("Requires-Dist", []))
    else:
        yield from _listed(texts.get("setup.cfg", ""), texts.get("setup.py", ""))


def _is_static(info: email.message.Message) -> bool:
    try:
        return Version(str(info.get("Metadata-Version", "0"))) >= Version("2.2")
    except InvalidVersion:
        return False


def _of_egg(text: str) -> Iterator[str]:
    """The lines of a requires.txt, whose sections are ``[EXTRA:MARKER]`` with one of the two or both."""
    conditions: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
            conditions = [f"({marker})"] if marker else []
            conditions += [f'extra == "{extra}"'] if extra else []
        elif line and not line.startswith("#"):
            yield _with_marker(line, " and ".join(conditions))


def _with_marker(line: str, marker: str) -> str:
    if not marker:
        return line
    said = Requirement(line)
    own = f"({said.marker}) and " if said.marker else ""
    said.marker = None
    return f"{said} ; {own}{marker}"


def _listed(config: str, setup: str) -> Iterator[str]:
    """A list that stands in setup.cfg or setup.py as such; distutils alone knows no requirements."""
    parser = RawConfigParser(strict=False)
    try:
        parser.read_string(config)
    except ConfigError:
        raise UnknownSource("its setup.cfg cannot be read") from None
    said = parser.get("options", "install_requires", fallback="")
    if said.strip():
        if re.match(r"\s*(file|attr):", said):
            raise UnknownSource("its setup.cfg reads its requirements from elsewhere")
        # setuptools: lines, or one line with semicolons.
        yield from filter(None, map(str.strip, said.splitlines() if "\n" in said else said.split(";")))
    elif "install_requires" in setup:
        if (lines := _literal(setup, "install_requires")) is None:
            raise UnknownSource("its setup.py computes its requirements")
        yield from lines


def _literal(setup: str, name: str) -> list[str] | None:
    """The strings of an argument in setup.py that is a list of nothing else; None where it is none."""
    found = re.search(rf"{name}\s*=\s*\[([^\]\[]*)\]", setup)
    inside = re.sub(r"#[^\n]*", "", found[1]) if found else "?"
    if re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", inside).replace(",", "").strip():
        return None
    return [first or second for first, second in re.findall(r"'([^'\n]*)'|\"([^\"\n]*)\"", inside)]


def _checked(lines: Iterator[str] | map[str]) -> Iterator[str]:
    """Requirements that a package index can answer."""
    for line in lines:
        try:
            said = Requirement(line)
        except InvalidRequirement:
            raise UnknownSource(f"it requires {line[:80]!r}, which is not a requirement") from None
        if said.url is not None or not line.isprintable():
            raise UnknownSource(f"it requires {said.name} by an address")
        yield str(said)


def _toml(text: str) -> dict[str, Any]:
    try:
        return dict(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError):
        raise UnknownSource("its pyproject.toml cannot be read") from None


def _table(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A table in tables; an empty one where it is missing."""
    found: Any = data
    for name in names:
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}
