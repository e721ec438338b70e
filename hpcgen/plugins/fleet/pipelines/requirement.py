"""Where a pipeline installs hpcgen from: a wheel of the repository, or an address that cannot come to mean another."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import file_sha256

OPEN = "hpcgen @ git+https://HOST/PATH@COMMIT"
"""To be filled in, where nobody says it: on an index anybody may have the name."""
PINS = "--hpcgen FILE, a wheel that is kept in the repository, or --hpcgen 'hpcgen @ git+https://HOST/PATH@COMMIT'"


def in_repository(file: Path, option: str) -> str:
    """A file's path from the repository's top, where hpcgen is started; InputError for one outside."""
    if file.is_absolute() or ".." in file.parts:
        message = f"{file} is not a path inside a repository"
        raise InputError(message, option, "a path from the repository's top", "start hpcgen there")
    return file.as_posix()


def requirement_from(given: str) -> str:
    """What pip installs: a wheel with its hash, or the requirement as it is given.

    pip reads ``file:`` and a path from the folder that it is started in, which is the repository's top, and compares
    the hash (seen with 23.2 and 26.3).

    InputError: there is no such wheel inside the repository.
    """
    if not given.endswith(".whl") or "://" in given:
        return given
    path = in_repository(Path(given), "--hpcgen")
    if not Path(path).is_file():
        raise InputError(
            f"there is no file {path}", "--hpcgen", remedy="build it with `pip wheel`, inside the repository"
        )
    return f"file:{quote(path, safe='/+')}#sha256={file_sha256(Path(path))}"


def doubt(requirement: str) -> str:
    """Why a requirement may install another program some day; empty where a commit or a hash decides."""
    if re.search(r"#sha256=[0-9a-f]{64}\b|git\+[^#]*@[0-9a-f]{40,64}(#|$)", requirement):
        return ""
    if re.search(r"://|\bfile:", requirement):
        return f"{requirement} has neither a commit nor a hash, so a different hpcgen may be installed unnoticed"
    return f"{requirement} is looked up by name on the index, where the name is not registered: anyone could"
