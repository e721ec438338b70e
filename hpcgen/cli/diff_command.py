"""``hpcgen diff``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.terminal import echo

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.config.yamlfile import Document

Found = tuple[Sequence[object], Callable[[int | None], str]]
"""What differs, as records; and in words, with at most so many in a group."""
FEW = 5


@click.command("diff")
@click.argument("old", metavar="[OLD", required=False)
@click.argument("new", metavar="NEW]", required=False)
@click.option("--all", "everything", is_flag=True, help="Show all differences in full, not the first few.")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.pass_context
def command(ctx: click.Context, old: str | None, new: str | None, everything: bool, as_json: bool) -> int:
    """Show what differs between two site profiles, or between two of locks, kits and images.

    A profile is a name or FILE.yaml; NAME@COMMIT is what git has of it. Without OLD and NEW: what has changed in this
    folder since its image was built last.

    Exit code 0 where nothing differs, 1 where something does.
    """
    found, text = _compared(ctx, old, new)
    if as_json:
        print_json(found)
    elif found:
        echo(text(None if everything else FEW))
    else:
        say("nothing differs")
    return 1 if found else 0


def _compared(ctx: click.Context, old: str | None, new: str | None) -> Found:
    catalog = catalog_of(ctx)
    if old is None:
        return _since_last_build(catalog)
    if new is None:
        raise click.UsageError("name two things to compare, or none")
    profiles = [_is_profile(catalog, name) for name in (old, new)]
    if all(profiles):
        return _sites(catalog, old, new)
    if any(profiles):
        raise click.UsageError("compare a site profile with a site profile; locks, kits and images with each other")
    return _plans(old, new)


def _is_profile(catalog: Catalog, name: str) -> bool:
    plain = name.partition("@")[0]
    return plain.endswith(".yaml") or (not Path(plain).exists() and plain in catalog.names("site"))


def _plans(old: str, new: str) -> Found:
    from hpcgen.cli.recorded_plan import recorded_plan
    from hpcgen.kit.lockfile.changes import changes_text
    from hpcgen.kit.plan_difference import planned_changes

    one, other = recorded_plan(old), recorded_plan(new)
    locks = (one.sealed(old), other.sealed(new))
    found = planned_changes(one.plan, other.plan, locks, (one.files, other.files))
    return found, partial(changes_text, found)


def _since_last_build(catalog: Catalog) -> Found:
    """The plan of the image that was built last in this folder against what the same command would plan now."""
    from hpcgen.cli.project_stack import PROJECT, wanted_here
    from hpcgen.images.recorded import recorded_kit
    from hpcgen.kit.lockfile.changes import changes_text
    from hpcgen.kit.plan_difference import planned_changes, replanned

    old = recorded_kit(wanted_here(catalog, None, say)).plan
    new = replanned(old, catalog, catalog.stack(PROJECT), catalog.stack_document(PROJECT))
    found = planned_changes(old, new)
    return found, partial(changes_text, found)


def _sites(catalog: Catalog, old: str, new: str) -> Found:
    from hpcgen.machine.site_difference import changes_text, site_changes

    with tempfile.TemporaryDirectory(prefix="hpcgen-diff-") as folder:
        sides = [(name, Path(folder) / side) for name, side in ((old, "old"), (new, "new"))]
        one, other = (_profile(catalog, *side) for side in sides)
        there = {f"{place}/": f"{name.partition('@')[2]}:" for name, place in sides}
        found = site_changes(one, other, there)
    return found, partial(changes_text, found)


def _profile(catalog: Catalog, name: str, folder: Path) -> Document:
    """A profile as it is now, or, of NAME@COMMIT, as a commit has it, which is put into ``folder``."""
    plain, at, revision = name.partition("@")
    if not at:
        return catalog.site_document(name)
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.machine.site_difference import profiles_at

    now = Path(plain) if plain.endswith(".yaml") else catalog.find("site", plain)
    folder.mkdir()
    profiles_at(now.absolute().parent, revision, folder)
    return Catalog([folder, *catalog.folders[:-1]]).site_document(now.stem)
