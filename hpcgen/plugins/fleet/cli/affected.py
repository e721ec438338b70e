"""``hpcgen affected``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.cli.terminal import echo
from hpcgen.core.errors import HpcgenError, InputError, Problems, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.machine.resting import Dependent

EXAMPLES = {
    "affected": (
        "hpcgen affected --fact supermuc:mpi.version",
        "hpcgen affected --advisory CVE-2026-1234.json --records",
        "hpcgen affected --in kits",
        "hpcgen affected --fleet fleet.yaml --advisory osv",
    ),
}


@click.command("affected")
@click.argument("images", nargs=-1, metavar="[IMAGE]...")
@click.option("--in", "folder", type=PATH, default=".", show_default=True, help="Check the kits and locks below it.")
@click.option("--records", is_flag=True, help="Also check images of build records that still exist.")
@click.option(
    "--fact", "facts", multiple=True, metavar="SITE:PATH", help="A fact that will change: supermuc:mpi.version."
)
@click.option("--release", "blocks", multiple=True, metavar="BLOCK", help="A block with new rows in its release table.")
@click.option("--advisory", "files", multiple=True, metavar="FILE|FOLDER", type=PATH, help="Advisories as OSV files.")
@click.option("--fleet", "fleet_file", metavar="FILE", type=PATH, help="Also check the members of this fleet.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    images: tuple[str, ...],
    folder: Path,
    records: bool,
    facts: tuple[str, ...],
    blocks: tuple[str, ...],
    files: tuple[Path, ...],
    fleet_file: Path | None,
    as_json: bool,
) -> int:
    """List what has to be built again: because a fact changes, a release came out, or an advisory names a package.

    Without --fact, --release and --advisory: what would be planned otherwise now, whatever the reason. Exit code 1
    where something is affected, 13 where nothing is, but not everything could be judged.
    """
    from hpcgen.plugins.fleet.advisories import read_advisories
    from hpcgen.plugins.fleet.affected import AffectedQuestion, affected_by
    from hpcgen.plugins.fleet.gate import UnjudgedError

    catalog = catalog_of(ctx)
    _check_names(catalog, facts, blocks)
    advisories = [each for path in files for each in read_advisories(path)]
    members, missing, catalog = _members(ctx, fleet_file) if fleet_file is not None else ([], [], catalog)
    kept, unread = _known(catalog, images, folder, records, bool(files))
    known, unread = [*members, *kept], [*missing, *unread]
    if not known:
        unread.append(f"there is no kit or lock below {folder}, and no image was read")
    question = AffectedQuestion(facts=facts, advisories=advisories if files else None, blocks=blocks)
    answer = affected_by(known, catalog, question)
    answer = msgspec.structs.replace(answer, unknown=[*unread, *answer.unknown])
    if as_json:
        print_json(answer)
    else:
        for found in answer.affected:
            echo(f"{found.what} ({found.stack} for {found.site})")
            echo("".join(f"  {reason}\n" for reason in found.why), nl=False)
        for title in answer.withdrawn:
            say(f"withdrawn, so it affects nothing: {title}")
        for word in answer.unknown:
            say(f"not known: {word}")
        say(f"{len(answer.affected)} affected, {answer.others} not" + (", as far as known" if answer.unknown else ""))
    return 1 if answer.affected else UnjudgedError.exit_code if answer.unknown else 0


def _check_names(catalog: Catalog, facts: tuple[str, ...], blocks: tuple[str, ...]) -> None:
    from hpcgen.machine.detect.profile import unknown_fact

    problems = Problems()
    sites = catalog.names("site")
    for fact in facts:
        site, colon, path = fact.partition(":")
        if not colon or not path:
            problems.add(f"--fact {fact} does not name a fact", expected="SITE:PATH, such as supermuc:mpi.version")
        elif site not in sites:
            problems.add(f"no site is called {site!r}", "--fact", remedy=did_you_mean(site, sites, "hpcgen list sites"))
        elif problem := unknown_fact(path.split("."), catalog.site_document(site).data):
            problems.append(problem.at(f"--fact {fact}"))
    for block in blocks:
        if not catalog.has_block(block):
            problems.add(
                f"no block is called {block!r}",
                "--release",
                remedy=did_you_mean(block, catalog.names("block"), "hpcgen list blocks"),
            )
    problems.raise_as(UnknownNameError)


def _members(ctx: click.Context, file: Path) -> tuple[list[Dependent], list[str], Catalog]:
    """The members of a fleet as they are planned now, those that have no plan, and the fleet's catalog."""
    from hpcgen.cli.trust import allow_of
    from hpcgen.machine.resting import dependent
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.file import load_fleet

    loaded = load_fleet(file, ctx.find_root().obj, allow_of(ctx))
    states = member_states(loaded, {})
    known = [dependent(f"member {s.member.name}", s.plan, loaded.catalog) for s in states if s.plan is not None]
    return known, [problem.message for s in states for problem in s.problems], loaded.catalog


def _known(
    catalog: Catalog, images: tuple[str, ...], folder: Path, records: bool, packages: bool
) -> tuple[list[Dependent], list[str]]:
    """Kits and locks of the folder, a kit with its lock once, and images; and what could not be looked at.

    ``packages``: those of images are read from their records.
    """
    from hpcgen.machine.doctor.dependents import kept_in
    from hpcgen.machine.resting import dependent

    if not folder.is_dir():
        raise InputError("no such folder", f"--in {folder}", remedy="check the spelling of its path")
    found, unread = kept_in(folder, catalog)
    locked = {each.label.removeprefix("lock ") for each in found if each.lock is not None}
    known = [each for each in found if f"{each.label.removeprefix('kit ')}/hpcgen.lock" not in locked]
    names = list(images)
    if records:
        from hpcgen.builders.records.store import load_all

        names += [f"{each.image.kind}:{each.image.name}" for each in load_all() if each.image is not None]
    for name in dict.fromkeys(names):
        from hpcgen.cli.recorded_plan import recorded_plan
        from hpcgen.images.reference import parse_image
        from hpcgen.plugins.fleet.affected import with_packages

        try:
            recorded = recorded_plan(name)
            image = dependent(f"image {name}", recorded.plan, catalog, recorded.sealed(name))
            known.append(with_packages(image, catalog, parse_image(name), unread) if packages else image)
        except HpcgenError as error:
            if name in images:
                raise
            if isinstance(error, UnknownNameError):
                say(f"no longer there: {name}")
                continue
            unread.append(f"{name}: {error.problems[0].message}")
    return known, unread
