"""The image of others that a stack starts from: found here, or for a lock in its registry, and read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError, HpcgenError, InputError, MissingToolError, UnknownNameError
from hpcgen.core.model.plan import BaseImage, ImageName, Plan
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.quoting import sh
from hpcgen.images.kinds import KINDS, kind_for
from hpcgen.images.observed import Referred, observed, observed_image
from hpcgen.images.reference import ImageReference, parse_image, stored_reference
from hpcgen.images.skopeo import REGISTRY


def stack_base(
    catalog: Catalog, stack: Stack, folder: Path, site: Site, ask_registry: bool = False
) -> BaseImage | None:
    """What the image says of itself that a stack names in ``from``; None without one.

    folder: of the stack's file, from which paths are.
    ask_registry: an image that is not here is fetched to be read, and a tag becomes a digest.
    InputError: it is not here or cannot be built on; there is no digest, and the remedy says which command shows it.
    """
    named = stack.from_
    if named is None:
        return None
    try:
        if not named.startswith(REGISTRY):
            image = _of_machine(named, folder)
            base = observed_image(image, catalog, site.system.architecture)
            if base.file:
                catalog.bases[base.file] = Path(image.name)
            return base
        return _of_registry(catalog, named.removeprefix(REGISTRY), site, ask_registry)
    except HpcgenError as failure:
        raise type(failure)([each if each.where else each.at(f"from: {named}") for each in failure.problems]) from None


def _of_machine(named: str, folder: Path) -> ImageReference:
    kind, colon, rest = named.partition(":")
    if colon and kind in KINDS:
        if kind_for(kind).stored:
            return parse_image(named)
        return parse_image(f"{kind}:{folder / rest}")
    if (folder / named).exists() or named.startswith(("/", "./", "../", "~")):
        return parse_image(str(folder / Path(named).expanduser()))
    return parse_image(named)


def _of_registry(catalog: Catalog, name: str, site: Site, ask_registry: bool) -> BaseImage:
    """An image by its name in a registry, of which a copy is in a store here, or that is fetched."""
    architecture = site.system.architecture
    told, _, digest = name.partition("@")
    stored_reference("", told)
    if digest and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise InputError(f"{digest!r} is not a digest", expected="sha256: and 64 lower-case hexadecimal digits")
    if not digest and not ask_registry:
        show = f"skopeo inspect --format '{{{{.Digest}}}}' {sh(REGISTRY + name)}"
        raise InputError(
            f"{name} has no digest, so its content may change",
            expected=f"{REGISTRY}{told}@sha256:…",
            remedy=f"`{show}` shows it; or hpcgen lock pins it",
        )
    if ask_registry:
        return _fetched(catalog, name, architecture)
    # A store is asked by the digest alone: not every release takes a tag beside it.
    folder, slash, last = told.rpartition("/")
    for kind in ("podman", "docker"):
        reference = stored_reference(kind, f"{folder}{slash}{last.partition(':')[0]}@{digest}")
        try:
            base = observed_image(reference, catalog, architecture)
        except (UnknownNameError, MissingToolError):
            continue
        return replace(base, image=_recipe_name(told), kind="", digest=digest)
    raise InputError(
        f"{name} is not on this machine, so its files cannot be read; plans use no network",
        remedy=f"hpcgen lock reads it in its registry; or fetch it first: podman pull {sh(name)}",
    )


def _recipe_name(told: str) -> ImageName:
    return told if ":" in told.rpartition("/")[2] else f"{told}:latest"


@contextmanager
def fetched_image(
    name: str, architecture: str, tell: Callable[[str], None] = lambda text: None
) -> Iterator[ImageReference]:
    """An image of a registry, in a folder that goes at the end; it is shown by its name there with its digest.

    name: without ``docker://``.
    architecture: the site's, ``x86_64`` or ``aarch64``; any other is taken for the former.
    tell: told of its size before it is fetched.
    InputError: it is no such name. FetchError: it cannot be fetched. MissingToolError: skopeo is not installed.
    """
    from hpcgen.supply.pin.base_images import fetch_image, pin_image

    told, _, digest = name.partition("@")
    stored_reference("", told)
    called = _recipe_name(told)
    architecture = architecture if architecture in PLATFORMS else "x86_64"
    with scratch_folder("hpcgen-base-") as scratch:
        # Which is locked itself, as the layout is while it is written.
        folder = scratch / "image"
        try:
            pin = pin_image(called, [f"{REGISTRY}{called}"], architecture, digest)
            fetch_image(pin, called, architecture, folder, tell)
        except FetchError as failure:
            login = f"skopeo login {sh(called.partition('/')[0])}"
            remedy = f"check the name; a registry with a password: {login}; or name a copy that is here"
            raise FetchError(replace(each, remedy=each.remedy and remedy) for each in failure.problems) from None
        yield ImageReference("oci-archive", str(folder), shown=f"{REGISTRY}{called}@{pin.digest}")


def _fetched(catalog: Catalog, name: str, architecture: str) -> BaseImage:
    with fetched_image(name, architecture) as image:
        marks = image.image_kind.settings(image.name)
        variables = marks.environment if marks is not None else {}
        found = observed(Referred(image), name, variables, catalog, architecture)
    called, _, digest = image.shown.removeprefix(REGISTRY).partition("@")
    return replace(found, image=called, digest=digest)


def own_source(plan: Plan, catalog: Catalog) -> dict[str, str]:
    """Where skopeo finds the image of this machine that a plan starts from, by its name in the plan.

    InputError for a kind that has no digest of its own.
    """
    base = plan.base
    if base is None or not base.kind:
        return {}
    if base.kind == "podman":
        return {base.image: f"containers-storage:{base.image}"}
    if base.kind == "docker":
        return {base.image: f"docker-daemon:{base.image}"}
    if base.kind == "oci-archive":
        place = catalog.bases.get(base.file, Path(base.file))
        if not place.is_file():
            raise FetchError(
                f"{base.file} is not here", remedy=f"--image {base.image}=oci-archive:FILE says where it is"
            )
        return {base.image: f"oci-archive:{place}"}
    raise InputError(
        f"a lock holds images by their digest, and {base.file or base.image}, a {base.kind} image, has none",
        "from",
        remedy=f"make an OCI archive of it (hpcgen convert … {base.file or 'image'}.oci), and start from that",
    )
