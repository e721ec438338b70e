"""What the locks of conda's tools have in common: a package by its address and its hash."""

from __future__ import annotations

from typing import Any

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.secret_rules import public
from hpcgen.readers.conda_text import file_words, subdir_of
from hpcgen.readers.yaml_file import Wrong


class Locked(msgspec.Struct):
    """What a lock says of one conda package."""

    url: str
    sha256: str | None = None
    size: int | None = None
    license: str | None = None
    depends: list[str] = []
    subdir: str | None = None


def conda_package(wrong: Wrong, said: Locked, again: str) -> CondaPackage | None:
    """The package; None where something is wrong with it, which ``wrong`` is told.

    ``again``: how the lock is written anew.
    """
    words = file_words(said.url)
    if words is None:
        wrong(
            f"{public(said.url, 120)!r} is not the address of a conda package",
            "https://…/NAME-VERSION-BUILD.conda or .tar.bz2",
            "lock a release; `copy` in the stack brings your own code into the image",
        )
        return None
    if not said.sha256:
        wrong(f"{words.name} has no sha256 in the lock", "a sha256 of each package", again)
        return None
    fields: dict[str, Any] = {
        "name": words.name,
        "version": words.version,
        "build": words.build,
        "subdir": said.subdir or subdir_of(said.url),
        "url": said.url,
        "sha256": said.sha256,
        "size": said.size,
        "licence": said.license or "",
        "depends": said.depends,
    }
    try:
        return record_from(fields, CondaPackage)
    except msgspec.ValidationError as failure:
        wrong(f"the lock's entry for {words.name} is invalid: {failure}", remedy=again)
        return None
