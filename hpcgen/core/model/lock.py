"""The pins of ``hpcgen lock`` beyond the plan: versions, digests and hashes of all inputs of a build."""

import re
from typing import Annotated, Any, Literal

import msgspec

from hpcgen.core.model.bazel import BazelPin
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.fields import Bytes, DatedTag, Digest, Record, Sha256, Text, matching
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.spack import SpackPin

StageName = Literal["builder", "final"]
PackageName = Annotated[str, matching(r"^[A-Za-z0-9][A-Za-z0-9+._-]*$(?!\n)", "the name of an OS package", "libnuma1")]
PackageVersion = Annotated[
    str, matching(r"^[A-Za-z0-9][A-Za-z0-9.+:~^_-]*$(?!\n)", "the version of an OS package", "2.0.16-1")
]
Fingerprint = Annotated[
    str,
    matching(
        r"^[0-9A-F]{32,64}$(?!\n)",
        "an OpenPGP fingerprint: 32 to 64 upper-case hexadecimal digits",
        2 * "0123456789ABCDEF0123",
    ),
]
ORIGIN_PATTERN = r"^[a-z][a-z-]*:[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$(?!\n)"
ImageOrigin = Annotated[
    str,
    matching(
        ORIGIN_PATTERN,
        "an image as skopeo names it: docker://…, oci-archive:FILE, containers-storage:NAME",
        "docker://docker.io/library/debian:12",
    ),
]
HashedLine = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*==\s*[A-Za-z0-9.!+_-]+\s*"
        r"(;((?!\s-)[^#\\\x00-\x1f\x7f-\x9f\u2028\u2029])*)?( --hash=sha256:[0-9a-f]{64})+$(?!\n)",
        "a package with its version and the sha256 of its files",
        "h5py==3.11.0 --hash=sha256:" + 4 * "0123456789abcdef",
    ),
]
COLLECTION_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
"""What a lock calls a collection; a folder of that name is in a bundle."""


class ImagePin(Record, frozen=True):
    """A base image: the digest of its manifest for the site's architecture, and where it was read.

    ``origin`` is what skopeo takes: ``docker://…``, ``oci-archive:FILE``, ``containers-storage:NAME``.
    ``dated``: the tag of that digest, where it is of a release table and was not asked for by a tag that moves.
    ``oci``: the digest in a bundle's OCI layout, where the origin's manifest is Docker's own kind and had to be
    converted (``inputs.images``).
    """

    digest: Digest
    origin: ImageOrigin
    dated: DatedTag | None = None
    oci: Digest | None = None

    @property
    def bundled(self) -> str:
        """The digest in a bundle."""
        return self.oci or self.digest


class PackagePin(Record, frozen=True):
    """One OS package file; ``size`` in bytes, ``url`` where the distribution or the site's mirror has it.

    ``version``: of an RPM package ``EPOCH:VERSION-RELEASE``, without an epoch of 0.
    """

    version: PackageVersion
    architecture: PackageName
    sha256: Sha256
    size: Bytes
    url: Text

    @property
    def is_rpm(self) -> bool:
        """Whether it is an RPM package, and no .deb."""
        return self.url.endswith(".rpm")

    def file(self, name: str) -> str:
        """What the file of the package is called in an archive: without the epoch."""
        version = self.version.partition(":")[2] or self.version
        return (
            f"{name}-{version}.{self.architecture}.rpm" if self.is_rpm else f"{name}_{version}_{self.architecture}.deb"
        )


class StagePackages(Record, frozen=True):
    """OS packages of a stage: ``present`` in the base image (name → version), ``added`` by the build, all of them.

    ``late``: names of those that the project's own packages bring, which are installed after the frameworks.
    """

    present: dict[PackageName, PackageVersion] = {}
    added: dict[PackageName, PackagePin] = {}
    late: list[PackageName] = []


class KeyPin(Record, frozen=True):
    """A key that signed a package index: its fingerprint, the key ring in the image, and the index with its date.

    Of a repository for dnf: a key that may have signed its packages, ``keyring`` with ``file://`` before it. For zypper
    the ``keyring`` is the key's package in rpm's database, ``gpg-pubkey-…``.
    """

    fingerprint: Fingerprint
    keyring: Text
    index: Text
    date: Text


class Pins(Record, frozen=True):
    """Everything that is fixed beyond the plan.

    ``images`` by the name that the plan has; ``packages`` by stage; ``wheels``: hashed requirement lines, by the
    name of the wheel list that they stand for; ``trees``: sha256 of the archive of each git tree, by
    ``URL@COMMIT``; ``bazel``: what a Bazel that was run has fetched, by the name of its list; ``conda``: packages that
    were chosen for what the plan asks of conda; ``spack``: likewise of Spack; ``epoch``: seconds
    since 1970, the newest date among the package indexes and images, which the build gives to files as
    ``SOURCE_DATE_EPOCH``.
    """

    images: dict[Text, ImagePin] = {}
    packages: dict[StageName, StagePackages] = {}
    keys: list[KeyPin] = []
    wheels: dict[Text, list[HashedLine]] = {}
    trees: dict[Text, Sha256] = {}
    bazel: dict[Text, BazelPin] = {}
    conda: list[CondaPackage] = []
    spack: SpackPin | None = None
    epoch: Annotated[int, msgspec.Meta(ge=0)] = 0


class Lock(Record, frozen=True):
    """A whole lock: what a build takes from outside, and the plan that asks for it.

    ``collections``: sha256 of every file of a collection that the plan rests on: ``building_blocks/…`` of hpcgen's
    own, ``NAME:building_blocks/…`` of another, the first collection first.
    ``content``: the plan hash with the pins in it. ``packages``, ``inputs``: what blocks ask for, the OS packages by
    stage, the others each with the block's label and the fields of its kind. ``text``: the bytes it was read from.
    ``signature``: of these, by ``ssh-keygen``, where it lay beside them; nobody has checked it.
    """

    hpcgen: Text
    content: Sha256
    plan: Plan
    pins: Pins
    collections: dict[Text, Sha256]
    packages: dict[StageName, list[Text]]
    inputs: list[dict[str, Any]]
    text: str
    signature: str = ""

    def __repr__(self) -> str:
        return f"<Lock of {self.plan.stack.name} for {self.plan.site.name}: plan hash {self.content[:12]}>"

    @property
    def own_collections(self) -> list[str]:
        """Names of the collections beside hpcgen's own, in order of precedence."""
        found = (re.match(rf"({COLLECTION_NAME}):", name) for name in self.collections)
        return list(dict.fromkeys(each[1] for each in found if each is not None))
