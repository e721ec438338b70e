"""Whether an image may be started where only signed ones may: by the user's config file, or by the site's profile.

A profile may ask for signatures. Whose count is in the user's config file alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgen.core.config.user_config import allowed_signers, found_user_config
from hpcgen.core.errors import PolicyError, Problem, UnknownNameError
from hpcgen.core.model.site import Site

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.images.reference import ImageReference

_FIELD = "images.require_signature"
_REMEDY = "ask whoever built the image for both again; hpcgen verify IMAGE shows details"


def required_by(site: Site, catalog: Catalog) -> str:
    """Who has only signed images started at a site; "" where nobody does.

    ``site``: which may be from an image's record, so the user's own profile of that name is asked too.
    """
    config = found_user_config()
    if config is not None and config.images.require_signature:
        return f"your config file ({_FIELD})"
    try:
        own = catalog.site(site.name)
    except UnknownNameError:
        own = site
    asked = site.images.require_signature or own.images.require_signature
    return f"the profile of {site.name} ({_FIELD})" if asked else ""


def require_signed(image: ImageReference | None, site: Site, catalog: Catalog) -> str:
    """The sha256 of an image's file that an allowed signer vouches for; "" where nobody asks, or it is no file.

    PolicyError: a signature is asked for, and there is none of this image by an allowed signer. InputError: its
    statement cannot be read. MissingToolError: ssh-keygen is not here.
    """
    who = required_by(site, catalog)
    if not who:
        return ""
    from hpcgen.builders.records.provenance import check_carried, check_provenance, statement_beside

    if image is None:
        message = f"{who} requires a signed image, and no image is named"
        raise PolicyError(message, expected="IMAGE, so that its statement can be checked", remedy="name the image")
    signers = allowed_signers()
    if signers is None:
        message = f"{who} requires an image signed by an allowed signer, and you have none"
        raise PolicyError(
            message, expected="a file of allowed signers", remedy="add `signers: FILE` to your config file"
        )
    carried, file = check_carried(image, signers), statement_beside(image)
    if carried is not None and carried.outcome == "holds":
        return image.image_kind.digest(image.name).removeprefix("sha256:")
    if not file.exists():
        other = f"; {carried.name}: {carried.reason}" if carried is not None else ""
        raise PolicyError(
            f"{image} has no provenance statement, and {who} requires one{other}",
            expected=f"{file}, signed in {file}.sig",
            remedy="get both from whoever built it, who can make them from the build record: "
            "hpcgen records provenance ID -o FILE --sign KEY",
        )
    checks = check_provenance(image, file, signers)
    needed = ("signature", "digest")
    wrong = [
        each
        for each in checks
        if each.outcome == "does not hold" or (each.name in needed and each.outcome == "unknown")
    ]
    if wrong:
        raise PolicyError(
            Problem(f"{image} is not started: {who}: {each.name}: {each.reason}", str(file), remedy=_REMEDY)
            for each in wrong
        )
    return "" if image.image_kind.stored else next((each.sha256 for each in checks if each.sha256), "")
