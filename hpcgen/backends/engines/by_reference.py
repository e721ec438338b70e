"""What engines have in common that start images by their names in a registry, and no files."""

from __future__ import annotations

from typing import ClassVar

from hpcgen.backends.engines.base import Engine

# What a registry or a store could know: a reference has no other signs, and begins with none of a path's.
_NO_REFERENCE = "[[ -f $image || $image != [A-Za-z0-9]* || $image == *[!A-Za-z0-9._/:@-]* ]]"


class ByReference(Engine):
    """The site's own tools keep images for it, under the names that they have in a registry."""

    format = "docker"
    builds = False
    built_by = "podman"
    starts: ClassVar[tuple[str, ...]] = ("registry",)
    image_is_file = False
    tells_version = False

    def missing_image(self, named: bool) -> tuple[str, str]:
        """A file; whether there is an image of a name, the start itself says best."""
        return _NO_REFERENCE, f"$image is no name of an image, and {self.name} starts no files: {self.image_todo}"
