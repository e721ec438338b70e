"""``hpcgen bundle``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, SIGNER, WHEEL_FOLDERS, catalog_of, print_json, required_signers, say, shows_progress
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import JOBS, STACK
from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.core.support.units import files, size

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.bundle import BundleItem, Manifest
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.support.progress import Watch
    from hpcgen.supply.bundle.create import CarriedArtifact


@click.group("bundle")
def command() -> None:
    """Make, check, compare and join bundles: every input of a lock, for a build without a network."""


@command.command("create")
@click.option("--lock", "lock_file", required=True, metavar="FILE", type=PATH, help="The lock that hpcgen lock wrote.")
@click.option("-o", "--output", required=True, metavar="DIR|FILE.tar", type=PATH, help="The bundle.")
@click.option("--stack", type=STACK, help="The lock's stack; the files that it copies are next to its file.")
@click.option("--split", metavar="SIZE", help="With FILE.tar: split into pieces of this size, such as 4G.")
@click.option("--reuse", metavar="DIR", type=PATH, help="An older bundle; its files are not fetched again.")
@click.option(
    "--files", "folders", multiple=True, metavar="DIR", type=PATH, help="A folder with files that you already have."
)
@WHEEL_FOLDERS
@click.option("--jobs", type=JOBS, default=8, metavar="N", help="Parallel downloads; by default 8.")
@click.option("--image", "images", multiple=True, metavar="NAME=REFERENCE", help="Take a base image from here.")
@click.option("--sign", metavar="KEY", type=PATH, help="Sign the manifest with this SSH key.")
@click.option("--artifacts", is_flag=True, help="Take what blocks compiled in place of their sources, where it exists.")
@click.option(
    "--cache", "folder", metavar="DIR", type=PATH, help="With --artifacts: their folder; by default the config file's."
)
@click.option("--dry-run", is_flag=True, help="List the files that would be fetched.")
@click.option("--json", "as_json", is_flag=True, help="Print the result, or the planned contents, as JSON.")
@click.pass_context
def create(
    ctx: click.Context,
    lock_file: Path,
    output: Path,
    stack: str | None,
    split: str | None,
    reuse: Path | None,
    folders: tuple[Path, ...],
    wheel_folders: tuple[Path, ...],
    jobs: int,
    images: tuple[str, ...],
    sign: Path | None,
    artifacts: bool,
    folder: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fetch every input of a lock into a folder or a tar file; uses the network.

    After an interruption, the same command resumes. Files from --files are used if their name and hash are right, for
    what requires a login or was sent another way. What the lock's stack copies is looked for beside --stack, beside the
    lock, in the present folder and in the collections. REFERENCE is a skopeo reference, such as oci-archive:FILE or
    docker://mirror.example.org/debian:12.

    With --artifacts a build unpacks what is there, and cannot compile it: only `build --bundle` takes such a bundle.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.kit.lockfile.lock import read_lock
    from hpcgen.supply.bundle.create import Creation, create_bundle
    from hpcgen.supply.bundle.parts import parse_size
    from hpcgen.supply.locked import look_for_copied
    from hpcgen.supply.net.pip_settings import look_in
    from hpcgen.supply.pin.wanted import lacking, wanted

    look_in(wheel_folders)
    lock = read_lock(lock_file)
    if sign is not None:
        from hpcgen.core.support.signatures import check_key

        check_key(sign)
    catalog = catalog_of(ctx)
    look_for_copied(catalog, lock, lock_file, stack)
    piece = parse_size(split) if split is not None else None
    given = _images(images, sorted(lock.pins.images))
    carried = _carried(ctx, lock, catalog, artifacts, folder)
    for text in lacking(lock, catalog):
        say(f"warning: {text}")
    with interruptible():
        if dry_run:
            _list(lock, catalog, as_json, carried)
            return
        how = Creation(
            reuse=reuse,
            folders=folders,
            jobs=jobs,
            split=piece,
            images=given,
            watch=_watch(),
            catalog=catalog,
            sign=sign,
            artifacts=carried,
        )
        manifest = create_bundle(lock, lambda made: wanted(lock, catalog, made, compiled=carried), output, how)
    _tell(manifest, output, as_json)


def _carried(
    ctx: click.Context, lock: Lock, catalog: Catalog, artifacts: bool, folder: Path | None
) -> dict[str, CarriedArtifact]:
    """What goes along in the place of sources, said."""
    if not artifacts:
        if folder is not None:
            raise click.UsageError("--cache requires --artifacts")
        return {}
    from hpcgen.builders.artifacts.bundled import artifacts_for
    from hpcgen.builders.artifacts.store import ArtifactStore
    from hpcgen.core.config.user_config import artifact_store

    store = artifact_store(folder)
    if store is None:
        remedy = "name it by --cache DIR, or as `artifacts` in your config file"
        raise InputError("no folder of artifacts is named", "--artifacts", remedy=remedy)
    found = artifacts_for(lock, catalog, ArtifactStore(store, required_signers(ctx)), say)
    labels = ", ".join(each.label for each in found.values())
    say(f"without the sources of {labels}: {store} has them compiled" if found else f"{store} has nothing of this lock")
    return found


def _images(images: Sequence[str], known: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in images:
        name, sign, reference = each.partition("=")
        if not sign or not reference:
            raise InputError(f"{each!r} is not NAME=REFERENCE", "--image", "debian:12=oci-archive:FILE")
        if name not in known:
            raise UnknownNameError(f"the lock has no base image {name!r}", "--image", remedy=did_you_mean(name, known))
        found[name] = reference
    return found


def _watch() -> Watch:
    from hpcgen.core.support.progress import ProgressBar, ProgressLines

    return ProgressBar(say, sys.stderr) if shows_progress() else ProgressLines(say)


def _list(lock: Lock, catalog: Catalog, as_json: bool, carried: Collection[str]) -> None:
    """What would be fetched, with sizes."""
    import tempfile

    from hpcgen.supply.bundle.create import by_path
    from hpcgen.supply.pin.wanted import wanted

    with tempfile.TemporaryDirectory(prefix="hpcgen-") as folder:
        wants = [
            each for same in by_path(wanted(lock, catalog, Path(folder), compiled=carried)).values() for each in same
        ]
    wants.sort(key=lambda each: (each.kind, each.name, each.file))
    if as_json:
        listed = {"files": wants, "images": lock.pins.images}
        print_json(listed)
        return
    from hpcgen.supply.net.web import shown

    rows = [[each.kind, each.name, size(each.size), shown(each.urls[0]) if each.urls else "-"] for each in wants]
    rows += [["image", name, "-", pin.origin] for name, pin in sorted(lock.pins.images.items())]
    echo(table(["kind", "name", "size", "from"], rows, sys.stdout))
    known = sum(each.size or 0 for each in wants)
    unknown = sum(each.size is None for each in wants)
    more = f", and {unknown} of unknown size" if unknown else ""
    say(f"{len(rows)} inputs, {size(known)}{more}; base images not included")


def _tell(manifest: Manifest, output: Path, as_json: bool) -> None:
    files = {item.path: item.size for item in manifest.items}
    say(f"made {output}: {len(files)} files, {size(sum(files.values()))}")
    if as_json:
        kinds: dict[str, dict[str, int]] = {}
        for item in manifest.items:
            kind = kinds.setdefault(item.kind, {"files": 0, "bytes": 0})
            kind["files"] += 1
            kind["bytes"] += item.size
        head = {"bundle": str(output), "content": manifest.content, "lock": manifest.lock}
        whole = {"files": len(files), "bytes": sum(files.values()), "kinds": kinds}
        print_json({**head, **whole})


@command.command("verify")
@click.argument("bundle", metavar="DIR|FILE.tar", type=PATH)
@click.option("--lock", "lock_file", metavar="FILE", type=PATH, help="Check that it is the bundle of this lock.")
@SIGNER
@click.option("--jobs", type=JOBS, default=2, metavar="N", help="Files hashed in parallel; by default 2.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def verify(
    ctx: click.Context, bundle: Path, lock_file: Path | None, signers: Path | None, jobs: int, as_json: bool
) -> None:
    """Check every file of a bundle: a folder, a tar file, or the first of its pieces (FILE.tar.000).

    Everything that is wrong is reported at once; exit code 3.
    """
    from hpcgen.supply.bundle.verify import verify as check

    verdict = check(bundle, lock_file, jobs, _watch(), required_signers(ctx))
    if as_json:
        manifest = verdict.manifest
        about = {"stack": manifest.stack, "site": manifest.site, "content": manifest.content} if manifest else {}
        counted = {"files": verdict.files, "bytes": verdict.bytes, "increment": verdict.increment}
        found = {"bundle": str(bundle), "whole": not verdict.problems, "signer": verdict.signer, **about, **counted}
        print_json({**found, "collections": verdict.collections, "problems": verdict.problems})
    verdict.raise_problems()
    assert verdict.manifest is not None
    what = "an increment to a bundle" if verdict.increment else "a whole bundle"
    about_it = f"{verdict.manifest.stack} for {verdict.manifest.site}, content {verdict.manifest.content[:12]}…"
    say(f"{bundle} is {what} ({about_it}): {verdict.files} files, {size(verdict.bytes)}")
    say(f"it is signed by {verdict.signer}" if verdict.signer else "it is not signed")
    if labels := sorted({each.name for each in verdict.manifest.items if each.kind == "artifact"}):
        say(f"it has compiled artifacts instead of sources for {', '.join(labels)}")
    if verdict.collections:
        say(f"it brings {', '.join(verdict.collections)} (in collections/); its Python runs once you trust it")
    for folder in verdict.left_behind:
        say(
            f"warning: its lock was made with the collection {folder}, which is not in it: render requires --collection"
        )


@command.command("diff")
@click.argument("old", metavar="OLD", type=PATH)
@click.argument("new", metavar="NEW", type=PATH)
@click.option(
    "-o", "--output", metavar="DIR|FILE.tar", type=PATH, help="Write the files that must be sent, as an increment."
)
@click.option("--split", metavar="SIZE", help="With FILE.tar: split into pieces of this size, such as 4G.")
@click.option("--json", "as_json", is_flag=True, help="Print the difference as JSON.")
def diff(old: Path, new: Path, output: Path | None, split: str | None, as_json: bool) -> None:
    """Show what the bundle NEW has and OLD lacks, and what is no longer needed.

    OLD and NEW are folders, tar files, or just a bundle.json; with -o, NEW must be a bundle.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.supply.bundle.difference import DifferenceTarget, difference, read_manifest, write_increment
    from hpcgen.supply.bundle.parts import parse_size

    if output is None:
        if split is not None:
            raise click.UsageError("--split requires -o")
        found = difference(read_manifest(old)[0], read_manifest(new)[0])
    else:
        piece = parse_size(split) if split is not None else None
        with interruptible():
            found = write_increment(old, new, DifferenceTarget(output, piece, _watch()))
    if as_json:
        sides = {"added": found.new, "removed": found.gone}
        bytes_of = {f"{name}_bytes": sum(item.size for item in items) for name, items in sides.items()}
        print_json({**bytes_of, **sides})
    else:
        _show_difference("only in NEW", found.new)
        _show_difference("only in OLD", found.gone)
    if output is not None:
        say(f"made {output}; on the other side: hpcgen bundle join OLD {output.name} -o NEW")


def _show_difference(title: str, items: Sequence[BundleItem]) -> None:
    """Each file, and a line of sums for each kind."""
    echo(f"{title}: {files(len(items))}, {size(sum(item.size for item in items))}")
    kinds = list(dict.fromkeys(item.kind for item in items))
    for kind in kinds:
        of_kind = [item for item in items if item.kind == kind]
        echo(f"  {kind}: {files(len(of_kind))}, {size(sum(item.size for item in of_kind))}")
    rows = [[item.kind, item.name, size(item.size), item.path.rpartition("/")[2]] for item in items]
    if rows:
        echo(table(["kind", "name", "size", "file"], rows, sys.stdout))


@command.command("join")
@click.argument("old", metavar="OLD", type=PATH)
@click.argument("increment", metavar="INCREMENT", type=PATH)
@click.option("-o", "--output", required=True, metavar="DIR|FILE.tar", type=PATH, help="The newer bundle.")
@click.option("--split", metavar="SIZE", help="With FILE.tar: split into pieces of this size, such as 4G.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def join_command(old: Path, increment: Path, output: Path, split: str | None, as_json: bool) -> None:
    """Make the newer bundle from the older one and an increment; every file is checked.

    If both are folders on the same disk, files are hard links and take no extra space.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.supply.bundle.difference import DifferenceTarget, join
    from hpcgen.supply.bundle.parts import parse_size

    piece = parse_size(split) if split is not None else None
    with interruptible():
        manifest = join(old, increment, DifferenceTarget(output, piece, _watch()))
    _tell(manifest, output, as_json)
