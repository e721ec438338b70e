"""Data of the host that a job sees, as stacks, options and the config file name it: ``SRC[:DST[:ro]]``."""

from __future__ import annotations

import os

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.user_config import DataBind
from hpcgen.core.support.quoting import variables_in

PACKED = (".sqfs", ".squashfs", ".sqsh")
"""How the names of squashfs files end."""


class NamedData(msgspec.Struct, frozen=True):
    """One of them in its parts. ``target``: "" for the place that it has on the host; ``where``: what names it.

    ``title``: what people call it, where that is not its text.
    """

    source: str
    target: str = ""
    read_only: bool = False
    where: str = "run.binds"
    title: str = ""

    @property
    def text(self) -> str:
        """As it is written."""
        return self.title or ":".join(filter(None, [self.source, self.target, "ro" if self.read_only else ""]))

    @property
    def packed(self) -> bool:
        """Whether what is in a squashfs file is to be seen, not the file itself."""
        return self.source.endswith(PACKED) and bool(self.target) and not self.target.endswith(PACKED)

    @property
    def variables(self) -> list[str]:
        """What its source is made of where the job runs."""
        return variables_in(self.source, "the path")


def parse_data(text: str, where: str, base: str | None = None) -> NamedData:
    """The parts of ``SRC[:DST[:ro]]``.

    where: the option or field that says it, for messages.
    base: the folder that a relative path is from; it stays relative if None.
    InputError: it cannot be read so.
    """
    try:
        msgspec.convert(text, DataBind)
    except msgspec.ValidationError:
        example = "SRC[:DST[:ro]], such as $SCRATCH/imagenet:/data:ro, without further : and , in it"
        raise InputError(f"{text!r} is not a bind", where, expected=example) from None
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    try:
        named = bool(variables_in(source, "the path"))
    except InputError as failure:
        raise InputError([msgspec.structs.replace(each, where=where) for each in failure.problems]) from None
    if base is not None and not named and not source.startswith("/"):
        source = os.path.normpath(f"{base}/{source}")
    return NamedData(source, os.path.normpath(target).replace("//", "/") if target else "", mode == "ro", where)
