"""What a block compiled, kept to be unpacked into other images in the place of its steps."""

from hpcgen.core.model.fields import AbsolutePath, Name, Record, Sha256, Text, WholeNumber
from hpcgen.core.model.record import ArtifactOrigin


class Artifact(Record, frozen=True):
    """One artifact of a store: a ``.tar.gz`` of the folders that a block's steps fill, and what is known of it.

    ``artifact``: the number of this format. ``key``: the hash of everything that decides its content, from the plan.
    ``folders``: those in it. ``sha256``, ``bytes``: of the archive. ``needs``: the keys of the blocks that it was
    compiled with and that are artifacts themselves, by their names. ``base``: the image that it was compiled in.
    ``target``: the CPU that it was compiled for, by archspec's name. ``made``: when (UTC, ISO 8601), by which
    ``engine`` and ``hpcgen``, in how many ``seconds``.
    """

    artifact: int
    key: Sha256
    block: Name
    version: Text
    folders: list[AbsolutePath]
    sha256: Sha256
    bytes: WholeNumber
    base: Text
    architecture: Text
    target: Text
    needs: dict[Name, Sha256] = {}
    made: Text = ""
    engine: Text = ""
    hpcgen: Text = ""
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """Block and version, for people."""
        return f"{self.block} {self.version}"

    @property
    def origin(self) -> ArtifactOrigin:
        """Who made it, and when."""
        return ArtifactOrigin(
            key=self.key, version=self.version, made=self.made, engine=self.engine, hpcgen=self.hpcgen
        )
