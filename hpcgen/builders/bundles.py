"""The bundle that a build takes everything from: named, of the same lock, whole; and its base images."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from hpcgen.backends.engines.building import BundledBase, BundleFolder
from hpcgen.blocks.steps import Image
from hpcgen.core.errors import InputError, MissingToolError, PolicyError
from hpcgen.core.model.image_paths import IMAGES, LOCK, image_name
from hpcgen.core.model.lock import ImagePin
from hpcgen.core.support.quoting import sh
from hpcgen.kit.folder import KitFolder
from hpcgen.recipe.formats.bundled import bundled_base

VARIABLE = "HPCGEN_BUNDLE"


def open_bundle(kit: KitFolder, asked: Path | None, signers: Path | None = None) -> BundleFolder | None:
    """The bundle of a kit, checked; None where the kit's recipe uses the network.

    asked: the bundle's folder; ``$HPCGEN_BUNDLE`` if None.
    signers: a file of allowed signers, one of whom must have signed it.
    InputError: none is named, it is another lock's, it is damaged, or no engine could be told its path.
    PolicyError: it is not signed by an allowed signer.
    """
    told = asked or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if kit.plan.supply != "bundle":
        if asked is not None:
            raise InputError(
                "this kit was rendered for a build with a network",
                "--bundle",
                remedy=f"render it for the bundle: hpcgen render --bundle {sh(str(asked))} -o {sh(str(kit.folder))}",
            )
        return None
    if told is None:
        raise InputError(
            "this kit takes everything from a bundle, but no bundle was given",
            remedy=f"hpcgen build --bundle DIR {sh(str(kit.folder))}, or set {VARIABLE}",
        )
    from hpcgen.supply.bundle.verify import check_bundle

    folder = told.absolute()
    _check_path(folder)
    check_bundle(folder, (kit.folder / LOCK).read_text("utf-8"), signers)
    pins = msgspec.convert(kit.lock.get("pinned_images", {}), dict[str, ImagePin])
    bases = [_base(folder, name, pin.bundled) for name, pin in sorted(pins.items())]
    return BundleFolder(folder, bases)


def lock_signer(kit: KitFolder, signers: Path | None) -> str:
    """Who signed the lock of a kit, "" where nobody did or no program here can tell.

    ``signers``: a file of allowed signers, who are called by their names there.
    """
    from hpcgen.core.support.signatures import LOCK as NAMESPACE
    from hpcgen.core.support.signatures import named_signer
    from hpcgen.kit.lockfile.lock import signature_beside

    signature = signature_beside(kit.folder / LOCK)
    if not signature:
        return ""
    try:
        return str(named_signer("the kit's lock", (kit.folder / LOCK).read_bytes(), signature, NAMESPACE, signers))
    except MissingToolError:
        return ""
    except PolicyError:
        return "no one: its signature is for another lock"


def _check_path(folder: Path) -> None:
    """Engines take a path with a place to bind it to in one word, and several binds with commas between them."""
    if any(sign in str(folder) for sign in ":,"):
        raise InputError(
            f"engines do not accept the path {folder}, which contains : or ,",
            "--bundle",
            remedy="name a link to it: ln -s DIR bundle, and --bundle bundle",
        )


def _base(folder: Path, name: str, digest: str) -> BundledBase:
    held = image_name(name)
    try:
        blob = folder / IMAGES / "blobs" / "sha256" / digest.removeprefix("sha256:")
        manifest = msgspec.json.decode(blob.read_bytes(), type=dict)
        identity = str(manifest["config"]["digest"]).removeprefix("sha256:")
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as failure:
        raise InputError(
            f"the bundle {folder} has no image {name} {digest}", remedy="regenerate the bundle from this lock"
        ) from failure
    return BundledBase(bundled_base(Image(name, digest)), held, identity)
