"""The stack's own files in a bundle: each by its sha256, and a list for each entry of the stack's ``copy``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.bundle_paths import COPIED, COPIED_LIST, file_path
from hpcgen.core.model.plan import PlannedCopy
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.trees import MAX_BYTES, FileTree, parse_list


def bundled_tree(bundle: Path, copy: PlannedCopy) -> FileTree | None:
    """The files of an entry as they lie in a bundle's folder; None where it has no list of them.

    Raises
    ------
    InputError: the list is damaged.
    """
    place = bundle / file_path(copy.sha256, COPIED_LIST)
    try:
        text = read_plain(place, MAX_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(
            f"{place} cannot be read: {failure}", remedy="hpcgen bundle verify lists the damaged files"
        ) from failure
    files = parse_list(text, str(place))
    return FileTree([msgspec.structs.replace(each, source=bundle / file_path(each.sha256, COPIED)) for each in files])
