"""A folder of many files → one squashfs file, which a job binds: shared file systems are slow at many small files."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from hpcgen.backends.engines.common import MKSQUASHFS_OPTIONS
from hpcgen.core.errors import ConversionFailedError, InputError, OutputError
from hpcgen.core.model.host_data import PACKED
from hpcgen.core.model.site import Site, SquashfsCompressor
from hpcgen.core.support.placing import PARTIAL, put_in_place, refusal, remove
from hpcgen.core.support.processes import interruptible, require_program, stream
from hpcgen.core.support.progress import LINE_S
from hpcgen.core.support.striping import stripe
from hpcgen.core.support.units import files, size

_PERCENT = re.compile(r"(\d{1,3})%\s*$")
"""The end of a progress bar of mksquashfs."""
_OPTIONS = ("-noappend", "-no-xattrs", "-exit-on-error", "-mkfs-time", "0")
"""Without the date of the packing, and stopping at a file that cannot be read, which would be empty otherwise."""


class DataPack(msgspec.Struct, frozen=True):
    """What was packed: ``files`` and links, ``bytes`` in them, ``packed_bytes`` of the result."""

    path: Path
    files: int
    bytes: int
    packed_bytes: int
    compressor: SquashfsCompressor
    seconds: float

    @property
    def bind(self) -> str:
        """What ``--bind`` takes."""
        return f"{self.path}:/data"


def compressor_at(site: Site | None) -> tuple[SquashfsCompressor, str]:
    """What a site's preferred engine is known to mount, and why that was chosen."""
    if site is None:
        return "gzip", "no site is named, and every site can mount gzip"
    name = site.containers.preferred
    engine = site.containers.engines.get(name)
    if engine is not None and engine.squashfs == "zstd":
        return "zstd", f"the profile of {site.name} states it for {name}"
    return "gzip", f"the profile of {site.name} does not state `squashfs: zstd` for {name}"


def pack(
    folder: Path,
    output: Path,
    compressor: SquashfsCompressor = "gzip",
    *,
    fixed_times: bool = False,
    force: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> DataPack:
    """Pack a folder with all processors that this process may use. The same files give the same bytes.

    fixed_times: files get the date 0, so that copies of other dates give the same bytes too.
    force: an existing ``output`` is replaced, once the new one is whole.
    tell: told how far it is, every 15 s.
    InputError: ``folder`` is no folder, or cannot be read. OutputError: ``output`` cannot be written there.
    MissingToolError: mksquashfs is not here. ConversionFailedError: it fails, such as at a file that cannot be read.
    """
    _check(folder, output, force)
    program = require_program("mksquashfs", "pack data", "install squashfs-tools 4.4 or later")
    count, total = _counted(folder)
    tell(f"packing {files(count)}, {size(total)}")
    temporary = output.with_name(f"{PARTIAL}{secrets.token_hex(4)}-{output.name}")
    processors = ["-processors", str(len(os.sched_getaffinity(0)))]
    times = ["-all-time", "0"] if fixed_times else []
    words = [program, str(folder), str(temporary), *_OPTIONS, *processors, *times, *MKSQUASHFS_OPTIONS[compressor]]
    began = time.monotonic()
    try:
        stripe(temporary, total)
        with interruptible():
            _run(words, tell)
        put_in_place(temporary, output)
    finally:
        remove(temporary)
    seconds = round(time.monotonic() - began, 1)
    return DataPack(output, count, total, output.stat().st_size, compressor, seconds)


def _check(folder: Path, output: Path, force: bool) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder", "DIR", remedy="name the folder with the data")
    if not output.name.endswith(PACKED):
        raise OutputError(
            f"{output}: binds recognise packed data by the name",
            "--output",
            expected=f"a name ending in {' or '.join(PACKED)}",
            remedy=f"-o {folder.name}{PACKED[0]}",
        )
    if output.is_dir() or (output.exists() and not force):
        raise refusal(output, "it exists", "add --force to replace it, or write elsewhere with -o")
    if not output.parent.is_dir():
        raise refusal(output, f"there is no {output.parent}", "make that folder first")
    if output.resolve().is_relative_to(folder.resolve()):
        raise refusal(output, "it is inside the folder that is packed", "write elsewhere with -o")


def _counted(folder: Path) -> tuple[int, int]:
    """Files and links below a folder, and the bytes in files; InputError for a folder that cannot be listed."""
    count = total = 0
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    count += 1
                    total += entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
        except OSError as failure:
            message = f"cannot read {failure.filename}: {failure.strerror}"
            raise InputError(message, "DIR", remedy="make it readable, or move it away") from failure
    return count, total


def _run(words: list[str], tell: Callable[[str], None]) -> None:
    told, tail = time.monotonic(), [""]

    def update(text: str) -> None:
        nonlocal told
        found = _PERCENT.search(text)
        if found is not None and time.monotonic() - told > LINE_S:
            told = time.monotonic()
            tell(f"packing: {found[1]} %")

    def keep(line: str) -> None:
        tail[:] = [*tail, line.strip()][-8:] if line.strip() else tail

    status = stream(words, keep, on_update=update)
    if status != 0:
        said = "\n".join(f"  | {line}" for line in tail if line)
        remedy = "make the named files readable, or check whether the disk is full; mksquashfs must be 4.4 or later"
        raise ConversionFailedError(f"mksquashfs ended with status {status}:\n{said}", remedy=remedy)
