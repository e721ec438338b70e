"""A word for a compiler, as the options of blocks take it."""

from __future__ import annotations

from typing import Annotated

from hpcgen.core.model.fields import matching

CompilerWord = Annotated[
    str, matching(r"^-{1,2}[A-Za-z][A-Za-z0-9=.,_+/-]*$(?!\n)", "a compiler flag", "-mprefer-vector-width=512")
]
