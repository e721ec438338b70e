"""The stack of the present folder: ``hpcgen.yaml``, which commands take where no ``--stack`` is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.core.errors import UnknownNameError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.stack import Stack
    from hpcgen.images.reference import ImageReference

PROJECT = "hpcgen.yaml"
"""The name of a stack that lies in the folder of the project that it is for."""
WITHOUT = f"there is no {PROJECT} in this folder"


def stack_here() -> str | None:
    """What stands for ``--stack`` where it is not given; None where there is no such file."""
    return PROJECT if Path(PROJECT).is_file() else None


def required_stack(stack: str | None) -> str:
    """The stack that is asked for, else that of the present folder; UsageError where there is neither."""
    found = stack or stack_here()
    if found is None:
        raise click.UsageError(f"missing option --stack: {WITHOUT}")
    return found


def image_here(catalog: Catalog, site: str | None, say: Callable[[str], None]) -> ImageReference | None:
    """The image that was built last in this folder from its stack; None where none was.

    ``site``: only one for this site. ``say``: is told which it is.
    """
    from hpcgen.builders.records.store import newest_in
    from hpcgen.images.reference import ImageReference

    where = catalog.site(site).name if site is not None else None
    record = newest_in(Path.cwd(), catalog.stack(PROJECT).name, where)
    if record is None or record.image is None:
        return None
    image = ImageReference(record.image.kind, record.image.name)
    if not image.image_kind.stored and not Path(image.name).exists():
        message = f"{image.name}, the last image built here, no longer exists"
        raise UnknownNameError(message, remedy=f"hpcgen build --site {record.site}, or name an IMAGE")
    say(f"{image}: built last in this folder, for {record.site} (record {record.id.partition('-')[0]})")
    return image


def wanted_here(catalog: Catalog, site: str | None, say: Callable[[str], None]) -> ImageReference:
    """As :func:`image_here`; UsageError where there is none."""
    if stack_here() is None:
        raise click.UsageError(f"give an IMAGE; {WITHOUT}")
    image = image_here(catalog, site, say)
    if image is None:
        raise nothing_built(site)
    return image


def nothing_built(site: str | None = None) -> click.UsageError:
    """That this folder has no image of its stack, or none for this site."""
    where = f" for {site}" if site is not None else ""
    again = f"hpcgen build --site {site or 'NAME'}"
    return click.UsageError(f"no image was built from {PROJECT} in this folder yet{where}: {again}, or give an IMAGE")


def own_stack(catalog: Catalog, stack: str | None) -> Stack | None:
    """The stack that is asked for, else that of this folder, if it is a file of the user's; its defaults count then."""
    from hpcgen.catalog.catalog import is_file_name

    named = stack or stack_here()
    return catalog.stack(named) if named is not None and is_file_name(named) else None


def stack_folder(catalog: Catalog, stack: str, field: Sequence[str] = ("run", "binds")) -> Path:
    """The folder that paths in a field of a stack are from."""
    document = catalog.stack_document(stack)
    file = document.file_of(list(field)) if document is not None else None
    return file.parent if file is not None else Path()


def usual_site(catalog: Catalog, stack: str | None, say: Callable[[str], None]) -> str | None:
    """The site that a stack of the user's or the config file names, for a plan without ``--site``; ``say`` tells it."""
    from hpcgen.core.config.user_config import usual

    found = usual("site", None, own_stack(catalog, stack), stack or PROJECT)
    if found is None:
        return None
    say(f"for {found[0]}, the site of {found[1]}")
    return found[0]


def site_missing(catalog: Catalog, stack: str) -> click.UsageError:
    """That nothing says for which site a stack is to be planned, and how that is said."""
    from hpcgen.catalog.other_names import sites_of_host

    fit = sites_of_host(catalog, os.uname().nodename)
    shown = f"this host's name fits {' or '.join(fit)}" if fit else "`hpcgen list sites` shows them"
    saved = f"`site: {fit[0] if fit else 'NAME'}` in {PROJECT} or in your config file saves the option"
    return click.UsageError(f"--site is missing: plan {stack} for which site? {shown}; {saved}")


def changed_since(catalog: Catalog, recorded: Plan) -> str:
    """What the stack of this folder asks for that an image of it does not have; "" where that is nothing."""
    from hpcgen.core.support.units import some
    from hpcgen.planning.code import with_code

    stack, old = catalog.stack(PROJECT), recorded.stack
    # What --add brought is in the recorded stack too.
    blocks = [name for name, block in with_code(stack).blocks.items() if old.blocks.get(name) != block]
    copied = catalog.copied.planned(stack, catalog.stack_document(PROJECT)) if stack.copy else []
    files = [each.to for each in copied if each not in recorded.copied]
    newer = _newer(stack, recorded.site.name) if files else []
    told = [f"the block {name}" for name in blocks]
    told += [] if newer else [f"the files copied to {path}" for path in files]
    # A list of packages is often copied as well.
    named = sorted({*newer, *_changed_lists(catalog, recorded)})
    return ", ".join([*told, *([some(named)] if named else [])])


def _newer(stack: Stack, site: str) -> list[str]:
    """Files that the stack copies which were written after the last build here."""
    from datetime import datetime

    from hpcgen.builders.records.store import newest_in
    from hpcgen.catalog.copied import files_of

    record = newest_in(Path.cwd(), stack.name, site)
    if record is None:
        return []
    since = datetime.fromisoformat(record.started.replace("Z", "+00:00")).timestamp()
    return [
        os.path.normpath(f"{entry.from_}/{path}")
        for entry in stack.copy
        for path, file in files_of(Path.cwd(), entry)
        if file.stat().st_mtime > since
    ]


def _changed_lists(catalog: Catalog, recorded: Plan) -> list[str]:
    """Files with Python packages that are not as they were for the recorded plan."""
    from hpcgen.planning.project import asked_files

    before = recorded.project.files if recorded.project is not None else {}
    asked = asked_files(catalog, catalog.stack(PROJECT), catalog.stack_document(PROJECT), {})
    now = {path: digest for file in asked.files for path, digest in file.read.items()} if asked is not None else {}
    return [path for path, digest in sorted(now.items()) if before.get(path) != digest]
