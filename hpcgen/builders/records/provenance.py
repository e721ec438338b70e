"""Where an image comes from, as a statement that other programs read too: made from a build's record, and checked.

Source: in-toto/attestation, spec/v1/statement.md, resource_descriptor.md and digest_set.md; slsa-framework/slsa,
docs/spec/v1.1/provenance.md and its schema/provenance.cue.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, MissingToolError, PolicyError, Problem
from hpcgen.core.model.record import BuildRecord
from hpcgen.core.secret_rules import without_secrets
from hpcgen.core.support.hashing import read_plain, sha256_of
from hpcgen.core.support.quoting import command
from hpcgen.core.support.signatures import PROVENANCE, signer_of
from hpcgen.core.support.units import harmless
from hpcgen.images.recorded import known_kit
from hpcgen.images.reference import ImageReference
from hpcgen.kit.lockfile.lock import signature_beside

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://hpcgen.example.org/docs/images-and-records#provenance"
"""What the parameters mean: that section of the documentation, which has no address of its own yet."""
BUILDER = "https://hpcgen.example.org/builder/"
PLAN, LOCK = "plan", "hpcgen.lock"
"""Names of two of the resolved dependencies."""
MAX_BYTES = 16 * 1024 * 1024
CARRIED = "signature in the image"
"""What that check is called."""
_ENDING = ".provenance.json"
_REMEDY = "ask the builder of the image for it again"
_NO_DIGEST = "a folder has no digest: its files change one by one, and copies differ in owners and dates"
_PERSONAL = ("--account", "--image-directory")
"""Options of a recorded command that are about its user, each with one value; they do not decide what is built."""


class _Resource(msgspec.Struct, frozen=True):
    """What is read of a ResourceDescriptor. Unknown fields are ignored, as the specification has it."""

    name: str = ""
    digest: Mapping[str, Annotated[str, msgspec.Meta(max_length=1024)]] = {}

    @property
    def sha256(self) -> str:
        found = self.digest.get("sha256", "")
        return found if re.fullmatch(r"[0-9a-f]{64}", found) else ""


class _BuildDefinition(msgspec.Struct, frozen=True, rename="camel"):
    build_type: str
    resolved_dependencies: list[_Resource] = []

    def sha256(self, name: str) -> str:
        """Of the dependency of that name; "" where there is none, or more than one."""
        found = [each.sha256 for each in self.resolved_dependencies if each.name == name and each.sha256]
        return found[0] if len(found) == 1 else ""


class _Predicate(msgspec.Struct, frozen=True, rename="camel"):
    build_definition: _BuildDefinition


class _Statement(msgspec.Struct, frozen=True):
    subject: list[_Resource]
    predicate: _Predicate


class ProvenanceCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a statement says, and whether it is so; ``sha256`` of what was compared, where it is so."""

    name: str
    outcome: Literal["holds", "does not hold", "unknown"]
    reason: str
    sha256: str = ""


def statement_beside(image: ImageReference) -> Path:
    """Where an image's statement is unless another place is named: beside its file, or, of a name in a store, here."""
    if image.image_kind.stored:
        return Path(re.sub(r"[/:@]", "-", image.name) + _ENDING)
    return Path(image.name + _ENDING)


def provenance_text(record: BuildRecord) -> str:
    """The in-toto statement, with SLSA's provenance, of the image that a build made: the same bytes for one record.

    Nobody's name, machine or folder is in it, and no secrets.

    InputError: the record has no image, or one without a digest.
    """
    image = record.image
    if record.result != "built" or image is None:
        raise InputError(f"the build {record.id} made no image", remedy="hpcgen records --result built lists others")
    algorithm, _, digest = image.digest.partition(":")
    if not digest:
        raise InputError(
            f"there is no provenance of {image.name} ({image.kind}): {_NO_DIGEST}",
            remedy="build the image as a file: -o IMAGE.sqfs, IMAGE.sif or IMAGE.tar.gz",
        )
    name = image.name if not image.name.startswith("/") else Path(image.name).name
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {algorithm: digest}}],
        "predicateType": PREDICATE,
        "predicate": {"buildDefinition": _definition(record), "runDetails": _run(record)},
    }
    return msgspec.json.format(msgspec.json.encode(statement), indent=1).decode() + "\n"


def _definition(record: BuildRecord) -> dict[str, Any]:
    asked = {name: getattr(record, name) for name in ("site", "partition", "stack", "format")}
    own = {"hpcgen": record.hpcgen, "blocks": record.blocks, "selfTest": not record.notest}
    return {
        "buildType": BUILD_TYPE,
        "externalParameters": {**asked, "command": _command(record.command)},
        "internalParameters": own,
        "resolvedDependencies": list(_dependencies(record)),
    }


def _command(line: str) -> str:
    """The recorded command without what is about its user."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ""
    kept = [
        word for at, word in enumerate(words) if word not in _PERSONAL and (at == 0 or words[at - 1] not in _PERSONAL)
    ]
    return without_secrets(command(*kept))


def _dependencies(record: BuildRecord) -> Iterator[dict[str, Any]]:
    """Plan and lock by their hashes, artifacts by their keys, and all inputs as the record names them."""
    if record.content:
        yield {"name": PLAN, "digest": {"sha256": record.content}}
    if record.lock:
        yield {"name": LOCK, "digest": {"sha256": record.lock}}
    for block, origin in sorted(record.artifacts.items()):
        # The key is a hash of what decides the archive, not of its bytes.
        yield {"name": block, "uri": f"hpcgen:artifact/{origin.key}"}
    for text in record.inputs:
        yield _input(text)


def _input(text: str) -> dict[str, Any]:
    """One line of the record's inputs: what it is, and behind it the hash, where it has one."""
    what, _, last = text.rpartition(" ")
    found = re.fullmatch(r"(sha256|commit):([0-9a-f]{40,64})", last)
    name = without_secrets(what if found is not None else text)
    address = name if re.match(r"[a-z][a-z0-9+.-]*://", name) else f"hpcgen:input/{quote(name, safe='/:@+')}"
    digest = {{"commit": "gitCommit"}.get(found[1], found[1]): found[2]} if found is not None else {}
    return {"name": name, "uri": quote(address, safe="/:@+?#[]!$&'()*,;=%~"), **({"digest": digest} if digest else {})}


def _run(record: BuildRecord) -> dict[str, Any]:
    versions = {"hpcgen": record.hpcgen, record.engine: record.engine_version}
    metadata = {"invocationId": record.id}
    try:
        started = datetime.fromisoformat(record.started.replace("Z", "+00:00")).astimezone(timezone.utc)
        for name, moment in (("startedOn", started), ("finishedOn", started + timedelta(seconds=record.seconds))):
            metadata[name] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        pass  # of a record that something else wrote
    builder = {"id": BUILDER + record.engine, "version": {name: each for name, each in versions.items() if each}}
    return {"builder": builder, "metadata": metadata}


def check_provenance(image: ImageReference, file: Path, signers: Path | None = None) -> list[ProvenanceCheck]:
    """Whether a statement is of this image: who signed it, the image's digest, plan and lock in the image.

    file: the statement; its signature is beside it, as FILE.sig.
    signers: a file of allowed signers, one of whom must have signed it.
    InputError: the file is no such statement, or the image cannot be read.
    MissingToolError: a program that is needed for the signature or the image is not here.
    """
    data = _read(file)
    definition, subject = _statement(data, file)
    try:
        digest = image.image_kind.digest(image.name).removeprefix("sha256:")
    except OSError as failure:
        raise InputError(f"{image} cannot be read: {failure.strerror}") from failure
    return [_signed(data, file, signers), _digest(digest, subject), *_content(image, definition)]


def check_image(image: ImageReference, file: Path | None, signers: Path | None = None) -> list[ProvenanceCheck]:
    """As :func:`check_provenance`, and the signatures that the image itself carries, which need no statement.

    ``file``: None for the usual place.
    """
    carried = check_carried(image, signers)
    found = [carried] if carried is not None else []
    if found and file is None and not statement_beside(image).exists():
        return found
    return [*found, *check_provenance(image, file or statement_beside(image), signers)]


def check_carried(image: ImageReference, signers: Path | None) -> ProvenanceCheck | None:
    """Of the signatures that an image itself carries; None where there are none. InputError: it cannot be read."""
    carried = image.image_kind.signature(image.name, signers)
    return ProvenanceCheck(CARRIED, carried.outcome, carried.reason) if carried is not None else None


def check_published(name: str, signers: Path | None = None) -> list[ProvenanceCheck]:
    """As :func:`check_provenance`, of an image in a registry, and by the statements that lie beside it there.

    Of several the first counts that an allowed signer made of this image; without one, the first.

    InputError: there is none, or none that can be read. FetchError: the registry does not give them.
    """
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.kit.lockfile.lock import signature_of
    from hpcgen.supply.pin.referrers import IN_TOTO, SSH_SIGNATURE, attached, manifest_of

    digest, _ = manifest_of(name)
    found, damaged = list[list[ProvenanceCheck]](), list[Problem]()
    for parts in attached(name, digest, IN_TOTO):
        with scratch_folder("hpcgen-statement-") as folder:
            file = folder / f"statement{_ENDING}"
            file.write_bytes(parts.get(IN_TOTO, b""))
            if SSH_SIGNATURE in parts:
                signature_of(file).write_bytes(parts[SSH_SIGNATURE])
            try:
                data = _read(file)
                _, subject = _statement(data, file)
                found.append([_signed(data, file, signers), _digest(digest.removeprefix("sha256:"), subject)])
            except InputError as failure:
                damaged += failure.problems
    if not found:
        message = f"{name}, {digest}, has no provenance statement in its registry"
        raise InputError(damaged or message, remedy="hpcgen fleet publish --sign KEY puts one there")
    return next((checks for checks in found if all(each.outcome == "holds" for each in checks)), found[0])


def _read(file: Path) -> bytes:
    try:
        data = read_plain(file, MAX_BYTES)
    except OSError as failure:
        raise InputError(f"the statement {file} cannot be read: {failure.strerror}", remedy=_REMEDY) from failure
    if len(data) > MAX_BYTES:
        raise InputError(f"{file} is larger than any statement", remedy=_REMEDY)
    return data


def _statement(data: bytes, file: Path) -> tuple[_BuildDefinition, list[str]]:
    """What the build was, and the sha256 of each image that the statement is about."""
    try:
        told = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise InputError(f"{file} is damaged: {harmless(str(failure))}", remedy=_REMEDY) from failure
    for field, expected in (("_type", STATEMENT), ("predicateType", PREDICATE)):
        found = told.get(field) if isinstance(told, dict) else None
        if found != expected:
            said = f"its {field} is {ascii(found)[:100]}" if found is not None else f"it has no {field}"
            raise InputError(f"{file} is not an SLSA provenance statement: {said}", expected=expected, remedy=_REMEDY)
    try:
        statement = record_from(told, _Statement)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise InputError(f"{file} is not understood: {harmless(str(failure))}", remedy=_REMEDY) from failure
    definition = statement.predicate.build_definition
    if definition.build_type != BUILD_TYPE:
        raise InputError(
            f"{file} is of a build by something else: its buildType is {ascii(definition.build_type)[:100]}",
            expected=BUILD_TYPE,
            remedy="hpcgen reads only its own statements; use the program that wrote it",
        )
    subject = [each.sha256 for each in statement.subject if each.sha256]
    if not subject:
        raise InputError(f"{file} is about no image: its subject has no sha256", remedy=_REMEDY)
    return definition, subject


def _signed(data: bytes, file: Path, signers: Path | None) -> ProvenanceCheck:
    signature = signature_beside(file)
    if not signature and signers is None:
        return ProvenanceCheck("signature", "unknown", "it is not signed, and anyone can write such a statement")
    try:
        signer = signer_of(str(file), data, signature, PROVENANCE, signers)
    except PolicyError as refused:
        return ProvenanceCheck("signature", "does not hold", refused.problems[0].message)
    return ProvenanceCheck("signature", "holds" if signers is not None else "unknown", f"by {signer}")


def _digest(digest: str, subject: list[str]) -> ProvenanceCheck:
    if not digest:
        return ProvenanceCheck("digest", "unknown", _NO_DIGEST)
    if digest in subject:
        return ProvenanceCheck("digest", "holds", f"sha256:{digest}", digest)
    return ProvenanceCheck(
        "digest", "does not hold", f"the image is sha256:{digest}, the statement of {_some(subject)}"
    )


def _some(subject: list[str]) -> str:
    return f"sha256:{subject[0]}" + (f" and {len(subject) - 1} more" if len(subject) > 1 else "")


def _content(image: ImageReference, definition: _BuildDefinition) -> Iterator[ProvenanceCheck]:
    """Plan and lock as the kit in the image has them."""
    try:
        kit = known_kit(image)
    except (InputError, MissingToolError) as failure:
        yield ProvenanceCheck("plan", "unknown", f"the image's kit cannot be read: {failure.problems[0].message}")
        return
    if kit is None:
        yield ProvenanceCheck("plan", "unknown", "the image has no kit from hpcgen")
        return
    lock = sha256_of(kit.files[LOCK].text)
    for name, said, found in ((PLAN, definition.sha256(PLAN), kit.content), (LOCK, definition.sha256(LOCK), lock)):
        if not said:
            yield ProvenanceCheck(name, "unknown", "the statement does not have its hash")
        elif said == found:
            yield ProvenanceCheck(name, "holds", f"sha256:{found}")
        else:
            yield ProvenanceCheck(name, "does not hold", f"in the image is sha256:{found}, the statement says {said}")
