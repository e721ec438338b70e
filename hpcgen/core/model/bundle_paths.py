"""Where things lie in a bundle. The builds read it at ``MOUNT``, read-only; nothing else of it is known to them.

Files lie by content, ``files/SHA256/NAME``, so that the same file is there once and an incremental bundle is a
difference of names. What package managers want beside that is an index that points there.
"""

from __future__ import annotations

MOUNT = "/opt/hpcgen/bundle"
"""Where a build sees the bundle."""

EVERY_IMAGE_HAS = "/srv"
"""Where a bundle is bound by Apptainer, which binds onto nothing that is not there already (/mnt gets a folder)."""

MANIFEST = "bundle.json"
LOCK = "hpcgen.lock"
SUMS = "SHA256SUMS"
"""All other files, as ``sha256sum -c`` reads them."""

SIGNATURE = f"{MANIFEST}.sig"
"""Of the manifest, where somebody signed it; the manifest cannot name it."""

LOCK_SIGNATURE = f"{LOCK}.sig"
"""Of the lock, where somebody signed that."""

FILES = "files"
IMAGES = "images"
"""An OCI image layout with the base images; each is named by :func:`image_name`."""

COLLECTIONS = "collections"
"""A folder for each collection that the lock was made with, beside hpcgen's own."""

COPIED, COPIED_LIST = "copied", "copied.list"
"""What a file that the stack copies is called beside its sha256, and a list of such files."""

APT_INDEX = "Packages"
"""Index of the .deb files, beside ``Release``: the bundle's folder is itself a flat apt repository."""

WHEEL_INDEX = "wheels.html"
"""Links to the Python packages of the image, for pip's ``--find-links``."""

HPCGEN_INDEX = "hpcgen.html"
"""The same for hpcgen itself and its dependencies."""


def file_path(sha256: str, name: str) -> str:
    """The path of a file inside the bundle."""
    return f"{FILES}/{sha256}/{name}"


def image_name(name: str) -> str:
    """The name of a base image in the OCI layout: ``debian:12`` is ``debian-12``."""
    return "".join(c if c.isalnum() or c in "._" else "-" for c in name)


def root_tar_name(name: str) -> str:
    """The name of the file that holds a base image's files as one tar archive, for ch-image."""
    return f"{image_name(name)}.root.tar"
