"""The lists of what Bazel fetches by itself, as tools/list_bazel_inputs.py writes them."""

from typing import Annotated

from hpcgen.model.fields import FileName, Record, Sha256, Source, Text, matching

RepositoryName = Annotated[
    str, matching(r"^[A-Za-z0-9_][A-Za-z0-9._~+-]*$(?!\n)", "the name of a Bazel repository", "rules_cc")
]
# Some projects name mirrors that only speak http; Bazel checks the sha256 of what they send, and so does a bundle.
FileUrl = Annotated[
    str,
    matching(
        r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~/+@%:,=&?!-]*[A-Za-z0-9_~+%=-]$(?!\n)",
        "the http(s):// address of a file, without spaces or quotes",
        "https://example.org/a.tar.gz",
    ),
]


PythonPackage = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*$(?!\n)",
        "a Python package with its version",
        "six==1.16.0",
    ),
]


class BazelFile(Record, frozen=True, kw_only=False):
    """A file that Bazel fetches by its sha256 from any of ``urls``, and the repository that it makes of it.

    The last part of the first url is the file's name. A file of the Python package index has ``file`` and ``package``
    (``six==1.16.0``) instead: it is looked up in the index of whoever makes the bundle.
    """

    name: RepositoryName
    sha256: Sha256
    urls: tuple[FileUrl, ...] = ()
    file: FileName = ""
    package: PythonPackage = ""


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
    files: list[BazelFile]
    left_out: list[SkippedInput] = []
