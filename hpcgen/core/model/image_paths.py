"""Places inside images, and in bundles, that more than one part of hpcgen speaks of."""

from __future__ import annotations

SELFTEST = "/opt/hpcgen/selftest.sh"
"""The self-test script."""

NOTEST = "HPCGEN_NOTEST"
"""The build argument, and the variable of a caller, by which the self-test at the end of a build is left out."""

EMULATE = "HPCGEN_EMULATE"
"""The variable of a caller by which a build for another architecture than the machine's is emulated."""

ACCEPT_LICENCES = "HPCGEN_ACCEPT_LICENCES"
"""The variable of a caller with the names of licences that are accepted, separated by commas; ``all`` for every one."""

OWN_FOLDER = ".hpcgen"
"""What hpcgen writes into a user's project lies there: no image has it, and git ignores it."""

SUBMIT_FOLDER = "/mnt/0"
"""Where a job sees the folder that it is started in, for engines that do not show it by themselves.

Charliecloud makes /mnt/0 to /mnt/9 in every image that it converts (ch-convert, hpc/charliecloud v0.26 and later);
other builders do not, and an image is read-only while it runs, so every image gets the folder when it is built.
"""

CONTENT_LABEL = "io.hpcgen.content"
"""The label of an image with the hash of its plan."""

ARTIFACTS_LABEL = "io.hpcgen.artifacts"
"""The label of an image with the origin of each block that was compiled before, as JSON by the block's name."""

STORED_BASES = "localhost/hpcgen-base/"
"""With this begins what a base image that comes from a file or a bundle is called in an engine's store."""

KIT = "/opt/hpcgen/kit"
"""The kit that the image was built from: plan, lock, recipe, build script, job script."""

EXTENDED = "/opt/hpcgen/extended"
"""Kits of the images that this one was added to, each in a folder by the first 12 digits of its plan's hash."""

ADDED = "/opt/hpcgen/added"
"""What apt and pip say of what they brought into a finished image: addresses, versions and hashes."""

KIT_PATH = r"[A-Za-z0-9][A-Za-z0-9._+-]*(?:/[A-Za-z0-9][A-Za-z0-9._+-]*){0,3}"
"""A file of a kit by its path below it: nothing in there can lead out of the kit or needs quotes."""


def overlap(one: str, other: str) -> bool:
    """Whether of two absolute paths one is the other, or lies in it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


COPY_TARGET = r"/(?:opt/(?!hpcgen)[A-Za-z0-9_][A-Za-z0-9._+-]*|app|data)(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*)*"
"""Where a stack's own files may lie in the image: where neither the distribution nor hpcgen puts anything.

Not /srv, where a definition file's build sees its bundle. Nothing in there can lead elsewhere or needs quotes.
"""

SCRATCH = "/opt/hpcgen/build"
"""Where downloads and builds lie in the builder stage; removed at its end.

Not below /tmp: ch-image and Apptainer show the building machine's own /tmp to the steps, so files of two builds
would meet there, and stay behind.
"""

BUILT_WHEELS = "/opt/hpcgen/wheels"
"""Where blocks leave the Python packages that they compile, in the builder stage, until they are installed."""


# Where things lie in a bundle. The builds read it at ``MOUNT``, read-only; nothing else of it is known to them.
#
# Files lie by content, ``files/SHA256/NAME``, so that the same file is there once and an incremental bundle is a
# difference of names. What package managers want beside that is an index that points there.

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

BUNDLED_ARTIFACTS = "artifacts"
"""A store of what blocks compiled, in the place of their sources."""

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
