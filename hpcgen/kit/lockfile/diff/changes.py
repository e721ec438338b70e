"""What differs between two locks and why, for ``hpcgen lock --check`` and ``--update``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hpcgen.core.model.lock import Lock
from hpcgen.kit.lockfile.diff.change import Change, What

__all__ = ["Change", "changes", "changes_text"]

_TITLES = {
    "hpcgen": "hpcgen",
    "command": "asked for",
    "site": "site",
    "stack": "stack",
    "copied": "files of the stack",
    "block": "blocks",
    "option": "options",
    "job": "job",
    "image": "base images",
    "package": "OS packages",
    "index": "package indexes",
    "key": "keys",
    "wheel": "Python packages",
    "archive": "archives",
    "tree": "git trees",
    "bazel": "files for Bazel",
    "input": "other inputs",
    "collection": "files of collections",
    "result": "outcome",
}
_WIDEST_NAME, _WIDEST_VALUE = 44, 56
_LONGEST = 60
"""Characters of one value; the whole is in the JSON."""


def changes(old: Lock, new: Lock) -> list[Change]:
    """Every difference, causes before effects; empty if the locks say the same.

    Where the locks' texts differ in nothing that has a line of its own (a reason, a note), one line says so.
    """
    from hpcgen.kit.lockfile.diff.pin_changes import pin_changes
    from hpcgen.kit.lockfile.diff.plan_changes import plan_changes

    moved = {path for path, _ in old.collections.items() ^ new.collections.items()}
    tables = [name[1] for path in moved if (name := re.fullmatch(r"building_blocks/([^/]+)\.yaml", path))]
    found = in_order([*plan_changes(old.plan, new.plan, tables), *pin_changes(old, new)])
    if not found and old.text != new.text:
        why = "only reasons, notes or sources changed, nothing that the build uses"
        found.append(Change(what="result", name="text", old="", new="", why=why))
    return found


def in_order(found: Iterable[Change]) -> list[Change]:
    """Causes before effects."""
    order = list(_TITLES)
    return sorted(found, key=lambda change: order.index(change.what))


def changes_text(found: Sequence[Change]) -> str:
    """One line each, in groups, aligned; a reason that a whole group shares stands in its title."""
    groups: dict[str, list[Change]] = {}
    for change in found:
        groups.setdefault(change.what, []).append(change)
    return "\n".join(line for what, group in groups.items() for line in _group(_TITLES[what], group))


def _group(title: str, group: Sequence[Change]) -> list[str]:
    shared = group[0].why if len(group) > 2 and len({change.why for change in group}) == 1 else ""
    rows = [(change.name, _values(change), "" if shared else change.why) for change in group]
    widths = [
        max((len(row[column]) for row in rows if len(row[column]) <= most), default=0)
        for column, most in ((0, _WIDEST_NAME), (1, _WIDEST_VALUE))
    ]
    lines = [f"{title} ({len(group)})" + (f": {shared}" if shared else "")]
    for name, values, why in rows:
        lines.append(f"  {name.ljust(widths[0])}  {values.ljust(widths[1])}  {why}".rstrip())
    return lines


def _values(change: Change) -> str:
    old, new = (_short(text, change.what) for text in (change.old, change.new))
    if not old or not new:
        return f"+ {new}" if new else f"- {old}" if old else ""
    return f"{old} → {new}"


def _short(text: str, what: What) -> str:
    """Hashes by their first digits, archives' addresses by the file that they end in."""
    text = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b", r"\1", text)
    if what == "archive":
        text = re.sub(r"https?://\S*/(\S+)", r"\1", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
