"""Site profiles as a commit of their collection has them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from hpcgen.core.errors import InputError
from hpcgen.core.support.processes import require_program

_MOST = 64 * 1024 * 1024
"""Bytes of a collection's profiles."""


def profiles_at(folder: Path, revision: str, into: Path) -> None:
    """Put the profiles of a folder, as they are at a commit of its git repository, into ``into/site_profiles``.

    Parameters
    ----------
    folder: the collection's ``site_profiles``.
    revision: whatever git calls a commit, such as ``HEAD~1``, a tag or a hash.

    Raises
    ------
    InputError: the folder is in no repository, or has no such commit.
    MissingToolError: there is no git.
    """
    git = require_program("git", "read a profile of another commit", "install it, or name two files")
    # --end-of-options: what the user calls a commit is never an option.
    words = [git, "-C", str(folder), "archive", "--format=tar", "--end-of-options", revision, "."]
    done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0 or len(done.stdout) > _MOST:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else "it has more than 64 MiB of profiles"
        raise InputError(
            f"git has no profiles of {folder} at {revision!r}: {why}",
            expected="a commit, tag or branch of the profile's repository",
        )
    target = into / "site_profiles"
    target.mkdir()
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            name = Path(member.name).name
            if member.isreg() and "/" not in member.name.removeprefix("./") and name.endswith(".yaml"):
                stream = archive.extractfile(member)
                (target / name).write_bytes(stream.read() if stream is not None else b"")
