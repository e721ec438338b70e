"""What the container files of a user's project install and set, each with its line."""

from __future__ import annotations

from typing import Literal

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.model.own_project import FileWord

Manager = Literal["", "apt", "dnf", "zypper"]


class Installed(Record, frozen=True):
    """What lines of a shell install.

    manager: whose names ``system`` has; of several the first.
    system: packages of the distribution.
    python: requirements in pip's form. ``conda``: the same of conda, with ``channels``.
    r: packages of R.
    files: lists of packages that are named: requirements.txt, environment.yml.
    groups: extras with which the project itself is installed (``.[gpu]``).
    left: what is not taken.
    """

    manager: Manager = ""
    system: list[FileWord] = []
    python: list[FileWord] = []
    conda: list[FileWord] = []
    channels: list[Text] = []
    r: list[FileWord] = []
    files: list[FileWord] = []
    groups: list[FileWord] = []
    left: list[FileWord] = []


class ContainerFile(Record, frozen=True):
    """A Dockerfile, a definition file or the like.

    base: the image that it starts from.
    variables: ``NAME=VALUE``, as programs in the image see them.
    folder: where its command starts. ``copied``: where it has the project's own folder.
    command: what it starts; empty where it says nothing.
    """

    file: Text
    base: FileWord | None = None
    installed: Installed = Installed()
    variables: list[FileWord] = []
    folder: Text = ""
    copied: list[Text] = []
    command: list[Text] = []
    command_where: Position | None = None
