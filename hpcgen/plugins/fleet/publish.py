"""Push built images to a registry, each by a program that knows its kind."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines import builder_for, builders
from hpcgen.core.errors import InputError, OutputError, Problems
from hpcgen.core.model.record import BuildRecord
from hpcgen.core.support.processes import require_program, stream
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.signing_keys import NO_KEYS, SigningKeys
from hpcgen.images.reference import ImageReference
from hpcgen.plugins.fleet.changes import published_name
from hpcgen.plugins.fleet.file import LoadedFleet
from hpcgen.plugins.fleet.image_signatures import check_gnupg_key, sign_file, sign_published
from hpcgen.plugins.fleet.records import LockedImage, read_lock, update_lock

USER, PASSWORD = "HPCGEN_REGISTRY_USER", "HPCGEN_REGISTRY_PASSWORD"


def push_commands(image: LockedImage, target: str, scratch: Path) -> list[list[str]]:
    """The commands that bring an image to ``target``; a digest is left in ``scratch``/digest where the program can.

    InputError: the engine that built it pushes no such kind.
    """
    kind, _, name = image.image.partition(":")
    if commands := builder_for(image.engine).push(kind, name, target, scratch):
        return commands
    raise InputError(
        f"an image of the kind {kind} cannot be pushed to a registry",
        expected="an image of podman, docker or ch-image, a SIF or a squashfs file",
        remedy="hpcgen convert converts it to another kind",
    )


def credentials(environment: Mapping[str, str], registry: str, scratch: Path) -> dict[str, str]:
    """Variables by which each program logs in, of user and password in ``environment``; none without them.

    In a GitLab job those of the project's own registry are taken, for that registry alone. What
    reads them from a file (containers-auth.json(5)) gets one in ``scratch``, for us alone.
    """
    host = registry.partition("/")[0]
    user, password = environment.get(USER), environment.get(PASSWORD)
    if not user and environment.get("CI_REGISTRY") == host:
        user, password = environment.get("CI_REGISTRY_USER"), environment.get("CI_REGISTRY_PASSWORD")
    if not user or not password:
        return {}
    word = base64.b64encode(f"{user}:{password}".encode()).decode()
    text = json.dumps({"auths": {host: {"auth": word}}})
    file = scratch / "config.json"
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    logins = (engine().login(user, password, scratch) for engine in builders().values())
    return {name: value for login in logins for name, value in login.items()}


def publish_images(
    loaded: LoadedFleet,
    lock: Path,
    names: Sequence[str],
    *,
    dry_run: bool,
    keys: SigningKeys = NO_KEYS,
    say: Callable[[str], None],
) -> Iterator[str]:
    """Push, note it in the lock, and yield each image's name in the registry; the commands alone with ``dry_run``.

    A push that fails does not keep the others back.

    keys: the SSH key signs a statement of where each comes from, which is put beside it with an SBOM; the OpenPGP key
        the image itself.
    InputError: the fleet has no registry; a member that is named was not built; there is no such key.
    OutputError: what could not be pushed, all of it.
    """
    chosen = _chosen(loaded, read_lock(lock), names)
    if keys.pgp and not dry_run:
        _check_pgp(keys.pgp, [image for image, _ in chosen.values()], say)
    problems = Problems()
    for name, (image, target) in chosen.items():
        with problems.caught():
            yield from _publish(name, image, target, lock, dry_run, keys, say)
    problems.raise_as(OutputError)


def registry_of(loaded: LoadedFleet) -> str:
    """The fleet's registry; InputError where it has none."""
    if not loaded.fleet.registry:
        message, where = "this fleet has no registry to publish to", loaded.document.position()
        raise InputError(message, where, "registry: registry.example.org/hpc", "add `registry: …`")
    return loaded.fleet.registry


def _chosen(
    loaded: LoadedFleet, locked: Mapping[str, LockedImage], names: Sequence[str]
) -> dict[str, tuple[LockedImage, str]]:
    registry_of(loaded)
    chosen: dict[str, tuple[LockedImage, str]] = {}
    problems = Problems()
    for member in [loaded.member(name) for name in names] if names else loaded.members:
        image = locked.get(member.name)
        if image is None or not image.image:
            if names:
                message = f"{member.name} has not been built yet"
                problems.add(message, remedy=f"hpcgen build --member {member.name}")
            continue
        target = published_name(loaded, member, image.content)
        if names or image.published != target:
            chosen[member.name] = (image, target)
    problems.raise_as(InputError)
    return chosen


def _publish(
    name: str,
    image: LockedImage,
    target: str,
    lock: Path,
    dry_run: bool,
    keys: SigningKeys,
    say: Callable[[str], None],
) -> Iterator[str]:
    # Beside the system's own temporary files may be little room: an unpacked image is large.
    with tempfile.TemporaryDirectory(prefix="hpcgen-", dir=os.environ.get("TMPDIR")) as folder:
        scratch = Path(folder)
        commands = push_commands(image, target, scratch)
        if dry_run:
            for words in commands:
                yield " ".join(sh(word) for word in words)
            return
        reference = _reference(image)
        if keys.pgp and reference.image_kind.signs_itself:
            if sign_file(reference, keys.pgp):
                say(f"{name}: signed {reference} with the OpenPGP key {keys.pgp}")
            keys = msgspec.structs.replace(keys, pgp="")
        record = _record_of(name, image) if keys.ssh is not None else None
        say(f"{name}: pushing to {target}")
        environment = {**os.environ, **credentials(os.environ, target, scratch)}
        for words in commands:
            program = require_program(words[0], f"push {name}", "install it, or publish on a machine that has it")
            status = stream([program, *words[1:]], lambda line: say(f"  {line}"), env=environment)
            if status != 0:
                raise OutputError(
                    f"{name} was not pushed to {target}: {words[0]} ended with status {status}",
                    remedy=f"read its output above; it logs in as ${USER} with ${PASSWORD} if these are set",
                )
        told = scratch / "digest"
        digest = told.read_text().strip() if told.exists() else ""
        if keys != NO_KEYS:
            digest = _sign(record, target, digest, keys, scratch, lambda line: say(f"{name}: {line}"))
    changed = msgspec.structs.replace(image, published=target, digest=digest or image.digest)
    update_lock(lock, {name: changed})
    yield target


def _check_pgp(fingerprint: str, images: Sequence[LockedImage], say: Callable[[str], None]) -> None:
    """Errors where a keyring has no such key, before anything is pushed."""
    kinds = {(image_kind := _reference(image).image_kind).name: image_kind for image in images}
    for kind in kinds.values():
        if kind.signs_itself:
            kind.check_signing_key(fingerprint)
    in_registry = any(not kind.signs_itself for kind in kinds.values())
    if in_registry and (note := check_gnupg_key(fingerprint)):
        say(f"warning: {note}")


def _reference(image: LockedImage) -> ImageReference:
    kind, _, place = image.image.partition(":")
    return ImageReference(kind, place)


def _record_of(name: str, image: LockedImage) -> BuildRecord:
    """The record of the build that made an image; InputError where it is not on this machine."""
    from hpcgen.builders.records.store import of_image

    reference = _reference(image)
    record = of_image(reference)
    if record is None or record.content != image.content:
        raise InputError(
            f"{name}: there is no local record of the build of {reference.name}, so its origin cannot be stated",
            remedy=f"publish it on the machine that built it, or build it again: hpcgen build --member {name} --force",
        )
    return record


def _sign(
    record: BuildRecord | None,
    target: str,
    pushed: str,
    keys: SigningKeys,
    scratch: Path,
    say: Callable[[str], None],
) -> str:
    """Sign what was pushed, as the keys do it; its digest there.

    ``pushed``: the digest that the program told which pushed it; "" where none did.
    """
    from hpcgen.supply.pin.referrers import manifest_of

    login = scratch / "config.json"
    authfile = login if login.exists() else None
    digest, manifest = manifest_of(target, authfile)
    if pushed and digest != pushed:
        raise OutputError(
            f"{target} is {digest} in the registry, and {pushed} was pushed: it was not signed",
            remedy="check who else pushes to this name, then publish it again",
        )
    if keys.pgp:
        sign_published(target, digest, keys.pgp, authfile)
        say(f"signed {digest} with the OpenPGP key {keys.pgp}")
    if keys.ssh is not None and record is not None:
        _attach(record, target, digest, manifest, keys.ssh, authfile)
        say(f"put its statement and SBOM beside {digest}")
    return digest


def _attach(record: BuildRecord, target: str, digest: str, manifest: bytes, key: Path, authfile: Path | None) -> None:
    """Put a signed statement and an SBOM beside what was pushed, by its digest there, which the statement is about."""
    from hpcgen.builders.records.provenance import provenance_text
    from hpcgen.core.support.signatures import PROVENANCE, sign
    from hpcgen.images.reading.bill import bill_of_materials
    from hpcgen.images.reading.facts import image_facts
    from hpcgen.supply.pin.referrers import CYCLONEDX, IN_TOTO, SSH_SIGNATURE, AttachedDocument, attach

    image = record.image
    assert image is not None
    there = msgspec.structs.replace(image, name=target, digest=digest)
    statement = provenance_text(msgspec.structs.replace(record, image=there)).encode()
    signature = sign(statement, key, PROVENANCE).encode()
    bill = bill_of_materials(target, image_facts(ImageReference(image.kind, image.name)))
    documents = (
        AttachedDocument(IN_TOTO, ((IN_TOTO, statement), (SSH_SIGNATURE, signature))),
        AttachedDocument(CYCLONEDX, ((CYCLONEDX, bill.encode()),)),
    )
    attach(target, digest, manifest, documents, authfile)
