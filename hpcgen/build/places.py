"""Where images lie: names of files, their temporary names, their size, and the final step under the final name."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from hpcgen.build.engines.base import Target, asked
from hpcgen.errors import OutputError, Problem
from hpcgen.launch.engines import engine_for
from hpcgen.model.plan import Plan
from hpcgen.model.record import BuiltImage, ImageKind

_BLOCK = 1024 * 1024
PARTIAL = ".hpcgen-"
"""How the name of an image begins that is not whole."""


def job_image(plan: Plan) -> str:
    """The file in which the job script looks for the image first.

    It is in the site's folder of images where that is on this machine, else in the current folder.
    """
    site_engine = plan.site.containers.engines.get(plan.engine)
    version = site_engine.version if site_engine is not None else None
    name = engine_for(plan.engine, version).image_names(plan.stack.name, plan.site.name)[0]
    folder = plan.site.containers.image_directory
    if folder is not None and os.access(folder, os.W_OK | os.X_OK):
        return f"{folder}/{name}"
    return name


def file_target(output: str, token: str, kinds: Mapping[str, ImageKind]) -> Target:
    """A file or folder, with a temporary name beside it that has the same ending.

    Parameters
    ----------
    kinds: what the name's endings stand for; without one of them it is a folder.

    Raises
    ------
    OutputError: its folder is not there or cannot be written, or something else has the name.
    """
    path = Path(output).absolute()
    kind: ImageKind = next((kind for ending, kind in kinds.items() if path.name.endswith(ending)), "directory")
    if not path.parent.is_dir():
        raise _refusal(path, f"the folder {path.parent} does not exist", f"make it: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _refusal(path, f"the folder {path.parent} cannot be written", "write elsewhere with -o")
    if path.is_dir() and not _is_image(path):
        raise _refusal(path, "this is a folder, and no image", "remove it, or write elsewhere with -o")
    return Target(kind, str(path), str(path.with_name(f"{PARTIAL}{token}-{path.name}")))


def _is_image(folder: Path) -> bool:
    """An empty folder, or one that a builder made: only these are replaced."""
    return any((folder / name).is_dir() for name in ("ch", ".singularity.d")) or not any(folder.iterdir())


def put_in_place(target: Target) -> Path | None:
    """Give a whole image its final name; what had it before goes only then.

    Returns
    -------
    What could not be removed of the older image, if there is such.
    """
    temporary, final = Path(target.temporary), Path(target.name)
    try:
        if final.is_dir() and not final.is_symlink():
            aside = final.with_name(f"{PARTIAL}{secrets.token_hex(4)}-{final.name}")
            final.rename(aside)
            temporary.rename(final)
            return None if remove(aside) else aside
        else:
            if temporary.is_dir() and final.is_file():
                final.unlink()
            temporary.replace(final)
    except OSError as failure:
        raise _refusal(final, failure.strerror or str(failure), "write elsewhere with -o") from failure
    return None


def remove(path: Path) -> bool:
    """Remove a file or folder, also folders that their owner may not write; whether nothing of it is left.

    Folders that fakeroot builds made can hold files of the user's subordinate ids, which only root of a user
    namespace with these ids may remove.
    """
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
        return not path.exists()
    for folder, names, _files in os.walk(path):
        for name in [".", *names]:
            each = Path(folder, name)
            with contextlib.suppress(OSError):
                if not each.is_symlink():
                    each.chmod(each.stat().st_mode | stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        # --map-auto: util-linux 2.38 and later.
        asked(["unshare", "--map-root-user", "--map-auto", "rm", "-rf", str(path)], patience_s=600)
    return not path.exists()


def measured(kind: ImageKind, path: Path) -> BuiltImage:
    """Size in bytes, and of a file its sha256; a folder is one, whatever its name says."""
    if not path.is_dir():
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return BuiltImage(kind=kind, name=str(path), bytes=path.stat().st_size, digest=f"sha256:{digest.hexdigest()}")
    kind, total = "directory", 0
    seen: set[tuple[int, int]] = set()
    for folder, _names, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                what = Path(folder, name).lstat()
                if what.st_nlink == 1 or (what.st_dev, what.st_ino) not in seen:
                    seen.add((what.st_dev, what.st_ino))
                    total += what.st_size
    return BuiltImage(kind=kind, name=str(path), bytes=total)


def _refusal(path: Path, message: str, remedy: str) -> OutputError:
    return OutputError(Problem(f"cannot write {path}: {message}", "--output", remedy=remedy))
