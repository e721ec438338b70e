"""The list of builds in the fleet's registry, beside the images: an OCI artifact whose one layer is the lock.

So a pipeline whose cache is gone builds nothing that is published. skopeo moves it; networks are its own settings.

Sources: OCI image specification 1.1, manifest.md, "Guidelines for Artifact Usage"; seen with skopeo 1.9.3 and
distribution 2.8.2.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, InputError, OutputError
from hpcgen.core.support.hashing import sha256_of
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program, stream
from hpcgen.core.support.writing import write_file
from hpcgen.images.oci_layout import MANIFEST_TYPE
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.plugins.fleet.publish import PASSWORD, USER, credentials, registry_of
from hpcgen.plugins.fleet.records import LIMIT, LockedImage, lock_text, read_lock

NAME = "fleet-lock"
_EMPTY, _EMPTY_TYPE = b"{}", "application/vnd.oci.empty.v1+json"
_LOCK_TYPE = "application/vnd.hpcgen.fleet-lock.v1+yaml"
_ABSENT = re.compile(r"(manifest|name) unknown|\b404\b|not found|\bdenied\b|\b403\b")
"""Some registries deny what is not there, to whoever could write it; a wrong password is 401."""
_REMEDY = f"check the registry's name; it is asked with ${USER} and ${PASSWORD} if these are set, else by skopeo login"


class _Layer(msgspec.Struct, frozen=True):
    digest: str


class _Manifest(msgspec.Struct, frozen=True):
    layers: list[_Layer]


def lock_address(loaded: LoadedFleet) -> str:
    """Where the lock is kept, as skopeo names it; InputError for a fleet without a registry."""
    tag = re.sub(r"[^A-Za-z0-9_.-]", "-", loaded.path.stem).lstrip(".-") or "fleet"
    return f"docker://{registry_of(loaded)}/{NAME}:{tag[:128]}"


def pull_lock(loaded: LoadedFleet) -> dict[str, LockedImage]:
    """What the registry has of the lock; nothing where there is none yet.

    Raises
    ------
    FetchError: the registry does not answer, or does not allow it.
    InputError: what it has is no lock.
    """
    address = lock_address(loaded)
    with scratch_folder("hpcgen-lock-") as folder:
        copied = folder / "copied"
        # One byte more than a lock may have says that it is too large.
        bounded = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (LIMIT.bytes + 1, LIMIT.bytes + 1))
        said: list[str] = []
        if _skopeo(loaded, folder, [address, f"dir:{copied}"], said, bounded):
            why = _why(said)
            if _ABSENT.search(why):
                return {}
            raise FetchError(f"the list of builds was not read: {why}", address, remedy=_REMEDY)
        return read_lock(copied / _layer(copied, address))


def push_lock(loaded: LoadedFleet, path: Path) -> str:
    """Put what is published by a lock into the registry's; its address there.

    What others published stays; who calls this for the same fleet at once has to take turns.

    Raises
    ------
    OutputError: the registry does not take it.
    """
    published = {name: image for name, image in read_lock(path).items() if image.published}
    data = lock_text({**pull_lock(loaded), **published}).encode()
    address = lock_address(loaded)
    with scratch_folder("hpcgen-lock-") as folder:
        image = folder / "image"
        blobs = {_EMPTY_TYPE: _EMPTY, _LOCK_TYPE: data}
        config, layer = (
            {"mediaType": kind, "digest": f"sha256:{sha256_of(blob)}", "size": len(blob)}
            for kind, blob in blobs.items()
        )
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": [layer]}
        write_file(image / "manifest.json", msgspec.json.encode(manifest), folders=True)
        for blob in blobs.values():
            write_file(image / sha256_of(blob), blob)
        said: list[str] = []
        if _skopeo(loaded, folder, [f"dir:{image}", address], said):
            raise OutputError(f"{address} was not written: {_why(said)}", remedy=_REMEDY)
    return address


def _skopeo(
    loaded: LoadedFleet, folder: Path, words: Sequence[str], said: list[str], before: Callable[[], None] | None = None
) -> int:
    skopeo = require_program("skopeo", "reach the registry's list of builds", "install skopeo")
    login = credentials(os.environ, registry_of(loaded), folder)
    argv = [skopeo, "copy", "--quiet", "--preserve-digests", "--retry-times=3", *words]
    return stream(argv, said.append, env={**os.environ, "LC_ALL": "C", **login}, before=before)


def _why(said: Sequence[str]) -> str:
    """The last line of skopeo's log, without its time and level."""
    last = said[-1] if said else "skopeo was ended"
    return last.partition('msg="')[2].removesuffix('"') or last


def _layer(copied: Path, address: str) -> str:
    """The file of the one layer."""
    try:
        (layer,) = msgspec.json.decode((copied / "manifest.json").read_bytes(), type=_Manifest).layers
    except (OSError, ValueError, msgspec.MsgspecError):
        layer = _Layer("")
    found = re.fullmatch(r"sha256:([0-9a-f]{64})", layer.digest)
    if found is None:
        raise InputError("this is no list of builds", address, "one layer", "remove it from the registry")
    return found[1]
