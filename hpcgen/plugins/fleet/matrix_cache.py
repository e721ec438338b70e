"""What became of combinations, kept by a hash of all that it rests on, so that it is never out of date."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.errors import OutputError
from hpcgen.core.model.bundle import COLLECTED_FOLDERS
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.registry import entry_points
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.fleet.matrix import Combination, MatrixOutcome, outcomes

PACKAGE = Path(__file__).resolve().parents[2]
USED = ("archspec", "hpccm", "msgspec", "packaging", "python-sat", "pyyaml")
"""Packages that plans rest on."""
_MOST_BYTES = 64 * 1024 * 1024
_KEPT = 4

_outcomes = msgspec.json.Decoder(list[MatrixOutcome])


def remembered(catalog: Catalog, chosen: Sequence[Combination], processes: int) -> Iterator[MatrixOutcome]:
    """As :func:`outcomes`, but those that were worked out before from the very same files are read."""
    path = _file(catalog)
    known = _read(path) if path is not None else {}
    missing = [each for each in chosen if _key(each) not in known]
    new: dict[tuple[str, ...], MatrixOutcome] = {}
    for each in outcomes(catalog, missing, processes):
        # A bug is looked at again each time, by whoever is mending it.
        new[_key(each)] = each
    if path is not None and new:
        _write(path, {**known, **{key: each for key, each in new.items() if each.result != "bug"}})
    for which in chosen:
        key = _key(which)
        yield known[key] if key in known else new[key]


def _key(each: Combination | MatrixOutcome) -> tuple[str, ...]:
    return each.site, each.partition, each.stack, each.way


def _file(catalog: Catalog) -> Path | None:
    """The file for what the answers rest on now; None where that cannot be said."""
    groups = ("engines", "schedulers", "formats")
    if any(True for group in groups for _ in entry_points(f"hpcgen.{group}")):
        return None
    try:
        return cache_folder("matrix") / f"{_state(catalog)}.json"
    except (OSError, RuntimeError):
        return None


def _state(catalog: Catalog) -> str:
    """A hash of hpcgen's own code, of what it uses, and of every file of the collections."""
    digest = hashlib.sha256(f"{sys.version} {' '.join(map(version, USED))}".encode())
    trees = [PACKAGE, *(folder / part for folder in catalog.folders for part in COLLECTED_FOLDERS)]
    for tree in trees:
        digest.update(f"\n{tree}\n".encode("utf-8", "surrogateescape"))
        for path in sorted(tree.rglob("*")):
            if path.suffix != ".pyc" and path.is_file():
                data = read_plain(path, _MOST_BYTES)
                name = path.relative_to(tree).as_posix()
                digest.update(f"{name} {len(data)}\n".encode("utf-8", "surrogateescape"))
                digest.update(data)
    return digest.hexdigest()


def _read(path: Path) -> dict[tuple[str, ...], MatrixOutcome]:
    try:
        return {_key(each): each for each in _outcomes.decode(read_plain(path, _MOST_BYTES))}
    except (OSError, msgspec.DecodeError):
        return {}


def _write(path: Path, known: dict[tuple[str, ...], MatrixOutcome]) -> None:
    """Store what is known, and remove what was stored for files as they are no longer."""
    with contextlib.suppress(OutputError, OSError):
        write_file(path, msgspec.json.encode(list(known.values())).decode(), folders=True)
        stored = sorted(path.parent.glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in stored[_KEPT:]:
            old.unlink(missing_ok=True)
