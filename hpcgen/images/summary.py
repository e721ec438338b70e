"""What a record says, for people or programs, whatever release of hpcgen wrote it.

Everything comes from the image, that is from somebody else: a value of an unexpected shape is left out or shown
as text, never an error, and what is shown on a terminal has no control characters.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.image_facts import ImagePackage
from hpcgen.core.model.record import BuildRecord
from hpcgen.core.support.file_formats import KIT
from hpcgen.core.support.hashing import sha256_of
from hpcgen.images.packages import ImagePackages, packages_in, packages_pinned
from hpcgen.images.recorded import LABEL, StoredKit
from hpcgen.images.reference import ImageReference
from hpcgen.kit.lockfile.lock import is_sealed

_JOB = ("nodes", "ranks_per_node", "threads_per_rank", "walltime_s", "queue", "account", "memory_per_rank_gb")


class SummaryBlock(msgspec.Struct, frozen=True):
    """A block as the record has it."""

    name: object
    version: object
    options: dict[str, object]


class SummaryFile(msgspec.Struct, frozen=True):
    """A file of the image's kit."""

    name: str
    bytes: int
    sha256: str


class SummaryImage(msgspec.Struct, frozen=True):
    """The image: its kind, its name, its size if that is known."""

    kind: str
    name: str
    bytes: int | None


class SummaryTests(msgspec.Struct, frozen=True):
    """How many tests of the last run passed and failed."""

    passed: int
    failed: int


class SummaryBuild(msgspec.Struct, frozen=True):
    """The build that made the image; ``engine`` with its version."""

    id: str
    started: str
    engine: str
    seconds: float
    tests: SummaryTests | None


class ImageSummary(msgspec.Struct, frozen=True):
    """What the record of an image says; ``object`` is whatever somebody else has written there.

    ``extends``: the finished image that it was added to, None if it was built whole. ``record``: of the build that made
    it, if this user has it. ``packages_from``: what says which packages there are: the lock, or where it pins nothing
    the records of dpkg, rpm, pip and conda in the image. ``notes``: what does not agree, or could not be read.
    """

    image: SummaryImage
    stack: object
    site: object
    partition: object
    format: object
    engine: object
    hpcgen: object
    command: object
    content: object
    blocks: list[SummaryBlock]
    job: dict[str, object]
    environment: dict[str, object]
    copied: list[dict[str, object]]
    extends: dict[str, object] | None
    images: dict[str, object]
    inputs: list[object]
    packages: list[ImagePackage]
    packages_from: Literal["lock", "image"]
    files: list[SummaryFile]
    record: SummaryBuild | None
    notes: list[str]


def summary(image: ImageReference, kit: StoredKit, size: int | None, record: BuildRecord | None) -> ImageSummary:
    """What a record says.

    ``size``: of the image, in bytes, if known. ``record``: of the build that made it, if this user has it.
    """
    plan, lock = kit.plan, kit.lock
    pinned = "hpcgen.lock" in kit.files and is_sealed(kit.files["hpcgen.lock"].text)
    packages = ImagePackages(packages_pinned(lock), []) if pinned else packages_in(image)
    return ImageSummary(
        image=SummaryImage(image.kind, image.name, size),
        stack=_name(plan.get("stack")),
        site=_name(plan.get("site")),
        partition=plan.get("partition"),
        format=plan.get("format"),
        engine=plan.get("engine"),
        hpcgen=plan.get("hpcgen"),
        command=plan.get("command"),
        content=lock.get("content"),
        blocks=[_block(each) for each in _list(plan.get("blocks")) if isinstance(each, dict)],
        job=_job(plan.get("job")),
        environment=_mapping(lock.get("environment")),
        copied=[each for each in _list(plan.get("copied")) if isinstance(each, dict)],
        extends=_extended(plan.get("extends")),
        images=_mapping(lock.get("images")),
        inputs=_list(lock.get("inputs")),
        packages=packages.found,
        packages_from="lock" if pinned else "image",
        files=[_file(name, file.text) for name, file in sorted(kit.files.items())],
        record=None if record is None else _record(record),
        notes=[*notes(kit), *packages.unread],
    )


def notes(kit: StoredKit) -> list[str]:
    """What does not agree within one image, and what could not be read."""
    found = []
    label = kit.labels.get(f"{LABEL}content")
    if label is not None and label != kit.lock.get("content"):
        found.append("the label io.hpcgen.content does not match the kit: the image was built from another recipe")
    if not kit.whole:
        found.append("only the image's labels could be read, so some of the kit's files are not shown")
    try:
        KIT.check(kit.plan, "the kit")
    except InputError as newer:
        found.append(newer.problems[0].message)
    return found


def _name(value: object) -> object:
    return value.get("name") if isinstance(value, dict) else value


def _extended(value: object) -> dict[str, object] | None:
    """The finished image that this one was added to, with its blocks by their versions; None if it was built whole."""
    if not isinstance(value, dict):
        return None
    blocks = {
        str(each.get("name")): each.get("version") for each in _list(value.get("blocks")) if isinstance(each, dict)
    }
    return {**{name: value.get(name) for name in ("image", "content", "digest")}, "blocks": blocks}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _block(block: dict[str, object]) -> SummaryBlock:
    return SummaryBlock(block.get("name"), block.get("version"), _mapping(block.get("options")))


def _job(value: object) -> dict[str, object]:
    job = _mapping(value)
    return {name: job[name] for name in (*_JOB, "command") if name in job}


def _file(name: str, text: str) -> SummaryFile:
    data = text.encode()
    return SummaryFile(name, len(data), sha256_of(data))


def _record(record: BuildRecord) -> SummaryBuild:
    last = record.tests[-1] if record.tests else None
    tests = None if last is None else SummaryTests(last.count("passed"), last.count("failed"))
    engine = f"{record.engine} {record.engine_version}".strip()
    return SummaryBuild(record.id, record.started, engine, record.seconds, tests)
