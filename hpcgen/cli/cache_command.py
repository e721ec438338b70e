"""``hpcgen cache``."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, SIGNER, print_json, say
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import DAYS
from hpcgen.core.support.units import counted, duration, size

if TYPE_CHECKING:
    from hpcgen.builders.artifacts.store import ArtifactEntry, ArtifactStore
    from hpcgen.core.errors import Problem

_FOLDER = click.option("--cache", "folder", metavar="DIR", type=PATH, help="The folder; by default the config file's.")
_DRY = click.option("--dry-run", is_flag=True, help="Only list what would be done.")


@click.group("cache")
def command() -> None:
    """List, check, sign, copy and remove what blocks compiled once: the artifacts that build --cache keeps.

    \b
    An artifact has what one block compiled. Its key is a hash of all that decides it: the steps, the sources'
    hashes, the options, the base image, and the blocks that it was compiled with.
    """


def _store(folder: Path | None, signers: Path | None = None) -> ArtifactStore:
    from hpcgen.builders.artifacts.store import ArtifactStore
    from hpcgen.core.config.user_config import allowed_signers, artifact_store
    from hpcgen.core.errors import InputError

    found = artifact_store(folder)
    if found is None:
        remedy = "name it by --cache DIR, or as `artifacts` in your config file"
        raise InputError("no folder of artifacts is named", remedy=remedy)
    return ArtifactStore(found, allowed_signers(signers))


@command.command("list")
@_FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def list_command(folder: Path | None, as_json: bool) -> None:
    """List the artifacts of a folder."""
    store = _store(folder)
    found = list(store.records(say))
    if as_json:
        print_json([each.record for each in found])
        return
    if not found:
        say(f"there is nothing in {store.folder}")
        return
    head = ["key", "block", "for", "size", "compiled (UTC)", "took", "signed"]
    echo(table(head, [_row(store, each) for each in found], sys.stdout))
    say(f"{counted(len(found), 'artifact')}, {size(sum(each.record.bytes for each in found))}")


def _row(store: ArtifactStore, each: ArtifactEntry) -> list[str]:
    record = each.record
    when, signed = record.made[:16].replace("T", " "), "yes" if store.is_signed(each) else "no"
    return [record.key[:12], record.label, record.target, size(record.bytes), when, duration(record.seconds), signed]


@command.command("show")
@click.argument("artifact")
@_FOLDER
@SIGNER
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(artifact: str, folder: Path | None, signers: Path | None, as_json: bool) -> None:
    """Show one ARTIFACT: a block's name, or the beginning of a key."""
    store = _store(folder, signers)
    found = store.of(artifact)
    record = found.record
    if as_json:
        print_json(record)
        return
    needs = ", ".join(f"{name} {key[:12]}" for name, key in record.needs.items()) or "none"
    rows = {
        "artifact": record.label,
        "key": record.key,
        "folders": ", ".join(record.folders),
        "for": f"{record.architecture}, compiled for {record.target}",
        "base": record.base,
        "made with": needs,
        "compiled": f"{record.made} by {record.engine} and hpcgen {record.hpcgen} in {duration(record.seconds)}",
        "archive": f"{store.archive(record)}, {size(record.bytes)}",
        "sha256": record.sha256,
        "signed": str(store.signer(found)) if store.is_signed(found) else "no",
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        echo(f"{name.ljust(width)}  {text}")


@command.command("verify")
@_FOLDER
@SIGNER
def verify(folder: Path | None, signers: Path | None) -> int:
    """Read every artifact and compare it with its hash and its signature. Exit 1 if one is not as it should be."""
    from hpcgen.core.errors import HpcgenError

    store, wrong = _store(folder, signers), 0
    unread: list[str] = []
    known = list(store.records(unread.append))
    for text in unread:
        say(f"error: {text}")
    for each in known:
        try:
            store.check(each)
        except HpcgenError as error:
            wrong += 1
            say(f"error: {error.problems[0]}")
    wrong += len(unread)
    say(f"{counted(len(known) + len(unread), 'artifact')}, {wrong} of them not as they should be")
    return 1 if wrong else 0


@command.command("sign")
@click.argument("artifacts", nargs=-1)
@click.option(
    "--key", required=True, metavar="FILE", type=PATH, help="A private SSH key, or the public one of an agent's."
)
@_FOLDER
def sign(artifacts: tuple[str, ...], key: Path, folder: Path | None) -> None:
    """Sign ARTIFACTS, by default all that nobody has signed."""
    from hpcgen.core.support.signatures import check_key

    check_key(key)
    store = _store(folder)
    found = [store.of(each) for each in artifacts] or [each for each in store.records(say) if not store.is_signed(each)]
    for each in found:
        store.sign(each, key)
        say(f"signed {each.record.label} ({each.record.key[:12]})")
    say(f"signed {counted(len(found), 'artifact')}")


@command.command("push")
@click.argument("target")
@_FOLDER
@SIGNER
def push(target: str, folder: Path | None, signers: Path | None) -> None:
    """Copy all artifacts that TARGET lacks: another such folder, or docker:// and a repository of a registry.

    A folder gets a list of them, too; so a web server can show it to `pull` and to `artifact_sources`. Of a registry
    skopeo has the password: skopeo login.
    """
    from hpcgen.builders.artifacts.registry import RegistryRepository
    from hpcgen.core.errors import InputError, PolicyError
    from hpcgen.images.skopeo import REGISTRY

    store = _store(folder, signers)
    registry = RegistryRepository(target) if target.startswith(REGISTRY) else None
    there = _store(Path(target)) if registry is None else None
    problems: list[Problem] = []
    known = list(store.records(say))
    copied = 0
    for each in known:
        try:
            if registry is not None:
                copied += registry.add(store, each)
            elif there is not None:
                copied += store.copy_to(each, there)
        except (InputError, PolicyError) as error:
            problems += error.problems
    if there is not None:
        there.write_index()
    say(f"copied {copied} of {counted(len(known), 'artifact')} to {target if there is None else there.folder}")
    if problems:
        raise InputError(problems)


@command.command("pull")
@click.argument("source")
@_FOLDER
@SIGNER
def pull(source: str, folder: Path | None, signers: Path | None) -> int:
    """Copy all artifacts of SOURCE that this folder lacks; each is checked before. Exit 1 if one did not come.

    SOURCE is another such folder, the https address of one that `push` filled, or docker:// and a repository of a
    registry.
    """
    from hpcgen.builders.artifacts.sources import ArtifactSource

    store = _store(folder, signers)
    other = ArtifactSource(source, store)
    missing = [key for key in other.listed() if store.find(key) is None]
    came = sum(other.bring(key, say) is not None for key in missing)
    say(f"copied {came} of {counted(len(missing), 'artifact')} to {store.folder}")
    return 1 if came < len(missing) else 0


@command.command("prune")
@click.option("--older-than", "days", type=DAYS, metavar="DAYS", help="What was compiled longer ago.")
@click.option("--max-size", type=click.FloatRange(min=0), metavar="GB", help="The oldest, until the rest is no larger.")
@click.option("--force", is_flag=True, help="Also what the record of a build names.")
@_DRY
@_FOLDER
def prune(days: float | None, max_size: float | None, force: bool, dry_run: bool, folder: Path | None) -> None:
    """Remove what is damaged, what killed builds left, and what --older-than and --max-size ask for."""
    from hpcgen.builders.artifacts.store import damaged
    from hpcgen.builders.records.store import load_all

    store = _store(folder)
    broken = damaged(store)
    gone = _too_much([each for each in store.records() if each.path not in broken], days, max_size)
    if not force and gone:
        named = {each.key: build.id for build in load_all() for each in build.artifacts.values()}
        for record in (each.record for each in gone if each.record.key in named):
            text = f"{record.label} ({record.key[:12]}) stays: a build record refers to it ({named[record.key]})"
            say(f"{text}; --force removes it")
        gone = [each for each in gone if each.record.key not in named]
    for path in broken:
        say(f"damaged: {path}")
    for record in (each.record for each in gone):
        say(f"{record.label} ({record.key[:12]}), {size(record.bytes)}, compiled {record.made[:10]}")
    if dry_run:
        return
    for path in broken:
        path.unlink(missing_ok=True)
    for each in gone:
        store.remove(each)
    say(f"removed {counted(len(broken) + len(gone), 'artifact')}; {size(store.sweep())} of unreferenced archives")


def _too_much(known: list[ArtifactEntry], days: float | None, most_gb: float | None) -> list[ArtifactEntry]:
    """Those that are older than some days, or that are too many beside the newer ones."""
    before = (datetime.now(timezone.utc) - timedelta(days=days)).isoformat() if days is not None else ""
    room, gone = most_gb * 1e9 if most_gb is not None else float("inf"), []
    for each in sorted(known, key=lambda each: each.record.made, reverse=True):
        room -= each.record.bytes
        if room < 0 or each.record.made < before:
            gone.append(each)
    return gone
