"""What skopeo is asked of an image where it lies: its manifest, and all its files, none larger than it may be.

Sources: skopeo-copy(1), skopeo-inspect(1) of 1.9 and 1.18; containers-transports(5).
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from hpcgen.core.errors import FetchError
from hpcgen.core.support.processes import stream
from hpcgen.images.commands import ANSWER_BYTES, ask

REGISTRY = "docker://"
"""What a name in a registry begins with."""
WITHOUT_POLICY = "--insecure-policy"
"""For what is no image: the machine's policy.json, which may demand signatures of images, does not decide."""


def answer_of(skopeo: str, *words: str, most: int = ANSWER_BYTES) -> bytes:
    """What skopeo prints; FetchError with its last line where it fails, InputError where it is more than ``most``."""
    answer = ask([skopeo, *words], limit=most)
    if answer.status:
        raise FetchError(plain(answer.last_line))
    return answer.output


def is_absent(message: str) -> bool:
    """Whether a registry said by this that it has no such repository or tag; not that it denies to say so."""
    return re.search(r"(manifest|name) unknown|not found|\b404\b", message, re.IGNORECASE) is not None


def plain(line: str) -> str:
    """A line of skopeo's log, without its time stamp and level."""
    found = re.search(r'msg="((?:[^"\\]|\\.)*)"', line)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else line


def at_digest(source: str, digest: str) -> str:
    """A registry's reference by digest in place of its tag; other sources as they are."""
    if not source.startswith(REGISTRY):
        return source
    path = source.removeprefix(REGISTRY).partition("@")[0]
    folder, slash, last = path.rpartition("/")
    return f"{REGISTRY}{folder}{slash}{last.partition(':')[0]}@{digest}"


def copy(
    skopeo: str,
    how: Sequence[str],
    source: str,
    folder: Path,
    largest: int = 0,
    env: Mapping[str, str] | None = None,
) -> None:
    """Copy an image into a folder: its manifest, and its blobs by their digests.

    how: options, those of skopeo itself before the word ``copy``.
    largest: no file may have as many bytes, where that is given.
    env: what skopeo has besides the environment, such as a login.
    FetchError: it cannot be copied, or has more bytes.
    """
    said: list[str] = []
    bounded = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest, largest)) if largest else None
    argv = [skopeo, *how, "--quiet", "--retry-times=3", source, f"dir:{folder}"]
    status = stream(argv, said.append, env={**os.environ, "LC_ALL": "C", **(env or {})}, before=bounded)
    if status and largest and any(each.stat().st_size >= largest for each in folder.glob("*")):
        message, remedy = f"{source}: the registry sends more than its manifest says", "name another image or registry"
        raise FetchError(message, source, remedy=remedy)
    if status:
        raise FetchError(
            plain(said[-1]) if said else f"skopeo ended with {status}",
            source,
            remedy="try again; behind a proxy or with a registry of your own: docs/mirrors.md",
        )
