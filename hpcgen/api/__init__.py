"""The public functions: ``load_*`` read, :func:`plan` and :func:`render` are pure, :func:`write_kit` writes.

:func:`lock` alone uses the network; what builds and starts images is in ``api.images``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hpcgen.blocks.base import Block
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.checks import check_site, check_stack
from hpcgen.catalog.collections import collections_from_environment
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory, checked
from hpcgen.core.config.user_config import allowed_signers
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import FormatName, RankGpus
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import OptionValue, Stack
from hpcgen.core.support.units import walltime_text
from hpcgen.kit.kit import Kit, make_kit, store_kit
from hpcgen.planning.planner import make_plan

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Lock
    from hpcgen.supply.pin.locking import BazelFetcher

S = TypeVar("S", Site, Stack)
_default: Catalog | None = None
_lock = threading.Lock()


def default_catalog() -> Catalog:
    """The catalog of ``$HPCGEN_COLLECTIONS``, installed collections and the built-in one; made once."""
    global _default
    with _lock:
        if _default is None:
            _default = Catalog(collections_from_environment())
        return _default


def load_site(source: str | Path | Mapping[str, object], *, catalog: Catalog | None = None) -> Site:
    """A site profile.

    Parameters
    ----------
    source: its name, a file if it ends in .yaml, or what such a file says as a mapping.
    catalog: where names are looked up; :func:`default_catalog` if None.

    Raises
    ------
    UnknownNameError: no profile has that name. InputError: it is wrong; every mistake is named with its place.
    """
    catalog = catalog or default_catalog()
    if isinstance(source, Mapping):
        document = InMemory(source, f"site {source.get('name', '')}".rstrip())
        return catalog.site_from(catalog.with_parents(document, (str(source.get("name")),)))
    return catalog.site(str(source))


def load_stack(source: str | Path | Mapping[str, object], *, catalog: Catalog | None = None) -> Stack:
    """A stack recipe; ``source``, ``catalog`` and errors are those of :func:`load_site`."""
    catalog = catalog or default_catalog()
    if isinstance(source, Mapping):
        document = InMemory(source, f"stack {source.get('name', '')}".rstrip())
        return catalog.stack_from(catalog.with_parents(document, (str(source.get("name")),), "stack"))
    return catalog.stack(str(source))


def plan(
    site: Site | str,
    stack: Stack | str,
    *,
    partition: str | None = None,
    format: FormatName | None = None,
    settings: Mapping[str, OptionValue] | Sequence[str] = (),
    add: Sequence[str] = (),
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    threads_per_rank: int | None = None,
    gpus_per_node: int | None = None,
    rank_gpus: RankGpus | None = None,
    walltime: str | timedelta | None = None,
    queue: str | None = None,
    account: str | None = None,
    memory_per_rank_gb: float | None = None,
    command: Sequence[str] | None = None,
    allow_unsupported: bool = False,
    latest_base: bool = False,
    to_lock: bool = False,
    blocks: Sequence[type[Block]] = (),
    catalog: Catalog | None = None,
) -> Plan:
    """Resolve a stack for a site and lay out its job. Uses no network and writes nothing.

    Parameters
    ----------
    site, stack: records, or their names. Records made in Python are checked as files are.
    partition: kind of node; the profile's default if None.
    format: ``docker``, ``singularity`` or ``charliecloud``; what the site's preferred engine reads if None.
    settings: ``{"tensorflow.install": "pip", "mpi.provider": "mpich"}``, or ``BLOCK.OPTION=VALUE`` texts as for
        ``--set``. They say which version or options a block has, not that it is there.
    add: names of blocks that the stack does not have, and the image is to.
    nodes, ranks_per_node, threads_per_rank, queue, account: of the job; the site's layouts decide where None.
    gpus_per_node: GPUs that the job asks for on each node, 0 for none; all of a node or what the stack says if None.
    rank_gpus: ``own``: each rank sees its own GPUs; ``all``: all of its node; the stack decides if None.
    walltime: ``36:00:00``, ``36h`` or ``90m``, or a :class:`datetime.timedelta`. A bare number is refused, since batch
        systems count minutes and Python counts seconds.
    memory_per_rank_gb: gigabytes of each rank, checked against the node's.
    command: the job's command and its arguments; the stack's own if None.
    allow_unsupported: what breaks the contract between image and host becomes a finding instead of an error.
    latest_base: start from what the tags of base images stand for when the image is built, not from dated ones.
    to_lock: it is for :func:`lock`, so that the site's building host needs no network and no mirrors.
    blocks: classes of blocks that are in no collection; give them to :func:`render` too.
    catalog: where names are looked up; :func:`default_catalog` if None.

    Raises
    ------
    InputError: a record or argument is wrong. UnknownNameError: a name that does not exist.
    ConflictError: no versions fit together. PolicyError: the site does not allow it, or the job does not fit.
    """
    catalog = catalog_with(blocks, catalog)
    request = JobRequest(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        threads_per_rank=threads_per_rank,
        gpus_per_node=gpus_per_node,
        rank_gpus=rank_gpus,
        walltime=walltime_in_text(walltime, "plan()"),
        queue=queue,
        account=account,
        memory_per_rank_gb=memory_per_rank_gb,
        command=list(command) if command is not None else None,
    )
    found_site, site_document = site_or_stack(catalog, site, Site)
    found_stack, stack_document = site_or_stack(catalog, stack, Stack)
    base = None
    if found_stack.from_ is not None:
        from hpcgen.supply.pin.foreign_base import stack_base

        file = stack_document.file_of(["from"]) if stack_document is not None else None
        folder = file.parent if file is not None else Path()
        base = stack_base(catalog, found_stack, folder, found_site, ask_registry=to_lock)
    in_files = not blocks and not any(isinstance(each, InMemory) for each in (site_document, stack_document))
    return make_plan(
        catalog,
        found_site,
        found_stack,
        partition=partition,
        settings=_as_texts(settings),
        added=add,
        format=format,
        allow_unsupported=allow_unsupported,
        latest_base=latest_base,
        job=checked(request, "plan()"),
        site_document=site_document,
        stack_document=stack_document,
        # No command line makes again what is in no file.
        command=None if in_files else str,
        unchecked=("network",) if to_lock else (),
        base=base,
    )


def lock(
    plan: Plan,
    *,
    images: Mapping[str, str] | None = None,
    accept_licences: Sequence[str] = (),
    fetch_bazel: BazelFetcher | None = None,
    say: Callable[[str], None] | None = None,
    catalog: Catalog | None = None,
) -> Lock:
    """Pin everything that the build of a plan downloads. Uses the network, and writes nothing: save ``.text``.

    Parameters
    ----------
    images: references of skopeo to take base images from, by their names: ``{"debian:12": "oci-archive:FILE"}``.
    accept_licences: names of licences that you accept, or ``all``; also those of the environment and config file.
    fetch_bazel: runs Bazel to learn what it downloads, which takes minutes to an hour and several GB:
        ``hpcgen.plugins.bazel.fetch.fetch_bazel``.
    say: is told what is being done, such as ``print``.
    catalog: that of :func:`plan`; :func:`default_catalog` if None.

    Raises
    ------
    FetchError, MissingToolError: something cannot be fetched, or a tool for it is not installed.
    PolicyError: a licence is not accepted; BroughtFrameworkError, if a chosen package requires what ``blocks`` of it
        install: plan with these as ``add``. InputError: a block of the plan is in no file.
    """
    from hpcgen.planning.licences import all_accepted, require_accepted
    from hpcgen.planning.reproduce import to_lock
    from hpcgen.supply.pin.locking import make_lock

    require_accepted(plan.licences, accept_licences)
    plan = msgspec.structs.replace(all_accepted(plan), command=to_lock(plan.command))
    return make_lock(plan, catalog or default_catalog(), images=images, fetch_bazel=fetch_bazel, say=say or quiet)


def render(
    plan: Plan | Lock,
    *,
    bundle: Path | str | None = None,
    blocks: Sequence[type[Block]] = (),
    catalog: Catalog | None = None,
) -> Kit:
    """The kit of a plan or a lock: ``.recipe``, ``.files`` by name, ``.notices``. Writes nothing, uses no network.

    Parameters
    ----------
    plan: of a lock the kit takes what is pinned.
    bundle: the folder of a bundle of that lock, from which the build is to take everything.
    blocks, catalog: those that :func:`plan` was given.

    Raises
    ------
    InputError: these collections would not make the image that the lock pins; the bundle is of another lock.
    PolicyError: the bundle brings a collection that neither the catalog nor the config file names.
    """
    catalog = catalog_with(blocks, catalog)
    if isinstance(plan, Plan):
        return make_kit(plan, catalog)
    return locked_kit(plan, catalog, blocks, bundle=Path(bundle).absolute() if bundle is not None else None)


def write_kit(kit: Kit, folder: Path | str) -> Path:
    """Write a kit into a folder, whole or not at all; other files there stay, older files of a kit are replaced.

    Returns
    -------
    The folder.

    Raises
    ------
    OutputError: it cannot be written; what was there before is untouched.
    """
    store_kit(Path(folder), kit.all_files)
    return Path(folder)


def locked_kit(
    lock: Lock,
    catalog: Catalog,
    blocks: Sequence[type[Block]] = (),
    *,
    bundle: Path | None = None,
    format: FormatName | None = None,
) -> Kit:
    """The kit of a lock, in another format than its own if one is named.

    PolicyError where ``signers`` of the user's config file require a signature that it has not.
    """
    from hpcgen.supply.locked import hold_signed, locked_plan

    hold_signed(lock, bundle, allowed_signers())
    folders = list(catalog.folders[:-1])
    if bundle is not None:
        from hpcgen.catalog.trust import content_offered, not_trusted, untrusted
        from hpcgen.core.model.image_paths import LOCK
        from hpcgen.kit.lockfile.lock import read_lock
        from hpcgen.supply.bundle.own_collections import bundled_collections

        if read_lock(bundle / LOCK).content != lock.content:
            message = f"the bundle {bundle} is of another lock"
            raise InputError(message, remedy=f"build that one: hpcgen.read_lock({str(bundle / LOCK)!r})")
        brought = bundled_collections(bundle, lock)
        if missing := untrusted([content_offered(each, f"the bundle {bundle}") for each in brought], folders):
            raise not_trusted(missing)
        folders += brought
    # A catalog of its own: where the files lie that this lock copies is nothing that others should be told.
    own = Catalog(folders, blocks)
    return make_kit(locked_plan(lock, own, bundle=bundle, format=format), own, lock)


def quiet(message: str) -> None:
    """Say nothing: what functions tell whom nobody wants to hear."""


def walltime_in_text(value: str | timedelta | None, where: str) -> str | None:
    """A time limit as the command line has it.

    Raises
    ------
    InputError: a number, of which nobody knows the unit, or no whole number of seconds.
    """
    if isinstance(value, int | float):
        expected = "text such as '01:30:00' or '90m', or a datetime.timedelta"
        remedy = f"write '{value:g}s' for seconds, or '{value:g}m' for minutes"
        raise InputError(f"walltime: {value!r} has no unit", where, expected, remedy)
    if not isinstance(value, timedelta):
        return value
    seconds = value.total_seconds()
    if seconds < 1 or seconds % 1:
        raise InputError(f"walltime: {value} is not a time limit", where, "whole seconds, at least one")
    return walltime_text(int(seconds))


def catalog_with(blocks: Sequence[type[Block]], catalog: Catalog | None) -> Catalog:
    catalog = catalog or default_catalog()
    return Catalog(catalog.folders[:-1], blocks) if blocks else catalog


def site_or_stack(catalog: Catalog, asked: S | str, kind: type[S]) -> tuple[S, Document]:
    """The site or stack with what stands for its file, which is what it was loaded from, or itself."""
    is_site = kind is Site
    if not isinstance(asked, kind):
        record = catalog.site(str(asked)) if is_site else catalog.stack(str(asked))
        return record, catalog.site_document(str(asked)) if is_site else catalog.stack_document(str(asked))  # type: ignore[return-value]
    for known in (catalog, _default):
        document = known.document_of(asked) if known is not None else None
        if document is not None:
            return asked, document
    document = InMemory(asked, f"{'site' if is_site else 'stack'} {asked.name}")
    record = convert(document, kind)
    if isinstance(record, Site):
        check_site(record, document)
    else:
        check_stack(record, document, catalog)
    return record, document


def _as_texts(settings: Mapping[str, OptionValue] | Sequence[str]) -> list[str]:
    if not isinstance(settings, Mapping):
        return list(settings)
    return [f"{name}={_as_text(value)}" for name, value in settings.items()]


def _as_text(value: OptionValue) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
