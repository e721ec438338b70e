"""Notebooks of a user's project."""

from __future__ import annotations

from hpcgen.core.errors import Position
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.model.own_containers import Installed


class Notebook(Record, frozen=True):
    """A notebook: its language, what its cells import, and what they install.

    ``language``: of its kernel, in lower case; empty where it does not say. ``as_text``: whether it is a text in MyST's
    Markdown rather than .ipynb.
    """

    file: Text
    language: Text = ""
    imports: dict[Text, Position] = {}
    installed: Installed = Installed()
    as_text: bool = False
