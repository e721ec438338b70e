"""Python packages that the files of the user's project ask for, each with its line: as read, and as a plan has them."""

from __future__ import annotations

from typing import Annotated, Literal

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Commit, Digest, GitReference, Record, SourceAddress, Text, matching

# Python packages that a user's own files ask for, each with the place where it does.

FileKind = Literal["requirements", "pylock", "uv", "poetry", "pdm", "pyproject", "setup"]


class Needed(Record, frozen=True):
    """A dependency of a package of a lock, or of the project itself.

    name: of the other, in its normal form.
    version: which of several versions in the lock is meant; empty where there is only one.
    extras: of the other that are wanted.
    marker: in which environments (PEP 508); empty for all.
    extra: with which extra of the package that needs it; empty for always.
    """

    name: Text
    version: Text = ""
    extras: list[Text] = []
    marker: Text = ""
    extra: Text = ""


class KnownWheel(Record, frozen=True):
    """A file of a package that a lock names: its name, which has its tags, and its hash, where the lock has it."""

    file: Text
    sha256: Digest | None = None


class PackageRequirement(Record, frozen=True):
    """One Python package that a file asks for.

    name: in its normal form (PEP 503): ``scikit-learn``.
    where: file, line and column that say so; the file by its path from the folder of the project.
    extras: of it that are wanted, sorted.
    specifier: a range of versions (PEP 440); empty for any.
    version: the one version that is meant, where there is one.
    marker: in which environments (PEP 508); empty for all.
    hashes: of the files of it that are accepted; with any, nothing else is.
    wheels: the wheels that a lock names; empty where a file does not name any.
    sdist: the source package that a lock names.
    needs: what it needs in turn, where the lock keeps a graph of all packages.
    """

    name: Text
    where: Position
    extras: list[Text] = []
    specifier: Text = ""
    version: Text = ""
    marker: Text = ""
    hashes: list[Digest] = []
    wheels: list[KnownWheel] = []
    sdist: KnownWheel | None = None
    needs: list[Needed] = []

    @property
    def origin(self) -> str:
        """Where it is asked for: ``requirements.txt:3``, or ``--add``, which has no lines."""
        return f"{self.where.file}:{self.where.line}" if self.where.line else self.where.file

    @property
    def asked(self) -> str:
        """What is asked for, in pip's form without marker and hashes: ``dask[array]>=2024.1``."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.specifier}"

    @property
    def line(self) -> str:
        """The whole in pip's form, on one line."""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.asked}{marker}{''.join(f' --hash={each}' for each in self.hashes)}"


class GitRequirement(PackageRequirement, frozen=True, kw_only=True):
    """A package that a file takes from a git repository.

    ``url``: of the repository. ``commit``: all 40 digits; None of what moves. ``folder``: of the package in the
    repository; empty for its top. ``reference``: a branch or tag, or HEAD, where no commit is named. ``editable``: it
    is used from the repository's own files (``-e``), which may be more than it installs.
    """

    url: SourceAddress
    commit: Commit | None = None
    folder: Text = ""
    reference: GitReference | None = None
    editable: bool = False

    @property
    def asked(self) -> str:
        """In pip's form: ``clip @ git+https://example.org/clip.git@COMMIT#subdirectory=python``."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        folder = f"#subdirectory={self.folder}" if self.folder else ""
        return f"{self.name}{extras} @ git+{self.url}@{self.commit or self.reference}{folder}"


class FileNote(Record, frozen=True):
    """What a file says and hpcgen decides otherwise, without harm: for the user to know."""

    text: Text
    where: Position


class PackageFile(Record, frozen=True):
    """The Python packages of one file of a user's project, with the files that it includes.

    file: its path from the project's folder.
    kind: what it is.
    locked: whether it has every package that is installed in one version; else versions are still to be chosen.
    requirements: what it asks for, with :class:`GitRequirement` among them; of a lock all its packages. Of a graph
        (``roots``) not all are wanted everywhere.
    constraints: versions that others are held to if something asks for them (``-c``).
    groups: further packages by the name of an extra (``[project.optional-dependencies]``) or of a group
        (``[dependency-groups]``), which are installed only where somebody names it.
    roots: where a lock keeps a graph, what the project itself needs; with ``extra`` set to a group's name, what
        that group does.
    group_names: groups and extras that the file knows, beside those that are installed anyhow.
    default_groups: those of ``pylock.toml`` that are installed anyhow.
    ranges: of a lock, what the project itself asks for, by name, where the lock says that too.
    requires_python: the range of Pythons that it is for; empty for any.
    python_where: where it says so.
    notes: lines without an effect here. refused: names of packages on lines that are no requirements.
    read: sha256 of each file that was read, by path from the project's folder.
    """

    file: Text
    kind: FileKind
    locked: bool = False
    requirements: list[PackageRequirement] = []
    constraints: list[PackageRequirement] = []
    groups: dict[Text, list[PackageRequirement]] = {}
    roots: list[Needed] = []
    group_names: list[Text] = []
    default_groups: list[Text] = []
    ranges: dict[Text, Text] = {}
    requires_python: Text = ""
    python_where: Position | None = None
    notes: list[FileNote] = []
    refused: list[FileNote] = []
    read: dict[Text, Digest] = {}

    @property
    def hashed(self) -> bool:
        """Whether every package has a hash, so that the file alone decides what is installed."""
        indexed = [each for each in self.requirements if not isinstance(each, GitRequirement)]
        return self.locked and bool(indexed) and all(each.hashes for each in indexed)


BLOCK = "python_packages"
"""The block whose options ``files`` and ``groups`` name them, and which installs them."""

LOCKED = "project"
"""What the list of the packages is called that a project's own lock has with hashes."""

ProjectPath = Annotated[
    str,
    matching(
        r"^(?!/)[^,\x00-\x1f\x7f-\x9f\u2028\u2029]+$(?!\n)",
        "a path from the folder of the stack's file, without commas and control characters",
        "requirements.txt",
    ),
]
"""A file of the project that a block reads; commas are between several of them in ``--set``."""


class ProjectPackage(Record, frozen=True):
    """One package that is installed as the file says.

    name: in its normal form (PEP 503).
    asked: in pip's form without marker and hashes: ``dask[array]>=2024.1``.
    origin: file and line: ``uv.lock:31``.
    version: the one version that is meant; empty of a range.
    hashes: of the files that are accepted.
    file: the wheel that a lock names for this image; empty where it names none, or none that suits.
    others: wheels of a lock where none of them suits this image.
    sdist: the source package that a lock names.
    direct: whether the project itself names it, as far as that is known of a lock.
    """

    name: Text
    asked: Text
    origin: Text
    version: Text = ""
    hashes: list[Digest] = []
    file: Text = ""
    others: list[Text] = []
    sdist: Text = ""
    direct: bool = False

    @property
    def as_source(self) -> bool:
        """Whether a lock has nothing but the source package for this image."""
        return bool(self.sdist) and not self.file and len(self.hashes) == 1

    @property
    def line(self) -> str:
        """A line of a requirements file."""
        return f"{self.asked}{''.join(f' --hash={each}' for each in self.hashes)}"


class HandedOver(Record, frozen=True):
    """A package that a block of the plan brings instead; ``versions``: the range that the file asks for."""

    name: Text
    origin: Text
    block: Text
    versions: Text = ""


class GitPackage(Record, frozen=True):
    """A package that is built from a repository; see :class:`GitRequirement`. ``origin``: file and line.

    A lock has the commit of the reference beside it.
    """

    name: Text
    origin: Text
    url: SourceAddress
    commit: Commit | None = None
    folder: Text = ""
    reference: GitReference | None = None
    editable: bool = False

    @classmethod
    def of(cls, asked: GitRequirement) -> GitPackage:
        """The one that a line of a file asks for."""
        words = {name: getattr(asked, name) for name in ("name", "origin", "url", "commit", "folder", "reference")}
        return cls(**words, editable=asked.editable)

    @property
    def at(self) -> str:
        """The commit, or what stands for one on the day of the build."""
        return self.commit or self.reference or "HEAD"


class Project(Record, frozen=True):
    """The Python packages of a project's files, for one Python on one architecture.

    files: sha256 of each file that was read, by path from the folder of the stack's file.
    groups: extras and dependency groups that were asked for.
    hashed: every package has one version and its hashes: nothing else is installed.
    packages: in the order of their names.
    constraints: versions that further packages are held to, if something needs them.
    handed_over: those that blocks bring, and what comes with these.
    python: the range of Pythons that the files are for; ``python_origin``: where that is said.
    from_git: packages of git repositories.
    absent: packages that blocks bring and no block of this plan does, which pip may not bring either.
    notes: lines of the files without an effect, and why.
    """

    files: dict[Text, Digest] = {}
    groups: list[Text] = []
    hashed: bool = False
    packages: list[ProjectPackage] = []
    constraints: list[Text] = []
    handed_over: list[HandedOver] = []
    python: Text = ""
    python_origin: Text = ""
    from_git: list[GitPackage] = []
    absent: list[Text] = []
    notes: list[Text] = []

    def where(self, name: str) -> str:
        """The line that asks for a package that is installed; empty where none does."""
        return next((each.origin for each in self.packages if each.name == name), "")
