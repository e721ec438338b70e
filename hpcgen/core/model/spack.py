"""Spack environments: what a user's own spack.yaml asks for, and the sources of what is chosen for it."""

from __future__ import annotations

from typing import Annotated

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Digest, Record, Sha256, Text, Url, matching
from hpcgen.core.model.project import FileNote

SpackPath = Annotated[
    str,
    matching(
        r"^[0-9a-f]{2}/[0-9a-f]{64}(\.[A-Za-z0-9]+){0,3}$(?!\n)",
        "a source by its sha256, with the ending of its name",
        "ab/ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269.tar.gz",
    ),
]


class SpackSettings(Record, frozen=True):
    """What a file says of one package, or of ``all``: each text is a part of a spec."""

    version: list[Text] = []
    variants: list[Text] = []
    require: list[Text] = []
    prefer: list[Text] = []
    conflict: list[Text] = []


class SpackSpec(Record, frozen=True):
    """A spec and where a file has it; the file by its path from the folder of the project."""

    spec: Text
    where: Position


class SpackFile(Record, frozen=True):
    """What a spack.yaml asks for.

    specs: that are installed.
    words: specs of ``packages``, which count only for what is installed.
    unify: as Spack has it: ``true``, ``false`` or ``when_possible``.
    mpi: an MPI that a spec names; the image's takes its place.
    notes: parts of the file without an effect, and why.
    read: sha256 of what was read, by path.
    """

    file: Text
    specs: list[SpackSpec] = []
    words: list[SpackSpec] = []
    packages: dict[Text, SpackSettings] = {}
    unify: Text = ""
    mpi: Text = ""
    notes: list[FileNote] = []
    read: dict[Text, Digest] = {}


class SpackSource(Record, frozen=True):
    """A file that a package is made from.

    package: name and version: ``bzip2@1.0.8``.
    path: where Spack's mirrors have it, below ``_source-cache/archive``.
    url: its own address; "" where that is not https.
    """

    package: Text
    path: SpackPath
    sha256: Sha256
    url: Url | None = None

    @property
    def file(self) -> str:
        """The name of the file in a mirror."""
        return self.path.rpartition("/")[2]


class SpackPin(Record, frozen=True):
    """What was chosen for an environment: Spack's own lock as one line of JSON, and the sources of all that it has."""

    lock: Text
    sources: list[SpackSource] = []


class PlannedSpack(Record, frozen=True):
    """The Spack environment of a project's files.

    files: sha256 of each file that was read, by path from the folder of the stack's file.
    specs, packages, unify: as :class:`SpackFile` has them.
    target: archspec's name, which is Spack's too, of the nodes' CPU, or of the nearest that the compiler knows.
    notes: lines of the files without an effect, and why.
    chosen: what a lock has for it.
    """

    files: dict[Text, Digest] = {}
    specs: list[Text] = []
    packages: dict[Text, SpackSettings] = {}
    unify: Text = ""
    target: Text = ""
    notes: list[Text] = []
    chosen: SpackPin | None = None
