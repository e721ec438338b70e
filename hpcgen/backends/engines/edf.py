"""CSCS's environment definition file (EDF): TOML that says of a container what it is made from and what it sees.

Two engines read it: the Container Engine, and Sarus Suite, which has further fields. Both expand ``$`` in its values,
so paths with such a sign are refused.
Source: github.com/eth-cscs/cscs-docs@80abed13, docs/software/container-engine/edf.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcgen.backends.engines.base import Call, bound, file_system_words
from hpcgen.core.errors import InputError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.image_paths import SUBMIT_FOLDER
from hpcgen.core.support.quoting import Shell, joined

BIND_IN_PLACE = r'"  \"$path:$path\","'
"""A line of the file that shows the host's folder ``$path`` in its own place."""


def edf(call: Call, annotations: Mapping[str, str], signs: str, more: Sequence[str] = ()) -> list[str]:
    """The lines of the file.

    annotations: what hooks of the site are told.
    signs: what no path can have, because the engine reads it.
    more: further fields, as lines.
    InputError: a bind has one of these signs.
    """
    lines = [
        joined('image = "', call.image, '"'),
        joined(f'workdir = "{SUBMIT_FOLDER}"'),
        *more,
        "mounts = [",
        joined('  "', call.folder, f':{SUBMIT_FOLDER}",'),
        *(_mount(bind, signs) for bind in call.binds),
        *(word for words in file_system_words(call) for word in words),
        "]",
    ]
    table = [f'{name} = "{value}"' for name, value in annotations.items()]
    return [*lines, "[annotations]", *table] if table else lines


def _mount(bind: Bind, signs: str) -> str:
    for path in (bind.source, bind.target):
        found = [sign for sign in signs if sign in path and not isinstance(path, Shell)]
        if found:
            raise InputError(
                f"{path!r} cannot be mounted: the definition file reads {found[0]!r}",
                "a bind",
                remedy="use a path without it, such as a link to it",
            )
    text = bound(bind)
    return joined('  "', text, '",') if isinstance(text, Shell) else f'  "{text}",'
