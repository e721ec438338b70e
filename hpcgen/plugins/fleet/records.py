"""A fleet: which stacks are built for which sites, and what was last built of them."""

from typing import Annotated

import msgspec

from hpcgen.core.model.fields import FormatName, Name, Record, Reference, Sha256, Text, matching
from hpcgen.core.model.record import BuilderName

Registry = Annotated[
    str,
    matching(
        r"^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*$(?!\n)",
        "a registry's host and folder, in lower case and without https://",
        "registry.example.org/hpc",
    ),
]


class Member(Record, frozen=True):
    """One image: a stack for a site. ``name`` is STACK-SITE unless given; ``engine`` is the one that builds.

    ``settings`` are ``BLOCK.OPTION=VALUE``, as with ``--set``. Without ``test`` an image is done when it is built.
    ``test_site`` describes the machine that tests, where that is not the site itself. With ``allow_unsupported`` what
    breaks the contract between image and host is a warning, and ``latest_base`` takes base images by the tags that
    move, as with the options of these names.
    """

    stack: Reference
    site: Reference | None = None
    name: Name | None = None
    partition: Name | None = None
    settings: list[Text] = []
    format: FormatName | None = None
    engine: BuilderName | None = None
    test: bool | None = None
    test_site: Reference | None = None
    allow_unsupported: bool = False
    latest_base: bool | None = None


class Defaults(Record, frozen=True):
    """Defaults for members that do not set them."""

    site: Reference | None = None
    format: FormatName | None = None
    engine: BuilderName | None = None
    test: bool = True
    test_site: Reference | None = None
    latest_base: bool = False


class Fleet(Record, frozen=True):
    """fleet.yaml. ``registry`` is where images are published, as REGISTRY/NAME:CONTENT.

    ``collections`` are folders, from the folder of this file. ``build_on`` is the site whose batch system
    ``hpcgen build --all --array`` uses; it can be left out where all members are for one site.
    """

    members: Annotated[list[Member], msgspec.Meta(min_length=1)]
    registry: Registry | None = None
    collections: list[Text] = []
    build_on: Reference | None = None
    defaults: Defaults = Defaults()


class LockedImage(Record, frozen=True):
    """What was last built of one member: the plan's hash, and by what; ``tested`` only if all tests passed.

    ``image`` is its kind and place, such as ``sif:images/x.sif``; ``published`` the name in the registry.
    """

    content: Sha256
    format: FormatName
    engine: BuilderName
    tested: bool = False
    image: Text = ""
    digest: Text = ""
    published: Text = ""


class FleetLock(Record, frozen=True):
    """fleet.lock: the last good build of each member by its name."""

    images: dict[Name, LockedImage]
    fleet_lock: int = 1
