"""The Python packages of the user's project files in a plan, each with the line that asks for it."""

from typing import Annotated

from hpcgen.core.model.fields import Digest, Record, Text, matching

BLOCK = "python_packages"
"""The block whose options ``files`` and ``groups`` name them, and which installs them."""

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

    Parameters
    ----------
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
    def line(self) -> str:
        """A line of a requirements file."""
        return f"{self.asked}{''.join(f' --hash={each}' for each in self.hashes)}"


class HandedOver(Record, frozen=True):
    """A package that a block of the plan brings instead; ``versions``: the range that the file asks for."""

    name: Text
    origin: Text
    block: Text
    versions: Text = ""


class Project(Record, frozen=True):
    """The Python packages of a project's files, for one Python on one architecture.

    Parameters
    ----------
    files: sha256 of each file that was read, by path from the folder of the stack's file.
    groups: extras and dependency groups that were asked for.
    hashed: every package has one version and its hashes: nothing else is installed.
    packages: in the order of their names.
    constraints: versions that further packages are held to, if something needs them.
    handed_over: those that blocks bring, and what comes with these.
    python: the range of Pythons that the files are for; ``python_origin``: where that is said.
    """

    files: dict[Text, Digest] = {}
    groups: list[Text] = []
    hashed: bool = False
    packages: list[ProjectPackage] = []
    constraints: list[Text] = []
    handed_over: list[HandedOver] = []
    python: Text = ""
    python_origin: Text = ""

    def where(self, name: str) -> str:
        """The line that asks for a package that is installed; empty where none does."""
        return next((each.origin for each in self.packages if each.name == name), "")
