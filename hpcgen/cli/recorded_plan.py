"""The plan of a kit, a lock, a bundle or an image that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, collection_words, required_signers, say
from hpcgen.cli.trust import allow_of
from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.support.quoting import sh

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.options import PlanOptions
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import ArtifactOrigin


class RecordedPlan(msgspec.Struct, frozen=True):
    """A plan that was made before.

    ``lock``: the text of its lock; ``files``: those of its kit, by name; ``artifacts``: of an image, the blocks that
    were compiled before it.
    """

    plan: Plan
    lock: str
    files: dict[str, str] = {}
    artifacts: dict[str, ArtifactOrigin] = {}

    def sealed(self, origin: str) -> Lock | None:
        """What pins the plan; None of one that is not locked. ``origin``: what messages call it."""
        from hpcgen.kit.lockfile.lock import is_sealed, parse_lock

        return parse_lock(self.lock, f"the lock of {origin}") if is_sealed(self.lock) else None


def named_plan(origin: str, options: PlanOptions) -> RecordedPlan:
    """As :func:`recorded_plan`, of what ``--from`` names; UsageError where options of a plan are given beside it."""
    if more := options.given(free=("notes",)):
        raise click.UsageError(f"{', '.join(more)}: {origin} contains a finished plan")
    return recorded_plan(origin)


def recorded_plan(origin: str) -> RecordedPlan:
    """Read a kit's folder, a lock (``FILE.lock``), a plan (``plan.json``) or an image, which is not started.

    UnknownNameError, InputError: there is no such thing, or it has no plan that can be read.
    """
    path = Path(origin)
    if path.name == "plan.json":
        path = path.parent
    if (path / "plan.json").is_file():
        from hpcgen.kit.folder import read_kit, read_texts

        kit = read_kit(path)
        texts = read_texts(kit)
        return RecordedPlan(kit.plan, texts["hpcgen.lock"], texts)
    if path.suffix == ".lock":
        from hpcgen.kit.lockfile.lock import read_lock

        lock = read_lock(path)
        return RecordedPlan(lock.plan, lock.text)
    from hpcgen.images.recorded import stored_kit, taken_artifacts, typed_kit
    from hpcgen.images.reference import parse_image

    image = parse_image(origin)
    stored = stored_kit(image)
    found = typed_kit(stored, str(image))
    texts = {name: file.text for name, file in found.files.items()}
    return RecordedPlan(found.plan, texts["hpcgen.lock"], texts, taken_artifacts(stored.labels))


def plan_of_lock(
    ctx: click.Context,
    locked: Path | None,
    bundle: Path | None,
    options: PlanOptions,
    engine: str | None = None,
) -> tuple[Catalog, Plan, Lock]:
    """The plan in a lock, or in the lock of a bundle, for a build as it is asked for; the catalog, which it fits.

    ``engine``: the program that builds, if it is asked for: where no format is, the one that it reads.
    """
    from hpcgen.core.model.image_paths import LOCK
    from hpcgen.kit.lockfile.lock import read_lock
    from hpcgen.supply.bundle.verify import check_signed
    from hpcgen.supply.locked import locked_plan

    _check_alone(locked, bundle, options)
    signers = required_signers(ctx)
    if bundle is not None and signers is not None:
        say(f"{bundle} is signed by {check_signed(bundle, signers)}")
    if bundle is not None and not (bundle / LOCK).exists():
        raise InputError(
            f"{bundle} is not a bundle's folder: it has no {LOCK}",
            "--bundle",
            remedy=f"name the folder of a bundle, or make one: hpcgen bundle create --lock FILE -o {sh(str(bundle))}",
        )
    lock = read_lock(locked if locked is not None else bundle / LOCK)  # type: ignore[operator]
    if lock.signature or (bundle is None and signers is not None):
        _say_signer(lock, str(locked if locked is not None else bundle / LOCK), signers, bundle is None)  # type: ignore[operator]
    catalog = catalog_of(ctx) if bundle is None else _with_its_collections(ctx, bundle, lock)
    format = options.format
    if format is None and engine is not None:
        from hpcgen.backends.engines import builder_for

        format = builder_for(engine).format
    plan = locked_plan(
        lock,
        catalog,
        file=locked,
        bundle=bundle,
        format=format,
        mirrors=options.mirrors,
        allow_unsupported=options.allow_unsupported,
        before=collection_words(ctx),
    )
    return catalog, plan, lock


def _say_signer(lock: Lock, name: str, signers: Path | None, alone: bool) -> None:
    """Say who signed a lock; PolicyError where it was changed since, or one of the signers must have and has not.

    ``alone``: it is in no bundle, whose own signature stands for it.
    """
    from hpcgen.core.support.signatures import LOCK, named_signer, signer_of

    required = signers is not None and alone
    try:
        check = signer_of if required else named_signer
        said = check(f"the lock {name}", lock.text.encode(), lock.signature, LOCK, signers)
    except MissingToolError:
        if required:
            raise
    else:
        say(f"its lock is signed by {said}")


def _with_its_collections(ctx: click.Context, bundle: Path, lock: Lock) -> Catalog:
    """The user's catalog with the collections that a bundle brings, after those of ``--collection``.

    PolicyError where the user does not trust them.
    """
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.catalog.collections import collections_from_environment
    from hpcgen.catalog.trust import content_offered
    from hpcgen.supply.bundle.own_collections import bundled_collections

    folders = bundled_collections(bundle, lock)
    allow_of(ctx)([content_offered(folder, f"the bundle {bundle}") for folder in folders])
    return Catalog([*ctx.obj, *folders, *collections_from_environment()])


def _check_alone(locked: Path | None, bundle: Path | None, options: PlanOptions) -> None:
    """UsageError where something is asked for beside a lock that the lock itself says."""
    more = options.given(free=("format", "allow_unsupported", "mirrors", "notes", "words"))
    more += ["a kit or a command"] if options.words else []
    if more or (locked is not None and bundle is not None):
        named = ", ".join(more) or "--locked and --bundle"
        raise click.UsageError(f"{named}: a lock contains the whole plan; give only the lock or the bundle")
    if bundle is not None and options.mirrors:
        raise click.UsageError("--mirror: a build from a bundle uses no mirror; omit one of the two")
