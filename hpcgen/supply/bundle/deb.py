"""Read .deb files as what strangers wrote: bounded sizes, nothing unpacked to the disk under names of theirs.

A .deb is an ar archive of ``debian-binary``, ``control.tar`` and ``data.tar``, each tar compressed with gzip, xz,
zstd, or not at all. Source: deb(5), ar(5); Debian Policy 5.1 (syntax of control files).
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from hpcgen.core.errors import InputError
from hpcgen.core.support.deb822 import paragraphs
from hpcgen.images.archive import content, members, normal

if TYPE_CHECKING:
    from debian.deb822 import Deb822

CONTROL_BYTES = 1 << 20
_CONTROL_TAR = 64 << 20
_DATA_TAR = 16 << 30
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ENDINGS = ("gz", "xz", "zst", "bz2")
_ZSTD = b"\x28\xb5\x2f\xfd"


def read_control(path: Path) -> Deb822:
    """Fields of a package's control file in their order; a value keeps its further lines, each begun with a space.

    Raises
    ------
    InputError: damaged, or not the package of anything.
    """
    with path.open("rb") as stream:
        for archive, member in _tar(stream, path, "control.tar", _CONTROL_TAR):
            if normal(member.name) == "/control" and member.isreg():
                if member.size > CONTROL_BYTES:
                    raise _damaged(path, "its control file is far too large")
                return _fields(content(archive, member, str(path)), path)
    raise _damaged(path, "it has no control file")


def read_copyright(path: Path, package: str) -> str:
    """The text of ``/usr/share/doc/PACKAGE/copyright``; empty if the package has none of its own."""
    wanted = f"/usr/share/doc/{package}/copyright"
    with path.open("rb") as stream:
        for archive, member in _tar(stream, path, "data.tar", _DATA_TAR):
            if normal(member.name) == wanted:
                return content(archive, member, str(path)).decode("utf-8", "replace") if member.isreg() else ""
    return ""


def _fields(data: bytes, path: Path) -> Deb822:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise _damaged(path, "its control file is not UTF-8") from failure
    if _CONTROLS.search(text):
        raise _damaged(path, "its control file has control characters")
    found = paragraphs(text)
    if len(found) != 1:
        raise _damaged(path, f"its control file has {len(found)} paragraphs")
    missing = [each for each in ("Package", "Version", "Architecture") if not found[0].get(each)]
    if missing:
        raise _damaged(path, f"its control file lacks {', '.join(missing)}")
    return found[0]


def _tar(stream: BinaryIO, path: Path, name: str, limit: int) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The members of one of the tar files in a package."""
    from debian.arfile import ArError, ArFile

    try:
        parts = {part.name: part for part in ArFile(fileobj=stream)}
    except ArError as failure:
        raise _damaged(path, "it is not an ar archive") from failure
    except (OSError, ValueError) as failure:
        raise _damaged(path, f"it is truncated: {failure}") from failure
    found = [parts[each] for each in (name, *(f"{name}.{ending}" for ending in _ENDINGS)) if each in parts]
    if not found:
        raise _damaged(path, f"it has no {name}")
    part = cast(IO[bytes], found[0])
    first = part.read(4)
    part.seek(0)
    if first != _ZSTD:
        yield from members(part, str(path))
        return
    with _unpacked(part, path, limit) as plain:
        yield from members(plain, str(path))


def _unpacked(part: IO[bytes], path: Path, limit: int) -> IO[bytes]:
    """zstd data as a temporary file, by the program zstd: Python has it from 3.14 on alone."""
    import shutil

    from hpcgen.core.support.processes import require_program

    zstd = require_program("zstd", f"read {path.name}", "install zstd")
    plain = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    with tempfile.TemporaryFile() as packed:
        shutil.copyfileobj(part, packed, 1 << 20)
        packed.seek(0)
        process = subprocess.Popen([zstd, "-dc"], stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        with process.stdout:
            while data := process.stdout.read(1 << 20):
                if plain.write(data) and plain.tell() > limit:
                    process.kill()
                    break
        if process.wait() or plain.tell() > limit:
            plain.close()
            raise _damaged(path, "a part of it cannot be unpacked")
    plain.seek(0)
    return plain


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged: {why}", remedy="fetch it again")
