"""The last step of making an image file: its final name, the removal of an older one, its size."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from hpcgen.core.errors import OutputError

PARTIAL = ".hpcgen-"
"""How the name of an image begins that is not whole."""


def put_in_place(temporary: Path, final: Path) -> Path | None:
    """Give a whole image its final name; what had it before goes only then.

    Returns
    -------
    What could not be removed of the older image, if there is such.
    """
    try:
        if final.is_dir() and not final.is_symlink():
            import secrets

            aside = final.with_name(f"{PARTIAL}{secrets.token_hex(4)}-{final.name}")
            final.rename(aside)
            temporary.rename(final)
            return None if remove(aside) else aside
        else:
            if temporary.is_dir() and final.is_file():
                final.unlink()
            temporary.replace(final)
    except OSError as failure:
        raise refusal(final, failure.strerror or str(failure), "write elsewhere with -o") from failure
    return None


def remove(path: Path) -> bool:
    """Remove a file or folder, also folders that their owner may not write; whether nothing of it is left.

    A folder stays in which something is mounted.

    Folders that fakeroot builds made can hold files of the user's subordinate ids, which only root of a user
    namespace with these ids may remove.
    """
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
        return not path.exists()
    if f" {path.absolute()}/" in Path("/proc/self/mountinfo").read_text("utf-8", "replace"):
        return False
    for folder, names, _files in os.walk(path):
        for name in [".", *names]:
            each = Path(folder, name)
            with contextlib.suppress(OSError):
                if not each.is_symlink():
                    each.chmod(each.stat().st_mode | stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        import subprocess

        # --map-auto: util-linux 2.38 and later.
        subprocess.run(
            ["unshare", "--map-root-user", "--map-auto", "rm", "-rf", str(path)],
            capture_output=True,
            check=False,
            timeout=600,
        )
    return not path.exists()


def refusal(path: Path, message: str, remedy: str) -> OutputError:
    """The error for an image that cannot be written there."""
    return OutputError(f"cannot write {path}: {message}", "--output", remedy=remedy)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; hard links count once, links are not followed."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                facts = (Path(place) / name).lstat()
            except OSError:
                continue
            if facts.st_nlink > 1:
                if (facts.st_dev, facts.st_ino) in seen:
                    continue
                seen.add((facts.st_dev, facts.st_ino))
            total += facts.st_size
    return total
