"""What files of conda packages of several kinds have in common: packages that are asked for, and locked ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.secret_rules import public

if TYPE_CHECKING:
    from hpcgen.readers.data_files import Wrong

LONGEST = 500
"""Characters of what is asked of one package."""
EXPECTED = "a package with its range of versions, such as numpy>=1.26,<3 or conda-forge::hdf5=1.14.*=mpi_mpich_*"
_SPEC = r"(?:[A-Za-z0-9_./:~+-]+::)?([A-Za-z0-9_][A-Za-z0-9_.-]*)(?=$|[\s=<>!~\[])"
_FILE = r"([A-Za-z0-9_.+-]+)-([A-Za-z0-9_.!+]+)-([A-Za-z0-9_.+]+)(\.conda|\.tar\.bz2)"


class FileName(NamedTuple):
    """What the name of a package's file says."""

    name: str
    version: str
    build: str


def spec_name(text: str) -> str:
    """The name of the package that ``text`` asks for, in lower case; empty where it asks for none.

    Source: https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html#package-match-specifications
    """
    if len(text) > LONGEST or not text.isprintable():
        return ""
    match = re.match(_SPEC, text.strip())
    return match[1].lower() if match else ""


def file_words(url: str) -> FileName | None:
    """What the file at an address is called; None where that is no package of conda."""
    match = re.fullmatch(_FILE, unquote(url.partition("#")[0].rpartition("/")[2]))
    return FileName(match[1].lower(), match[2], match[3]) if match else None


# Which packages of conda are built with NVIDIA's CUDA, and when a solver takes those builds.

CUDA_PACKAGES = ("cuda-version", "cudatoolkit")
"""Packages of which one is there wherever others are built with CUDA."""
WITH_CUDA = ("pytorch", "pytorch-gpu", "tensorflow", "tensorflow-gpu", "jax", "jaxlib", "cupy", "numba-cuda", "cudf")
"""Packages that conda-forge has with CUDA, and that a solver takes so where the node has a driver for it."""


def asked_with_cuda(needs: Iterable[str]) -> list[str]:
    """Names of the packages that are taken with CUDA where the node has a driver, in the order of what is asked."""
    named = ((spec_name(need), need) for need in needs)
    return [name for name, need in named if name in (*CUDA_PACKAGES, *WITH_CUDA) and "cpu" not in need]


# What the locks of conda's tools have in common: a package by its address and its hash.


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
        "subdir": said.subdir or said.url.rpartition("/")[0].rpartition("/")[2],
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
