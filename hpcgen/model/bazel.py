"""The lists of what Bazel fetches by itself, as tools/list_bazel_inputs.py writes them."""

from typing import Annotated

import msgspec

from hpcgen.model.bundle import FileName
from hpcgen.model.fields import Record, Sha256, Source, Text

RepositoryName = Annotated[
    str,
    msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._~+-]*$(?!\n)", description="the name of a Bazel repository"),
]
# Some projects name mirrors that only speak http; Bazel checks the sha256 of what they send, and so does a bundle.
FileUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~/+@%:,=&?!-]*[A-Za-z0-9_~+%=-]$(?!\n)",
        description="the http(s):// address of a file, without spaces or quotes",
    ),
]


PythonPackage = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*$(?!\n)",
        description="a Python package with its version: NAME==VERSION",
    ),
]


class BazelEntry(Record, frozen=True):
    """A file that Bazel fetches by its hash, from any of ``urls``, the first of which gives it its name.

    A file of the Python package index has ``file`` and ``package`` (``six==1.16.0``) instead: it is looked up in the
    index of whoever makes the bundle.
    """

    name: RepositoryName
    sha256: Sha256
    urls: list[FileUrl] = []
    file: FileName | None = None
    package: PythonPackage | None = None


class SkippedInput(Record, frozen=True):
    """Something of the workspace that the list does not hold: what it is, where it is written, and why not."""

    name: Text
    at: Text
    why: Text


class BazelList(Record, frozen=True):
    """``building_blocks/bazel/NAME.yaml``.

    ``source`` says which files the list was read from. ``left_out`` is for people: hpcgen reads ``files`` alone.
    """

    source: Source
    files: list[BazelEntry]
    left_out: list[SkippedInput] = []
