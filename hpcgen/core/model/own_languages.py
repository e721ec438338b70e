"""Projects in R and Julia: what their files ask for."""

from __future__ import annotations

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.model.own_project import FileWord


class LanguageProject(Record, frozen=True):
    """What a file of a project in R or Julia says.

    version: of the language that it is for; empty for any.
    packages: their names, in the file's order. ``locked``: whether it has the one version of each.
    others: those of them that come from elsewhere than the language's own archive; ``bioconductor``: from that.
    """

    file: Text
    version: Text = ""
    version_where: Position | None = None
    packages: list[FileWord] = []
    others: list[FileWord] = []
    locked: bool = False
    bioconductor: list[FileWord] = []
