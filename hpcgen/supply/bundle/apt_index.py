"""The apt repository that a bundle is: ``Packages`` and ``Release`` over the .deb files, and their licences.

Read by apt as a flat repository, ``deb [trusted=yes] file:/opt/hpcgen/bundle ./``: it is not signed, since the
bundle's own sums vouch for it. Sources: sources.list(5) "exact path"; Debian's wiki, DebianRepository/Format;
copyright-format 1.0.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from email.utils import formatdate
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, Problems
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.image_paths import APT_INDEX
from hpcgen.core.support.deb822 import paragraphs
from hpcgen.core.support.hashing import sha256_of
from hpcgen.images.archive import content, members, normal

if TYPE_CHECKING:
    from debian.deb822 import Deb822

RELEASE = "Release"
_LICENCES = Path(__file__).with_name("debian_licences.yaml")
# What the index says of a file itself; a control file may not.
_OWN = {"filename", "size", "md5sum", "sha1", "sha256", "sha512"}
_FORMAT = re.compile(r"https?://www\.debian\.org/doc/(packaging-manuals/)?copyright-format/1\.0/?")


def write_apt_index(bundle: Path, packages: Sequence[BundleItem], epoch: int) -> None:
    """Write ``Packages`` and ``Release``. The same packages give the same bytes.

    bundle: the bundle's folder; the packages lie in it already.
    epoch: the date of the index, in seconds since 1970.
    InputError: packages that cannot be read, all of them.
    OutputError: the bundle cannot be written.
    """
    from hpcgen.core.support.writing import write_file

    stanzas: list[tuple[tuple[str, ...], str]] = []
    problems = Problems()
    for item in packages:
        with problems.caught():
            stanzas.append(_stanza(bundle / item.path, item))
    problems.raise_as(InputError)
    index = "\n".join(text for _, text in sorted(stanzas))
    write_file(bundle / APT_INDEX, index)
    write_file(bundle / RELEASE, release(index, epoch))


def release(index: str, epoch: int) -> str:
    """The ``Release`` file for the text of ``Packages``."""
    data = index.encode("utf-8")
    date = formatdate(epoch, usegmt=True).replace("GMT", "UTC")
    lines = [
        "Origin: hpcgen",
        "Label: hpcgen bundle",
        f"Date: {date}",
        "SHA256:",
        f" {sha256_of(data)} {len(data)} {APT_INDEX}",
    ]
    return "\n".join([*lines, ""])


def _stanza(path: Path, item: BundleItem) -> tuple[tuple[str, ...], str]:
    """A package's paragraph, with what it is sorted by."""
    fields = read_control(path)
    key = (fields["Package"], fields["Version"], fields["Architecture"])
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", key[0]):
        raise InputError(f"{path} says that it is a package named {key[0][:60]!r}", remedy="fetch it again")
    for name in _OWN:
        fields.pop(name, None)
    fields.update({"Filename": item.path, "Size": str(item.size), "SHA256": item.sha256})
    return (*key, item.path), fields.dump()


def deb_licence(path: Path) -> str:
    """The SPDX expression for all that a package's source says of its files; empty unless every name is known.

    A licence is taken only from a copyright file in Debian's machine-readable format. Nothing is guessed.
    """
    try:
        package = read_control(path)["Package"]
        return spdx_of(read_copyright(path, package))
    except HpcgenError:
        return ""


def spdx_of(text: str) -> str:
    """The SPDX expression of a machine-readable copyright file; empty if it is none or has an unknown licence."""
    stanzas = paragraphs(text)
    if not stanzas or not _FORMAT.fullmatch(stanzas[0].get("format", "")):
        return ""
    named = [each.get("license", "").split("\n")[0].strip() for each in stanzas if "files" in each]
    if not named:
        return ""
    found = [_expression(each) for each in dict.fromkeys(named)]
    if not all(found):
        return ""
    parts = sorted(set(found))
    return parts[0] if len(parts) == 1 else " AND ".join(f"({each})" if " OR " in each else each for each in parts)


def _expression(short: str) -> str:
    """One ``License`` line. ``and`` binds closer than ``or``, and a comma before either looser than both."""
    parts = re.split(r",\s+(and|or)\s+", short)
    words = {each.lower() for each in parts[1::2]}
    if len(words) > 1 or "," in "".join(parts[::2]):
        return ""
    return _joined((_operands(each, ("or", "and")) for each in parts[::2]), words.pop() if words else "and")


def _operands(text: str, words: Sequence[str]) -> str:
    """What stands between these words, of which each binds closer than the one before it; below them are names."""
    if not words:
        return _short_names().get(text.lower(), "")
    parts = re.split(rf"\s+{words[0]}\s+", text.strip(), flags=re.IGNORECASE)
    return _joined((_operands(each, words[1:]) for each in parts), words[0])


def _joined(parts: Iterable[str], word: str) -> str:
    found = list(dict.fromkeys(parts))
    if not all(found):
        return ""
    inner = [f"({each})" if len(found) > 1 and word == "and" and " OR " in each else each for each in found]
    return f" {word.upper()} ".join(inner)


@cache
def _short_names() -> dict[str, str]:
    return msgspec.yaml.decode(_LICENCES.read_bytes(), type=dict[str, str])


# Read .deb files as what strangers wrote: bounded sizes, nothing unpacked to the disk under names of theirs.
#
# A .deb is an ar archive of ``debian-binary``, ``control.tar`` and ``data.tar``, each tar compressed with gzip, xz,
# zstd, or not at all. Source: deb(5), ar(5); Debian Policy 5.1 (syntax of control files).

CONTROL_BYTES = 1 << 20
_CONTROL_TAR = 64 << 20
_DATA_TAR = 16 << 30
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ENDINGS = ("gz", "xz", "zst", "bz2")
_ZSTD = b"\x28\xb5\x2f\xfd"


def read_control(path: Path) -> Deb822:
    """Fields of a package's control file in their order; a value keeps its further lines, each begun with a space.

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
            raise _damaged(path, "a member cannot be unpacked")
    plain.seek(0)
    return plain


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged: {why}", remedy="fetch it again")
