"""Ranges of versions as Poetry writes them: https://python-poetry.org/docs/dependency-specification/."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.core.errors import Position
from hpcgen.core.model.requirement import Requirement
from hpcgen.readers.pip_text import LONGEST, Fault, is_marker, is_range, requirement

_VERSION = r"\d{1,9}(?:\.\d{1,9})*"
_FOREIGN = ("git", "path", "url", "file")


def poetry_requirement(name: str, said: Any, where: Position) -> Requirement:
    """One entry of a table of Poetry's dependencies; :class:`Fault` where it is none."""
    table = {"version": said} if isinstance(said, str) else said
    if not isinstance(table, dict):
        raise Fault(f"{name} has neither a range of versions nor a table", f'write {name} = "*", or a range')
    if foreign := next((kind for kind in _FOREIGN if kind in table), ""):
        raise Fault(
            f"{name} is taken from {'a path' if foreign in ('path', 'file') else 'an address'}",
            "name a release of it from the package index; code of your own comes into the image by `copy` in the stack",
        )
    extras = table.get("extras", [])
    if not isinstance(extras, list) or not all(isinstance(each, str) for each in extras):
        raise Fault(f"the extras of {name} are no list of names", "write them as a list of texts")
    markers = [_text(table, "markers")]
    if python := pep440(_text(table, "python") or "*"):
        markers += [_python_marker(part) for part in python.split(",")]
    marker = " and ".join(f"({each})" if " or " in each else each for each in markers if each)
    if marker and not is_marker(marker):
        raise Fault(
            f"the markers of {name} cannot be read: {marker[:120]!r}", "write them as `poetry check` accepts them"
        )
    bracket = f"[{','.join(extras)}]" if extras else ""
    behind = f" ; {marker}" if marker else ""
    return requirement(f"{name}{bracket}{pep440(_text(table, 'version') or '*')}{behind}", where)


def python_range(said: str) -> str:
    """The range of Pythons in PEP 440's form; empty for any. :class:`Fault` where it is none."""
    return pep440(said or "*")


def pep440(said: str) -> str:
    """A range of Poetry's in PEP 440's form: ``^1.2`` is ``>=1.2,<2``. :class:`Fault` where it is none."""
    if "||" in said or "|" in said:
        raise Fault(f"{said[:80]!r} is several ranges", "write one range")
    parts = [part for part in re.split(r"\s*,\s*|(?<=[0-9a-z*])\s+(?=[<>=!^~])", said.strip()) if part]
    found = ",".join(filter(None, (_part(re.sub(r"\s+", "", part)) for part in parts)))
    if len(said) > LONGEST or not is_range(found):
        raise Fault(f"{said[:80]!r} is no range of versions", "write a range such as ^1.26 or >=1.26,<3")
    return found


def _part(part: str) -> str:
    if part == "*":
        return ""
    if match := re.fullmatch(rf"\^({_VERSION})(\S*)", part):
        return f">={match[1]}{match[2]},<{_next(match[1], _leading(match[1]))}"
    if match := re.fullmatch(rf"~({_VERSION})(\S*)", part):
        return f">={match[1]}{match[2]},<{_next(match[1], min(1, match[1].count('.')))}"
    if re.fullmatch(rf"{_VERSION}(\.\*)?\S*", part):
        return f"=={part}"
    return re.sub(r"^=(?!=)", "==", part)


def _leading(version: str) -> int:
    """Which number a caret leaves as it is: the first that is not 0, else the last."""
    numbers = version.split(".")
    return next((place for place, number in enumerate(numbers) if int(number)), len(numbers) - 1)


def _next(version: str, place: int) -> str:
    """The version with the number at a place one higher, and nothing behind it."""
    numbers = [int(number) for number in version.split(".")]
    return ".".join(map(str, [*numbers[:place], numbers[place] + 1]))


def _python_marker(part: str) -> str:
    operator, version = re.fullmatch(r"([<>=!~]+)(.*)", part).groups()  # type: ignore[union-attr]
    return f"python_full_version {operator} '{version}'"


def _text(table: dict[str, Any], key: str) -> str:
    value = table.get(key, "")
    if isinstance(value, str) and value.isprintable():
        return value
    raise Fault(f"{key} is no text on one line", "write it as a text in quotes")
