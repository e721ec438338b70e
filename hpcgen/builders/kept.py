"""What hpcgen and the engines keep between commands, and its removal: images without a name, caches, unfinished work.

Only what hpcgen made is known here, by its place, its name and, in an engine's store, by its labels and steps. What has
another owner, what a link leads to and what a running process has locked is neither listed nor removed.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.backends.engines import Engine, builders
from hpcgen.backends.engines.building import LeftImage, query
from hpcgen.builders.log import remove_unfinished
from hpcgen.core.config.compiled_yaml import built_in
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.model.bundle import COLLECTED_FOLDERS
from hpcgen.core.model.image_paths import OWN_FOLDER
from hpcgen.core.support.below import folder_of
from hpcgen.core.support.leftovers import left_folders
from hpcgen.core.support.placing import folder_bytes, remove
from hpcgen.supply.bundle.workspace import unfinished

KeptKind = Literal["images", "build-cache", "unfinished", "cache", "jobs", "models"]
_CACHED = {
    "facts": ("what was read of images", re.compile(r"[0-9a-f]{64}")),
    "matrix": ("what matrix worked out", re.compile(r"[0-9a-f]{64}\.json")),
    "images": (
        "images for converting models, unpacked archives",
        re.compile(r"[\w.+-]+-[0-9a-f]{12}([.-][\w.+-]*)?", re.ASCII),
    ),
}
"""Folders of the cache: what is in each, and how its files are called."""
_READ = re.compile(r".+\.yaml\.msgpack")
_TIMEOUT_S = 3600.0
JOBS_DAYS = 7.0
"""A job's files are listed once nothing in them has changed for so many days: what waits or runs still needs them."""
_AT_ONCE = 100
_MODEL = re.compile(r"(hub-)?[0-9a-f]{64}")


class KeptThings(msgspec.Struct, frozen=True):
    """Things of one kind in one place.

    ``about``: what they are. ``place``: a folder, or an engine. ``names``: each as it is called there. ``bytes``: of
    all of them, None if that is not known.
    """

    kind: KeptKind
    about: str
    place: str
    names: list[str]
    bytes: int | None


def kept_things(jobs_days: float = JOBS_DAYS) -> list[KeptThings]:
    """All that is kept, without what is in use; the engines that are installed are asked.

    ``jobs_days``: how old files of jobs have to be.
    """
    found = [*_in_stores(), *kept_files(jobs_days)]
    return [things for things in found if things.names]


def remove_kept(things: KeptThings) -> list[str]:
    """Remove what is still as it was listed; the names of what is left."""
    if things.kind in ("images", "build-cache"):
        return _removed_by_engine(things)
    # Looked for again: in the meantime it may be in use, or a link.
    found = [kept_models(Path(things.place), 0)] if things.kind == "models" else kept_files(0)
    now = {each for again in found if again.place == things.place for each in again.names}
    return [name for name in things.names if name in now and not _away(Path(things.place), name)]


def kept_files(jobs_days: float = JOBS_DAYS) -> list[KeptThings]:
    """As :func:`kept_things`, without what is in stores of engines."""
    return [*_left_by_killed(), *_cached(), _jobs(jobs_days)]


# in stores of engines


def _engines() -> dict[str, Engine]:
    """The installed engines, one for each store."""
    here = {name: found() for name, found in builders().items() if shutil.which(name) is not None}
    if "podman" in here:
        # It shares its store with buildah, and tells more of it.
        here.pop("buildah", None)
    return here


def _in_stores() -> Iterator[KeptThings]:
    for name, engine in _engines().items():
        images = engine.left_images()
        yield _stored("images", "images without a name", name, [image for image in images if not image.cache])
        yield _stored("build-cache", "steps and stages of builds", name, [image for image in images if image.cache])


def _stored(kind: KeptKind, about: str, engine: str, images: Sequence[LeftImage]) -> KeptThings:
    sizes = [image.bytes for image in images if image.bytes is not None]
    total = sum(sizes) if len(sizes) == len(images) else None
    return KeptThings(kind, about, engine, [image.name for image in images], total)


def _removed_by_engine(things: KeptThings) -> list[str]:
    engine = _engines().get(things.place)
    if engine is None:
        return things.names
    # Another build may use some of them by now.
    there = {image.name for image in engine.left_images()}
    names = [name for name in things.names if name in there]
    for start in range(0, len(names), _AT_ONCE):
        for words in engine.remove_images(names[start : start + _AT_ONCE]):
            # ch-image refers to the user by name.
            query(words, {"USER": getpass.getuser(), **os.environ}, timeout_s=_TIMEOUT_S)
    left = {image.name for image in engine.left_images()}
    return [name for name in names if name in left]


# in folders


def _left_by_killed() -> Iterator[KeptThings]:
    temporary = Path(tempfile.gettempdir())
    yield _folders("work of commands that were killed", temporary, left_folders("hpcgen-*-", temporary))
    for place in dict.fromkeys((Path.cwd(), Path(os.environ.get("TMPDIR") or "/var/tmp"))):
        yield _folders("unfinished conversions", place, left_folders(".hpcgen-convert-", place))
    yield _folders("unfinished bundles", Path.cwd(), unfinished(Path.cwd()))


def _folders(about: str, place: Path, found: list[Path]) -> KeptThings:
    names = [path.name for path in found]
    return KeptThings("unfinished", about, str(place), names, sum(map(folder_bytes, found)))


def _cached() -> Iterator[KeptThings]:
    try:
        cache = cache_folder()
    except RuntimeError:
        return
    for part, (about, pattern) in _CACHED.items():
        yield _listed("cache", about, cache, part, pattern)
    # A wheel brings these; in a checkout the first command that reads a file makes them.
    if built_in().name != "collection" and sys.pycache_prefix is None:
        for folder in COLLECTED_FOLDERS:
            yield _listed(
                "cache", "files of the collection as they were read", built_in() / folder, "__pycache__", _READ
            )


def _listed(kind: KeptKind, about: str, base: Path, part: str, pattern: re.Pattern[str]) -> KeptThings:
    """The user's own files and folders of such names in a folder, which is no link."""
    names, total = [], 0
    try:
        with folder_of(base, f"{part}/x") as folder:
            for name in sorted(filter(pattern.fullmatch, os.listdir(folder))):
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if facts.st_uid == os.geteuid() and (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
                    names.append(name)
                    total += folder_bytes(base / part / name) if stat.S_ISDIR(facts.st_mode) else facts.st_size
    except OSError:
        pass
    return KeptThings(kind, about, str(base / part), names, total)


def _jobs(days: float) -> KeptThings:
    """The folders of jobs of the present folder in which nothing is newer."""
    place = Path.cwd() / OWN_FOLDER / "jobs"
    folders = sorted(place.iterdir()) if place.is_dir() and not place.is_symlink() else []
    return _unchanged("jobs", "scripts and outputs of jobs", place, folders, days)


def kept_models(store: Path, days: float, named: Collection[str] = ()) -> KeptThings:
    """The models and data sets of jobs that nothing has fetched or started a job with for so many days.

    named: those that stay.
    """
    there = [*store.iterdir()] if store.is_dir() else []
    known = [each for each in there if _MODEL.fullmatch(each.name) and each.name not in named]
    folders = sorted([*known, *unfinished(store)])
    return _unchanged("models", "models and data sets of jobs", store, folders, days)


def _unchanged(kind: KeptKind, about: str, place: Path, folders: list[Path], days: float) -> KeptThings:
    """The user's own folders among these in which nothing is newer."""
    before, found = time.time() - days * 86400, list[Path]()
    for folder in folders:
        own = folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
        if own and max(path.lstat().st_mtime for path in (folder, *folder.rglob("*"))) <= before:
            found.append(folder)
    return KeptThings(kind, about, str(place), [each.name for each in found], sum(map(folder_bytes, found)))


def _away(place: Path, name: str) -> bool:
    path = place / name
    if name.startswith("hpcgen-build-"):
        remove_unfinished(path)
    return remove(path)
