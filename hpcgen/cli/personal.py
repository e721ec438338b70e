"""What the user's own config file adds to a command, where the command line does not say it."""

from __future__ import annotations

from msgspec.structs import replace

from hpcgen.config.user_config import configured
from hpcgen.model.site import Site
from hpcgen.support.quoting import safe_path


def account_for(site: Site, asked: str | None) -> str | None:
    """The account that is asked for, else the user's own at that site."""
    if asked is not None or site.scheduler.account == "none":
        return asked
    account: str | None = configured("accounts", {}).get(site.name)
    return account


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
