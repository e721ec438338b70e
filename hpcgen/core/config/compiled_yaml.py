"""YAML files of the built-in collection as they were read once, so that a command need not load PyYAML for them.

A file's data lies beside it where Python keeps byte code (``__pycache__``, or below ``PYTHONPYCACHEPREFIX``), as
MessagePack behind the text that it was read from: it counts only for that very text and that version of the reader.
Who may write there may write hpcgen's own byte code too, so nothing is believed that was not believed before; and it
is data, of which nothing runs. A wheel brings these files with it (``tools/compiled_collection.py``); in a checkout
each is made when the YAML is first read. Where that cannot be done, or one is damaged, the YAML is read.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec


@lru_cache(maxsize=1)
def built_in() -> Path:
    """The built-in collection: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "collection"
    return installed if installed.is_dir() else package.parent


def read(path: Path, raw: bytes) -> dict[str, Any] | None:
    """The data of the file at ``path`` with the bytes ``raw``; None if it is not known without reading the YAML."""
    place = _place(path)
    if place is None:
        return None
    try:
        with open(place, "rb") as stream:
            kept = stream.read()
        head = _head(raw)
        # A damaged file may be any MessagePack.
        return msgspec.msgpack.decode(memoryview(kept)[len(head) :], type=dict) if kept.startswith(head) else None
    except (OSError, msgspec.MsgspecError):
        return None


def keep(path: Path, raw: bytes, data: dict[str, Any]) -> None:
    """Keep what the file says, if it is of the built-in collection and Python may keep byte code."""
    place = None if sys.dont_write_bytecode else _place(path)
    if place is None:
        return
    aside = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(aside, "xb") as stream:
                stream.write(compiled(raw, data))
            aside.replace(place)
        except OSError:
            aside.unlink()


def compiled(raw: bytes, data: dict[str, Any]) -> bytes:
    """The cached data of a file."""
    return _head(raw) + msgspec.msgpack.encode(data)


def _place(path: Path) -> Path | None:
    """Where the data of a file is kept; None if it is not of the built-in collection."""
    folder = path.parent
    if not folder.is_relative_to(built_in()):
        return None
    prefix = sys.pycache_prefix
    kept = folder / "__pycache__" if prefix is None else Path(prefix, *folder.parts[1:])
    return kept / f"{path.name}.msgpack"


def _head(raw: bytes) -> bytes:
    return b"%08x %d\n%b" % (_reader(), len(raw), raw)


@lru_cache(maxsize=1)
def _reader() -> int:
    """Which version of the reader this is: another may read the same text in another way, or refuse it."""
    return crc32(Path(__file__).with_name("plain_yaml.py").read_bytes())
