"""Documents beside an image in a registry: OCI artifacts whose subject is the image, pushed and read by skopeo.

A registry with the referrers API lists them by that subject. skopeo cannot ask this API, and many registries do not
have it, so they are also listed as its absence has it, under the tag ``sha256-DIGEST``.
Source: OCI distribution specification 1.1, "Referrers Tag Schema"; image specification 1.1, "Guidelines for Artifact
Usage".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.errors import FetchError, InputError, OutputError
from hpcgen.core.support.hashing import sha256_of
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.units import harmless
from hpcgen.images.oci_artifact import EMPTY, EMPTY_TYPE, push_copy
from hpcgen.images.oci_layout import BLOBS, INDEX, LAYOUT, MANIFEST_TYPE, REF_NAME, decoded
from hpcgen.images.reference import stored_reference
from hpcgen.images.skopeo import WITHOUT_POLICY, answer_of, at_digest, is_absent
from hpcgen.supply.pin.base_images import checked_copy, raw_manifest

IN_TOTO, CYCLONEDX = "application/vnd.in-toto+json", "application/vnd.cyclonedx+json"
SSH_SIGNATURE = "application/vnd.hpcgen.ssh-signature"
"""Kinds of documents."""
_INDEX = "application/vnd.oci.image.index.v1+json"
_MOST, _MOST_BYTES = 100, 64 * 1024 * 1024
_PURPOSE, _INSTALL = "put documents beside an image in a registry, and read them", "install skopeo"


class AttachedDocument(msgspec.Struct, frozen=True):
    """One document, or one with its signature: its kind, and each part's kind and bytes."""

    kind: str
    parts: tuple[tuple[str, bytes], ...]


class _Layout:
    """An OCI layout that is written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._entries = folder, list[dict[str, Any]]()
        (folder / BLOBS).mkdir(parents=True)
        (folder / LAYOUT).write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, kind: str, data: bytes) -> dict[str, Any]:
        """Its descriptor."""
        sha256 = sha256_of(data)
        (self.folder / BLOBS / sha256).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{sha256}", "size": len(data)}

    def named(self, name: str, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        """A manifest, or a list of such, under a name that skopeo takes; its descriptor."""
        # In the order and form in which skopeo writes a list itself: it refuses to push one that it would change.
        descriptor = self.blob(kind, json.dumps(document, separators=(",", ":")).encode())
        self._entries = [each for each in self._entries if each["annotations"][REF_NAME] != name]
        self._entries.append({**descriptor, "annotations": {REF_NAME: name}})
        (self.folder / INDEX).write_text(json.dumps({"schemaVersion": 2, "manifests": self._entries}))
        return descriptor


def manifest_of(name: str, authfile: Path | None = None) -> tuple[str, bytes]:
    """The digest and the manifest of an image of a registry, such as ``registry.example.org/x:1``.

    FetchError where it cannot be read.
    """
    stored_reference("", name)
    data = _inspected(require_program("skopeo", _PURPOSE, _INSTALL), f"docker://{name}", authfile)
    return f"sha256:{sha256_of(data)}", data


def attach(
    name: str, digest: str, manifest: bytes, artifacts: Sequence[AttachedDocument], authfile: Path | None
) -> None:
    """Push documents beside an image, which others there stay beside too.

    name, digest, manifest: of the image, as :func:`manifest_of` has them.
    authfile: the login, as in containers-auth.json(5); skopeo's own if None.
    OutputError: they were not pushed. FetchError: the list that is there cannot be read.
    """
    skopeo = require_program("skopeo", _PURPOSE, _INSTALL)
    kind = json.loads(manifest).get("mediaType", MANIFEST_TYPE)
    subject = {"mediaType": kind, "digest": digest, "size": len(manifest)}
    tag = _list_of(name, digest)
    listed, login = _listed(skopeo, tag, authfile), _login("--dest-authfile", authfile)
    with scratch_folder("hpcgen-referrers-") as folder:
        layout = _Layout(folder / "layout")
        config = layout.blob(EMPTY_TYPE, EMPTY)
        for artifact in artifacts:
            document = {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "artifactType": artifact.kind,
                "config": config,
                "layers": [layout.blob(*part) for part in artifact.parts],
                "subject": subject,
            }
            pushed = layout.named("one", MANIFEST_TYPE, document)
            push_copy(skopeo, f"oci:{layout.folder}:one", at_digest(tag, pushed["digest"]), login)
            if all(each.get("digest") != pushed["digest"] for each in listed):
                listed.append({**pushed, "artifactType": artifact.kind})
        for each in (listed, [_without_type(each) for each in listed]):
            layout.named("list", _INDEX, {"schemaVersion": 2, "mediaType": _INDEX, "manifests": each})
            try:
                push_copy(skopeo, f"oci:{layout.folder}:list", tag, [*login, "--multi-arch=index-only"])
                break
            except OutputError:
                # skopeo before 1.14 does not know the kind of an artifact in a list; manifests have it themselves.
                if each is not listed:
                    raise


def attached(name: str, digest: str, kind: str) -> Iterator[dict[str, bytes]]:
    """The documents of a kind beside an image: the bytes of each part by its kind; what is no such document is not.

    Everything is checked against its digest and bounded. FetchError where they cannot be read.
    """
    skopeo = require_program("skopeo", _PURPOSE, _INSTALL)
    tag = _list_of(name, digest)
    for each in _listed(skopeo, tag, None)[:_MOST]:
        source = at_digest(tag, str(each.get("digest")))
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", str(each.get("digest"))):
            continue
        document = decoded(raw_manifest(skopeo, source), source)
        subject = document.get("subject")
        if document.get("artifactType") != kind or not isinstance(subject, dict) or subject.get("digest") != digest:
            continue
        with scratch_folder("hpcgen-referrers-") as folder:
            # The machine's policy may demand signatures of images; these documents have their own.
            how = [WITHOUT_POLICY]
            found, manifest, blobs = checked_copy(skopeo, source, "x86_64", folder / "one", _MOST_BYTES, how)
            if found == each["digest"]:
                layers = decoded(manifest, source)["layers"]
                yield {str(layer.get("mediaType")): blobs[layer["digest"]].read_bytes() for layer in layers}


def _list_of(name: str, digest: str) -> str:
    repository = at_digest(f"docker://{name}", digest).partition("@")[0]
    return f"{repository}:{digest.replace(':', '-')}"


def _without_type(descriptor: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in descriptor.items() if name != "artifactType"}


def _listed(skopeo: str, tag: str, authfile: Path | None) -> list[dict[str, Any]]:
    """What lies beside it so far; nothing where there is no list."""
    try:
        found = decoded(_inspected(skopeo, tag, authfile), tag).get("manifests")
    except FetchError as failure:
        if is_absent(failure.problems[0].message):
            return []
        raise
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{tag} is not a list of manifests", remedy="another program has that tag: remove it there")
    return found


def _inspected(skopeo: str, source: str, authfile: Path | None) -> bytes:
    try:
        return answer_of(skopeo, "inspect", "--raw", *_login("--authfile", authfile), source, most=_MOST_BYTES)
    except FetchError as failure:
        remedy = "check the name; a registry with a password: skopeo login REGISTRY"
        raise FetchError(harmless(failure.problems[0].message), source, remedy=remedy) from failure


def _login(option: str, authfile: Path | None) -> list[str]:
    return [option, str(authfile)] if authfile is not None else []
