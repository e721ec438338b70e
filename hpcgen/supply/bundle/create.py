"""Make the bundle of a lock: fetch, check, index, describe, and only then give it its name.

A run that was stopped, whatever the moment, is continued by the next one: files that are there are hashed again, what
does not belong is removed, and nothing gets a name before it is whole. The same lock gives the same bytes: no time, no
order of arrival and no name of the machine is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, OutputError, Problem
from hpcgen.core.model.bundle import BundleItem, Manifest, WantedFile
from hpcgen.core.model.image_paths import (
    APT_INDEX,
    BUNDLED_ARTIFACTS,
    HPCGEN_INDEX,
    IMAGES,
    LOCK,
    LOCK_SIGNATURE,
    MANIFEST,
    SIGNATURE,
    SUMS,
    WHEEL_INDEX,
    file_path,
)
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import hash_file, sha256_of
from hpcgen.core.support.progress import Watch
from hpcgen.core.support.units import files, size
from hpcgen.supply.bundle.base_images import BaseImages
from hpcgen.supply.bundle.documents import (
    CYCLONEDX,
    README,
    SPDX,
    known_licences,
    licences,
    load_manifest,
    manifest_of,
    readme,
    record_text,
    sums_of,
    sums_text,
)
from hpcgen.supply.bundle.own_collections import CollectedFile, collected, edited, left_behind
from hpcgen.supply.bundle.store import fitting, sweep, take, walk, write_through
from hpcgen.supply.bundle.workspace import Workspace, check_room, check_target, explained_disk, publish, workspace
from hpcgen.supply.net.download import Download, Downloader, RetryPolicy
from hpcgen.supply.net.web import shown

Wants = Sequence[WantedFile] | Callable[[Path], Sequence[WantedFile]]


class CarriedArtifact(msgspec.Struct, frozen=True):
    """What a block compiled, to go along in the place of its sources.

    ``key``: of the artifact. ``label``: block and version. ``origin``: who made it. ``files``: the archive, what is
    said of it and the signature, by their places in a store.
    """

    key: str
    label: str
    origin: str
    files: dict[str, Path]


class Creation(msgspec.Struct, frozen=True):
    """How a bundle is made.

    reuse: folder of an older bundle; what it has need not be fetched.
    folders: with files that were had by other means; those with the right hash are taken.
    jobs: downloads at once.
    split: for a tar file, bytes of a piece; None for one file.
    images: base images from elsewhere, name → skopeo reference.
    catalog: the collections that the lock was made with: for the bills of materials, and to go along.
    sign: the SSH key that signs the manifest; None for no signature.
    artifacts: by block; what is wanted is without the sources of these.
    """

    reuse: Path | None = None
    folders: Sequence[Path] = ()
    jobs: int = 8
    split: int | None = None
    images: Mapping[str, str] = {}
    policy: RetryPolicy | None = None
    watch: Watch = Watch()
    catalog: Any = None
    sign: Path | None = None
    artifacts: Mapping[str, CarriedArtifact] = {}


def create_bundle(lock: Lock, wanted: Wants, target: Path, how: Creation | None = None) -> Manifest:
    """Make a bundle.

    wanted: every file beside base images; or what gives them, called with a folder where files can be made.
    target: a folder that is not there yet, or a file that ends in ``.tar``.
    FetchError: some inputs were not fetched; what was stays for the next run.
    OutputError: the target already exists, another hpcgen makes it, the disk is full.
    InputError: the wanted files contradict each other, or an input is not as it should be.
    """
    how = how or Creation()
    if not Workspace(target).folder.is_dir():
        check_target(target, how.split)
    with workspace(target) as place:
        if (made := _finished(place, lock, how.sign is not None)) is not None:
            how.watch.say(f"{target} was complete; it has its final name now")
            return made
        check_target(target, how.split)
        manifest = _Making(lock, place, how).make(wanted)
        publish(place, lock.pins.epoch, how.split, how.watch)
    return manifest


def _finished(place: Workspace, lock: Lock, signed: bool) -> Manifest | None:
    """The manifest, if an earlier run of this lock was stopped when there was nothing more to do but names."""
    from hpcgen.supply.bundle.reading import open_bundle

    named = place.resume_publishing()
    first = place.target if place.target.exists() else place.target.with_name(f"{place.target.name}.000")
    if not named and (place.bundle.exists() or not first.exists()):
        return None
    try:
        source = open_bundle(first)
        manifest = source.manifest()
    except InputError:
        return None
    if signed and SIGNATURE not in source.files:
        raise OutputError(f"{first} was complete, without a signature", remedy="remove it, and run this again")
    return manifest if manifest.lock == sha256_of(lock.text) else None


class _Making:
    """One run of :func:`create_bundle`, from the place that it takes to the bundle under its name."""

    def __init__(self, lock: Lock, place: Workspace, how: Creation) -> None:
        self.lock, self.place, self.how = lock, place, how
        self.bundle, self.watch = place.bundle, how.watch
        self.items: list[BundleItem] = []
        self.known: dict[str, str] = {}
        self.collected: list[CollectedFile] = []
        self.images = BaseImages(lock, place, how.images, how.watch)

    def make(self, wanted: Wants) -> Manifest:
        """Everything up to the point where the bundle only wants its name."""
        # Read first: what is wrong with it is said before hours of fetching.
        self.collected = list(collected(self.lock, self.how.catalog)) if self.lock.own_collections else []
        with explained_disk(self.place):
            for folder in (self.bundle, self.place.parts, self.place.made):
                folder.mkdir(exist_ok=True)
        wants = by_path(wanted(self.place.made) if callable(wanted) else wanted)
        missing = self._clean(wants)
        missing = self._reuse(wants, missing)
        missing = self._from_folders(wants, missing)
        whole = sum(each[0].size or 0 for each in wants.values())
        needed = sum(wants[path][0].size or 0 for path in missing)
        needed += sum(file.stat().st_size for each in self.how.artifacts.values() for file in each.files.values())
        check_room(self.place, needed - sum(found.st_size for _, found in walk(self.place.parts)))
        problems: list[Problem] = []
        kind: type[HpcgenError] = HpcgenError
        steps: list[Callable[[], None]] = [lambda: self._fetch(wants, missing), self.images.fetch]
        for step in steps:
            try:
                with explained_disk(self.place, needed, whole):
                    step()
            except OutputError:
                raise
            except HpcgenError as error:
                kind = type(error) if not problems else kind
                problems.extend(error.problems)
        if problems:
            raise kind(problems)
        with explained_disk(self.place):
            self._note_files(wants)
            self.items += self.images.items()
            return self._describe()

    # files

    def _clean(self, wants: Mapping[str, Sequence[WantedFile]]) -> list[str]:
        """Hash what an earlier run left, remove what is not as it should be or does not belong; what is missing."""
        sums = {path: each[0].sha256 for path, each in wants.items()}
        sums |= self.images.known_roots()
        with explained_disk(self.place):
            found = fitting(self.bundle, sums, "checking existing files", 2, self.watch)
            images = {path for path, _ in walk(self.bundle) if path.startswith(f"{IMAGES}/")}
            removed = sweep(self.bundle, found | images)
        damaged = [path for path in removed if path in sums]
        if damaged:
            self.watch.say(f"damaged by an earlier run and fetched again: {files(len(damaged))}")
        if found:
            self.watch.say(f"resuming: {len(found & wants.keys())} of {len(wants)} files exist")
        return [path for path in wants if path not in found]

    def _reuse(self, wants: Mapping[str, Sequence[WantedFile]], missing: Sequence[str]) -> list[str]:
        """Take from the older bundle what it has."""
        old = self.how.reuse
        if old is None:
            return list(missing)
        if not (old / MANIFEST).is_file():
            raise InputError(f"{old} is not a bundle: it has no {MANIFEST}", "--reuse", "the folder of a bundle")
        self.known = known_licences(load_manifest(old / MANIFEST)[0])
        with explained_disk(self.place):
            taken = {
                path
                for path in missing
                if (old / path).is_file()
                and take(old / path, self.bundle / path, self.place.parts, wants[path][0].sha256)
            }
            self.images.reuse(old)
        count = sum(wants[path][0].size or 0 for path in taken)
        self.watch.say(f"taken from {old}: {files(len(taken))}, {size(count)}")
        return [path for path in missing if path not in taken]

    def _from_folders(self, wants: Mapping[str, Sequence[WantedFile]], missing: Sequence[str]) -> list[str]:
        """Take what the user has put into a folder, by its name and hash."""
        left = []
        with explained_disk(self.place):
            for path in missing:
                want = wants[path][0]
                found = [folder / want.file for folder in self.how.folders if (folder / want.file).is_file()]
                if any(take(each, self.bundle / path, self.place.parts, want.sha256, link=False) for each in found):
                    self.watch.say(f"taken: {want.file}")
                    continue
                left.append(path)
                for each in found:
                    self.watch.say(f"not used: {each} is a different file, its sha256 is not {want.sha256}")
        return left

    def _fetch(self, wants: Mapping[str, Sequence[WantedFile]], missing: Sequence[str]) -> None:
        authorities = [Path(path) for path in self.lock.plan.site.network.ca_certificates]
        downloads = [Download(wants[path][0], self.place.parts, self.bundle / path) for path in missing]
        if downloads:
            Downloader(self.how.jobs, self.how.policy, authorities, self.watch).fetch(downloads)

    def _note_files(self, wants: Mapping[str, Sequence[WantedFile]]) -> None:
        found = licences(self.bundle, wants, self.known, self.watch)
        for path, each in wants.items():
            count = (self.bundle / path).stat().st_size
            for want in each:
                origin = shown(want.urls[0]) if want.urls else "made by hpcgen"
                if origin.startswith(self.place.made.absolute().as_uri()):
                    origin = "made by hpcgen"
                elif want.kind == "copied":
                    origin = "a file of the stack"
                self._add(want.kind, want.name, origin, want.sha256, count, path, want.licence or found[path])

    # what describes them

    def _describe(self) -> Manifest:
        """Indexes, bills of materials, the lock, the page for people, manifest and sums."""
        from hpcgen.kit.sbom import cyclonedx, spdx
        from hpcgen.supply.bundle.apt_index import write_apt_index
        from hpcgen.supply.net.wheel_index import wheel_index

        packages = [item for item in self.items if item.kind == "package"]
        # Also of no packages, where the base has all of them: the recipe reads the index, but for RPM packages.
        if not any(pin.is_rpm for stage in self.lock.pins.packages.values() for pin in stage.added.values()):
            write_apt_index(self.bundle, packages, self.lock.pins.epoch)
            for name in (APT_INDEX, "Release"):
                self._note_document(name)
        for name, kind in ((WHEEL_INDEX, "wheel"), (HPCGEN_INDEX, "hpcgen")):
            if found := [item for item in self.items if item.kind == kind]:
                self._document(name, wheel_index(found))
        inputs = sorted(self.items, key=lambda item: (item.path, item.kind, item.name))
        keys = {block: each.key for block, each in self.how.artifacts.items()}
        self._document(CYCLONEDX, cyclonedx(self.lock, inputs, self.how.catalog, keys))
        self._document(SPDX, spdx(self.lock, inputs, self.how.catalog, keys))
        self._document(LOCK, self.lock.text)
        if self.lock.signature:
            self._document(LOCK_SIGNATURE, self.lock.signature)
        self._note_collections()
        self._note_artifacts()
        self._document(README, readme(self.lock, bool(keys)))
        lock_hash = sha256_of(self.lock.text)
        manifest = manifest_of(self.lock, lock_hash, self.items)
        text = record_text(manifest)
        write_through(self.bundle / MANIFEST, text)
        sums = sums_of(manifest, sha256_of(text))
        write_through(self.bundle / SUMS, sums_text(sums))
        sweep(self.bundle, {*sums, SUMS})
        if self.how.sign is not None:
            from hpcgen.core.support.signatures import BUNDLE, sign

            write_through(self.bundle / SIGNATURE, sign(text, self.how.sign, BUNDLE).encode())
        return manifest

    def _note_collections(self) -> None:
        for folder in left_behind(self.lock):
            self.watch.say(f"warning: {folder} is not in the bundle: write its lock again with hpcgen lock")
        for name in edited(self.lock, self.collected):
            self.watch.say(f"note: {name} has been edited since the lock was made")
        for file in self.collected:
            write_through(self.bundle / file.path, file.data)
            self._add("collection", file.name, "a collection", sha256_of(file.data), len(file.data), file.path)

    def _note_artifacts(self) -> None:
        for each in self.how.artifacts.values():
            for place, source in each.files.items():
                path = f"{BUNDLED_ARTIFACTS}/{place}"
                digest, count = hash_file(source)
                if not take(source, self.bundle / path, self.place.parts, digest, link=False):
                    message = f"{source} was changed while it was read"
                    raise OutputError(message, remedy="try again when nothing else writes to the store")
                self._add("artifact", each.label, each.origin, digest, count, path)

    def _document(self, name: str, text: str) -> None:
        write_through(self.bundle / name, text.encode())
        self._note_document(name)

    def _note_document(self, name: str) -> None:
        digest, count = hash_file(self.bundle / name)
        self._add("document", name, "made by hpcgen", digest, count, name)

    def _add(self, kind: Any, name: str, origin: str, sha256: str, count: int, path: str, licence: str = "") -> None:
        item = BundleItem(kind=kind, name=name, origin=origin, sha256=sha256, size=count, path=path, licence=licence)
        self.items.append(item)


def by_path(wants: Sequence[WantedFile]) -> dict[str, list[WantedFile]]:
    """Wanted files by their path in the bundle, each once; InputError where two contradict each other."""
    found: dict[str, list[WantedFile]] = {}
    for want in sorted(wants, key=lambda each: (each.sha256, each.file, each.kind, each.name)):
        same = found.setdefault(file_path(want.sha256, want.file), [])
        sizes = {each.size for each in [*same, want]} - {None}
        if len(sizes) > 1:
            raise InputError(
                f"{want.file} is listed with {' and '.join(map(str, sorted(sizes, key=str)))} bytes",
                remedy="make the lock again: hpcgen lock",
            )
        if not any((each.kind, each.name) == (want.kind, want.name) for each in same):
            same.append(want)
    # Whoever knows the size speaks first.
    return {path: sorted(each, key=lambda one: one.size is None) for path, each in sorted(found.items())}
