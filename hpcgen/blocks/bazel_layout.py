"""A bundle's files laid out where Bazel looks before it asks the network.

Up to Bazel 6 that is ``--distdir``: of a file that is asked for with a sha256, Bazel tries the last part of the first
url in each such folder, and passes over a file whose hash differs (DownloadManager.java of Bazel 4.2.3 and of
bazelbuild/bazel@05db27e). So where two files have one name, the second lies in a second folder.

From Bazel 7 on it is ``--repository_cache``: ``content_addressable/sha256/HASH/file``. Its rules also ask that the
file was put there for the same urls (tools/build_defs/repo/cache.bzl), unless
BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID is 0.

``--experimental_repository_disable_download`` makes anything that is not there an error at once, with its name
(seen in 4.2.3 and 7.7.1, which calls it ``--repository_disable_download`` and still takes the old name; 2.1.0 does not
know it). It binds what Bazel downloads, not what a repository rule runs (pip, git): that only finds no network.

Seen to build offline from a read-only bundle: 2.1.0 and 4.2.3 with the folders, 7.7.1 with the cache.
"""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit

from hpcgen.blocks.steps import BazelFile, BazelFiles, command
from hpcgen.errors import InputError
from hpcgen.model.bundle_paths import MOUNT, WHEEL_INDEX, file_path
from hpcgen.model.image_paths import SCRATCH

DISTDIR = f"{SCRATCH}/bazel-distdir"
CACHE = f"{SCRATCH}/bazel-repository-cache"

# rules_python starts pip with --isolated, which makes it ignore PIP_*, unless it is told not to (pip_repository.bzl).
_ALONE = [
    "--experimental_repository_disable_download",
    "--repo_env=RULES_PYTHON_PIP_ISOLATED=0",
    "--repo_env=PIP_NO_INDEX=1",
    f"--repo_env=PIP_FIND_LINKS=file://{MOUNT}/{WHEEL_INDEX}",
]


def file_name(file: BazelFile) -> str:
    """The name that Bazel looks for: the last part of the first url's path."""
    if file.file:
        return file.file
    return posixpath.basename(urlsplit(file.urls[0]).path) or file.name


def held_names(files: BazelFiles) -> dict[str, str]:
    """sha256 → the file's name in a bundle, which holds every content once, whatever names Bazel looks for."""
    names: dict[str, str] = {}
    for file in files.files:
        name = file_name(file)
        names[file.sha256] = min(names.get(file.sha256, name), name)
    return names


def distdir_commands(files: BazelFiles, version: str) -> list[str]:
    """Commands that lay out the folder for Bazel ``version``, as links into the bundle.

    Raises
    ------
    InputError: the list is empty: nobody has made it.
    """
    require(files)
    held = held_names(files)
    if _has_cache(version):
        commands = []
        for sha256, name in sorted(held.items()):
            folder = f"{CACHE}/content_addressable/sha256/{sha256}"
            commands.append(command("mkdir", "-p", folder))
            commands.append(command("ln", "-sfn", f"{MOUNT}/{file_path(sha256, name)}", f"{folder}/file"))
        return commands
    commands = []
    for folder, members in _folders(files).items():
        commands.append(command("mkdir", "-p", folder))
        commands += [
            command("ln", "-sfn", f"{MOUNT}/{file_path(sha256, held[sha256])}", f"{folder}/{name}")
            for name, sha256 in members.items()
        ]
    return commands


def bazel_words(files: BazelFiles, version: str) -> list[str]:
    """Options of ``bazel build`` and ``bazel fetch`` that go with :func:`distdir_commands`.

    Raises
    ------
    InputError: as there.
    """
    require(files)
    if _has_cache(version):
        place = [f"--repository_cache={CACHE}", "--repo_env=BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID=0"]
    else:
        place = [f"--distdir={folder}" for folder in _folders(files)]
    return [*place, *(_ALONE if _major(version) >= 4 else [])]


def _has_cache(version: str) -> bool:
    return _major(version) >= 7


def _major(version: str) -> int:
    return int(version.split(".", 1)[0])


def _folders(files: BazelFiles) -> dict[str, dict[str, str]]:
    """Folder → file name → sha256; each folder has a name once."""
    hashes: dict[str, list[str]] = {}
    for file in files.files:
        known = hashes.setdefault(file_name(file), [])
        if file.sha256 not in known:
            known.append(file.sha256)
    folders: dict[str, dict[str, str]] = {}
    for name, several in sorted(hashes.items()):
        for number, sha256 in enumerate(several, 1):
            folders.setdefault(DISTDIR if number == 1 else f"{DISTDIR}-{number}", {})[name] = sha256
    return dict(sorted(folders.items()))


def require(files: BazelFiles) -> None:
    """Refuse a list that nobody has made."""
    if not files.files:
        raise InputError(
            f"what Bazel fetches for {files.name} is not known, so it cannot be built without a network",
            expected=f"building_blocks/bazel/{files.name}.yaml in a collection",
            remedy="unpack its source and run tools/list_bazel_inputs.py on it (docs/bazel-inputs.md), "
            "choose a version that has a list, or set tensorflow.install=pip",
        )
