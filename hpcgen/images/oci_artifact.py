"""OCI artifacts: files in a registry that are no image, written into a folder and pushed from there by skopeo.

Source: OCI image specification 1.1, manifest.md, "Guidelines for Artifact Usage"; seen with skopeo 1.9.3 and
distribution 2.8.2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import OutputError
from hpcgen.core.support.hashing import sha256_of
from hpcgen.core.support.processes import stream
from hpcgen.core.support.units import harmless
from hpcgen.core.support.writing import write_file
from hpcgen.images.oci_layout import MANIFEST_TYPE
from hpcgen.images.skopeo import plain

EMPTY, EMPTY_TYPE = b"{}", "application/vnd.oci.empty.v1+json"
"""The configuration of what has none."""


class ArtifactBlob(msgspec.Struct, frozen=True, rename="camel"):
    """A file of an artifact, described: its kind, its digest, its bytes."""

    media_type: str
    digest: str
    size: int


class ArtifactManifest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an artifact is made of."""

    schema_version: int = 2
    media_type: str = MANIFEST_TYPE
    config: ArtifactBlob
    layers: list[ArtifactBlob]
    annotations: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


def described(kind: str, data: bytes) -> ArtifactBlob:
    """The description of bytes."""
    return ArtifactBlob(kind, f"sha256:{sha256_of(data)}", len(data))


def push(
    skopeo: str,
    folder: Path,
    manifest: ArtifactManifest,
    files: Mapping[str, bytes | Path],
    target: str,
    env: Mapping[str, str] | None = None,
    remedy: str = "",
) -> None:
    """Write an artifact into a folder, and push it.

    files: the contents by digest, large ones where they lie.
    target: as skopeo names it, such as ``docker://registry.example.org/x:1``.
    env: what skopeo has besides the environment, such as a login.
    OutputError: the registry does not take it.
    """
    write_file(folder / "manifest.json", msgspec.json.encode(manifest), folders=True)
    for digest, content in files.items():
        path = folder / digest.removeprefix("sha256:")
        if isinstance(content, Path):
            path.symlink_to(content)
        else:
            write_file(path, content)
    push_copy(skopeo, f"dir:{folder}", target, env=env, remedy=remedy)


def push_copy(
    skopeo: str,
    source: str,
    target: str,
    how: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    remedy: str = "",
) -> None:
    """Push what lies in a folder as it is; ``how``: more options of skopeo-copy(1). Errors as of :func:`push`."""
    said: list[str] = []
    argv = [skopeo, "copy", "--quiet", "--preserve-digests", "--retry-times=3", *how, source, target]
    if status := stream(argv, said.append, env={**os.environ, "LC_ALL": "C", **(env or {})}):
        why = harmless(plain(said[-1])) if said else f"skopeo ended with {status}"
        raise OutputError(
            f"{target} was not pushed: {why}",
            remedy=remedy or "check that the registry accepts OCI artifacts and that your login may write there",
        )
