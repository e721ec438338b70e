"""What the user's own config file adds to a command, where the command line does not say it, and what goes into it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from msgspec.structs import replace

from hpcgen.cli.common import say
from hpcgen.core.config.user_config import accept, configured
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.site import Site
from hpcgen.core.support.quoting import safe_path


def images_of(site: Site, asked: str | None) -> str | None:
    """The folder of images that is asked for, else the user's own at that site."""
    folder: str | None = asked if asked is not None else configured("image_directories", {}).get(site.name)
    return folder


def with_images(site: Site, folder: str | None) -> Site:
    """A site whose jobs look for images in this folder; InputError for what is no absolute path."""
    if folder is None:
        return site
    place = safe_path(folder, "the folder of images")
    return replace(site, containers=replace(site.containers, image_directory=place))


def somebody_there() -> bool:
    """Whether the user is at the terminal who can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def save_accepted(field: str, names: Iterable[str]) -> None:
    """Keep in the user's config file what was accepted today, so that it is asked for once."""
    import datetime

    today = datetime.datetime.now(datetime.timezone.utc).date()
    try:
        say(f"saved in {accept(field, names, today.isoformat())}")
    except HpcgenError as error:
        # It is accepted all the same; next time it is asked for again.
        say(f"warning: not saved: {error.problems[0].message}")
