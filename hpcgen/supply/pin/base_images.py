"""Base images: found, pinned by digest, and fetched into an OCI layout, with skopeo.

Which digest a pin is:

- From a registry, an OCI archive or layout: that of the manifest for the architecture, as it is there (never the
  digest of a list for several architectures). It is what ``FROM name@sha256:…`` and a registry know.
- Docker's own kind of manifest (schema 2) cannot lie in an OCI layout under its name, since containers/image finds
  OCI manifests alone there by name. It is converted, the bytes of configuration and layers unchanged; the pin's
  ``oci`` is the digest of the result, which depends on the manifest alone.
- A container store and a docker-archive keep layers unpacked, not as the registry had them; compressed again they
  differ from one release of skopeo to the next. The pin is then the digest of the OCI manifest made here of the
  configuration and the layers as plain tar files: the same wherever the same image is, known to no engine.

Sources: skopeo-copy(1), skopeo-inspect(1) and containers-transports(5) of 1.9 and 1.18; OCI image specification;
containers/image, oci/layout.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.backends.hardware.mirrors import qualified
from hpcgen.core.errors import FetchError, HpcgenError, InputError, Problem
from hpcgen.core.model.lock import ORIGIN_PATTERN, ImagePin
from hpcgen.core.model.network import ImageMirror
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.hashing import hash_file, sha256_of
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.refusals import unwritable
from hpcgen.core.support.units import size
from hpcgen.images import oci_layout
from hpcgen.images.folder import MAX_FILE
from hpcgen.images.oci_layout import LayoutImage, aside, decoded, folder_layout, holds
from hpcgen.images.skopeo import answer_of, at_digest
from hpcgen.images.skopeo import copy as skopeo_copy

_REBUILT = ("containers-storage:", "docker-archive:", "docker-daemon:")
_FILES = {"oci-archive": "oci-archive", "docker-archive": "docker-archive", "oci": "oci"}
_DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_LISTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYERS = {
    "application/vnd.docker.image.rootfs.diff.tar.gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar": "application/vnd.oci.image.layer.v1.tar",
}
_PLAIN_LAYER = "application/vnd.oci.image.layer.v1.tar"
_INSTALL = "install skopeo"


def image_sources(name: str, mirror: ImageMirror | None, given: Mapping[str, str], pulled: str = "") -> list[str]:
    """Where an image may be found, as skopeo names it, in the order to try.

    name: as the plan has it, such as ``debian:12``.
    mirror: where the site has it; its ``docker`` name, if that starts with ``localhost/``, is of a store here.
    given: references that the user gave, by name; nothing else is tried then.
    pulled: the name that its registry is asked for, if that is another.
    """
    if name in given:
        return [given[name]]
    found = []
    if mirror is not None and mirror.docker is not None:
        kind = "containers-storage:" if mirror.docker.startswith("localhost/") else "docker://"
        found.append(kind + (mirror.docker if kind != "docker://" else qualified(mirror.docker)))
    if mirror is not None and mirror.singularity is not None:
        if mirror.bootstrap in _FILES:
            found.append(f"{_FILES[mirror.bootstrap]}:{mirror.singularity}")
        elif mirror.bootstrap == "docker":
            found.append(f"docker://{qualified(mirror.singularity)}")
    return list(dict.fromkeys(found)) or [f"docker://{qualified(pulled or name)}"]


def pin_image(name: str, sources: Sequence[str], architecture: str, digest: str = "") -> ImagePin:
    """The pin of an image from the first source that has it.

    architecture: the site's, ``x86_64`` or ``aarch64``.
    digest: the one that is asked for, of the image or of an index with it; what the tag stands for if empty.
    FetchError: none of the sources has it; each says why.
    MissingToolError: skopeo is not installed.
    """
    skopeo = require_program("skopeo", f"look at the base image {name}", _INSTALL)
    remedy = _remedy(name) + ("; or use its tag's current image with --latest-base" if digest else "")
    problems = [Problem(f"the base image {name} is not available for {architecture}", remedy=remedy)]
    for source in sources:
        try:
            return _pin(skopeo, source, architecture, digest)
        except HpcgenError as failure:
            problems += [problem.at(source) for problem in failure.problems]
    raise FetchError(problems)


def fetch_image(
    pin: ImagePin, name: str, architecture: str, layout: Path, tell: Callable[[str], None] = lambda text: None
) -> None:
    """Copy a pinned image into an OCI layout, which may hold others, under ``bundle_paths.image_name(name)``.

    It is there whole or not at all; where it already exists, it is checked and nothing is fetched.

    tell: told of what comes from a registry, with its size.
    FetchError: it cannot be fetched, is not what the pin says, is of another architecture, or too large for the disk.
    OutputError: the layout cannot be written.
    """
    if holds(layout, name, pin.oci or pin.digest):
        return
    skopeo = require_program("skopeo", f"fetch the base image {name}", _INSTALL)
    source = at_digest(pin.origin, pin.digest)
    with aside(layout) as folder:
        try:
            largest = _largest(skopeo, source, folder, tell) if source.startswith("docker://") else 0
            digest, manifest, blobs = checked_copy(skopeo, source, architecture, folder / "image", largest)
        except FetchError as failure:
            raise FetchError(msgspec.structs.replace(each, remedy=_remedy(name)) for each in failure.problems) from None
        if digest != pin.digest:
            raise FetchError(
                f"the base image {name} from {pin.origin} is not the pinned one: it has {digest}",
                expected=pin.digest,
                remedy="hpcgen lock --update images pins the new one; or supply the old one with --image",
            )
        config = decoded(blobs[_described(manifest, name)[0]["digest"]].read_bytes(), f"{name}'s configuration")
        wanted = PLATFORMS[architecture]
        if config.get("architecture") != wanted:
            raise FetchError(
                f"{pin.origin} is for {config.get('architecture')}",
                expected=wanted,
                remedy="lock again with --image NAME=REFERENCE of an image for these nodes",
            )
        oci_layout.add(layout, name, blobs, manifest)


def root_tar(layout: Path, name: str, target: Path) -> None:
    """Write an image's files as one plain tar file, for ``ch-image import``; whole or not at all.

    The same image gives the same bytes. Device nodes are left out: ch-image ignores them. ``ch/metadata.json`` has
    the image's variables, labels and working folder, for what is built on it; ``ch/environment`` has the variables
    for ch-run. Source: ch-image 0.31 and 0.45, image.py (metadata_load).
    """
    import tarfile

    from hpcgen.images.roots import add_file, flatten

    image = folder_layout(layout).image(name)
    part = target.with_name(f".{target.name}.part")
    try:
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as out:
            flatten(image, out, _wanted_in_root)
            for path, data in _metadata(image).items():
                add_file(out, f"./{path}", data)
        part.replace(target)
    except OSError as failure:
        raise unwritable(target, failure) from failure
    finally:
        part.unlink(missing_ok=True)


def _wanted_in_root(member: Any) -> bool:
    ours = member.name in ("./ch/metadata.json", "./ch/environment")
    return not (ours or member.ischr() or member.isblk() or member.isfifo())


def _metadata(image: LayoutImage) -> dict[str, bytes]:
    from hpcgen.images.marks import ENVIRONMENT, Marks
    from hpcgen.images.roots import mark_files

    whole = image.config()
    config = whole.get("config") or {}
    variables = dict(line.split("=", 1) for line in config.get("Env") or [] if "=" in line)
    metadata = {
        "arch": whole.get("architecture", "amd64"),
        "arg": {},
        "cmd": config.get("Cmd") or [],
        "cwd": config.get("WorkingDir") or "/",
        "entrypoint": config.get("Entrypoint") or [],
        "env": variables,
        "history": [],
        "labels": config.get("Labels") or {},
        "shell": config.get("Shell") or ["/bin/sh", "-c"],
        "volumes": sorted(config.get("Volumes") or {}),
    }
    return {
        "ch/metadata.json": (json.dumps(metadata, indent=2, sort_keys=True) + "\n").encode(),
        ENVIRONMENT: mark_files(Marks(environment=variables))[ENVIRONMENT].encode(),
    }


def _remedy(name: str) -> str:
    return f"say where to find it: --image {name}=oci-archive:/path/image.tar (or docker://…, containers-storage:…)"


def _pin(skopeo: str, source: str, architecture: str, asked: str) -> ImagePin:
    if not re.search(ORIGIN_PATTERN, source):  # as an option of skopeo, say
        raise InputError(f"{source!r} names no image", expected="TRANSPORT:NAME, such as oci-archive:FILE")
    if source.startswith(_REBUILT):
        with scratch_folder("hpcgen-image-") as folder:
            digest, _, _ = checked_copy(skopeo, source, architecture, folder / "image")
        return ImagePin(digest=digest, origin=source)
    raw = raw_manifest(skopeo, at_digest(source, asked) if asked else source)
    if asked and asked != f"sha256:{sha256_of(raw)}":
        raise FetchError(
            "the registry returned a different image",
            expected=asked,
            remedy="try again; a proxy or a mirror in between may have an old one",
        )
    manifest = decoded(raw, source)
    if _kind(manifest) in _LISTS:
        digest = _instance(manifest, architecture, source)
        if not source.startswith("docker://"):
            raise InputError(
                "archives with images for several architectures are not supported", remedy="skopeo copy one of them"
            )
        raw = raw_manifest(skopeo, at_digest(source, digest))
        manifest = decoded(raw, source)
    digest = f"sha256:{sha256_of(raw)}"
    converted = _as_oci(raw, source)
    oci = None if converted == raw else f"sha256:{sha256_of(converted)}"
    return ImagePin(digest=digest, origin=source, oci=oci)


def raw_manifest(skopeo: str, source: str) -> bytes:
    """A manifest or list as it is there; FetchError where it cannot be read."""
    return answer_of(skopeo, "inspect", "--raw", source)


def _kind(manifest: dict[str, Any]) -> str:
    if "manifests" in manifest:
        return str(manifest.get("mediaType") or _LISTS[0])
    return str(manifest.get("mediaType") or oci_layout.MANIFEST_TYPE)


def _instance(index: dict[str, Any], architecture: str, source: str) -> str:
    """The digest for an architecture in a list of manifests; of arm64's variants the first, which is v8."""
    wanted = PLATFORMS[architecture]
    offered = []
    for each in index["manifests"]:
        platform = each.get("platform") or {} if isinstance(each, dict) else {}
        if platform.get("os", "linux") == "linux" and platform.get("architecture") == wanted:
            return str(each.get("digest"))
        offered.append(f"{platform.get('os')}/{platform.get('architecture')}")
    raise FetchError(
        f"{source} has no image for linux/{wanted}, only {', '.join(sorted(set(offered)))}",
        remedy="--image NAME=REFERENCE names one that has it",
    )


def _largest(skopeo: str, source: str, folder: Path, tell: Callable[[str], None]) -> int:
    """More bytes than any file of a manifest has; FetchError where all of them have no room in a folder."""
    described = _described(_as_oci(raw_manifest(skopeo, source), source), source)
    sizes: list[int] = [each["size"] for each in described if isinstance(each["size"], int) and each["size"] >= 0]
    if len(sizes) < len(described):
        message = f"the manifest of {source} does not say how large the image is"
        raise FetchError(message, remedy="push it to the registry again, or name another image")
    free = shutil.disk_usage(folder).free
    if sum(sizes) > free:
        message = f"{source} has {size(sum(sizes))}, and {size(free)} are free in {folder.parent}"
        raise FetchError(message, remedy="free some space there, or set TMPDIR to a folder on a larger disk")
    tell(f"fetches {size(sum(sizes))} from {source.removeprefix('docker://').partition('/')[0]}")
    return max(*sizes, MAX_FILE) + 1


def checked_copy(
    skopeo: str, source: str, architecture: str, folder: Path, largest: int = 0, how: Sequence[str] = ()
) -> tuple[str, bytes, dict[str, Path]]:
    """Copy an image into a folder: the digest that a pin has, the OCI manifest, and its checked blobs.

    No file may have as many bytes as ``largest``, where that is given. ``how``: more options of skopeo itself.
    """
    rebuilt = source.startswith(_REBUILT)
    options = [*how, "--override-os=linux", f"--override-arch={PLATFORMS[architecture]}"]
    kept = "--dest-decompress" if rebuilt else "--preserve-digests"
    skopeo_copy(skopeo, [*options, "copy", kept], source, folder, largest)
    raw = (folder / "manifest.json").read_bytes()
    manifest = _rebuilt(raw, source, folder) if rebuilt else _as_oci(raw, source)
    blobs = {}
    for each in _described(manifest, source):
        path = folder / each["digest"].partition(":")[2]
        try:
            sha256, size = hash_file(path)
        except OSError:
            sha256, size = "", -1
        if (f"sha256:{sha256}", size) != (each["digest"], each["size"]):
            raise FetchError(
                f"{source}: {each['digest']} is altered, truncated or missing",
                remedy="try again: a proxy or a mirror in between may have cached a part",
            )
        blobs[each["digest"]] = path
    return f"sha256:{sha256_of(manifest if rebuilt else raw)}", manifest, blobs


def _described(manifest: bytes, source: str) -> list[dict[str, Any]]:
    """Configuration and layers that a manifest lists."""
    found = decoded(manifest, source)
    config, layers = found.get("config"), found.get("layers")
    listed = [config, *layers] if isinstance(layers, list) else [None]
    for each in listed:
        digest = each.get("digest") if isinstance(each, dict) else None
        if not isinstance(digest, str) or not digest.startswith("sha256:") or not digest[7:].isalnum():
            raise FetchError(
                f"the manifest of {source} is not an image's", remedy="--image NAME=REFERENCE names an image"
            )
    return [{"digest": each["digest"], "size": each.get("size")} for each in listed if isinstance(each, dict)]


def _as_oci(raw: bytes, source: str) -> bytes:
    """A manifest as an OCI manifest: unchanged if it is one; the same bytes for the same manifest."""
    manifest = decoded(raw, source)
    kind = _kind(manifest)
    if kind == oci_layout.MANIFEST_TYPE:
        return raw
    if kind != _DOCKER_MANIFEST:
        raise FetchError(
            f"{source} has a manifest of kind {kind}", expected="OCI, or Docker's schema 2", remedy="push it again"
        )
    layers = [{**_plain_descriptor(each), "mediaType": _layer_kind(each, source)} for each in manifest["layers"]]
    return _manifest(_plain_descriptor(manifest["config"]), layers)


def _layer_kind(layer: dict[str, Any], source: str) -> str:
    kind = str(layer.get("mediaType"))
    if kind not in _LAYERS:
        raise FetchError(
            f"{source} has a layer of kind {kind}, which is not supported",
            remedy="--image NAME=REFERENCE names an image with layers in plain or gzip-compressed tar files",
        )
    return _LAYERS[kind]


def _rebuilt(raw: bytes, source: str, folder: Path) -> bytes:
    """The OCI manifest over plain layers; see the module's text."""
    config, *layers = _described(raw, source)
    sized = [(each["digest"], (folder / each["digest"].partition(":")[2])) for each in (config, *layers)]
    missing = [digest for digest, path in sized if not path.is_file()]
    if missing:
        raise FetchError(
            f"{source}: {', '.join(missing)} was not copied",
            remedy="try again; if that fails too, the image in that storage is damaged: fetch it again",
        )
    described = [{"digest": digest, "size": path.stat().st_size} for digest, path in sized]
    return _manifest(described[0], [{**each, "mediaType": _PLAIN_LAYER} for each in described[1:]])


def _plain_descriptor(each: dict[str, Any]) -> dict[str, Any]:
    return {"digest": str(each.get("digest")), "size": each.get("size")}


def _manifest(config: dict[str, Any], layers: list[dict[str, Any]]) -> bytes:
    found = {
        "schemaVersion": 2,
        "mediaType": oci_layout.MANIFEST_TYPE,
        "config": {**config, "mediaType": _CONFIG},
        "layers": layers,
    }
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
