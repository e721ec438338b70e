"""A component of a bill of materials."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["image", "system", "package", "python", "conda", "software", "program", "file"]
"""``system``: the distribution. ``software``: from an archive or git. ``program``: of hpcgen or a block's own text."""


class Component(msgspec.Struct, frozen=True):
    """One thing with a version.

    ref: unique in the SBOM. block: the block that it is of, empty for OS packages and the base.
    sha256: of the file that it came in. url: where that file is fetched from, where the lock says so.
    where: the folder of the image that it is in, empty if it is spread.
    artifact: the key of what it was unpacked from, where it was compiled before.
    source, source_version: the source package of a distribution that it is built from, where a record says so.
    note: what a reader of the SBOM should know.
    """

    ref: str
    kind: Kind
    name: str
    version: str
    purl: str = ""
    licence: str = ""
    sha256: str = ""
    url: str = ""
    block: str = ""
    where: str = ""
    artifact: str = ""
    source: str = ""
    source_version: str = ""
    note: str = ""
