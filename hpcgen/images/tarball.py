"""Read files of an image that is one tar file of a root, or an OCI archive."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

import msgspec

from hpcgen.errors import InputError, Problem
from hpcgen.images.archive import members, read_archive
from hpcgen.images.folder import MAX_FILE

_DIGEST = re.compile(r"(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})")
_MAX_BLOBS = 10_000
_DEPTH = 4


def read_tar(path: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Files of a tar file of an image's root; the root may lie in one folder of its own."""
    found = read_archive(lambda: opened(path), paths, path)
    if not found and (top := _first_folder(path)):
        return read_archive(lambda: opened(path), paths, path, top)
    return found


def opened(path: str) -> Iterator[IO[bytes]]:
    """One file, open while it is used; InputError if it cannot be."""
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below, after the reader is done
    except OSError as failure:
        raise InputError(Problem(f"{path} cannot be read: {failure.strerror}")) from failure
    with stream:
        yield stream


def _first_folder(path: str) -> str:
    """The folder that the first members lie in, as ``/name``; empty if there is none in common."""
    for stream in opened(path):
        names = [member.name.removeprefix("./").split("/") for _, member in islice(members(stream, path), 3)]
        tops = {parts[0] for parts in names} - {"", "."}
        if len(tops) == 1:
            return f"/{tops.pop()}"
    return ""


class OciArchive:
    """An OCI image layout in a tar file. Source: OCI image specification, image-layout.md and manifest.md."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.manifest_digest = ""
        try:
            self._archive = tarfile.open(path, "r:")  # noqa: SIM115 - lives as long as this object
            self._members = {m.name.removeprefix("./"): m for m in islice(self._archive, _MAX_BLOBS)}
        except (tarfile.TarError, OSError, ValueError) as failure:
            raise InputError(Problem(f"{path} cannot be read as an OCI archive: {failure}")) from failure
        self._manifest = self._find_manifest()

    def config(self) -> dict[str, Any]:
        """The image's configuration: ``Env``, ``Labels`` and others."""
        described = self._manifest.get("config")
        blob = self._json(self._blob_name(described))
        inner = blob.get("config")
        return inner if isinstance(inner, dict) else {}

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Files as a container of the image would have them."""
        return read_archive(self._layers, paths, self.path)

    def layer_count(self) -> int:
        """How many layers it has."""
        return len(self._listed())

    def layer(self, number: int) -> IO[bytes]:
        """One layer, the lowest is 0, as it is stored."""
        return self._open(self._blob_name(self._listed()[number]))

    def _layers(self) -> Iterator[IO[bytes]]:
        return (self.layer(number) for number in range(self.layer_count()))

    def _listed(self) -> list[Any]:
        layers = self._manifest.get("layers")
        if not isinstance(layers, list):
            raise self._damaged("its manifest lists no layers")
        return layers

    def _find_manifest(self) -> dict[str, Any]:
        found = self._json("index.json")
        for _ in range(_DEPTH):
            listed = found.get("manifests")
            if not isinstance(listed, list):
                return found
            if not listed:
                break
            name = self._blob_name(listed[0])
            self.manifest_digest = str(listed[0]["digest"])
            found = self._json(name)
        raise self._damaged("its index names no image")

    def _blob_name(self, described: Any) -> str:
        digest = described.get("digest") if isinstance(described, dict) else None
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise self._damaged("a digest is missing or malformed")
        return "blobs/" + digest.replace(":", "/")

    def _open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        stream = self._archive.extractfile(member) if member is not None and member.isreg() else None
        if stream is None:
            raise self._damaged(f"{name} is missing")
        return stream

    def _json(self, name: str) -> dict[str, Any]:
        data = self._open(name).read(MAX_FILE + 1)
        try:
            found = msgspec.json.decode(data) if len(data) <= MAX_FILE else None
        except (msgspec.DecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._damaged(f"{name} is not the JSON that it should be")
        return found

    def _damaged(self, why: str) -> InputError:
        return InputError(Problem(f"{self.path} is damaged: {why}", remedy="copy the image again"))
