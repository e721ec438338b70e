"""Release tables: the YAML beside a block, one row per version."""

from typing import Literal

from hpcgen.model.fields import Commit, Name, Record, Sha256, Source, Text, Url, VersionRange

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


class Release(Record, frozen=True):
    """One version of a block.

    ``trees`` are git trees by name, ``source`` the release's own where it has one.
    ``accepts`` ranges of other blocks where they are needed; ``on`` the distributions (block name →
    versions) that have it, any if empty; ``host`` ranges of facts of the node (``driver``: NVIDIA's or AMD's,
    ``capability``: CUDA compute capability), checked where the fact is known; ``targets`` the instruction sets of AMD's
    GPUs (``gfx90a``) that it has code for, checked likewise, any if empty; ``only`` the values of the block's
    options (``install``) that the release can be had with, any if an option is not named; ``values`` what the
    block's own steps need to know; ``images`` base images by use. ``licence``: the software's own, as an SPDX
    expression, empty where it is not settled.
    """

    archives: dict[Name, ReleaseArchive] = {}
    trees: dict[Name, ReleaseTree] = {}
    accepts: dict[Name, VersionRange] = {}
    on: dict[Name, VersionRange] = {}
    host: dict[Literal["driver", "capability"], VersionRange] = {}
    targets: list[Name] = []
    only: dict[Name, list[Text]] = {}
    images: dict[Name, Text] = {}
    values: dict[str, Value] = {}
    licence: Text = ""
    source: Source | None = None


class ReleaseTable(Record, frozen=True):
    """The file ``building_blocks/<block>.yaml``. ``source`` and ``licence`` hold for rows without their own."""

    block: Name
    releases: dict[str, Release]
    licence: Text = ""
    source: Source | None = None
    notes: list[Text] = []
