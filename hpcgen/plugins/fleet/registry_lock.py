"""The list of builds in the fleet's registry, beside the images: an OCI artifact whose one layer is the lock.

So a pipeline whose cache is gone builds nothing that is published. skopeo moves it; networks are its own settings.

Sources: OCI image specification 1.1, manifest.md, "Guidelines for Artifact Usage"; seen with skopeo 1.9.3 and
distribution 2.8.2.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program
from hpcgen.images.oci_artifact import EMPTY, EMPTY_TYPE, ArtifactManifest, described, push
from hpcgen.images.skopeo import copy
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.plugins.fleet.publish import PASSWORD, USER, credentials, registry_of
from hpcgen.plugins.fleet.records import LIMIT, LockedImage, lock_text, read_lock

NAME = "fleet-lock"
_LOCK_TYPE = "application/vnd.hpcgen.fleet-lock.v1+yaml"
_ABSENT = re.compile(r"(manifest|name) unknown|\b404\b|not found|\bdenied\b|\b403\b")
"""Some registries deny what is not there, to whoever could write it; a wrong password is 401."""
_REMEDY = f"check the registry's name; it is asked with ${USER} and ${PASSWORD} if these are set, else by skopeo login"


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
    address, skopeo = lock_address(loaded), _skopeo()
    with scratch_folder("hpcgen-lock-") as folder:
        copied = folder / "copied"
        login = credentials(os.environ, registry_of(loaded), folder)
        try:
            # One byte more than a lock may have says that it is too large.
            copy(skopeo, ["copy", "--preserve-digests"], address, copied, LIMIT.bytes + 1, login)
        except FetchError as failure:
            why = failure.problems[0].message
            if _ABSENT.search(why):
                return {}
            raise FetchError(f"the list of builds was not read: {why}", address, remedy=_REMEDY) from failure
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
        config, layer = described(EMPTY_TYPE, EMPTY), described(_LOCK_TYPE, data)
        push(
            _skopeo(),
            folder / "image",
            ArtifactManifest(config=config, layers=[layer]),
            {config.digest: EMPTY, layer.digest: data},
            address,
            credentials(os.environ, registry_of(loaded), folder),
            _REMEDY,
        )
    return address


def _skopeo() -> str:
    return require_program("skopeo", "reach the registry's list of builds", "install skopeo")


def _layer(copied: Path, address: str) -> str:
    """The file of the one layer."""
    try:
        (layer,) = msgspec.json.decode((copied / "manifest.json").read_bytes(), type=ArtifactManifest).layers
        found = re.fullmatch(r"sha256:([0-9a-f]{64})", layer.digest)
    except (OSError, ValueError, msgspec.MsgspecError):
        found = None
    if found is None:
        raise InputError("this is no list of builds", address, "one layer", "remove it from the registry")
    return found[1]
