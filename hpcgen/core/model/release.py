"""Release tables: the YAML beside a block, one row per version."""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import (
    Commit,
    Date,
    DatedTag,
    Digest,
    Name,
    Record,
    Sha256,
    Source,
    Text,
    Url,
    Version,
    VersionRange,
    matching,
)

Value = str | list[str] | dict[str, str]


class ReleaseArchive(Record, frozen=True):
    """A source or binary archive of a release."""

    url: Url
    sha256: Sha256


class ReleaseTree(Record, frozen=True):
    """The files of a git repository at a commit, which a release is built from.

    ``patch``: a file of the release's own source that is applied to them. ``only``: as in :class:`Release`.
    ``licence``: the software's own, where it is another than that of the block.
    """

    url: Url
    commit: Commit
    patch: Text = ""
    only: dict[Name, list[Text]] = {}
    licence: Text = ""


ImageName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$(?!\n)",
        "an image's name with its tag, and its digest if that is known",
        "ubuntu:22.04",
    ),
]
TaggedName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*$(?!\n)",
        "an image's name with its tag, without a digest",
        "ubuntu:22.04",
    ),
]
Platform = Literal["amd64", "arm64", "ppc64le"]
"""Architectures of linux as registries call them."""


class DatedImage(Record, frozen=True):
    """A base image as it was built on one day.

    ``name`` has the tag that moves on with each build: so mirrors, locks and ``--image`` call it, whatever the day.
    ``dated``: the tag of that build, in the same repository. ``digest``: of the index that the tag stood for;
    a registry may add to an index, so ``platforms`` has the digests of the manifests, which stay.
    """

    name: TaggedName
    dated: DatedTag
    digest: Digest
    platforms: dict[Platform, Digest] = {}
    source: Source | None = None


class Concern(Record, frozen=True):
    """A warning about a release that can still be installed.

    ``kind``: ``insecure`` has a known hole that no release mends, ``unmaintained`` gets no more corrections, ``gone``:
    some of what its build fetches is no longer where it was. ``versions``: the releases that it holds for, any if
    empty; ``only``: the values of the block's options, as in :class:`Release`. ``remedy``: what to do, or use instead.
    """

    kind: Literal["insecure", "unmaintained", "gone"]
    message: Text
    source: Source
    remedy: Text = ""
    versions: VersionRange = ""
    only: dict[Name, list[Text]] = {}


class Beside(Record, frozen=True):
    """The releases of other blocks that a block works with, although it does not need them.

    ``versions``: its own releases that this holds for, any if empty; ``accepts``: the ranges of other blocks, which
    bind where those are in the plan. ``message``: what happens otherwise; ``remedy``: the way out.
    """

    message: Text
    source: Source
    accepts: dict[Name, VersionRange]
    remedy: Text = ""
    versions: VersionRange = ""


Architecture = Literal["x86_64", "aarch64"]
PLATFORMS = {"x86_64": "amd64", "aarch64": "arm64"}
"""What registries call the architectures of sites."""


class ReleaseWay(Record, frozen=True):
    """One way in which a release can be had, with what holds for it alone.

    ``only``: the values of the block's options that ask for it. ``architectures``: of the nodes that it is for; those
    of its wheels, or any, if it names none. ``gpu``: whose GPU the node must have. ``accepts``, ``on``, ``host``,
    ``targets``: as in :class:`Release`, in addition to what the row says; of the GPU, instead of it. ``wheels``: files
    of Python packages, one of which is installed; their names say for which Python and architecture. ``images`` and
    ``values``: as in :class:`Release`, in addition; ``not_default`` of this way alone. ``source``: of these, if it
    is another. ``versions``: of a way that stands in the table itself the releases that it is of, any if empty.
    """

    only: dict[Name, list[Text]]
    versions: VersionRange = ""
    architectures: list[Architecture] = []
    gpu: Literal["nvidia", "amd", "intel"] | None = None
    accepts: dict[Name, VersionRange] = {}
    on: dict[Name, VersionRange] = {}
    host: dict[Literal["driver", "capability"], VersionRange] = {}
    targets: list[Name] = []
    wheels: list[ReleaseArchive] = []
    images: dict[Name, ImageName | DatedImage] = {}
    values: dict[str, Value] = {}
    not_default: Text = ""
    source: Source | None = None


class Unlisted(Record, frozen=True):
    """What exists of releases and is in no table, and why: a refusal of such a release says so.

    ``versions``, ``only``, ``architectures``: for which releases, options and nodes it holds; any if empty.
    """

    message: Text
    source: Source
    versions: VersionRange = ""
    only: dict[Name, list[Text]] = {}
    architectures: list[Architecture] = []


class Release(Record, frozen=True):
    """One version of a block.

    ``trees`` are git trees by name, ``source`` the release's own where it has one.
    ``accepts`` ranges of other blocks where they are needed; ``on`` the distributions (block name →
    versions) that have it, any if empty; ``host`` ranges of facts of the node (``driver``: NVIDIA's or AMD's,
    ``capability``: CUDA compute capability), checked where the fact is known; ``targets`` the instruction sets of AMD's
    GPUs (``gfx90a``) that it has code for, checked likewise, any if empty; ``only`` the values of the block's
    options (``install``) that the release can be had with, any if an option is not named; ``values`` what the
    block's own steps need to know; ``images`` base images by use, with a date where that is known. ``ways``: in which
    the release can be had, where what holds depends on that; the first that fits the block's options and the node's
    architecture counts, and without one that fits the release cannot be had. ``wheels`` are those of that way.
    ``licence``: the software's own, as an SPDX expression, empty where it is not settled. ``not_default``: why it is
    taken only if it is asked for or nothing else fits; empty for all others. ``concerns``: what plans with it warn of.
    ``beside``: releases of blocks it does not need with which alone it works. ``unlisted``: what more there is of it.
    """

    archives: dict[Name, ReleaseArchive] = {}
    trees: dict[Name, ReleaseTree] = {}
    accepts: dict[Name, VersionRange] = {}
    on: dict[Name, VersionRange] = {}
    host: dict[Literal["driver", "capability"], VersionRange] = {}
    targets: list[Name] = []
    only: dict[Name, list[Text]] = {}
    ways: list[ReleaseWay] = []
    wheels: list[ReleaseArchive] = []
    images: dict[Name, ImageName | DatedImage] = {}
    values: dict[str, Value] = {}
    licence: Text = ""
    not_default: Text = ""
    concerns: list[Concern] = []
    beside: list[Beside] = []
    unlisted: list[Unlisted] = []
    source: Source | None = None


class UpstreamGit(Record, frozen=True):
    """The repository of a block's software, whose tags are its releases.

    ``tags``: what a release's tag looks like, as a whole. ``archive: git``: the rows' archives are those that
    ``git archive | gzip -n`` makes of a tag, as GitHub does, so that anybody can compute their sha256.
    """

    url: Url
    tags: Text = "v{version}"
    archive: Literal["git"] | None = None


class UpstreamList(Record, frozen=True):
    """A page or file that names releases: a project's sums, a vendor's folder, a distribution's index of packages.

    ``name``: whose it is. ``pattern``: what names a release in its text, which is unpacked if the address ends with
    ``.gz`` or ``.xz``. ``on``: the distribution whose packages it lists, so that it counts for the rows of that one.
    """

    name: Text
    url: Url
    pattern: Text
    on: dict[Name, Version] = {}


class Until(Record, frozen=True):
    """What would end a reason to leave a release out, if it came true.

    ``index``: a requirement that the package index has a file for. ``lock``: requirements that can be locked together
    for ``python`` on ``architecture``. ``hash``: somebody has a sha256 of its archive.
    """

    index: Text = ""
    lock: list[Text] = []
    python: Version = "3.12"
    architecture: Architecture = "x86_64"
    hash: Literal["known"] | None = None


class LeftOut(Record, frozen=True):
    """Why a release is left out, and until what."""

    why: Text
    until: Until


class Upstream(Record, frozen=True):
    """By what names others know the software of a block, for ``hpcgen tables refresh``.

    ``pypi``: the package in the Python package index whose versions are the block's; ``spack`` as in ``py-torch``,
    ``easybuild`` as in ``PyTorch``; ``git`` and ``lists``: where its own releases appear. ``none``: why nobody else has
    the releases of this table. ``series``: how many numbers of a version name a series whose newest release the table
    should have, 0 if the newest of all is enough. ``left_out``: releases that are known and not wanted, by their
    range, and why. ``other_archives``: by the source's name here, the releases of which it takes other archives than
    the table, and which.
    """

    pypi: Text = ""
    spack: Text = ""
    easybuild: Text = ""
    git: UpstreamGit | None = None
    lists: list[UpstreamList] = []
    none: Text = ""
    series: Annotated[int, msgspec.Meta(ge=0, le=3, description="0, 1, 2 or 3")] = 0
    left_out: dict[VersionRange, Text | LeftOut] = {}
    other_archives: dict[Literal["pypi", "spack", "easybuild"], dict[VersionRange, Text]] = {}


class AssumedDriver(Record, frozen=True):
    """The driver that is planned for where a profile names none, for GPUs of one vendor.

    ``capability``, ``targets``: of the GPUs that it is for; all that no earlier row is for if it names neither.
    ``why``: why this one, in a few words.
    """

    vendor: Literal["nvidia", "amd", "intel"]
    driver: Version
    why: Text
    source: Source
    capability: VersionRange = ""
    targets: list[Name] = []


class AssumedDrivers(Record, frozen=True):
    """The file ``building_blocks/gpu_drivers.yaml``; of its rows the first counts that is for a GPU."""

    drivers: list[AssumedDriver]


Times = Annotated[float, msgspec.Meta(gt=0, description="how many times as fast")]


class MeasuredDefault(Record, frozen=True):
    """A block that images have without being asked, and what was measured of it.

    ``title``: of what it is for. ``blocks``, ``packages``: an image that is asked for any of these blocks or Python
    packages is such a one. ``adds``: the block; none where such a block was measured to lose. ``gained``: how many
    times as fast workloads were, by their names in ``measurements/``; ``hardware``: on which machine, by its name
    there, ``on`` in words.
    """

    title: Text
    gained: dict[Name, Times]
    hardware: Name
    on: Text
    measured: Date
    source: Source
    adds: Name | None = None
    blocks: list[Name] = []
    packages: list[Name] = []


class MeasuredDefaults(Record, frozen=True):
    """The file ``building_blocks/measured_defaults.yaml``; of its rows the first counts that is for an image."""

    measured_defaults: list[MeasuredDefault]


class ReleaseTable(Record, frozen=True):
    """The file ``building_blocks/<block>.yaml``. ``source`` and ``licence`` hold for rows without their own.

    ``concerns``, ``beside`` and ``unlisted`` hold for all rows in their ranges, those of other collections' tables too;
    so do ``ways``, after those of the row itself. ``upstream``: by what names others know the software.
    ``successor_of``: names of software that is gone or given up and that this took the place of, each with why; who
    asks for a block of that name is told.
    """

    block: Name
    releases: dict[str, Release]
    licence: Text = ""
    ways: list[ReleaseWay] = []
    concerns: list[Concern] = []
    beside: list[Beside] = []
    unlisted: list[Unlisted] = []
    upstream: Upstream | None = None
    successor_of: dict[Name, Text] = {}
    source: Source | None = None
    notes: list[Text] = []
