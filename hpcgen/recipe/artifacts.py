"""What was compiled before, unpacked in the builder in the place of the steps that compile it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.blocks.steps import ArchiveFile, Run, command, pipe
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.recipe.parts import PlannedPart

FOLDER = "artifacts"
"""Of a build context, with the archives."""
SHORT = 12


class StoredArtifact(NamedTuple):
    """An artifact, where its archive lies, and the folder or the address that it was taken from."""

    record: Artifact
    file: Path
    place: str = ""

    @property
    def path(self) -> str:
        """Where a build context has it."""
        return f"{FOLDER}/{self.record.block}-{self.record.key[:SHORT]}.tar.gz"


def with_artifacts(parts: Sequence[PlannedPart], stored: Mapping[str, StoredArtifact]) -> list[PlannedPart]:
    """The parts of a builder, those that are stored without their steps, and without tools that nothing else needs.

    ``parts``: in build order, the base first. ``stored``: artifacts by the names of their blocks.
    """
    if not stored:
        return list(parts)
    needed: set[str] = {parts[0].planned.name}
    kept = []
    for part in reversed(parts):
        planned = part.planned
        if planned.build_only and planned.name not in needed:
            continue
        found = stored.get(planned.name)
        if found is None:
            needed |= set(planned.needs.values())
        kept.append(part if found is None else replace(part, unpacked=_unpack(found)))
    return kept[::-1]


def _unpack(stored: StoredArtifact) -> Run:
    """The step that unpacks an archive: only if it is the one that the store's record names."""
    record = stored.record
    target = f"{SCRATCH}/{stored.path.rpartition('/')[2]}"
    return Run(
        f"unpack what was compiled before ({record.key[:SHORT]})",
        (
            pipe(command("echo", f"{record.sha256}  {target}"), command("sha256sum", "-c", "-")),
            command("tar", "-C", "/", "--no-same-owner", "-xzf", target),
            command("rm", target),
        ),
        archives=(ArchiveFile(stored.path, target, stored.file, record.sha256),),
    )
