"""The OCI image layout of a bundle: which images it names, which blobs they need, and its files in one fixed form.

Source: https://github.com/opencontainers/image-spec/blob/main/image-layout.md, …/manifest.md, …/image-index.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.bundle.store import sweep, write_through
from hpcgen.model.bundle_paths import image_name
from hpcgen.support.hashing import hash_file, open_plain

NAME = "org.opencontainers.image.ref.name"
INDEX, LAYOUT, BLOBS = "index.json", "oci-layout", "blobs/sha256"
DOCUMENT_BYTES = 8 * 1024 * 1024
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DEPTH = 3

Read = Callable[[str], bytes]
"""The bytes of a file of the layout, by its path in it; OSError where it is not there."""


class LayoutError(Exception):
    """What is wrong with a layout, in words."""


def reader(layout: Path) -> Read:
    """Reads a layout that is a folder; files of an absurd size are not read."""

    def read(path: str) -> bytes:
        with open_plain(layout / path) as stream:
            data = stream.read(DOCUMENT_BYTES + 1)
        if len(data) > DOCUMENT_BYTES:
            raise LayoutError(f"{path} is absurdly large")
        return data

    return read


def named(read: Read) -> dict[str, str]:
    """The images of a layout: name → digest; LayoutError where its index is not understood."""
    found: dict[str, str] = {}
    for entry in _manifests(_document(read, INDEX), INDEX):
        annotations = entry.get("annotations") or {}
        name = annotations.get(NAME, "") if isinstance(annotations, dict) else ""
        if name in found:
            raise LayoutError(f"{INDEX} names {name!r} twice")
        found[str(name)] = _digest(entry, INDEX)
    return found


def blobs(read: Read, digest: str, depth: int = 0) -> dict[str, int]:
    """What an image needs: digest → size of itself, its configuration, its layers."""
    path = blob_path(digest)
    document = _document(read, path)
    found = {digest: -1}
    if "manifests" in document and depth < _DEPTH:
        for entry in _manifests(document, path):
            found |= blobs(read, _digest(entry, path), depth + 1)
        return found
    layers = document.get("layers")
    if not isinstance(layers, list) or not isinstance(document.get("config"), dict):
        raise LayoutError(f"{path} is no image manifest")
    for entry in [document["config"], *layers]:
        size = entry.get("size") if isinstance(entry, dict) else None
        found[_digest(entry, path)] = size if isinstance(size, int) else -1
    return found


def blob_path(digest: str) -> str:
    """Where a blob lies in a layout."""
    return f"{BLOBS}/{digest.removeprefix('sha256:')}"


def holds(layout: Path, name: str, digest: str) -> bool:
    """Whether a layout has an image under this name, with this digest, and every blob of it as it should be."""
    read = reader(layout)
    try:
        if named(read).get(image_name(name)) != digest:
            return False
        return all(
            hash_file(layout / blob_path(each))[0] == each.removeprefix("sha256:") for each in blobs(read, digest)
        )
    except (OSError, LayoutError):
        return False


def adopt(layout: Path, source: Path, held: str) -> None:
    """Have the index of a layout name an image, whose blobs are there, as another layout's index does."""
    entries = []
    for each in (layout, source):
        if (each / INDEX).is_file():
            found = _manifests(_document(reader(each), INDEX), INDEX)
            entries += [
                entry for entry in found if ((entry.get("annotations") or {}).get(NAME) == held) == (each == source)
            ]
    write_through(layout / INDEX, msgspec.json.encode({"schemaVersion": 2, "manifests": entries}) + b"\n")
    write_through(layout / LAYOUT, b'{"imageLayoutVersion":"1.0.0"}\n')


def tidy(layout: Path, images: Mapping[str, str]) -> None:
    """Leave these images alone (name → digest), and write the layout's own files in a fixed form.

    Tools write an index in the order of their work; here it is by name, so that the same images are the same bytes.
    """
    read = reader(layout)
    kept = {each for digest in images.values() for each in blobs(read, digest)}
    entries = {_digest(entry, INDEX): entry for entry in _manifests(_document(read, INDEX), INDEX)}
    manifests = []
    for name in sorted(images, key=image_name):
        entry = entries[images[name]]
        size = (layout / blob_path(images[name])).stat().st_size
        media = str(entry.get("mediaType") or "application/vnd.oci.image.manifest.v1+json")
        known = {"mediaType": media, "digest": images[name], "size": size}
        if isinstance(entry.get("platform"), dict):
            known["platform"] = entry["platform"]
        manifests.append({**known, "annotations": {NAME: image_name(name)}})
    write_through(layout / INDEX, msgspec.json.encode({"schemaVersion": 2, "manifests": manifests}) + b"\n")
    write_through(layout / LAYOUT, b'{"imageLayoutVersion":"1.0.0"}\n')
    sweep(layout, {INDEX, LAYOUT, *map(blob_path, kept)})


def _document(read: Read, path: str) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(read(path))
    except (msgspec.DecodeError, RecursionError) as failure:
        raise LayoutError(f"{path} is no JSON: {failure}") from failure
    if not isinstance(data, dict):
        raise LayoutError(f"{path} is no JSON object")
    return data


def _manifests(document: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    found = document.get("manifests")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise LayoutError(f"{path} lists no manifests")
    return found


def _digest(entry: Any, path: str) -> str:
    digest = entry.get("digest") if isinstance(entry, dict) else None
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise LayoutError(f"{path} names something by no sha256 digest")
    return digest
