"""A repository of a registry as a place of artifacts, moved by skopeo: each is an OCI artifact whose tag is its key.

The manifest's configuration is the record, its one layer the archive, and an annotation the signature: so all that is
said of an artifact is read before its archive. Registries, networks and passwords are skopeo's own settings.

Sources: OCI image specification 1.1, manifest.md, "Guidelines for Artifact Usage"; skopeo-list-tags(1); seen with
skopeo 1.9.3 and distribution 2.8.2.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec

from hpcgen.builders.artifacts.remote import RemotePlace
from hpcgen.builders.artifacts.store import MAX_BYTES, ArtifactEntry, ArtifactStore, signature_of
from hpcgen.core.errors import FetchError, HpcgenError, InputError, OutputError
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.support.hashing import read_plain, sha256_of
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import size
from hpcgen.images.folder import MAX_FILE
from hpcgen.images.oci_artifact import ArtifactBlob, ArtifactManifest, described, push
from hpcgen.images.skopeo import REGISTRY, WITHOUT_POLICY, answer_of, at_digest, copy, is_absent
from hpcgen.supply.net.web import WebError

RECORD_TYPE = "application/vnd.hpcgen.artifact.v1+json"
SIGNATURE = "io.hpcgen.artifact.signature"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_ADDRESS = re.compile(r"docker://[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
_MANIFEST_BYTES = 4 * 1024 * 1024
_LIST_BYTES = 64 * 1024 * 1024


class _Tags(msgspec.Struct, frozen=True):
    Tags: list[str] | None = None


class RegistryRepository(RemotePlace):
    """One repository.

    ``address``: ``docker://registry.example.org/hpc/artifacts``. InputError: it is no such address.
    """

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            expected = "docker://registry.example.org/hpc/artifacts, without a tag"
            raise InputError(f"{address!r} names no repository of a registry", expected=expected)
        self.address, self.host = address, address.removeprefix(REGISTRY).partition("/")[0]
        self._read: dict[str, tuple[str, ArtifactManifest]] = {}
        """By key the manifest that was read, and its name by digest, which it keeps if the tag moves on."""

    def told(self, key: str) -> tuple[bytes, bytes]:
        name, manifest = self._read[key] = self._manifest(key)
        data = answer_of(self._skopeo(), "inspect", "--config", "--raw", name, most=MAX_BYTES)
        if manifest.config.digest != f"sha256:{sha256_of(data)}":
            raise WebError("the registry sends another record than its manifest names", again=False)
        return data, (manifest.annotations or {}).get(SIGNATURE, "").encode()

    def fetch(self, record: Artifact, folder: Path, target: Path) -> None:
        name, manifest = self._read[record.key]
        if [(each.digest, each.size) for each in manifest.layers] != [(f"sha256:{record.sha256}", record.bytes)]:
            raise WebError("its manifest names another archive than its record", again=False)
        if (free := shutil.disk_usage(folder).free) < record.bytes:
            raise WebError(f"there is room for {size(free)} in {folder.parent}", again=False)
        copied = folder / "copied"
        how = [WITHOUT_POLICY, "copy", "--preserve-digests"]
        copy(self._skopeo(), how, name, copied, max(record.bytes, MAX_FILE) + 1)
        target.parent.mkdir(exist_ok=True)
        (copied / record.sha256).rename(target)

    def listed(self) -> list[str]:
        try:
            said = answer_of(self._skopeo(), "list-tags", self.address, most=_LIST_BYTES)
            tags = msgspec.json.decode(said, type=_Tags).Tags or []
        except (FetchError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            why = error.problems[0].message if isinstance(error, FetchError) else error
            raise FetchError(f"{self.address} does not list what is there: {why}", remedy=self._remedy) from error
        return [tag for tag in tags if re.fullmatch(r"[0-9a-f]{64}", tag)]

    def add(self, store: ArtifactStore, found: ArtifactEntry) -> bool:
        """Push an artifact of a store, with its signature; whether one that would be taken was not there yet.

        OutputError: the registry does not take it. InputError, PolicyError: as of
        :meth:`~hpcgen.builders.artifacts.store.ArtifactStore.check`.
        """
        store.check(found)
        signature = read_plain(signature_of(found.path), MAX_BYTES) if store.is_signed(found) else b""
        with scratch_folder("hpcgen-artifact-") as folder:
            if self._has(found, signature, ArtifactStore(folder, store.signers)):
                return False
            config = described(RECORD_TYPE, found.data)
            layer = ArtifactBlob(_LAYER_TYPE, f"sha256:{found.record.sha256}", found.record.bytes)
            signed = {SIGNATURE: signature.decode("ascii", "replace")} if signature else {}
            push(
                self._skopeo(),
                folder / "image",
                ArtifactManifest(config=config, layers=[layer], annotations=signed),
                {config.digest: found.data, layer.digest: store.archive(found.record)},
                f"{self.address}:{found.record.key}",
                remedy=self._remedy,
            )
        return True

    def _has(self, found: ArtifactEntry, signature: bytes, place: ArtifactStore) -> bool:
        """Whether what is there would be taken, and lacks no signature that ours has."""
        try:
            theirs = self.entry(found.record.key, place)
        except (HpcgenError, WebError) as error:
            if isinstance(error, WebError) and error.down:
                raise OutputError(f"{self.address}: {error.message}", remedy=self._remedy) from error
            return False
        return theirs.data != found.data or place.is_signed(theirs) or not signature

    def _manifest(self, key: str) -> tuple[str, ArtifactManifest]:
        """The manifest that a key stands for now, and its name by digest; WebError where there is none."""
        try:
            raw = answer_of(self._skopeo(), "inspect", "--raw", f"{self.address}:{key}", most=_MANIFEST_BYTES)
        except FetchError as error:
            why = error.problems[0].message
            if is_absent(why):
                raise WebError("it does not have it", again=False) from error
            raise WebError(why, down=True) from error
        try:
            return at_digest(self.address, f"sha256:{sha256_of(raw)}"), msgspec.json.decode(raw, type=ArtifactManifest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise WebError("what is stored under this key is not an artifact", again=False) from error

    def _skopeo(self) -> str:
        return require_program("skopeo", f"reach {self.address}", "install skopeo")

    @property
    def _remedy(self) -> str:
        login = f"skopeo login {sh(self.host)}"
        return f"check the name; a registry with a password: {login}; behind a proxy: docs/mirrors.md"
