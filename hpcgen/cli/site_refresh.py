"""``hpcgen site refresh``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import CLONE, SITE, clone_folders
from hpcgen.core.support.units import counted, shortened, some

if TYPE_CHECKING:
    from hpcgen.machine.site_refresh import ReadFile, Refreshed, RestingFact

CHANGED, UNKNOWN = 1, 13
"""Exit codes: something changed; nothing did as far as was read, but not all could be."""

_WIDE = 60


@click.command("refresh")
@click.argument("name", type=SITE)
@click.option("--clone", "clones", type=CLONE, multiple=True, metavar=CLONE.form, help="A clone of a cited repository.")
@click.option("--network", is_flag=True, help="Fetch the other cited repositories with git, by https.")
@click.option("--json", "as_json", is_flag=True, help="Print what was read as JSON.")
@click.pass_context
def command(ctx: click.Context, name: str, clones: tuple[tuple[str, Path], ...], network: bool, as_json: bool) -> int:
    """Read the repositories again that a profile cites, and show what changed there since, beside the facts.

    The profile stays as it is. Exit code 1 where a cited file changed, 13 where none did, but not all could be read.
    """
    from hpcgen.core.config.provenance import facts_of
    from hpcgen.machine.site_refresh import refreshed

    folders = clone_folders(clones)
    facts = facts_of(catalog_of(ctx).site_document(name))
    with tempfile.TemporaryDirectory(prefix="hpcgen-refresh-", ignore_cleanup_errors=True) as scratch:
        found = refreshed(facts, folders, Path(scratch) if network else None)
    changed = [each for each in found.files if each.changed]
    if as_json:
        print_json({"site": name, "changed": len(changed), **msgspec.structs.asdict(found)})
    else:
        _print(found)
    say(f"{name}: {counted(len(changed), 'changed file')} of {len(found.files)} that were read again")
    return CHANGED if changed else UNKNOWN if found.unread else 0


def _print(found: Refreshed) -> None:
    for read in found.files:
        if read.changed:
            echo(_file_text(read))
    for each in found.unread:
        say(f"not read: {each.source}: {each.why}; source of {_names(each.facts)}")
    if found.pages:
        say(f"note: pages to read yourself: {some([page.source for page in found.pages])}")


def _file_text(read: ReadFile) -> str:
    since = f"{read.cited} of {read.cited_on}, now {read.newest} of {read.newest_on}"
    file = f"{read.file}:{read.lines}" if read.lines else read.file
    lines = [f"{read.repository} {file}: {read.status} since {since}"]
    lines += [f"  {fact.path}: {shortened(fact.value, _WIDE)} ({fact.place})" for fact in read.facts]
    lines += [f"    {line}" for hunk in read.hunks for line in hunk.splitlines()]
    return "\n".join(lines)


def _names(facts: list[RestingFact]) -> str:
    return some([fact.path for fact in facts])
