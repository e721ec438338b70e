"""What rests on facts that drifted: stacks of the collections, and locks and kits in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import read_plain
from hpcgen.machine.doctor.rules import Report
from hpcgen.machine.resting import Dependent, dependent, depends_on

_MOST_FILES = 20_000
_MAX_BYTES = 16 * 1024 * 1024


def stacks_of(catalog: Catalog, site: str, partition: str) -> Iterator[Dependent]:
    """Every stack that can be planned for a site, on one of its partitions; the others rest on nothing there."""
    from hpcgen.planning.planner import make_plan

    profile = catalog.site(site)
    for name in catalog.names("stack"):
        try:
            plan = make_plan(catalog, profile, catalog.stack(name), partition=partition or None)
        except HpcgenError:
            continue
        yield dependent(f"stack {name}", plan, catalog)


def kept_in(folder: Path, catalog: Catalog, site: str | None = None) -> tuple[list[Dependent], list[str]]:
    """Locks and kits of a site, or of any, below a folder, and what could not be read of those that look like one."""
    found, unread = list[Dependent](), list[str]()
    for path in _files(folder, unread):
        try:
            plan, lock = _read(path)
        except HpcgenError as error:
            unread.append(f"{path}: {error.problems[0].message}")
            continue
        if plan is not None and site in (None, plan.site.name):
            label = f"kit {path.parent}" if path.name == "plan.json" else f"lock {path}"
            found.append(dependent(label, plan, catalog, lock))
    return found, unread


def with_dependents(report: Report, dependents: Iterable[Dependent]) -> Report:
    """The report, each drift with what rests on it."""
    known = list(dependents)
    drift = [
        msgspec.structs.replace(each, depends=tuple(one.label for one in known if depends_on(one, each.fact)))
        for each in report.drift
    ]
    return msgspec.structs.replace(report, drift=tuple(drift))


def _files(folder: Path, unread: list[str]) -> Iterator[Path]:
    """Files that may be a lock or a kit's plan; links are not followed, and there is an end to it."""
    left = _MOST_FILES

    def refused(failure: OSError) -> None:
        unread.append(f"{failure.filename}: {failure.strerror}")

    for place, names, files in os.walk(folder, onerror=refused):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            left -= 1
            if left < 0:
                unread.append(f"{folder}: it has more than {_MOST_FILES} files; name the folder of your kits")
                return
            if name == "plan.json" or name.endswith(".lock"):
                yield Path(place, name)


def _read(path: Path) -> tuple[Plan | None, Lock | None]:
    """The plan of a lock or a kit, and what pins it; None for one that is neither, such as another program's lock."""
    from hpcgen.kit.kit import read_plan
    from hpcgen.kit.lockfile.lock import is_sealed, parse_lock

    try:
        text = read_plain(path, _MAX_BYTES).decode("utf-8")
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", str(path), remedy="make it a readable file") from None
    except UnicodeDecodeError:
        return None, None
    if len(text) > _MAX_BYTES:
        return None, None
    if path.name != "plan.json":
        lock = parse_lock(text, str(path)) if is_sealed(text) else None
        return (lock.plan, lock) if lock is not None else (None, None)
    if not (path.parent / "hpcgen.lock").is_file():
        return None, None
    try:
        return read_plan(msgspec.json.decode(text), str(path)), None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"not the plan of a kit of this hpcgen: {error}",
            str(path),
            remedy="render that kit again, or leave its folder out",
        ) from error
