"""The caches of a program: by which variable it is told its folder, and whose that folder is."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import Record, Text, matching

CacheVariable = Annotated[
    str,
    matching(r"^[A-Z][A-Z0-9_]*_(DIR|HOME|PATH|ROOT)$(?!\n)", "a variable that names a folder", "HF_HOME"),
]
"""Records of images have these too, and a start hands the user's own values in: no such name may be a secret's."""


class Cache(Record, frozen=True):
    """One of them.

    ``kind``: ``compiled`` for code and tuning results, which each rank keeps on its node; ``download`` for what all
    ranks and jobs share; ``user`` for a file that stays in the home directory when the folder of ``moved`` does not.
    ``home``: where it is by default, or by its documentation, below the home directory; "" for elsewhere.
    ``only_kept``: it is off by default, and worth something to a later job alone.
    """

    variable: CacheVariable
    kind: Literal["compiled", "download", "user"]
    home: Text = ""
    moved: CacheVariable | None = None
    only_kept: bool = False
