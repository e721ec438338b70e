"""What must travel when one bundle already exists: the difference of two, as an increment; and both joined again.

A file is the same if it has the same path and the same hash, and the paths of inputs are made of their hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, OutputError, Problem, Problems
from hpcgen.core.model.bundle import BundleItem, Manifest
from hpcgen.core.model.image_paths import LOCK, MANIFEST, SIGNATURE, SUMS
from hpcgen.core.support.hashing import CHUNK, sha256_of
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.supply.bundle.documents import (
    INCREMENT,
    Increment,
    load_manifest,
    read_record,
    record_text,
    sums_of,
    sums_text,
)
from hpcgen.supply.bundle.reading import BundleReader, open_bundle
from hpcgen.supply.bundle.store import sweep, take, write_through
from hpcgen.supply.bundle.verify import verify
from hpcgen.supply.bundle.workspace import Workspace, check_room, check_target, explained_disk, publish, workspace
from hpcgen.supply.net.part import PartialFile

_AGAIN = "copy or fetch that bundle again; `hpcgen bundle verify` lists everything that is damaged"
_SHOWN = 20


class Difference(msgspec.Struct, frozen=True):
    """``new``: what the newer bundle has and the older has not; ``gone``: what it no longer needs."""

    old: Manifest
    new: list[BundleItem]
    gone: list[BundleItem]


class DifferenceTarget(msgspec.Struct, frozen=True):
    """Where something is written: a folder or a tar file; ``split``: bytes of a piece of it."""

    target: Path
    split: int | None = None
    watch: Watch = Watch()


def read_manifest(path: Path) -> tuple[Manifest, bytes]:
    """The manifest of a bundle (folder, tar file, piece), or a ``bundle.json`` by itself; and its bytes."""
    if path.suffix == ".json":
        return load_manifest(path)
    source = open_bundle(path)
    return source.manifest(), source.manifest_bytes()


def difference(old: Manifest, new: Manifest) -> Difference:
    """Compare two manifests; each file once, whatever it is listed as."""
    before, after = ({(item.path, item.sha256): item for item in each.items} for each in (old, new))
    added = [item for key, item in after.items() if key not in before]
    removed = [item for key, item in before.items() if key not in after]
    return Difference(old, _sorted(added), _sorted(removed))


def _sorted(items: Sequence[BundleItem]) -> list[BundleItem]:
    return sorted(items, key=lambda item: (item.kind, item.name, item.path))


def write_increment(old: Path, new: Path, output: DifferenceTarget) -> Difference:
    """Write what of ``new`` is not in ``old``, with the manifest, the lock and the sums that belong to it.

    ``old``: a bundle, or its ``bundle.json`` alone; ``new``: a bundle. InputError: ``new`` is not as its manifest says;
    OutputError: it cannot be written.
    """
    before, before_bytes = read_manifest(old)
    source = open_bundle(new)
    with _working(output) as place:
        manifest, data = source.manifest(), source.manifest_bytes()
        found = difference(before, manifest)
        paths = sorted({item.path for item in found.new} | {LOCK})
        _bring([(path, source) for path in paths], manifest, place, output.watch)
        increment = Increment(increment=1, old=sha256_of(before_bytes), files=paths)
        text = record_text(increment)
        write_through(place.bundle / INCREMENT, text)
        write_through(place.bundle / MANIFEST, data)
        sums = sums_of(manifest, sha256_of(data))
        listed = {path: sums[path] for path in [*paths, MANIFEST]}
        listed[INCREMENT] = sha256_of(text)
        write_through(place.bundle / SUMS, sums_text(listed))
        _bring_signature(source, place)
        publish(place, _epoch(source), output.split, output.watch)
    return found


def join(old: Path, increment: Path, output: DifferenceTarget) -> Manifest:
    """Make the newer bundle of the older one and the increment; every file is checked on the way.

    InputError: the increment was made against another bundle, or one of the two is not as it should be. OutputError:
    the bundle cannot be written.
    """
    before, more = open_bundle(old), open_bundle(increment)
    if INCREMENT not in more.files:
        raise InputError(f"{increment} is not an increment: it has no {INCREMENT}", remedy="see bundle diff -o")
    about = read_record(more.read(INCREMENT), Increment, f"{increment}/{INCREMENT}")
    found = sha256_of(before.manifest_bytes())
    if found != about.old:
        raise InputError(
            f"{increment} was not made against {old}: the manifest of {old} has the sha256 {found}",
            expected=about.old,
            remedy="name the bundle that it was made against, or get an increment for this one",
        )
    manifest, data = more.manifest(), more.manifest_bytes()
    listed = set(about.files)
    paths = sorted({item.path for item in manifest.items})
    with _working(output) as place:
        _bring([(path, more if path in listed else before) for path in paths], manifest, place, output.watch)
        write_through(place.bundle / MANIFEST, data)
        sums = sums_of(manifest, sha256_of(data))
        write_through(place.bundle / SUMS, sums_text(sums))
        _bring_signature(more, place)
        verify(place.bundle, watch=output.watch).raise_problems()
        publish(place, _epoch(more), output.split, output.watch)
    return manifest


def _bring_signature(source: BundleReader, place: Workspace) -> None:
    """That of the manifest, which stays as it is."""
    if SIGNATURE in source.files:
        write_through(place.bundle / SIGNATURE, source.read(SIGNATURE))


@contextmanager
def _working(output: DifferenceTarget) -> Iterator[Workspace]:
    """An empty place for what is written; copying is quick, so nothing of an earlier run is kept."""
    if not Workspace(output.target).folder.is_dir():
        check_target(output.target, output.split)
    with workspace(output.target) as place:
        if place.resume_publishing():
            raise OutputError(
                f"{output.target} was already complete; it has its final name now", remedy="nothing is left to do"
            )
        check_target(output.target, output.split)
        with explained_disk(place):
            for folder in (place.bundle, place.parts):
                folder.mkdir(exist_ok=True)
                sweep(folder, ())
            yield place


def _bring(wants: Sequence[tuple[str, BundleReader]], manifest: Manifest, place: Workspace, watch: Watch) -> None:
    """Take files from where they are, each checked against the manifest; InputError with all that do not fit."""
    items = {item.path: item for item in manifest.items}
    problems = Problems()
    total = sum(items[path].size for path, _ in wants if path in items)
    if any(not source.path.is_dir() for _, source in wants):
        check_room(place, total)
    progress = TransferProgress(f"writing {place.target.name}", len(wants), total)
    watch.begin(progress)
    try:
        for path, source in wants:
            reason = _bring_one(items.get(path), path, source, place)
            if reason:
                problems.add(
                    f"{path} {reason}",
                    str(source.path),
                    remedy=_AGAIN,
                )
            progress.moved(path, items[path].size if path in items else 0)
            progress.end(path)
            watch.tick()
    finally:
        watch.end()
    if problems:
        more = (
            [Problem(f"{len(problems) - _SHOWN} more files are damaged or missing", remedy=_AGAIN)]
            if problems[_SHOWN:]
            else []
        )
        raise InputError([*problems[:_SHOWN], *more])


def _bring_one(item: BundleItem | None, path: str, source: BundleReader, place: Workspace) -> str:
    """Why one file could not be taken; empty if it was."""
    held = source.files.get(path)
    if item is None:
        return "is not in the manifest"
    if held is None:
        return "is missing"
    if held.size != item.size:
        return f"has {held.size} bytes, expected {item.size}"
    target = place.bundle / path
    if source.path.is_dir():
        return "" if take(source.path / path, target, place.parts, item.sha256) else "is altered"
    part = PartialFile(place.parts / "taken")
    part.begin(0)
    try:
        with held.open() as stream:
            while data := stream.read(CHUNK):
                part.write(data)
    except OSError as failure:
        return f"cannot be read: {failure.strerror or failure}"
    if part.hasher.hexdigest() != item.sha256:
        part.forget()
        return "is altered"
    part.finish(target)
    return ""


def _epoch(source: BundleReader) -> int:
    """The time that a tar file's members get: that of the lock."""
    from hpcgen.kit.lockfile.lock import parse_lock

    return parse_lock(source.read(LOCK).decode("utf-8", "replace"), f"{source.path}/{LOCK}").pins.epoch
