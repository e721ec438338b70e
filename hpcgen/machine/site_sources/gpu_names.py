"""Short names of GPUs, as administrators write them → vendor, model and what code they run."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.machine.detect.probes.gpus import table

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
