"""The numbers of hpcgen's own file formats, and what is said of a file that a newer release wrote.

A file without a number is of format 1. What a newer release wrote needs a newer release here: whoever has the file may
have no means to make it again, such as behind an air gap. docs/file-formats.md says what is promised.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hpcgen._version import __version__
from hpcgen.core.errors import InputError
from hpcgen.core.support.quoting import NAME_PATTERN

_NUMBER = r"[0-9]{1,9}"
_RELEASE = r"[0-9][0-9A-Za-z.+-]{0,40}"


class NewerFormatError(InputError):
    """A valid file of a format that only newer releases read."""


class FileFormat(NamedTuple):
    """A format: the field with its number, the newest number that this release reads, what writes such a file.

    ``elsewhere``: that is usually another machine, so that it cannot be written again where it is read.
    """

    field: str
    newest: int
    command: str
    elsewhere: bool = False

    def check(self, data: object, name: str) -> None:
        """Refuse what a newer release wrote; anything that is no mapping is left to its own reader.

        data: what is in the file.
        name: what messages call it.
        NewerFormatError: its number is not known here.
        InputError: it has something else for a number.
        """
        if not isinstance(data, dict):
            return
        # YAML is read without guessing types, so there a number is text.
        said = data.get(self.field, 1)
        number = int(said) if isinstance(said, str) and re.fullmatch(_NUMBER, said) else said
        if type(number) is not int or number < 1:
            raise InputError(
                f"{name} is damaged: `{self.field}` is {ascii(number)[:40]}",
                expected="the number of its format, from 1 on",
                remedy=f"get it again from its source, or regenerate it with: {self._command(data)}",
            )
        if number > self.newest:
            raise self._newer(data, name, f"in format {number}; this one reads up to format {self.newest}")

    def not_understood(self, data: object, name: str, said: object) -> InputError:
        """What to raise where a file's number is known, but not all that is in it.

        data: what is in the file, as far as it could be read.
        name: what messages call it.
        said: what is not understood.
        """
        if isinstance(data, dict) and _is_newer(_release_in(data)):
            return self._newer(data, name, f"and this version does not fully understand it: {said}")
        wrote = _release_in(data)
        other = f"use hpcgen {wrote}" if wrote not in ("", __version__) else "get it again from its source"
        return InputError(
            f"{name} is not understood: {said}",
            expected=f"a format that hpcgen {__version__} reads",
            remedy=f"{other}, or regenerate it with: {self._command(data)}",
        )

    def _newer(self, data: dict[Any, Any], name: str, why: str) -> NewerFormatError:
        wrote = _release_in(data)
        again = "" if self.elsewhere else f", or regenerate it with: {self._command(data)}"
        return NewerFormatError(
            f"{name} was written by {f'hpcgen {wrote}' if wrote else 'a newer hpcgen'} {why}",
            remedy=f"use a newer hpcgen here: {f'>= {wrote}' if wrote else 'the release that wrote the file'}{again}",
        )

    def _command(self, data: object) -> str:
        """What writes such a file, with the site and the stack of this one where they are names."""
        command = self.command
        if not isinstance(data, dict):
            return command
        for word, said in (("SITE", data.get("site")), ("STACK", data.get("stack"))):
            name = said.get("name") if isinstance(said, dict) else said
            if isinstance(name, str) and re.search(NAME_PATTERN, name):
                command = command.replace(f" {word} ", f" {name} ")
        return command


def _release_in(data: object) -> str:
    """The release that a file says wrote it; empty if it says none."""
    wrote = data.get("hpcgen") if isinstance(data, dict) else None
    return wrote if isinstance(wrote, str) and re.fullmatch(_RELEASE, wrote) else ""


def _is_newer(release: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(release) > Version(__version__)
    except InvalidVersion:
        return False


KIT = FileFormat("plan", 2, "hpcgen render --site SITE --stack STACK -o DIR")
"""A kit's number is that of its plan. Kits of format 1 have sentences for reasons, and no recipe.json."""
RECIPE = FileFormat("recipe", 1, "hpcgen render --site SITE --stack STACK -o DIR")
"""What a kit's recipe.json says beside its plan."""
LOCK = FileFormat("lock", 1, "hpcgen lock --site SITE --stack STACK -o FILE")
BUNDLE = FileFormat("bundle", 1, "hpcgen bundle create --lock FILE -o DIR", elsewhere=True)
INCREMENT = FileFormat("increment", 1, "hpcgen bundle diff OLD NEW -o DIR", elsewhere=True)
RECORD = FileFormat("record", 2, "hpcgen build", elsewhere=True)
"""Records of format 1 call a skipped test "left out"."""
FLEET_LOCK = FileFormat("fleet_lock", 1, "hpcgen build --all")
CAPTURE = FileFormat("capture", 1, "hpcgen site capture DIR", elsewhere=True)
"""A captured tree's number is in its capture.json."""
IMAGE_FACTS = FileFormat("image_facts", 1, "hpcgen inspect IMAGE --json", elsewhere=True)
"""What was read of an image that hpcgen may not have built."""
ARTIFACT = FileFormat("artifact", 1, "hpcgen build --cache DIR", elsewhere=True)
"""What is said of an artifact beside its archive."""
INSTALL = FileFormat("install", 1, "hpcgen install IMAGE --prefix DIR")
"""What hpcgen put below a prefix for an image: installed.json."""
MODEL = FileFormat("model", 1, "hpcgen model fit -o FILE")
CONVERSION = FileFormat("conversion", 1, "hpcgen onnx convert ENSEMBLE -o DIR", elsewhere=True)
"""The report.json of a converted ensemble."""
