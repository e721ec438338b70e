"""Files that Bazel fetches itself: the lists of collections, and the pins of a lock for which Bazel was run."""

from typing import Annotated

from hpcgen.core.model.fields import FileName, Record, Sha256, Source, Text, Version, matching

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


RegistryPath = Annotated[
    str,
    matching(
        r"^([0-9]{1,2}(/[A-Za-z0-9_][A-Za-z0-9._+-]*){1,8})?$(?!\n)",
        "the number of a module registry, and a path in it",
        "0/modules/rules_cc/0.0.9/source.json",
    ),
]


class BazelFile(Record, frozen=True, kw_only=False):
    """A file that Bazel fetches by its sha256 from any of ``urls``, and the repository that it makes of it.

    The last part of the first url is the file's name, unless ``file`` says it. A file of the Python package index has
    ``file`` and ``package`` (``six==1.16.0``) instead: it is looked up in the index of whoever makes the bundle.
    ``pip``: it is not Bazel that asks for it, but the pip that a rule starts. ``registry``: the number of a module
    registry and the path that the file has there.
    """

    name: RepositoryName
    sha256: Sha256
    urls: tuple[FileUrl, ...] = ()
    file: FileName = ""
    package: PythonPackage = ""
    pip: bool = False
    registry: RegistryPath = ""


class BazelPin(Record, frozen=True):
    """Files that Bazel fetched for one workspace when it was run for the lock.

    ``bazel``: its version. ``call``: a hash of what was run, by which another lock knows whether it still holds.
    """

    bazel: Version
    call: Sha256
    files: list[BazelFile] = []


class SkippedInput(Record, frozen=True):
    """Something of the workspace that the list does not hold: what it is, where it is written, and why not."""

    name: Text
    at: Text
    why: Text


class UnknownFile(Record, frozen=True):
    """What a build is known to fetch, of which no public sha256 was found: whoever makes a bundle is told."""

    name: RepositoryName
    urls: tuple[FileUrl, ...] = ()
    why: Text = ""


class BazelList(Record, frozen=True):
    """``building_blocks/bazel/NAME.yaml``.

    ``source`` says which files the list was read from. ``unknown``: what a build needs besides ``files``.
    ``left_out`` is for people: hpcgen does not read it.
    """

    source: Source
    files: list[BazelFile]
    unknown: list[UnknownFile] = []
    left_out: list[SkippedInput] = []
