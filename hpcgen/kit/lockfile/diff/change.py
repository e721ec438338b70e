"""One difference between two locks."""

from typing import Literal

from hpcgen.core.model.fields import Record

What = Literal[
    "hpcgen",
    "command",
    "site",
    "stack",
    "copied",
    "block",
    "option",
    "job",
    "image",
    "package",
    "index",
    "key",
    "wheel",
    "archive",
    "tree",
    "bazel",
    "input",
    "collection",
    "result",
]


class Change(Record, frozen=True):
    """What is another now: ``old`` is empty if it is new, ``new`` if it is gone; ``why`` as far as locks tell."""

    what: What
    name: str
    old: str
    new: str
    why: str = ""
