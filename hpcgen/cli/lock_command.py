"""``hpcgen lock``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import PATH, WHEEL_FOLDERS, catalog_of, plan_from, print_json, say
from hpcgen.cli.licences import licence_option, with_licences
from hpcgen.cli.options import PlanOptions, optional_plan_options, options_from
from hpcgen.cli.plugged import fetcher_of
from hpcgen.cli.terminal import echo
from hpcgen.core.errors import InputError, Problem, Problems, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan

PARTS = ("images", "packages", "wheels")
"""What can be updated beside a block."""


@click.command("lock")
@optional_plan_options
@click.option("-o", "--output", metavar="FILE", type=PATH, help="The lock; by default hpcgen.lock.")
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME=REFERENCE",
    help="Take a base image from here: debian:12=oci-archive:FILE, or another skopeo reference.",
)
@WHEEL_FOLDERS
@click.option("--check", is_flag=True, help="Write nothing; show what would change and why. Exit 1 if anything would.")
@click.option(
    "--update",
    "updates",
    multiple=True,
    metavar="NAME",
    help="Update only this block of the existing lock, or images, packages, wheels.",
)
@click.option(
    "--fetch-bazel",
    "run_bazel",
    is_flag=True,
    help="Run Bazel in the builder stage to pin its downloads, for bundles (minutes to an hour, several GB).",
)
@click.option("--sign", metavar="KEY", type=PATH, help="Sign the lock with this SSH key, as FILE.sig.")
@licence_option
@click.option("--json", "as_json", is_flag=True, help="With --check or --update: print the changes as JSON.")
def command(
    ctx: click.Context,
    output: Path | None,
    images: tuple[str, ...],
    wheel_folders: tuple[Path, ...],
    check: bool,
    updates: tuple[str, ...],
    run_bazel: bool,
    sign: Path | None,
    accept: tuple[str, ...],
    as_json: bool,
    options: PlanOptions,
) -> int:
    """Pin everything that a build downloads, in one file; uses the network.

    Without --site and --stack, --check and --update use those of the existing lock, with what else was asked for it.
    """
    from hpcgen.core.support.signatures import check_key
    from hpcgen.core.support.writing import check_folder_of
    from hpcgen.kit.lockfile.lock import read_lock
    from hpcgen.planning.licences import accepted_before
    from hpcgen.supply.net.pip_settings import look_in
    from hpcgen.supply.pin.locking import make_lock, portable_origin, told_images

    if as_json and not (check or updates):
        raise click.UsageError("--json lists changes, so it requires --check or --update")
    if sign is not None:
        if check:
            raise click.UsageError("--check writes nothing, so nothing is signed: omit one of the two")
        check_key(sign)
    target = output or Path("hpcgen.lock")
    check_folder_of(target)
    look_in(wheel_folders)
    old = read_lock(target) if check or updates else None
    catalog = catalog_of(ctx)
    given, fetch_bazel = _given(images), fetcher_of("bazel") if run_bazel else None
    told = (told_images(old) if old is not None else {}) | given
    told = {name: portable_origin(reference) for name, reference in told.items()}

    def made(options: PlanOptions) -> Lock:
        if old is None:
            plan = with_licences(plan_from(ctx, catalog, options, verb="lock", base_images=told), accept)
            return make_lock(plan, catalog, images=given, fetch_bazel=fetch_bazel, say=say)
        plan, keep = _moved(ctx, catalog, old, updates, options, told)
        licences = old.plan.licences
        plan = accepted_before(plan, licences) if check else with_licences(plan, accept, before=licences)
        return make_lock(plan, catalog, images=given, old=old, keep=keep, fetch_bazel=fetch_bazel, say=say)

    lock = _with_frameworks(options, made)
    changed = _tell(old, lock, as_json) if old is not None else True
    if not check:
        write_lock(target, lock, sign)
        if wheel_folders:
            say("hpcgen build and bundle create take wheels from --wheel-dir, too: give it there again")
    return 1 if check and changed else 0


def _with_frameworks(options: PlanOptions, made: Callable[[PlanOptions], Lock]) -> Lock:
    """The lock, planned again with the blocks of what only the index knows that the packages require."""
    from hpcgen.planning.contract.verdict import BroughtFrameworkError

    while True:
        try:
            return made(options)
        except BroughtFrameworkError as brought:
            words = " ".join(f"--add {block}" for block in brought.blocks)
            for problem in brought.problems:
                say(problem.message)
            say(f"planned again with {words}, as the lock's own command says")
            options = replace(options, added=(*options.added, *brought.blocks))


def write_lock(target: Path, lock: Lock, key: Path | None) -> None:
    """Write a lock, and its signature by an SSH key; that of the lock that was there before does not stay beside it."""
    from hpcgen.core.support.signatures import LOCK
    from hpcgen.kit.lockfile.lock import signature_of, write_signed

    if write_signed(target, lock.text, key, LOCK):
        say(f"warning: {target} was signed; it is new now, and is not (--sign KEY)")
    say(f"wrote {target}: {_counted(lock)}" + (f"; signed in {signature_of(target)}" if key is not None else ""))


def _given(words: tuple[str, ...]) -> dict[str, str]:
    given = {}
    for word in words:
        name, found, reference = word.partition("=")
        if not found or not name or not reference:
            raise click.UsageError(f"--image requires NAME=REFERENCE, such as debian:12=oci-archive:FILE, not {word!r}")
        given[name] = reference
    return given


def _moved(
    ctx: click.Context,
    catalog: Catalog,
    old: Lock,
    updates: tuple[str, ...],
    options: PlanOptions,
    told: dict[str, str],
) -> tuple[Plan, list[str]]:
    """The plan of today, as the lock's command asks for it, and what of the lock stays beside its blocks.

    Without ``--update`` nothing is held: that is what writing the lock anew would give. ``told``: where base images are
    taken from.
    """
    for name in old.own_collections:
        if name not in catalog.names_of_folders:
            say(f"warning: the lock was made with the collection {name}, which is missing: pass --collection DIR")
    # What a lock's own command does not say was not asked for.
    usual = options.site is not None and options.stack is not None
    if not usual:
        options = _as_asked_then(old.plan.command, options)
        _check_there(options)
    if not updates:
        return plan_from(ctx, catalog, options, verb="lock", usual=usual, base_images=told), []
    names = [block.name for block in old.plan.blocks]
    unknown = [name for name in updates if name not in names and name not in PARTS]
    if unknown:
        remedies = {name: did_you_mean(name, [*names, *PARTS]) for name in unknown}
        raise UnknownNameError(
            Problem(f"the lock has no {name!r} to update", "--update", remedy=each) for name, each in remedies.items()
        )
    kept = {block.name: block.version for block in old.plan.blocks if block.name not in updates}
    plan = plan_from(ctx, catalog, options, verb="lock", kept=kept, usual=usual, base_images=told)
    return plan, [part for part in PARTS if part not in updates]


def _as_asked_then(line: str, options: PlanOptions) -> PlanOptions:
    """The options of the command that wrote a lock, with what is asked now laid over them."""
    # Before the verb stand --collection and its folders, which may be called as it is.
    words = shlex.split(line)[1:]
    while words[:1] == ["--collection"]:
        words = words[2:]
    after = words[1:] if words[:1] == ["lock"] else []
    with command.make_context("lock", after, resilient_parsing=True) as found:
        then = options_from(PlanOptions, found.params)
    told = {setting.partition("=")[0] for setting in options.settings}
    kept = tuple(setting for setting in then.settings if setting.partition("=")[0] not in told)
    added = tuple(dict.fromkeys([*then.added, *options.added]))
    return replace(then, **{**options.values(), "settings": (*kept, *options.settings), "added": added})


def _check_there(options: PlanOptions) -> None:
    """InputError where a file that the lock was made from is not in this folder: a lock has its name alone."""
    from hpcgen.catalog.catalog import is_file_name

    problems = Problems()
    for kind, title, name in (("site", "site profile", options.site), ("stack", "stack recipe", options.stack)):
        if name is not None and is_file_name(name) and not Path(name).is_file():
            message = f"the lock was made from the {title} {name}, which is not in this folder"
            problems.add(message, remedy=f"say where it is: --{kind} FILE")
    problems.raise_as(InputError)


def _tell(old: Lock, new: Lock, as_json: bool) -> bool:
    """Print what changed; whether anything did."""
    from hpcgen.kit.lockfile.changes import changes, changes_text

    found = changes(old, new)
    if as_json:
        print_json(found)
    elif found:
        echo(changes_text(found))
    else:
        say("nothing changes")
    return bool(found)


def _counted(lock: Lock) -> str:
    from hpcgen.core.support.units import size

    pins = lock.pins
    packages = {pin.sha256: pin.size for stage in pins.packages.values() for pin in stage.added.values()}
    weight = size(sum(packages.values()))
    return f"{len(pins.images)} base images, {len(packages)} packages ({weight}), plan hash {lock.content[:12]}"
