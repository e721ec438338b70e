"""What the readers of these files share: the user's wishes, data with the line of everything, short names of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.support.quoting import VERSION_PATTERN
from hpcgen.machine.detect.probes.gpus import table

_VERSION = re.compile(VERSION_PATTERN)
Step = str | int


class SourceFacts:
    """What a file says.

    data: mappings, lists and scalars; of YAML the scalars are text.
    name: the file, as messages show it.
    line_of: the line of what stands at a path; None where nobody knows lines.
    """

    def __init__(self, data: Any, name: str, line_of: Callable[[tuple[Step, ...]], int] | None) -> None:
        self.data = data
        self.name = name
        self._line_of = line_of

    @classmethod
    def of(cls, document: Document) -> SourceFacts:
        """What a YAML file says."""
        return cls(document.data, document.name, lambda path: document.position(path, key=True).line)

    def how(self, *path: Step) -> str:
        """Where something stands: ``packages.yaml:12``."""
        if self._line_of is None:
            return f"{self.name}: {'.'.join(map(str, path))}"
        return f"{self.name}:{self._line_of(path)}"

    def get(self, *path: Step) -> Any:
        """What stands at a path; None where nothing does."""
        found = self.data
        for step in path:
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def mapping(self, *path: Step) -> dict[str, Any]:
        """The mapping at a path; an empty one where something else stands there."""
        found = self.get(*path)
        return found if isinstance(found, dict) else {}

    def listed(self, *path: Step) -> list[Any]:
        """The list at a path; an empty one where something else stands there."""
        found = self.get(*path)
        return found if isinstance(found, list) else []

    def text(self, *path: Step) -> str:
        """The text at a path; "" where something else stands there."""
        found = self.get(*path)
        return found.strip() if isinstance(found, str) else ""

    def whole(self, *path: Step) -> int | None:
        """The positive number at a path, None where there is none."""
        return whole(self.get(*path))


def whole(value: Any) -> int | None:
    """A positive number, of text too; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value).strip()
    number = int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
    return number or None


def version(text: str) -> str | None:
    """A version, None for what is none."""
    return text if _VERSION.search(text) and text[:1].isdigit() else None


def kind_name(text: str) -> str:
    """What a profile may call a kind of node, after the name that another program has for it."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:64] or "main"


class SourceSettings(msgspec.Struct, frozen=True):
    """How sources are read.

    ``system``: which system is meant, where a file has several. ``may_run``: whether a settings file may be run, by its
    name and why that would help.
    """

    system: str
    may_run: Callable[[str, str], bool] = lambda file, why: False


_BY_WORD = (
    (r"(gh|h|a|v|p|b|gb)\d{2,3}[a-z]*|l4|l40s?|t4|k\d0|(tesla|rtx|gtx|quadro|nvidia).*|\d{4}(ti)?", "nvidia"),
    (r"mi\d{2,3}[a-z]*|gfx\d.*|amd.*|instinct.*", "amd"),
    (r"pvc.*|max_?1[15]\d0|ponte.*|intel.*|xe.*", "intel"),
)


def gpu_of(word: str) -> dict[str, Any]:
    """What a name such as ``a100`` tells: vendor and model, and capability or target where all of that name have it.

    An empty mapping for a name that is not known.
    """
    plain = word.strip().lower()
    vendor = next((vendor for pattern, vendor in _BY_WORD if re.fullmatch(pattern, plain[:64])), "")
    if not vendor:
        return {}
    found: dict[str, Any] = {"vendor": vendor, "model": word.strip()[:64]}
    core = re.sub(r"^(nvidia|tesla|amd|instinct)[ _-]*", "", plain)
    of_name = re.compile(rf"\b{re.escape(re.split('[ _-]', core)[0])}[a-z]*\b", re.IGNORECASE)
    rows = [row for row in table().get(vendor, {}).values() if of_name.search(row["model"])]
    chips = [table()["chips"].get(row.get("chip"), {}) for row in rows]
    for field in ("capability", "target"):
        said = {chip.get(field) for chip in chips}
        if len(said) == 1 and (value := said.pop()):
            found[field] = value
    return found


def gpu_of_arch(arch: str) -> dict[str, Any]:
    """What ``sm_80`` or ``gfx90a`` tells; an empty mapping for anything else."""
    if match := re.fullmatch(r"(?:sm|compute)_(\d{1,2})(\d)a?", arch):
        return {"vendor": "nvidia", "capability": f"{match[1]}.{match[2]}"}
    if re.fullmatch(r"gfx[0-9a-f]{3,5}", arch):
        return {"vendor": "amd", "target": arch}
    return {}
