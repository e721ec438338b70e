"""Artifacts in a bundle, in the place of the sources of their blocks. There they lie as in any store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hpcgen.builders.artifacts.store import ArtifactStore, signature_of
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.image_paths import BUNDLED_ARTIFACTS
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.record import ArtifactOrigin
from hpcgen.core.support.quoting import sh
from hpcgen.recipe.artifact_recipes import keyed_blocks
from hpcgen.supply.bundle.create import CarriedArtifact


def artifacts_for(
    lock: Lock, catalog: Catalog, store: ArtifactStore, tell: Callable[[str], None]
) -> dict[str, CarriedArtifact]:
    """What a store has of the blocks of a lock, by their names.

    ``tell``: told of each block that stays in the bundle by its sources, and why.
    """
    found = {}
    for keyed in keyed_blocks(lock.plan, catalog, lock.pins):
        if (stored := store.find(keyed.key, tell)) is None:
            tell(f"{keyed.label} is not in {store.folder}: the bundle has its sources")
            continue
        record = store.record_path(keyed.key)
        signature = signature_of(record)
        files = [stored.file, record, *([signature] if signature.exists() else [])]
        places = {str(each.relative_to(store.folder)): each for each in files}
        found[keyed.name] = CarriedArtifact(keyed.key, keyed.label, str(stored.record.origin), places)
    return found


def bundled_store(bundle: Path | None, signers: Path | None) -> ArtifactStore | None:
    """The artifacts of a bundle; None where it has none."""
    folder = bundle / BUNDLED_ARTIFACTS if bundle is not None else None
    return ArtifactStore(folder, signers) if folder is not None and folder.is_dir() else None


def hold_taken(bundle: Path, signers: Path | None, taken: Mapping[str, ArtifactOrigin]) -> None:
    """InputError where a build does not unpack what a bundle has in the place of sources.

    ``taken``: the artifacts that the build unpacks, by block.
    """
    store = bundled_store(bundle, signers)
    if store is None:
        return
    why: list[str] = []
    keys = {each.key for each in taken.values()}
    missing = [each for each in store.records(why.append) if each.record.key not in keys]
    for each in missing:
        store.find(each.record.key, why.append)
    if missing or why:
        labels = ", ".join(each.record.label for each in missing) or "some blocks"
        message = f"the bundle has no sources of {labels}, only compiled artifacts, which this build does not use"
        remedy = f"build by the bundle alone, with no kit: hpcgen build --bundle {sh(str(bundle))}"
        if why:
            remedy = "sign them in the store and recreate the bundle, or create one without --artifacts"
        raise InputError("; ".join([message, *why]), "--bundle", remedy=remedy)
