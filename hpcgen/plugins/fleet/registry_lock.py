"""The list of builds in the fleet's registry, beside the images: an OCI artifact whose one layer is the lock.

So a pipeline whose cache is gone builds nothing that is published. skopeo moves it; networks are its own settings.

Sources: OCI image specification 1.1, manifest.md, "Guidelines for Artifact Usage"; seen with skopeo 1.9.3 and
distribution 2.8.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program
from hpcgen.images.oci_artifact import EMPTY, EMPTY_TYPE, ArtifactManifest, described, push
from hpcgen.images.skopeo import WITHOUT_POLICY, copy, is_absent
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.plugins.fleet.publish import PASSWORD, USER, credentials, registry_of
from hpcgen.plugins.fleet.records import LIMIT, LockedImage, lock_text, read_lock

NAME = "fleet-lock"
_LOCK_TYPE = "application/vnd.hpcgen.fleet-lock.v1+yaml"
_DENIED = re.compile(r"\bdenied\b|\b403\b|forbidden", re.IGNORECASE)
"""Some registries deny what is not there, to whoever could write it; a wrong password is 401."""
_REMEDY = f"check the registry's name; it is asked with ${USER} and ${PASSWORD} if these are set, else by skopeo login"


def lock_address(loaded: LoadedFleet) -> str:
    """Where the lock is kept, as skopeo names it; InputError for a fleet without a registry."""
    tag = re.sub(r"[^A-Za-z0-9_.-]", "-", loaded.path.stem).lstrip(".-") or "fleet"
    return f"docker://{registry_of(loaded)}/{NAME}:{tag[:100]}"


def pull_lock(loaded: LoadedFleet) -> dict[str, LockedImage]:
    """What the registry has of the lock; nothing where there is none yet, or it does not tell whether there is one.

    FetchError: the registry does not answer, or does not allow it. InputError: what it has is no lock.
    """
    try:
        return _read(loaded)
    except FetchError as failure:
        if _DENIED.search(failure.problems[0].message):
            return {}
        raise


def push_lock(loaded: LoadedFleet, path: Path) -> str:
    """Put what is published by a lock into the registry's; its address there.

    What others published stays; who calls this for the same fleet at once has to take turns.

    FetchError: what is there cannot be read, so that the entries of others would be lost. OutputError: the registry
    does not take it.
    """
    published = {name: image for name, image in read_lock(path).items() if image.published}
    address = lock_address(loaded)
    try:
        there = _read(loaded)
    except FetchError as failure:
        if not _DENIED.search(failure.problems[0].message):
            raise
        # Once something is there, a registry that still denies to read would have others' entries overwritten.
        _write(loaded, published, f"{address}-first")
        try:
            there = _read(loaded)
        except FetchError as again:
            message = "you may write the registry's list of builds but not read it, so others' entries would be lost"
            remedy = f"let ${USER} read {NAME} there as well; {again.problems[0].message}"
            raise FetchError(message, address, remedy=remedy) from again
    _write(loaded, {**there, **published}, address)
    return address


def _read(loaded: LoadedFleet) -> dict[str, LockedImage]:
    address, skopeo = lock_address(loaded), _skopeo()
    with scratch_folder("hpcgen-lock-") as folder:
        copied = folder / "copied"
        login = credentials(os.environ, registry_of(loaded), folder)
        try:
            # One byte more than a lock may have says that it is too large.
            copy(skopeo, [WITHOUT_POLICY, "copy", "--preserve-digests"], address, copied, LIMIT.bytes + 1, login)
        except FetchError as failure:
            why = failure.problems[0].message
            if is_absent(why):
                return {}
            raise FetchError(f"the list of builds was not read: {why}", address, remedy=_REMEDY) from failure
        return read_lock(copied / _layer(copied, address))


def _write(loaded: LoadedFleet, images: Mapping[str, LockedImage], address: str) -> None:
    data = lock_text(images).encode()
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
        raise InputError("this is not a list of builds", address, "one layer", "remove it from the registry")
    return found[1]
