"""The files of a bundle that say what is in it: manifest, sums, licences, and a page for users without hpcgen."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError
from hpcgen.core.model.bundle import BundleItem, BundlePath, Manifest, WantedFile
from hpcgen.core.model.fields import Record, Sha256
from hpcgen.core.model.image_paths import BUNDLED_ARTIFACTS, COLLECTIONS, MANIFEST
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.file_formats import BUNDLE
from hpcgen.core.support.file_formats import INCREMENT as INCREMENT_FORMAT
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.core.support.templates import Template
from hpcgen.supply.net.workers import work_all

R = TypeVar("R")

README = "README.txt"
CYCLONEDX = "sbom.cdx.json"
SPDX = "sbom.spdx.json"
INCREMENT = "increment.json"
MANIFEST_BYTES = 64 * 1024 * 1024


class Increment(Record, frozen=True):
    """``increment.json``: what makes a bundle an increment to an older one.

    ``old``: sha256 of the older bundle's manifest. ``files``: what of the new bundle's manifest is here.
    """

    increment: int
    old: Sha256
    files: list[BundlePath]


def record_text(record: msgspec.Struct) -> bytes:
    """A record as JSON that the user can read."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def read_record(data: bytes, type_: type[R], name: str) -> R:
    """A record from its JSON; InputError where it is not understood, or a newer hpcgen wrote it."""
    known = BUNDLE if type_ is Manifest else INCREMENT_FORMAT
    raw: object = None
    try:
        raw = msgspec.json.decode(data)
        known.check(raw, name)
        return record_from(raw, type_)
    except (ValueError, RecursionError) as failure:
        raise known.not_understood(raw, name, failure) from failure


def manifest_of(lock: Lock, lock_hash: str, items: Iterable[BundleItem]) -> Manifest:
    """The manifest of a lock's bundle."""
    return Manifest(
        bundle=BUNDLE.newest,
        hpcgen=lock.hpcgen,
        site=lock.plan.site.name,
        stack=lock.plan.stack.name,
        content=lock.content,
        lock=lock_hash,
        items=sorted(items, key=lambda item: (item.path, item.kind, item.name)),
    )


def sums_of(manifest: Manifest, manifest_hash: str) -> dict[str, str]:
    """Every file of a bundle but ``SHA256SUMS``: path → sha256."""
    return {item.path: item.sha256 for item in manifest.items} | {MANIFEST: manifest_hash}


def sums_text(sums: Mapping[str, str]) -> bytes:
    """``SHA256SUMS`` as ``sha256sum -c`` reads it; no path has a character that it would have to escape."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items())).encode("ascii")


def readme(lock: Lock, artifacts: bool = False) -> str:
    """``README.txt``: what to do with a bundle where hpcgen is not installed.

    ``artifacts``: some blocks are there as they were compiled.
    """
    fill = Template(Path(__file__).with_name("templates") / "readme.txt").fill
    asked = listed = ""
    if folders := [f"{COLLECTIONS}/{name}" for name in lock.own_collections]:
        asked = fill("collections", folders=folders, first=folders[0])
        listed = f"{COLLECTIONS + '/':<19}collections that the lock was made with, besides hpcgen's own"
    return fill(
        "readme",
        hpcgen=lock.hpcgen,
        stack=lock.plan.stack.name,
        site=lock.plan.site.name,
        content=lock.content,
        build=fill("artifacts" if artifacts else "kit"),
        collections=asked,
        compiled=f"{BUNDLED_ARTIFACTS + '/':<19}blocks as they were compiled, without their sources"
        if artifacts
        else "",
        listed=listed,
    )


def load_manifest(path: Path) -> tuple[Manifest, bytes]:
    """A manifest and its bytes; InputError where it cannot be read or is not understood."""
    try:
        data = read_plain(path, MANIFEST_BYTES)
    except OSError as failure:
        raise InputError(
            f"{path} cannot be read: {failure.strerror}", remedy="name a bundle: its folder or its tar file"
        ) from failure
    if len(data) > MANIFEST_BYTES:
        raise InputError(f"{path} is larger than any manifest", remedy="name a bundle: its folder or its tar file")
    return read_record(data, Manifest, str(path)), data


# What licence each file of a bundle says itself that it has; many at once, since packages must be unpacked for it.


def known_licences(old: Manifest) -> dict[str, str]:
    """What an older bundle says of its files, by their sha256."""
    return {item.sha256: item.licence for item in old.items if item.kind in ("package", "wheel", "hpcgen")}


def licences(
    folder: Path, wants: Mapping[str, Sequence[WantedFile]], known: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """The licence of each file, by its path; empty where it does not say it clearly.

    ``wants``: the files of ``folder`` by relative path, and what each was wanted as. ``known``: licences by sha256,
    which need not be looked for again.
    """
    found = {path: known[each[0].sha256] for path, each in wants.items() if each[0].sha256 in known}
    said = {path: text for path, each in wants.items() if (text := next((one.licence for one in each), ""))}
    found |= said
    left = [path for path in wants if path not in found]
    progress = TransferProgress("reading licences", len(left), sum((folder / path).stat().st_size for path in left))

    def work(path: str) -> None:
        progress.begin(path)
        found[path] = _licence(wants[path][0], folder / path)
        progress.moved(path, (folder / path).stat().st_size)
        progress.end(path)

    if left:
        watch.begin(progress)
        try:
            # Unpacking is done outside of Python's lock, so threads are enough.
            work_all(left, work, os.cpu_count() or 1, watch.tick, threading.Event())
        finally:
            watch.end()
    return found


def _licence(want: WantedFile, path: Path) -> str:
    if want.kind == "package" and want.file.endswith(".deb"):
        from hpcgen.supply.bundle.apt_index import deb_licence

        return deb_licence(path)
    if want.kind in ("wheel", "hpcgen"):
        from hpcgen.supply.net.wheel_index import wheel_licence

        return wheel_licence(path)
    return ""
