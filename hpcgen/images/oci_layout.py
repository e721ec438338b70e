"""An OCI image layout in a folder, with several images by name: read, checked, and added to.

Source: OCI image specification 1.1, image-layout.md, image-index.md, manifest.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from hpcgen.errors import InputError, OutputError, Problem
from hpcgen.images.folder import MAX_FILE
from hpcgen.model.bundle_paths import image_name
from hpcgen.support.hashing import sha256_of
from hpcgen.support.writing import write_file

REF_NAME = "org.opencontainers.image.ref.name"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_ASIDE = ".hpcgen-fetch"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHUNK = 1 << 20


class LayoutImage:
    """One image of a layout. ``digest`` is its manifest's."""

    def __init__(self, layout: Path, name: str) -> None:
        self.layout = layout
        self.path = f"{name} in {layout}"
        wanted = image_name(name)
        named = [each for each in _entries(layout) if each.get("annotations", {}).get(REF_NAME) == wanted]
        if not named:
            raise self._damaged(f"its index names no image {wanted}")
        self.digest = self._digest_of(named[0])
        self.manifest: dict[str, Any] = self._json(self.digest)

    def config(self) -> dict[str, Any]:
        """The whole configuration: ``architecture``, ``config`` with ``Env``, ``rootfs`` …"""
        return self._json(self._digest_of(self.manifest.get("config")))

    def blobs(self) -> list[tuple[str, int]]:
        """Digest and size of the configuration and the layers."""
        described = [self.manifest.get("config"), *self._layers()]
        return [(self._digest_of(each), int(each.get("size", -1))) for each in described if isinstance(each, dict)]

    def layer_count(self) -> int:
        """How many layers it has."""
        return len(self._layers())

    def layer(self, number: int) -> IO[bytes]:
        """One layer, the lowest is 0, as it is stored."""
        return self._open(self._digest_of(self._layers()[number]))

    def check(self) -> None:
        """Compare every blob with its digest and size; InputError if one is not what it should be."""
        try:
            version = decoded((self.layout / "oci-layout").read_bytes(), f"{self.layout}/oci-layout")
        except OSError as failure:
            raise self._damaged(f"oci-layout cannot be read: {failure.strerror}") from failure
        if version.get("imageLayoutVersion") != "1.0.0":
            raise self._damaged("its oci-layout names another version")
        for digest, size in [(self.digest, -1), *self.blobs()]:
            found, length = file_digest(blob_path(self.layout, digest))
            if found != digest or size not in (-1, length):
                raise self._damaged(f"blob {digest} is altered or cut off")

    def _layers(self) -> list[Any]:
        layers = self.manifest.get("layers")
        if not isinstance(layers, list):
            raise self._damaged("its manifest lists no layers")
        return layers

    def _digest_of(self, described: Any) -> str:
        digest = described.get("digest") if isinstance(described, dict) else None
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise self._damaged("a digest is missing or malformed")
        return digest

    def _open(self, digest: str) -> IO[bytes]:
        try:
            return blob_path(self.layout, digest).open("rb")
        except OSError as failure:
            raise self._damaged(f"blob {digest} cannot be read: {failure.strerror}") from failure

    def _json(self, digest: str) -> dict[str, Any]:
        with self._open(digest) as stream:
            data = stream.read(MAX_FILE + 1)
        return decoded(data, self.path)

    def _damaged(self, why: str) -> InputError:
        return InputError(Problem(f"{self.path} is damaged: {why}", remedy="fetch the image again"))


def decoded(data: bytes, what: str) -> dict[str, Any]:
    """A JSON object of bounded size; InputError for anything else."""
    found = None
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        found = msgspec.json.decode(data) if len(data) <= MAX_FILE else None
    if not isinstance(found, dict):
        raise InputError(Problem(f"{what} is damaged: it is not the JSON that it should be", remedy="fetch it again"))
    return found


def blob_path(layout: Path, digest: str) -> Path:
    """Where a blob lies."""
    return layout / "blobs" / digest.replace(":", "/")


def file_digest(path: Path) -> tuple[str, int]:
    """``sha256:…`` and the size in bytes of a file; of nothing if it cannot be read."""
    found, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while data := stream.read(_CHUNK):
                found.update(data)
                size += len(data)
    except OSError:
        return "", -1
    return f"sha256:{found.hexdigest()}", size


@contextlib.contextmanager
def aside(layout: Path) -> Iterator[Path]:
    """A folder in the layout to copy into, empty and for this process alone; removed at the end.

    What a process that was killed left there is removed before it begins.

    Raises
    ------
    OutputError: another process is at it, or nothing can be written there.
    """
    folder = layout / _ASIDE
    try:
        layout.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(layout, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as failure:
        raise OutputError(Problem(f"cannot write {layout}: {failure.strerror}", remedy="write elsewhere")) from failure
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                Problem(f"another hpcgen is writing images into {layout}", remedy="wait until it is done")
            ) from None
        except OSError:
            pass  # some network file systems lock no folders
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def add(layout: Path, name: str, blobs: dict[str, Path], manifest: bytes) -> str:
    """Put an image into a layout: blobs by rename, the index last; the digest of its manifest.

    Parameters
    ----------
    blobs: checked files on the same file system, by digest; they are moved.
    """
    digest = f"sha256:{sha256_of(manifest)}"
    folder = layout / "blobs/sha256"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each, path in blobs.items():
            _settle(path)
            path.replace(blob_path(layout, each))
    except OSError as failure:
        raise OutputError(
            Problem(f"cannot write {folder}: {failure.strerror}", remedy="free some space, or write elsewhere")
        ) from failure
    write_file(blob_path(layout, digest), manifest.decode("utf-8"))
    write_file(layout / "oci-layout", '{"imageLayoutVersion":"1.0.0"}')
    entry = {"mediaType": MANIFEST_TYPE, "digest": digest, "size": len(manifest)}
    others = {}
    with contextlib.suppress(InputError):  # of a damaged index nothing is kept: those images are fetched anew
        others = {_name(each): each for each in _entries(layout) if _name(each)}
    others[image_name(name)] = {**entry, "annotations": {REF_NAME: image_name(name)}}
    index = {"schemaVersion": 2, "manifests": [others[each] for each in sorted(others)]}
    write_file(layout / "index.json", json.dumps(index, sort_keys=True, separators=(",", ":")))
    return digest


def _settle(path: Path) -> None:
    """Have a file on the disk before its name says that it is whole."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o644)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(entry: dict[str, Any]) -> str:
    return str(entry.get("annotations", {}).get(REF_NAME, ""))


def _entries(layout: Path) -> list[dict[str, Any]]:
    path = layout / "index.json"
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except OSError as failure:
        raise InputError(
            Problem(
                f"{layout} is no OCI image layout: {failure.strerror}: {path.name}", remedy="fetch the images again"
            )
        ) from failure
    listed = decoded(data, str(path)).get("manifests")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise InputError(Problem(f"{path} lists no images", remedy="fetch the images again"))
    return [each for each in listed if isinstance(each.get("annotations", {}), dict)]
