"""A machine that remembers what was asked of it, so that a captured tree has that and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.tree import MAX_TEXT, Blob, MachineTree


class Recorder(Machine):
    """Made like a machine; afterwards it knows paths without links, by what was done with them.

    ``links``: what links said. ``existing``: what was found to be there. ``texts``: files that were read. ``blobs``:
    files that were searched. ``answers``: what programs said.
    """

    def __init__(self, root: str, environment: Mapping[str, str], commands: MachineTree | None = None) -> None:
        super().__init__(root, environment, commands)
        self.links: dict[str, str] = {}
        self.existing: set[str] = set()
        self.texts: dict[str, str] = {}
        self.blobs: set[str] = set()

    def trace(self, path: str) -> tuple[str, list[str]] | None:
        found = super().trace(path)
        if found is not None:
            self.existing.add(found[0])
            for link in found[1]:
                self.links[link] = self.link(link) or ""
        return found

    def names(self, path: str, pattern: str = "*") -> list[str]:
        """As a machine does; each name is taken for there."""
        found = super().names(path, pattern)
        if (real := self.real(path)) is not None:
            for name in found:
                here = f"{real.rstrip('/')}/{name}"
                target = self.link(here)
                if target is not None:
                    self.links[here] = target
                else:
                    self.existing.add(here)
        return found

    def text(self, path: str, limit: int = MAX_TEXT) -> str | None:
        found = super().text(path, limit)
        real = self.real(path)
        if found is not None and real is not None:
            self.texts[real] = found
        return found

    @contextmanager
    def blob(self, path: str) -> Iterator[Blob | None]:
        with super().blob(path) as blob:
            real = self.real(path)
            if blob is not None and real is not None:
                self.blobs.add(real)
            yield blob
