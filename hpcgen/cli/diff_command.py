"""``hpcgen diff``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import catalog_of, print_json, say


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
    if all(locks):
        from hpcgen.lockfile.diff.changes import changes, changes_text
        from hpcgen.lockfile.lock import read_lock

        found = changes(read_lock(Path(old)), read_lock(Path(new)))
        text = changes_text(found)
    else:
        from hpcgen.compare.sites import changes_text as facts_text
        from hpcgen.compare.sites import site_changes

        catalog = catalog_of(ctx)
        facts = site_changes(catalog.site_document(old), catalog.site_document(new))
        if as_json:
            print_json(facts)
            return 1 if facts else 0
        found, text = [], facts_text(facts)
    if as_json:
        print_json(found)
    elif text:
        click.echo(text)
    else:
        say("nothing differs")
    return 1 if text else 0
