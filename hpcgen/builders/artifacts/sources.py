"""Places of others that artifacts are brought from into the user's own store: a folder, a web server, a registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpcgen.builders.artifacts.registry import RegistryRepository
from hpcgen.builders.artifacts.remote import RemotePlace
from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.builders.artifacts.web_folder import WebFolder
from hpcgen.core.errors import HpcgenError, InputError, MissingToolError, OutputError
from hpcgen.core.support.leftovers import work_folder
from hpcgen.core.support.refusals import explained, unwritable
from hpcgen.core.support.units import size
from hpcgen.images.skopeo import REGISTRY
from hpcgen.recipe.artifacts import StoredArtifact
from hpcgen.supply.net.part import DiskError
from hpcgen.supply.net.web import WebError, shown

_MOST_BYTES = 50 * 10**9
"""Of one archive."""


def _remote(address: str) -> RemotePlace | None:
    if address.startswith(REGISTRY):
        return RegistryRepository(address)
    return WebFolder(address) if "://" in address else None


class ArtifactSource:
    """A place that artifacts are brought from; only what a store would take of its own comes into it.

    ``address``: a folder; ``https://…``, where a web server shows one; or ``docker://…``, a repository of a registry.
    ``store``: the user's own, whose signers count here, too.

    ``gave`` is whether something came.
    """

    def __init__(self, address: str, store: ArtifactStore) -> None:
        self.address, self.store = address, store
        self.remote = _remote(address)
        self.gave = self._down = False

    def bring(self, key: str, tell: Callable[[str], None]) -> StoredArtifact | None:
        """Bring one into the store.

        ``tell``: told what comes, or why it does not. OutputError: the store cannot be written.
        """
        if self._down:
            return None
        name = shown(self.address)
        try:
            if self.remote is None:
                place = ArtifactStore(Path(self.address), self.store.signers)
                if not place.record_path(key).exists():
                    tell(f"{name} does not have it")
                    return None
                place.copy_to(place.read(key), self.store)
            else:
                self._fetch(self.remote, key, tell)
        except OutputError:
            raise
        except DiskError as error:
            raise unwritable(self.store.folder, error.failure) from error
        except (HpcgenError, WebError) as error:
            # Who cannot be reached is not asked for the next one.
            self._down = isinstance(error, MissingToolError) or (isinstance(error, WebError) and error.down)
            tell(
                f"not taken from {name}: {error.message if isinstance(error, WebError) else error.problems[0].message}"
            )
            return None
        found = self.store.find(key, tell)
        self.gave |= found is not None
        return found and found._replace(place=name)

    def listed(self) -> list[str]:
        """All that are there; FetchError where the place does not tell."""
        if self.remote is None:
            return [each.record.key for each in ArtifactStore(Path(self.address)).records()]
        return self.remote.listed()

    def _fetch(self, remote: RemotePlace, key: str, tell: Callable[[str], None]) -> None:
        with explained(self.store.folder):
            self.store.folder.mkdir(parents=True, exist_ok=True)
        with work_folder("hpcgen-artifact-", where=self.store.folder) as (folder, _):
            place = ArtifactStore(folder, self.store.signers)
            found = remote.entry(key, place)
            record = found.record
            if record.bytes > _MOST_BYTES:
                message = f"{record.label} has {size(record.bytes)}; at most {size(_MOST_BYTES)} are fetched"
                raise InputError(message, remedy="bring it in a folder: hpcgen cache pull FOLDER")
            tell(f"{record.label} is fetched from {shown(self.address)}, {size(record.bytes)}")
            remote.fetch(record, folder, place.archive(record))
            place.copy_to(found, self.store)
