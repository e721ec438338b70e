"""What hpcgen itself does between two programs: tar files and OCI archives in and out, and the marks of engines.

``ch/environment`` is where Charliecloud looks for an image's variables (ch-run(1), --set-env), ``.singularity.d/env``
and ``labels.json`` are Apptainer's places (its documentation, "SIF and the /.singularity.d folder"). A folder, a
squashfs and a tar file of a root can hold variables and labels in these files alone.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import posixpath
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import sha256_of
from hpcgen.core.support.quoting import sh_assign
from hpcgen.images.archive import decompressed, members, normal, opened, prefixes
from hpcgen.images.marks import ENVIRONMENT, Marks
from hpcgen.images.oci_layout import LayoutImage, archive_image

_ENV_SCRIPT = ".singularity.d/env/91-environment.sh"
_LABELS = ".singularity.d/labels.json"
# Where engines put the host's files and folders; an image that cannot be written must have them.
# Source: ch-convert 0.31, mount_points_ensure.
_FOLDERS = ("bin", "dev", "etc", "mnt", "proc", "usr", "sys", "tmp", *(f"mnt/{number}" for number in range(10)))
_EMPTY_FILES = ("etc/hosts", "etc/resolv.conf")
_CHUNK = 1 << 20


def mark_files(marks: Marks) -> dict[str, str]:
    """The files that hold variables and labels for Charliecloud and Apptainer."""
    charliecloud = [f"{name}={_charliecloud(value)}" for name, value in marks.environment.items()]
    script = ["#!/bin/sh", *(f"export {sh_assign(name, value)}" for name, value in marks.environment.items())]
    return {
        ENVIRONMENT: "\n".join([*charliecloud, ""]),
        _ENV_SCRIPT: "\n".join([*script, ""]),
        _LABELS: json.dumps(marks.labels, indent=1, ensure_ascii=False) + "\n",
    }


def _charliecloud(value: str) -> str:
    # ch-run takes one pair of single quotes off.
    return f"'{value}'" if len(value) > 1 and value[0] == value[-1] == "'" else value


def mark_folder(folder: Path, marks: Marks) -> None:
    """Add the files and mount points that engines look for; what already exists stays.

    InputError: a link leads out of the image where one of them belongs.
    """
    for name in _FOLDERS:
        _within(folder, name).mkdir(parents=True, exist_ok=True)
    for name, text in {**dict.fromkeys(_EMPTY_FILES, ""), **mark_files(marks)}.items():
        place = _within(folder, name)
        if place.exists() or place.is_symlink() or (name == _ENV_SCRIPT and place.parent.is_dir()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        place.chmod(0o755 if name.endswith(".sh") else 0o644)


def _within(folder: Path, name: str) -> Path:
    parent = (folder / name).parent
    if not parent.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"in {folder} a link leads from {posixpath.dirname(name)} out of the image",
            remedy="hpcgen does not open such an image: rebuild it from its recipe",
        )
    place = folder / name
    # A merged /usr has bin as a link to a folder; any link will do where a name must be taken.
    return place.resolve() if place.is_symlink() and place.resolve().is_relative_to(folder.resolve()) else place


def mark_tar(path: Path, marks: Marks) -> None:
    """Append them to an uncompressed tar file of a root, where it does not have them."""
    files = mark_files(marks)
    present: set[str] = set()
    for stream in opened(str(path)):
        present = {normal(member.name).lstrip("/") for _, member in members(stream, str(path))}
    if posixpath.dirname(_ENV_SCRIPT) in present:
        del files[_ENV_SCRIPT]
    with tarfile.open(path, "a") as archive:
        for name in [name for name in files if name not in present]:
            parts = name.split("/")[:-1]
            for count in range(1, len(parts) + 1):
                _add_folder(archive, "/".join(parts[:count]), present)
            add_file(archive, f"./{name}", files[name].encode(), 0o755 if name.endswith(".sh") else 0o644)


def add_file(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """A member with these bytes; it has no time and no owner's name."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    archive.addfile(member, io.BytesIO(data))


def _add_folder(archive: tarfile.TarFile, name: str, present: set[str]) -> None:
    if name not in present:
        present.add(name)
        member = tarfile.TarInfo(f"./{name}")
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(member)


def compress(source: Path, target: Path) -> None:
    """gzip, with the same bytes for the same input."""
    with source.open("rb") as reader, target.open("wb") as out, gzip.GzipFile("", "wb", 6, out, 0) as writer:
        shutil.copyfileobj(reader, writer, _CHUNK)


class _Hashing:
    """A file that knows the sha256 and length of what was written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.sha256, self.length = stream, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.length += len(data)
        return self.stream.write(data)

    def flush(self) -> None:
        self.stream.flush()


def tar_to_oci(source: Path, target: Path, marks: Marks, architecture: str, level: int) -> None:
    """A tar file of a root as an OCI archive of one layer, with variables and labels in its configuration.

    Source: OCI image specification (image-layout.md, manifest.md, config.md).
    """

    layer = target.with_name(f"{target.name}.layer")
    plain = hashlib.sha256()
    try:
        with layer.open("wb") as out, source.open("rb") as packed:
            hashing = _Hashing(out)
            with gzip.GzipFile("", "wb", level, hashing, 0) as writer:
                reader = decompressed(packed, str(source))
                while data := reader.read(_CHUNK):
                    plain.update(data)
                    writer.write(data)
        blobs = _layout(marks, architecture, plain.hexdigest(), hashing)
        with tarfile.open(target, "w") as archive:
            for name, blob in blobs.items():
                add_file(archive, name, blob)
            member = tarfile.TarInfo(f"blobs/sha256/{hashing.sha256.hexdigest()}")
            member.size = hashing.length
            with layer.open("rb") as stream:
                archive.addfile(member, stream)
    finally:
        layer.unlink(missing_ok=True)


def _layout(marks: Marks, architecture: str, diff_id: str, layer: _Hashing) -> dict[str, bytes]:
    blobs = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def described(data: bytes, kind: str) -> dict[str, Any]:
        digest = sha256_of(data)
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    variables = [f"{name}={value}" for name, value in marks.environment.items()]
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": variables, "Labels": marks.labels, "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created_by": "hpcgen convert"}],
    }
    layer_of = {
        "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
        "digest": f"sha256:{layer.sha256.hexdigest()}",
        "size": layer.length,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described(json.dumps(config).encode(), "config.v1+json"),
        "layers": [layer_of],
    }
    index = {"schemaVersion": 2, "manifests": [described(json.dumps(manifest).encode(), "manifest.v1+json")]}
    blobs["index.json"] = json.dumps(index).encode()
    return blobs


def oci_to_tar(source: Path, target: Path) -> None:
    """All layers of an OCI archive as one tar file; nothing is unpacked to the disk.

    The layers are gone through from the top: what was met already, or is hidden by a whiteout, is left out.
    """
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        flatten(archive_image(str(source)), out)


def flatten(
    image: LayoutImage, out: tarfile.TarFile, keep: Callable[[tarfile.TarInfo], bool] = lambda member: True
) -> None:
    """Write the files of an image, as a container would have them, into an open tar file; the upper layers first."""
    hidden = _Hidden()
    for number in reversed(range(image.layer_count())):
        _copy_layer(image, number, hidden, out, keep)


class _Hidden:
    """Paths that layers below can no longer show."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.covered: set[str] = set()  # everything below these is hidden too

    def has(self, path: str) -> bool:
        if path in self.seen or path in self.covered:
            return True
        return any(parent in self.covered for parent in prefixes(path)[:-1])


def _copy_layer(
    image: LayoutImage, number: int, hidden: _Hidden, out: tarfile.TarFile, keep: Callable[[tarfile.TarInfo], bool]
) -> None:
    added, covered, whited = set(), set(), set()
    missing: dict[str, list[str]] = {}
    for archive, member in members(image.layer(number), image.path):
        path = normal(member.name)
        folder, last = posixpath.split(path)
        if last == ".wh..wh..opq":
            covered.add(folder)
        elif last.startswith(".wh."):
            whited.add(posixpath.join(folder, last[4:]))
        elif path != "/" and not hidden.has(path):
            added.add(path)
            if not member.isdir():
                covered.add(path)
            link_to = normal(member.linkname)
            if member.islnk() and hidden.has(link_to):
                missing.setdefault(link_to, []).append(path)
                continue
            _rename(member, path)
            if member.islnk():
                member.linkname = f".{link_to}"
            if keep(member):
                out.addfile(member, archive.extractfile(member) if member.isreg() else None)
    if missing:
        _copy_lost_links(image, number, missing, out)
    hidden.seen |= added | whited
    hidden.covered |= covered | whited


def _rename(member: tarfile.TarInfo, path: str) -> None:
    member.name = f".{path}"
    # Extended headers would win over the name.
    member.pax_headers = {key: value for key, value in member.pax_headers.items() if key not in ("path", "linkpath")}


def _copy_lost_links(image: LayoutImage, number: int, missing: Mapping[str, list[str]], out: tarfile.TarFile) -> None:
    """Hard links whose first name a layer above replaced: the first of them becomes the file."""
    for archive, member in members(image.layer(number), image.path):
        names = missing.get(normal(member.name))
        if names is None or not member.isreg():
            continue
        stream = archive.extractfile(member)
        _rename(member, names[0])
        out.addfile(member, stream)
        for name in names[1:]:
            link = tarfile.TarInfo(f".{name}")
            link.type, link.linkname = tarfile.LNKTYPE, f".{names[0]}"
            out.addfile(link)
