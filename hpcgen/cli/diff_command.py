"""``hpcgen diff``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import catalog_of, print_json, say

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog


@click.command("diff")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.pass_context
def command(ctx: click.Context, old: str, new: str, as_json: bool) -> int:
    """Show what differs between two locks (FILE.lock), or between two site profiles (a name, or FILE.yaml).

    Exit code 0 where nothing differs, 1 where something does.
    """
    locks = [name.endswith(".lock") for name in (old, new)]
    if any(locks) and not all(locks):
        raise click.UsageError("a lock is compared with a lock, a site profile with a site profile")
    found, text = _locks(old, new) if all(locks) else _sites(catalog_of(ctx), old, new)
    if as_json:
        print_json(found)
    elif found:
        click.echo(text)
    else:
        say("nothing differs")
    return 1 if found else 0


def _locks(old: str, new: str) -> tuple[Sequence[Any], str]:
    """What differs, as records and in words."""
    from hpcgen.lockfile.diff.changes import changes, changes_text
    from hpcgen.lockfile.lock import read_lock

    found = changes(read_lock(Path(old)), read_lock(Path(new)))
    return found, changes_text(found)


def _sites(catalog: Catalog, old: str, new: str) -> tuple[Sequence[Any], str]:
    """The same of two profiles."""
    from hpcgen.compare.sites import changes_text, site_changes

    found = site_changes(catalog.site_document(old), catalog.site_document(new))
    return found, changes_text(found)
