"""A place of artifacts that is no folder: what is said of one is read and checked before its archive is fetched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from hpcgen.builders.artifacts.store import ArtifactEntry, ArtifactStore, signature_of
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.support.writing import write_file


class RemotePlace(ABC):
    """Base of the places. Each may raise WebError or an HpcgenError: ``down`` of the first is of all that is there."""

    @abstractmethod
    def told(self, key: str) -> tuple[bytes, bytes]:
        """The record of a key, and its signature, empty where there is none; as they are there."""

    @abstractmethod
    def fetch(self, record: Artifact, folder: Path, target: Path) -> None:
        """Bring the archive of a record that was told before. ``folder``: for its pieces meanwhile."""

    @abstractmethod
    def listed(self) -> list[str]:
        """The keys of all that is there; FetchError where the place does not tell."""

    def entry(self, key: str, place: ArtifactStore) -> ArtifactEntry:
        """The record of a key, now in a store with its signature, which is checked where the store demands one."""
        record, signature = self.told(key)
        path = place.record_path(key)
        write_file(path, record, folders=True)
        if signature:
            write_file(signature_of(path), signature)
        found = place.read(key)
        if place.signers is not None:
            place.signer(found)
        return found
