"""The manifest of a bundle: every input of a lock, as a file with its hash."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import Bytes, FileName, Record, Sha256, Text, matching

ItemKind = Literal[
    "archive",
    "wheel",
    "package",
    "bazel",
    "image",
    "hpcgen",
    "document",
    "collection",
    "copied",
    "conda",
    "artifact",
    "model",
]
"""``package``: of the distribution. ``hpcgen``: hpcgen itself and what it needs. ``document``: lock, indexes, SBOMs.
``collection``: a file of a collection that the lock was made with. ``copied``: a file that the stack copies into the
image, or a list of such. ``artifact``: a file of what a block compiled, in the place of its sources. ``model``: a file
of ``run.models``, which jobs read and no image has."""
COLLECTED_FOLDERS = ("site_profiles", "recipes", "building_blocks", "engines", "schedulers", "launchers", "formats")
"""Folders of a collection that hpcgen reads."""

BundlePath = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9._+~^%!@=-]*(/[A-Za-z0-9_][A-Za-z0-9._+~^%!@=-]*)*$(?!\n)",
        "a path inside the bundle: relative, without . or ..",
        "files/a.tar.gz",
    ),
]


class WantedFile(Record, frozen=True):
    """One file that a bundle must hold.

    name: what people call it, such as ``tensorflow-cpu 2.15.1``.
    file: the file's own name.
    urls: where it is fetched from, the first that answers; ``https:`` or ``file:``, for packages of a
        distribution also ``http:``, since their hashes come from a signed index.
    size: in bytes, None if unknown.
    licence: as an SPDX expression, empty where it is not known.
    """

    kind: ItemKind
    name: Text
    file: FileName
    sha256: Sha256
    urls: list[Text]
    size: Bytes | None = None
    licence: Text = ""


class BundleItem(Record, frozen=True):
    """One file of a bundle; ``origin`` is the address that it was fetched from, or what made it."""

    kind: ItemKind
    name: Text
    origin: Text
    sha256: Sha256
    size: Bytes
    path: BundlePath
    licence: Text = ""


class Manifest(Record, frozen=True):
    """``bundle.json``. ``lock`` is the sha256 of the lock's file; ``items`` are sorted by path."""

    bundle: int
    hpcgen: Text
    site: Text
    stack: Text
    content: Sha256
    lock: Sha256
    items: list[BundleItem]
