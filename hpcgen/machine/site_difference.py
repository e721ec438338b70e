"""What differs between two profiles, also of commits, fact by fact, with the place of each."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from hpcgen.core.config.provenance import Fact, facts_of, shown_value
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Record
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.units import counted, shortened


class FactChange(Record, frozen=True):
    """A fact that two profiles say otherwise: ``old`` is empty if it is new, ``new`` if it is gone; and where."""

    path: str
    old: str = ""
    new: str = ""
    old_place: str = ""
    new_place: str = ""


def site_changes(old: Document, new: Document, places: Mapping[str, str] = {}) -> list[FactChange]:
    """Every fact that is not the same in both, sorted by its path; InputError for a source that is none.

    ``places``: what is said in the place of the beginning of a file's name.
    """
    before, after = ({fact.path: fact for fact in facts_of(each)} for each in (old, new))
    return [
        FactChange(
            path=path, old=_said(one), new=_said(two), old_place=_place(one, places), new_place=_place(two, places)
        )
        for path in sorted(before.keys() | after.keys())
        for one, two in [(before.get(path), after.get(path))]
        if one is None or two is None or one.value != two.value
    ]


_SHORT = 60


def changes_text(found: list[FactChange], most: int | None = None) -> str:
    """One line each, with both values and their places.

    ``most``: count them, and show so many of each kind, without places and with long values shortened.
    """
    if most is None:
        return "\n".join(_line(each) for each in found)
    kinds = {
        "changed": [each for each in found if each.old and each.new],
        "removed": [each for each in found if not each.new],
        "added": [each for each in found if not each.old],
    }
    lines = [f"{counted(len(found), 'difference')}: {', '.join(f'{len(of)} {kind}' for kind, of in kinds.items())}"]
    for kind, of_kind in kinds.items():
        lines += [f"{kind}:"] * bool(of_kind)
        lines += [f"  {_line(each, short=True)}" for each in of_kind[:most]]
        lines += [f"  … {len(of_kind) - most} more (--all)"] * (len(of_kind) > most)
    return "\n".join(lines)


def _line(each: FactChange, short: bool = False) -> str:
    if short:
        old, new = (shortened(value, _SHORT) for value, _ in _sides(each))
    else:
        old, new = (f"{value} [{place}]" if place else "" for value, place in _sides(each))
    return f"{each.path}: " + (f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}")


def _sides(each: FactChange) -> tuple[tuple[str, str], tuple[str, str]]:
    return (each.old, each.old_place), (each.new, each.new_place)


def _said(fact: Fact | None) -> str:
    return shown_value(fact.value) if fact is not None else ""


def _place(fact: Fact | None, places: Mapping[str, str]) -> str:
    if fact is None:
        return ""
    file = fact.where.file
    begin = next((each for each in places if file.startswith(each)), "")
    return f"{places.get(begin, '')}{file.removeprefix(begin)}:{fact.where.line}"


# Site profiles as a commit of their collection has them.

_MOST = 64 * 1024 * 1024
"""Bytes of a collection's profiles."""


def profiles_at(folder: Path, revision: str, into: Path) -> None:
    """Put the profiles of a folder, as they are at a commit of its git repository, into ``into/site_profiles``.

    folder: the collection's ``site_profiles``.
    revision: whatever git calls a commit, such as ``HEAD~1``, a tag or a hash.
    InputError: the folder is in no repository, or has no such commit.
    MissingToolError: there is no git.
    """
    git = require_program("git", "read a profile of another commit", "install it, or name two files")
    # --end-of-options: what the user calls a commit is never an option.
    words = [git, "-C", str(folder), "archive", "--format=tar", "--end-of-options", revision, "."]
    done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0 or len(done.stdout) > _MOST:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else "it has more than 64 MiB of profiles"
        raise InputError(
            f"git has no profiles in {folder} at {revision!r}: {why}",
            expected="a commit, tag or branch of the profile's repository",
        )
    target = into / "site_profiles"
    target.mkdir()
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            name = Path(member.name).name
            if member.isreg() and "/" not in member.name.removeprefix("./") and name.endswith(".yaml"):
                stream = archive.extractfile(member)
                (target / name).write_bytes(stream.read() if stream is not None else b"")
