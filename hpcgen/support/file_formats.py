"""The numbers of hpcgen's own file formats, and what is said of a file that a newer release wrote.

A file without a number is of format 1. docs/file-formats.md says what is promised.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hpcgen.errors import InputError
from hpcgen.support.quoting import NAME_PATTERN

_NUMBER = re.compile(r"[0-9]{1,9}")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")


class NewerFormatError(InputError):
    """A file of a format that only newer releases read: nothing is wrong with it."""


class FileFormat(NamedTuple):
    """A format: the field with its number, the newest number that this release reads, what writes such a file."""

    field: str
    newest: int
    command: str

    def check(self, data: object, name: str) -> None:
        """Refuse what a newer release wrote; anything that is no mapping is left to its own reader.

        Parameters
        ----------
        data: what is in the file.
        name: what messages call it.

        Raises
        ------
        NewerFormatError: its number is not known here.
        InputError: it has something else for a number.
        """
        if not isinstance(data, dict):
            return
        # YAML is read without guessing types, so there a number is text.
        said = data.get(self.field, 1)
        number = int(said) if isinstance(said, str) and _NUMBER.fullmatch(said) else said
        if type(number) is not int or number < 1:
            raise InputError(
                f"{name} is damaged: `{self.field}` is {ascii(number)[:40]}",
                expected="the number of its format, from 1 on",
                remedy=f"get it again from its source, or regenerate it with: {self._command(data)}",
            )
        if number > self.newest:
            wrote = data.get("hpcgen")
            known = isinstance(wrote, str) and _RELEASE.fullmatch(wrote) is not None
            raise NewerFormatError(
                f"{name} was made by a newer hpcgen (format {number}; this one reads up to {self.newest})",
                remedy=f"use hpcgen {f'>= {wrote}' if known else 'of the release that wrote it'}, "
                f"or regenerate it with: {self._command(data)}",
            )

    def _command(self, data: dict[Any, Any]) -> str:
        """What writes such a file, with the site and the stack of this one where they are names."""
        command = self.command
        for word, said in (("SITE", data.get("site")), ("STACK", data.get("stack"))):
            name = said.get("name") if isinstance(said, dict) else said
            if isinstance(name, str) and re.search(NAME_PATTERN, name):
                command = command.replace(f" {word} ", f" {name} ")
        return command


KIT = FileFormat("plan", 2, "hpcgen render --site SITE --stack STACK -o DIR")
"""A kit's number is that of its plan. Kits of format 1 have sentences for reasons, and no recipe.json."""
LOCK = FileFormat("lock", 1, "hpcgen lock --site SITE --stack STACK -o FILE")
BUNDLE = FileFormat("bundle", 1, "hpcgen bundle create --lock FILE -o DIR")
INCREMENT = FileFormat("increment", 1, "hpcgen bundle diff OLD NEW -o DIR")
RECORD = FileFormat("record", 2, "hpcgen build")
"""Records of format 1 call a skipped test "left out"."""
FLEET_LOCK = FileFormat("fleet_lock", 1, "hpcgen build --all")
CAPTURE = FileFormat("capture", 1, "hpcgen site capture DIR")
"""A captured tree's number is in its capture.json."""
