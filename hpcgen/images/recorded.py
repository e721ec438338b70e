"""The record that an image carries: the kit that it was built from."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.model.fields import EnvName, Name, matching
from hpcgen.core.model.image_paths import ARTIFACTS_LABEL, KIT
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import ArtifactOrigin
from hpcgen.core.support.file_formats import KIT as KIT_FORMAT
from hpcgen.core.support.file_formats import LOCK
from hpcgen.core.support.quoting import plain
from hpcgen.core.support.writing import KitFile
from hpcgen.images.folder import COPY_AGAIN
from hpcgen.images.reference import ImageReference
from hpcgen.kit.kit import known_files, programs, read_facts, read_plan
from hpcgen.recipe.formats import FACTS_FILE

LABEL = "io.hpcgen."
_LABELS = "/.singularity.d/labels.json"
"""Apptainer's place for labels. Source: its documentation, "SIF and the /.singularity.d folder"."""
_Content = Annotated[
    str, matching(r"^[0-9a-f]{16,128}$(?!\n)", "a hash of lower-case hexadecimal digits", 4 * "0123456789abcdef")
]


class RecordedKit(msgspec.Struct, frozen=True):
    """The kit in an image: its files, the plan, the image's variables, and the plan's hash."""

    files: dict[str, KitFile]
    plan: Plan
    environment: dict[str, str]
    content: str


class StoredKit(msgspec.Struct, frozen=True):
    """The same as plain data, whatever release of hpcgen wrote it.

    ``labels`` are those that could be read; ``whole`` is false where labels alone were there to be read.
    """

    files: dict[str, KitFile]
    plan: dict[str, Any]
    lock: dict[str, Any]
    labels: dict[str, str] = {}
    whole: bool = True


class _Lock(msgspec.Struct, frozen=True):
    """What launching takes from a lock."""

    environment: dict[EnvName, str]
    content: _Content


def recorded_kit(image: ImageReference) -> RecordedKit:
    """The kit that an image carries, for use.

    InputError: the image has no record, or one that this release does not understand.
    """
    return typed_kit(stored_kit(image), str(image))


def known_kit(image: ImageReference) -> RecordedKit | None:
    """The same, or None for an image that hpcgen did not build; InputError for a damaged kit."""
    found = found_kit(image)
    return None if found is None else typed_kit(found, str(image))


def typed_kit(kit: StoredKit, name: str) -> RecordedKit:
    """Plain data as records; InputError where another release of hpcgen wrote what this one does not know."""
    try:
        plan = read_plan(kit.plan, f"the kit in {name}")
        LOCK.check(kit.lock, f"the lock in {name}")
        lock = record_from(kit.lock, _Lock)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise KIT_FORMAT.not_understood(kit.plan, f"the kit in {name}", failure) from failure
    for variable, value in lock.environment.items():
        plain(value, f"the variable {variable} in {name}")
    return RecordedKit(kit.files, plan, lock.environment, lock.content)


def stored_kit(image: ImageReference) -> StoredKit:
    """The kit that an image carries, as it is; InputError if there is none."""
    if (found := found_kit(image)) is None:
        raise InputError(
            f"no kit in {image}: it was not built from an hpcgen kit",
            expected=f"a kit in the image's {KIT}",
            remedy="render the kit again and build it with this hpcgen",
        )
    return found


def found_kit(image: ImageReference) -> StoredKit | None:
    """The same, or None for an image that hpcgen did not build.

    InputError: the image cannot be read, or what it has of a kit is damaged.
    """
    from hpcgen.core.config.yamlfile import loads

    beside = image.image_kind.settings(image.name)
    labels = _own_labels(beside.labels if beside is not None else {})
    places = [f"{KIT}/{name}" for name in sorted(known_files())]
    whole = True
    try:
        found = _read(image, places, beside.digest) if beside is not None else _read(image, [*places, _LABELS])
        labels = labels or _labels_in(found.pop(_LABELS, b"{}"))
        data = {path.rsplit("/", 1)[1]: content for path, content in found.items()}
    except (MissingToolError, InputError):
        data, whole = from_labels(labels), False
        if "plan.json" not in data:
            raise
    if not whole and "plan.json" in data and "hpcgen.lock" not in data:
        raise InputError(
            f"the labels of {image} do not contain its whole kit: its lock is too long for a label",
            remedy="read the image where its engine runs, or convert it to a file: hpcgen convert",
        )
    if "plan.json" not in data or "hpcgen.lock" not in data:
        return None
    files = {name: KitFile(_text(content, name, image), name in programs()) for name, content in data.items()}
    return StoredKit(
        files,
        plan=_json(files["plan.json"].text, image),
        lock=loads(files["hpcgen.lock"].text, f"hpcgen.lock in {image}").data,
        labels=labels,
        whole=whole,
    )


def _read(image: ImageReference, places: list[str], digest: str = "") -> dict[str, bytes]:
    """Files of an image, as they are read anew or were before; ``digest``: of one in a store, where it is known."""
    if Path(image.name).is_dir():
        return image.read(places)
    from hpcgen.images.remembered import remembered

    # What an image that was started says of itself is no answer for those who do not start it.
    what = " ".join([*places, "by a start"] if image.start else places)
    return remembered(image, what, dict[str, bytes], lambda: image.read(places), digest)


def with_its_files(kit: StoredKit, image: ImageReference) -> StoredKit:
    """The same with the files in folders of the kit, which a start of the image does not ask for.

    InputError: the image's recipe.json is damaged, or names a file that the image lacks.
    """
    if not kit.whole or FACTS_FILE not in kit.files:
        return kit
    try:
        names = read_facts(msgspec.json.decode(kit.files[FACTS_FILE].text), f"{FACTS_FILE} in {image}").files
    except (msgspec.MsgspecError, RecursionError) as failure:
        raise InputError(f"{FACTS_FILE} in {image} is damaged: {failure}", remedy=COPY_AGAIN) from failure
    found = image.read([f"{KIT}/{name}" for name in names]) if names else {}
    missing = [name for name in names if f"{KIT}/{name}" not in found]
    if missing:
        raise InputError(f"the kit in {image} is incomplete: {missing[0]} is not in its {KIT}", remedy=COPY_AGAIN)
    more = {name: KitFile(_text(found[f"{KIT}/{name}"], name, image)) for name in names}
    return msgspec.structs.replace(kit, files=kit.files | more)


def taken_artifacts(labels: Mapping[str, str]) -> dict[str, ArtifactOrigin]:
    """The blocks of an image that were compiled before, as its label says; none where that is not understood."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return record_from(msgspec.json.decode(labels.get(ARTIFACTS_LABEL, "{}")), dict[Name, ArtifactOrigin])
    return {}


def _labels_in(data: bytes) -> dict[str, str]:
    with contextlib.suppress(ValueError, RecursionError):
        return _own_labels(msgspec.json.decode(data))
    return {}


def _own_labels(labels: Any) -> dict[str, str]:
    """The labels io.hpcgen.* of an image, as far as its kind has any that can be read without starting it."""
    if not isinstance(labels, dict):
        return {}
    return {str(key): str(value) for key, value in labels.items() if str(key).startswith(LABEL)}


def from_labels(labels: dict[str, str]) -> dict[str, bytes]:
    """The kit's files that docker, podman and buildah put into labels; a shell took the last line break off."""
    prefix = f"{LABEL}kit."
    names = {key: key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    known = known_files()
    return {name: f"{labels[key]}\n".encode() for key, name in names.items() if name in known}


def _text(data: bytes, name: str, image: ImageReference) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise InputError(f"the kit's {name} in {image} is not text", remedy=COPY_AGAIN) from failure


def _json(text: str, image: ImageReference) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as failure:
        raise InputError(f"plan.json in {image} is damaged: {failure}", remedy=COPY_AGAIN) from failure
    if not isinstance(found, dict):
        raise InputError(f"plan.json in {image} is damaged: it is not a mapping", remedy=COPY_AGAIN)
    return found
