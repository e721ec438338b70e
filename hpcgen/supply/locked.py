"""A lock, or the lock of a bundle → the plan of a build that takes from outside what is pinned, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.image_paths import LOCK
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import command
from hpcgen.kit.lockfile.lock import for_build
from hpcgen.planning.contract.verdict import hold_chosen
from hpcgen.planning.planner import in_format
from hpcgen.recipe.formats import format_for
from hpcgen.supply.bundle.own_collections import bundled_tree
from hpcgen.supply.pin.wanted import check_lock


def hold_signed(lock: Lock, bundle: Path | None, signers: Path | None) -> None:
    """PolicyError unless one of the allowed signers signed the bundle, or the lock where there is none."""
    if signers is None:
        return
    if bundle is not None:
        from hpcgen.supply.bundle.verify import check_signed

        check_signed(bundle, signers)
        return
    from hpcgen.core.support import signatures

    signatures.signer_of("the lock", lock.text.encode(), lock.signature, signatures.LOCK, signers)


def locked_plan(
    lock: Lock,
    catalog: Catalog,
    *,
    file: Path | None = None,
    bundle: Path | None = None,
    format: FormatName | None = None,
    mirrors: Sequence[str] = (),
    allow_unsupported: bool = False,
    before: Sequence[str] = (),
) -> Plan:
    """The plan in a lock, for a build as it is asked for.

    catalog: learns where the files lie that the stack copies; with the collections of the bundle.
    file: the lock's, beside which they may lie; the present folder if None.
    bundle: the folder of the bundle that the build takes everything from; the network if None.
    format: another one than the lock's.
    mirrors: ``KIND=ADDRESS``, in place of those of the site's profile.
    allow_unsupported: what breaks the contract between image and host becomes a finding instead of an error.
    before: words that stand before the subcommand in the command that makes the same plan.
    InputError: these collections make another image of the lock; the bundle lacks what the format takes.
    PolicyError: the site has no engine for the format.
    """
    check_lock(lock, catalog)
    if bundle is not None:
        catalog.copied.places.append(partial(bundled_tree, bundle))
    else:
        look_for_copied(catalog, lock, file)
    allow = allow_unsupported or lock.plan.overruled
    held = hold_chosen(lock.plan, catalog, lock.pins.wheels, allow_unsupported=allow)
    words = ["hpcgen", *before, "render", *(["--locked", LOCK] if bundle is None else ["--bundle", "BUNDLE"])]
    plan = for_build(lock, bundled=bundle is not None)
    if format not in (None, plan.format):
        if bundle is not None:
            _check_bundled(plan.format, format)
        plan = in_format(plan, format, allow_unsupported)
        words += ["--format", format]
        words += ["--allow-unsupported"] if allow_unsupported else []
    if mirrors:
        from hpcgen.backends.hardware.mirrors import with_mirrors

        plan = replace(plan, site=with_mirrors(plan.site, mirrors))
        words += [word for mirror in mirrors for word in ("--mirror", mirror)]
    return replace(plan, command=command(*words), findings=[*plan.findings, *held])


def look_for_copied(catalog: Catalog, lock: Lock, file: Path | None, stack: str | None = None) -> None:
    """Look for what the stack of a lock copies, beside where collections have it.

    ``file``: the lock, in whose folder they may lie; or they lie in the present one. ``stack``: the file or the name of
    the stack, beside which they lie.
    """
    if stack is not None:
        catalog.copied.look_beside(stack, lock.plan)
    folders = [file.absolute().parent] if file is not None else []
    for folder in dict.fromkeys((*folders, Path.cwd())):
        catalog.copied.look_below(folder, lock.plan)


def _check_bundled(locked: str, format: str) -> None:
    """InputError where a bundle for one format lacks what a build of another one takes."""
    held, needed = format_for(locked), format_for(format)
    if set(needed.packages) - set(held.packages) or (needed.base_from_tar and not held.base_from_tar):
        message = f"the bundle of a lock for {locked} lacks files that builds of the format {format} require"
        remedy = f"make the lock with --format {format}: its bundle serves the other formats too"
        raise InputError(message, "--format", remedy=remedy)
