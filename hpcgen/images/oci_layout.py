"""OCI image layouts in a folder, a tar file or a bundle, with one image or several by name: read, checked, added to.

Source: OCI image specification 1.1, image-layout.md, image-index.md, manifest.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.model.image_paths import image_name
from hpcgen.core.support.hashing import hash_file, open_plain, sha256_of
from hpcgen.core.support.leftovers import alone_in
from hpcgen.core.support.limits import BoundedMember
from hpcgen.core.support.refusals import unwritable
from hpcgen.core.support.writing import write_file
from hpcgen.images.archive import list_archive, read_archive, stream_bytes
from hpcgen.images.folder import COPY_AGAIN, MAX_FILE
from hpcgen.images.reading.sources import TarSource

REF_NAME = "org.opencontainers.image.ref.name"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX, LAYOUT, BLOBS = "index.json", "oci-layout", "blobs/sha256"
_VERSION = '{"imageLayoutVersion":"1.0.0"}'
_ASIDE = ".hpcgen-fetch"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_MAX_MEMBERS = 10_000
_MAX_LAYERS = 1000
"""Engines stop at 127."""
_DEPTH = 4


class LayoutError(InputError):
    """A layout that is damaged; ``why`` in words."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is damaged: {why}", remedy=COPY_AGAIN)
        self.why = why


class OciLayout:
    """A layout to be read.

    ``where``: for messages. ``opened``: opens one of its files by its path in it; OSError or InputError where that is
    not there.
    """

    def __init__(self, where: str, opened: Callable[[str], IO[bytes]]) -> None:
        self.where, self._opened = where, opened

    def open(self, path: str) -> IO[bytes]:
        """Open one of its files by its path in the layout."""
        try:
            return self._opened(path)
        except OSError as failure:
            raise LayoutError(self.where, f"{path} cannot be read: {failure.strerror}") from failure

    def document(self, path: str) -> dict[str, Any]:
        """One of its JSON files."""
        with self.open(path) as stream:
            return decoded(stream.read(MAX_FILE + 1), path, self.where)

    def entries(self, path: str = INDEX) -> list[dict[str, Any]]:
        """The manifests that its index, or another list of manifests in it, names."""
        listed = self.document(path).get("manifests")
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise LayoutError(self.where, f"{path} lists no manifests")
        return listed

    def named(self) -> dict[str, str]:
        """Its images: name → digest of the manifest."""
        found: dict[str, str] = {}
        for entry in self.entries():
            name = _name(entry)
            if name in found:
                raise LayoutError(self.where, f"{INDEX} names {name!r} twice")
            found[name] = self.digest(entry)
        return found

    def needed(self, digest: str) -> dict[str, int]:
        """The blobs of an image: digest → size of itself (-1: not known), its configuration, its layers."""
        return {digest: -1, **dict(LayoutImage(self, digest).blobs())}

    def image(self, name: str) -> LayoutImage:
        """The image of a name, as :func:`~hpcgen.core.model.image_paths.image_name` writes it."""
        named = self.named()
        if image_name(name) not in named:
            raise LayoutError(self.where, f"its index names no image {image_name(name)}")
        return LayoutImage(self, named[image_name(name)])

    def first(self) -> LayoutImage:
        """The first image, where there are no names to choose by."""
        path = INDEX
        for _ in range(_DEPTH):
            listed = self.entries(path)
            if not listed:
                break
            digest = self.digest(listed[0])
            path = blob_path(digest)
            if "manifests" not in self.document(path):
                return LayoutImage(self, digest)
        raise LayoutError(self.where, "its index names no image")

    def digest(self, described: Any) -> str:
        """The digest of what an index or a manifest describes."""
        digest = described.get("digest") if isinstance(described, dict) else None
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise LayoutError(self.where, "a digest is missing or malformed")
        return digest


class LayoutImage:
    """One image of a layout. ``digest`` is its manifest's."""

    def __init__(self, layout: OciLayout, digest: str) -> None:
        self.layout, self.digest = layout, digest
        self.path = layout.where
        self.manifest = layout.document(blob_path(digest))
        layers = self.manifest.get("layers")
        if not isinstance(layers, list) or not isinstance(self.manifest.get("config"), dict):
            raise LayoutError(layout.where, f"{blob_path(digest)} is not an image manifest that lists layers")
        if len(layers) > _MAX_LAYERS:
            raise LayoutError(layout.where, f"an image in it has {len(layers)} layers")
        self._layers = layers

    def config(self) -> dict[str, Any]:
        """The whole configuration: ``architecture``, ``config`` with ``Env``, ``rootfs`` …"""
        return self.layout.document(blob_path(self.layout.digest(self.manifest["config"])))

    def settings(self) -> dict[str, Any]:
        """What the configuration says of containers: ``Env``, ``Labels`` and others."""
        inner = self.config().get("config")
        return inner if isinstance(inner, dict) else {}

    def blobs(self) -> list[tuple[str, int]]:
        """Digest and size (-1: not known) of the configuration and the layers."""
        described = [self.manifest["config"], *self._layers]
        sizes = [each.get("size") if isinstance(each, dict) else None for each in described]
        pairs = zip(described, sizes, strict=True)
        return [(self.layout.digest(each), size if isinstance(size, int) else -1) for each, size in pairs]

    def layer_count(self) -> int:
        """How many layers it has."""
        return len(self._layers)

    def layer(self, number: int) -> IO[bytes]:
        """One layer, the lowest is 0, as it is stored."""
        return self.layout.open(blob_path(self.layout.digest(self._layers[number])))

    def read(self, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Files as a container of the image would have them."""
        return read_archive(self._opened, paths, self.path, self._packed(), most=most)

    def listed(self, wanted: Callable[[str], bool]) -> set[str]:
        """The paths that are wanted, as a container of the image would have them."""
        return list_archive(self._opened, wanted, self.path, self._packed())

    def source(self) -> TarSource:
        """All its files, as a container of the image would have them."""
        return TarSource.of_files(self._opened, self.path, self._packed())

    def _opened(self) -> Iterator[IO[bytes]]:
        return (self.layer(number) for number in range(self.layer_count()))

    def _packed(self) -> int:
        """Bytes of the layers as they are stored."""
        packed = 0
        for digest in {self.layout.digest(each) for each in self._layers}:
            with self.layout.open(blob_path(digest)) as stream:
                packed += stream_bytes(stream)
        return packed


def folder_layout(layout: Path) -> OciLayout:
    """A layout that is a folder."""
    return OciLayout(str(layout), lambda path: open_plain(layout / path))


def archive_image(path: str) -> LayoutImage:
    """The image of an OCI archive: a layout in a tar file; or of a layout that is a folder.

    InputError: it is none, or damaged.
    """
    if Path(path).is_dir():
        return folder_layout(Path(path)).first()
    try:
        stream = open_plain(Path(path), links=True)
        archive = tarfile.open(fileobj=stream, mode="r:", tarinfo=BoundedMember)  # noqa: SIM115 - as long as it is used
        there = {member.name.removeprefix("./"): member for member in islice(archive, _MAX_MEMBERS)}
    except (tarfile.TarError, OSError, ValueError) as failure:
        raise InputError(f"{path} cannot be read as an OCI archive: {failure}", remedy=COPY_AGAIN) from failure

    def opened(name: str) -> IO[bytes]:
        member = there.get(name)
        plain = member is not None and member.isreg() and not member.issparse()
        stream = archive.extractfile(member) if member is not None and plain else None
        if stream is None:
            raise LayoutError(path, f"{name} is missing")
        return stream

    return OciLayout(path, opened).first()


def decoded(data: bytes, what: str, where: str = "") -> dict[str, Any]:
    """A JSON object of bounded size; LayoutError for anything else."""
    found = None
    with contextlib.suppress(ValueError, RecursionError):
        found = msgspec.json.decode(data) if len(data) <= MAX_FILE else None
    if not isinstance(found, dict):
        raise LayoutError(where or what, f"{what if where else 'it'} is not the expected JSON")
    return found


def blob_path(digest: str) -> str:
    """Where a blob lies in a layout."""
    return "blobs/" + digest.replace(":", "/")


def holds(layout: Path, name: str, digest: str) -> bool:
    """Whether a layout has an image under this name, with this digest, and every blob of it as it should be."""
    try:
        found = folder_layout(layout)
        if found.document(LAYOUT).get("imageLayoutVersion") != "1.0.0" or found.image(name).digest != digest:
            return False
        for each, size in found.needed(digest).items():
            sha256, length = hash_file(layout / blob_path(each))
            if f"sha256:{sha256}" != each or size not in (-1, length):
                return False
    except (OSError, InputError):
        return False
    return True


@contextlib.contextmanager
def aside(layout: Path) -> Iterator[Path]:
    """A folder in the layout to copy into, empty and for this process alone; removed at the end.

    What a process that was killed left there is removed before it begins.

    OutputError: another process is at it, or nothing can be written there.
    """
    folder = layout / _ASIDE
    taken = OutputError(f"another hpcgen is writing images into {layout}", remedy="wait until it has finished")
    with contextlib.ExitStack() as held:
        try:
            layout.mkdir(parents=True, exist_ok=True)
            held.enter_context(alone_in(layout, taken))
        except OSError as failure:
            raise unwritable(layout, failure) from failure
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder


def add(layout: Path, name: str, blobs: Mapping[str, Path], manifest: bytes) -> str:
    """Put an image into a layout: blobs by rename, the index last; the digest of its manifest.

    ``blobs``: checked files on the same file system, by digest; they are moved.
    """
    digest = f"sha256:{sha256_of(manifest)}"
    folder = layout / BLOBS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each, path in blobs.items():
            _settle(path)
            path.replace(layout / blob_path(each))
    except OSError as failure:
        raise unwritable(folder, failure) from failure
    write_file(layout / blob_path(digest), manifest.decode("utf-8"))
    entries: list[dict[str, Any]] = []
    with contextlib.suppress(InputError):  # of a damaged index nothing is kept: those images are fetched anew
        entries = [each for each in folder_layout(layout).entries() if _name(each) not in ("", image_name(name))]
    entry = {"mediaType": MANIFEST_TYPE, "digest": digest, "size": len(manifest)}
    write_index(layout, [*entries, {**entry, "annotations": {REF_NAME: image_name(name)}}])
    return digest


def adopt(layout: Path, source: Path, name: str) -> None:
    """Have the index of a layout name an image, whose blobs are there, as another layout's index does."""
    held = image_name(name)
    kept = folder_layout(layout).entries() if (layout / INDEX).is_file() else []
    entries = [each for each in kept if _name(each) != held]
    write_index(layout, [*entries, *(each for each in folder_layout(source).entries() if _name(each) == held)])


def tidy(layout: Path, images: Mapping[str, str]) -> set[str]:
    """Have the index name these images alone (name → digest), in a fixed form; the paths of all that they need."""
    found = folder_layout(layout)
    known = {found.digest(each): each for each in found.entries()}
    entries = []
    for name, digest in images.items():
        size = (layout / blob_path(digest)).stat().st_size
        media = str(known[digest].get("mediaType") or MANIFEST_TYPE)
        platform = known[digest].get("platform")
        entry = {"mediaType": media, "digest": digest, "size": size}
        entry |= {"platform": platform} if isinstance(platform, dict) else {}
        entries.append({**entry, "annotations": {REF_NAME: image_name(name)}})
    write_index(layout, entries)
    return {INDEX, LAYOUT, *(blob_path(each) for digest in images.values() for each in found.needed(digest))}


def write_index(layout: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write the layout's own files, the index by name, so that the same images are the same bytes."""
    index = {"schemaVersion": 2, "manifests": sorted(entries, key=_name)}
    write_file(layout / LAYOUT, _VERSION)
    write_file(layout / INDEX, msgspec.json.encode(index, order="sorted").decode())


def _settle(path: Path) -> None:
    """Have a file on the disk before its name says that it is whole."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o644)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(entry: Mapping[str, Any]) -> str:
    annotations = entry.get("annotations")
    return str(annotations.get(REF_NAME, "")) if isinstance(annotations, dict) else ""
