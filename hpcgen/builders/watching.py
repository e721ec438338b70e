"""Who is told of a build while it goes on."""

from __future__ import annotations

from hpcgen.backends.engines.building import Target
from hpcgen.builders.progress import BuildProgress
from hpcgen.kit.folder import KitFolder


class Watcher:
    """Told about a build while it goes on; this one says nothing."""

    def began(self, kit: KitFolder, builder: str, target: Target, progress: BuildProgress) -> None:
        """The engine is about to be started."""

    def ended(self, index: int) -> None:
        """A step has ended; ``index`` counts from 0."""

    def line(self, text: str) -> None:
        """The engine printed a line."""

    def tick(self) -> None:
        """Called several times a second while a builder runs, for a display that moves."""

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def finished(self) -> None:
        """The engine has ended, however it did."""
