"""A channel of small conda packages, made of text: both formats, with prefixes to replace, for every platform."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PREFIX = "/opt/anaconda1anaconda2anaconda3"
"""What stands in files for the folder that they are installed into."""
_DATE = 1_700_000_000


class Channel:
    """Writes packages below a folder, and its index with :meth:`write`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: dict[str, dict[str, dict[str, Any]]] = {"noarch": {}, "linux-64": {}}

    def add(
        self,
        name: str,
        version: str,
        files: Mapping[str, str | bytes],
        *,
        build: str = "0",
        subdir: str = "linux-64",
        needs: Sequence[str] = (),
        licence: str = "MIT",
        format: str = "conda",
    ) -> Path:
        """One package; files below ``bin/`` are programs, and :data:`PREFIX` in a text is replaced, not in bytes."""
        index = {
            "name": name,
            "version": version,
            "build": build,
            "build_number": 0,
            "depends": list(needs),
            "subdir": subdir,
            "license": licence,
            "timestamp": _DATE * 1000,
        }
        if subdir == "noarch":
            index["noarch"] = "generic"
        paths = [_path(path, text) for path, text in sorted(files.items())]
        info: dict[str, str | bytes] = {
            "info/index.json": json.dumps(index),
            "info/paths.json": json.dumps({"paths_version": 1, "paths": paths}),
            "info/about.json": "{}",
        }
        stem = f"{name}-{version}-{build}"
        if format == "conda":
            file, data = f"{stem}.conda", _conda(stem, info, files)
        else:
            file, data = f"{stem}.tar.bz2", _tar({**info, **files}, "w:bz2")
        target = self.folder / subdir / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        said = {**index, "sha256": hashlib.sha256(data).hexdigest(), "md5": "0" * 32, "size": len(data)}
        self._index[subdir][file] = said
        return target

    def write(self) -> Channel:
        """Its ``repodata.json``."""
        for subdir, packages in self._index.items():
            kinds = {
                kind: {file: each for file, each in packages.items() if file.endswith(end)}
                for kind, end in (("packages", ".tar.bz2"), ("packages.conda", ".conda"))
            }
            data = {"info": {"subdir": subdir}, **kinds, "removed": [], "repodata_version": 1}
            (self.folder / subdir).mkdir(parents=True, exist_ok=True)
            (self.folder / subdir / "repodata.json").write_text(json.dumps(data))
        return self

    def sha256(self, name: str) -> str:
        """The hash of the one package of that name."""
        return next(str(each["sha256"]) for of in self._index.values() for each in of.values() if each["name"] == name)


def small_channel(folder: Path) -> Channel:
    """A program with its data, one that needs an MPI in two families, and one for newer systems than any."""
    made = Channel(folder)
    made.add("words", "2.0", {"share/words/list.txt": "one\ntwo\n"}, subdir="noarch", format="tar.bz2")
    made.add("words", "3.0", {"share/words/list.txt": "three\n"}, subdir="noarch", format="tar.bz2")
    program = f"#!/bin/sh\nexec cat {PREFIX}/share/words/list.txt\n"
    made.add("speak", "1.4", {"bin/speak": program}, build="h1234_0", needs=["words >=2,<3", "__glibc >=2.17"])
    made.add("future", "1.0", {"share/future": "-"}, needs=["__glibc >=9.9"])
    made.add("mpi", "1.0", {}, build="mpich", subdir="noarch")
    made.add("mpi", "1.0", {}, build="openmpi", subdir="noarch")
    for family, version in (("mpich", "4.2.3"), ("openmpi", "5.0.6")):
        library = {f"lib/lib{family}.txt": "an MPI of its own"}
        made.add(family, version, library, build="h5678_0", needs=[f"mpi 1.0 {family}"])
        made.add(family, version, {}, build="external_0", needs=[f"mpi 1.0 {family}"])
        made.add(
            "solver", "7.1", {"bin/solver": "#!/bin/sh\n"}, build=f"mpi_{family}_0", needs=[family, f"mpi * {family}"]
        )
    return made.write()


def _data(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _path(path: str, text: str | bytes) -> dict[str, Any]:
    data = _data(text)
    found: dict[str, Any] = {
        "_path": path,
        "path_type": "hardlink",
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_in_bytes": len(data),
    }
    return {**found, "prefix_placeholder": PREFIX, "file_mode": "text"} if PREFIX.encode() in data else found


def _tar(files: Mapping[str, str | bytes], mode: Any) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, text in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(_data(text)), _DATE
            member.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(_data(text)))
    return stream.getvalue()


def _conda(stem: str, info: Mapping[str, str | bytes], files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry("metadata.json"), '{"conda_pkg_format_version": 2}')
        archive.writestr(_entry(f"pkg-{stem}.tar.zst"), _zst(_tar(files, "w:")))
        archive.writestr(_entry(f"info-{stem}.tar.zst"), _zst(_tar(info, "w:")))
    return stream.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, (2023, 11, 14, 0, 0, 0))


def _zst(data: bytes) -> bytes:
    """A frame of Zstandard with blocks that are not compressed, which needs no library (RFC 8878)."""
    step = 1 << 16
    pieces = [data[at : at + step] for at in range(0, len(data), step)] or [b""]
    # The frame's header: its size in eight bytes, one segment; then each block's: last, raw, size.
    frame = struct.pack("<IBQ", 0xFD2FB528, 0b11100000, len(data))
    for number, piece in enumerate(pieces, 1):
        last = number == len(pieces)
        frame += struct.pack("<I", int(last) | len(piece) << 3)[:3] + piece
    return frame
