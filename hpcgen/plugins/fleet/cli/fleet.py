"""``hpcgen fleet``: what a fleet consists of, and what is to be built of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, option_group, print_json, say, say_foreign
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.trust import allow_of
from hpcgen.core.errors import InputError, Problems
from hpcgen.plugins.fleet.cli.gate import GATE_OPTIONS, gate_of

if TYPE_CHECKING:
    from hpcgen.plugins.fleet.changes import MemberState
    from hpcgen.plugins.fleet.severity import Severity

EXAMPLES = {
    "fleet": ("hpcgen fleet", "hpcgen fleet --changed --json"),
    "fleet publish": ("hpcgen fleet publish --dry-run",),
    "fleet policy": ("hpcgen fleet policy --signer keys.asc --lookaside https://example.org/signatures",),
    "fleet merge": ("hpcgen fleet merge one.lock other.lock",),
    "fleet pull-lock": ("hpcgen fleet pull-lock",),
    "fleet push-lock": ("hpcgen fleet push-lock",),
}

_FILE = click.Path(path_type=Path, dir_okay=False)
_FLEET = click.option(
    "--fleet",
    "fleet_file",
    default="fleet.yaml",
    show_default=True,
    metavar="FILE",
    type=_FILE,
    help="The list of images.",
)
fleet_options = option_group(
    _FLEET,
    click.option(
        "--lock",
        "lock_file",
        metavar="FILE",
        type=_FILE,
        help="The list of the last builds; by default fleet.lock next to the fleet file.",
    ),
)


@click.group("fleet", invoke_without_command=True)
@fleet_options
@click.option("--changed", is_flag=True, help="Only images that must be built: new, changed, or without a plan.")
@click.option("--member", "names", multiple=True, metavar="NAME", help="Only this member; may be repeated.")
@option_group(*GATE_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    fleet_file: Path,
    lock_file: Path | None,
    changed: bool,
    names: tuple[str, ...],
    advisories: Path | None,
    fail_on: Severity,
    as_json: bool,
) -> None:
    """List the images of a fleet with their plan hashes, and which have to be built.

    A member whose plan cannot be made is reported with its line; the others are listed all the same, and the exit code
    says that one failed. With --advisories images are judged that did not change since they were built, and the plans
    of the others.
    """
    if ctx.invoked_subcommand is not None:
        return
    from hpcgen.plugins.fleet.changes import as_json as rows_of
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.records import read_lock

    loaded = load_fleet(fleet_file, ctx.find_root().obj, allow_of(ctx))
    locked = read_lock(lock_file or loaded.lock_path)
    states = member_states(loaded, locked, names)
    shown = [each for each in states if each.to_build or not changed]
    if as_json:
        print_json(rows_of(loaded, shown))
    else:
        _print(shown, changed)
        say_foreign(each.plan.site for each in shown if each.plan is not None and each.to_build)
    Problems(problem for each in states for problem in each.problems).raise_as(InputError)
    if (gate := gate_of(loaded, advisories, fail_on)) is not None:
        from hpcgen.plugins.fleet.gate import judge_members

        judge_members(gate, states, locked, loaded.catalog, say)


def _print(states: list[MemberState], changed: bool) -> None:
    if not states:
        say("nothing to build" if changed else "no members")
        return
    rows = []
    for each in states:
        form = each.plan.format if each.plan is not None else "-"
        rows.append([each.member.name, form, each.content[:12] or "-", each.state, each.reason])
    echo(table(["name", "format", "plan", "state", "why"], rows, sys.stdout))


@command.command("merge")
@fleet_options
@click.argument("parts", nargs=-1, metavar="LOCK...", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def merge(fleet_file: Path, lock_file: Path | None, parts: tuple[Path, ...]) -> None:
    """Merge the locks of single builds into the fleet's lock."""
    from hpcgen.plugins.fleet.records import read_lock, update_lock

    target = lock_file or fleet_file.with_suffix(".lock")
    images = {name: image for part in parts for name, image in read_lock(part).items()}
    if images:
        update_lock(target, images)
    say(f"{target}: {', '.join(sorted(images)) or 'nothing new'}")


@command.command("pull-lock")
@fleet_options
@click.pass_context
def pull(ctx: click.Context, fleet_file: Path, lock_file: Path | None) -> None:
    """Add what the registry's list of builds has, and the lock has not."""
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.records import read_lock, update_lock
    from hpcgen.plugins.fleet.registry_lock import pull_lock

    loaded = load_fleet(fleet_file, ctx.find_root().obj, allow_of(ctx))
    target = lock_file or loaded.lock_path
    before = read_lock(target)
    new = {name: image for name, image in pull_lock(loaded).items() if name not in before}
    if new:
        update_lock(target, new)
    say(f"{target}: {', '.join(sorted(new)) or 'nothing new'}")


@command.command("push-lock")
@fleet_options
@click.pass_context
def push(ctx: click.Context, fleet_file: Path, lock_file: Path | None) -> None:
    """Put what the lock says is published into the registry's list of builds, beside what others published."""
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.registry_lock import push_lock

    loaded = load_fleet(fleet_file, ctx.find_root().obj, allow_of(ctx))
    echo(push_lock(loaded, lock_file or loaded.lock_path))


@command.command("publish")
@fleet_options
@click.option("--dry-run", is_flag=True, help="Only print the commands.")
@click.option(
    "--sign",
    metavar="KEY",
    type=PATH,
    multiple=True,
    help="Put a statement signed by this SSH key, and an SBOM, beside each image. With pgp:FINGERPRINT, sign each "
    "image itself, for apptainer verify and the policies of podman and skopeo. May be repeated.",
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.pass_context
def publish(
    ctx: click.Context,
    fleet_file: Path,
    lock_file: Path | None,
    dry_run: bool,
    sign: tuple[Path, ...],
    names: tuple[str, ...],
) -> None:
    """Push images to the fleet's registry, as REGISTRY/NAME:HASH; by default those that are not there yet.

    The engine that pushes logs in with $HPCGEN_REGISTRY_USER and $HPCGEN_REGISTRY_PASSWORD; without them it uses its
    own login.
    """
    from hpcgen.core.support.signatures import check_key
    from hpcgen.core.support.signing_keys import signing_keys
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.publish import publish_images

    keys = signing_keys(sign)
    if keys.ssh is not None:
        check_key(keys.ssh)
    loaded = load_fleet(fleet_file, ctx.find_root().obj, allow_of(ctx))
    for line in publish_images(loaded, lock_file or loaded.lock_path, names, dry_run=dry_run, keys=keys, say=say):
        echo(line)


@command.command("policy")
@_FLEET
@click.option(
    "--signer",
    "signers",
    metavar="FILE",
    type=PATH,
    help="The accepted OpenPGP keys; by default those in the signers of your config file.",
)
@click.option("--lookaside", required=True, metavar="URL", help="Where the signatures are: https://… or file:///….")
@click.option("-o", "--output", metavar="DIR", type=PATH, help="Write both files below this folder; by default stdout.")
@click.pass_context
def policy(ctx: click.Context, fleet_file: Path, signers: Path | None, lookaside: str, output: Path | None) -> None:
    """Write what has podman, buildah and skopeo take only signed images of the fleet's registry.

    An administrator adds both files to /etc/containers. Images of other registries are taken as before.
    """
    from hpcgen.core.config.user_config import allowed_signers
    from hpcgen.core.support.writing import write_file
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.image_signatures import policy_files
    from hpcgen.plugins.fleet.publish import registry_of

    keys = allowed_signers(signers)
    if keys is None:
        raise click.UsageError("--signer FILE is missing, and your config file has no signers")
    registry = registry_of(load_fleet(fleet_file, ctx.find_root().obj, allow_of(ctx)))
    for name, text in policy_files(registry, keys, lookaside).items():
        if output is None:
            echo(f"# {name}\n{text}")
        else:
            write_file(output / name, text, folders=True)
            say(f"wrote {output / name}")
