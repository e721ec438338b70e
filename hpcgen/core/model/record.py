"""The record of one build: request, steps, times and result."""

from typing import Annotated, ClassVar, Literal

import msgspec

from hpcgen.core.model.fields import NAMES_OF, FormatName, Name, Sha256, Text, matching
from hpcgen.core.support.quoting import NAME_PATTERN

ImageKindName = Annotated[str, matching(NAME_PATTERN, "a kind of image", "sif")]
"""Where an image lies and what it is: a name of ``images.kinds``."""

BuilderName = Annotated[
    str,
    matching(NAME_PATTERN, "what builds images", "podman", {NAMES_OF: "builders"}),
]
"""An engine by the name of its builder."""


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what a record consists of. Unknown fields are ignored, so that older releases read newer records."""

    # Two of these are called Test…, which pytest would take for test cases.
    __test__: ClassVar[bool] = False


class BuiltImage(RecordPart, frozen=True):
    """The image: its kind, file or name, ``bytes`` on the disk, and its sha256 (of the file) or digest."""

    kind: ImageKindName
    name: str
    bytes: int | None = None
    digest: str = ""


class BuiltStep(RecordPart, frozen=True):
    """One step: its block and version, what it does, ``seconds``, and whether it was taken from the cache."""

    block: str
    about: str
    seconds: float = 0.0
    result: Literal["done", "cached", "failed"] = "done"


class Figure(RecordPart, frozen=True):
    """One number that a test measured, such as the bandwidth for messages ``at`` a size in ``at_unit``."""

    name: str
    value: float
    unit: str
    at: int | None = None
    at_unit: str = ""


class JudgedFigure(RecordPart, frozen=True):
    """What a test measured, beside what the profile expects.

    ``measure``: the profile's name of it. ``measured``, ``expected`` and ``limit``, the worst that passes, in ``unit``;
    ``at`` a size in bytes. ``nodes``, ``ranks_per_node``: the layout. ``starts``: how many the best figure is of.
    ``source``: of what is expected. ``causes``: why it may be slow, by what was seen. ``busy``: other programs used
    the nodes meanwhile. ``unknown``: the profile does not say what to expect.
    """

    measure: str
    result: Literal["good", "slow", "busy", "unknown"]
    measured: float
    unit: str
    nodes: int
    ranks_per_node: int
    at: int | None = None
    starts: int = 1
    expected: float | None = None
    limit: float | None = None
    source: str = ""
    causes: list[str] = []


class TestResult(RecordPart, frozen=True):
    """One test: ``group`` is the block or ``contract``; ``seconds``; ``output`` is what it printed.

    ``reason``: why it was skipped or failed, or what was seen; ``remedy``: what to do where it failed.

    Of a test over several nodes also how many ``ranks`` ran, on which ``nodes``, the ``figures`` they measured, and
    the ``judgement`` of the one that counts.
    """

    group: str
    name: str
    result: Literal["passed", "failed", "skipped"]
    seconds: float = 0.0
    reason: str = ""
    remedy: str = ""
    output: str = ""
    ranks: int | None = None
    nodes: list[str] = []
    figures: list[Figure] = []
    judgement: JudgedFigure | None = None


class TestRun(RecordPart, frozen=True):
    """One call of ``hpcgen test``: when (UTC, ISO 8601), on which site, by which engine, and every result.

    ``partition``: the kind of node. ``nodes``: how many the ranks were started on.
    """

    started: str
    site: str
    engine: str
    results: list[TestResult]
    seconds: float = 0.0
    nodes: int = 1
    partition: str = ""

    def __repr__(self) -> str:
        return f"<TestRun on {self.site} by {self.engine}: {self.counts}>"

    @property
    def counts(self) -> str:
        """``9 passed, 0 failed, 3 skipped``."""
        return ", ".join(f"{self.count(kind)} {kind}" for kind in ("passed", "failed", "skipped"))

    def count(self, result: str) -> int:
        """How many tests ended so."""
        return sum(each.result == result for each in self.results)


class BuildFailure(RecordPart, frozen=True):
    """Why a build ended: the step, the last lines, and for known causes what it was and what to do."""

    step: str
    message: str
    tail: list[str] = []
    cause: str = ""
    remedy: str = ""


class ArtifactOrigin(RecordPart, frozen=True):
    """What an image and its record say of a block that was not compiled for it: which artifact it is, and who made it.

    ``key``, ``version``, ``made``, ``engine``, ``hpcgen``: as in the artifact's own record. ``place``: where it was
    taken from, a folder or an address; an image does not say it.
    """

    key: Sha256
    version: Text = ""
    made: Text = ""
    engine: Text = ""
    hpcgen: Text = ""
    place: Text = ""

    def __str__(self) -> str:
        by = " and ".join(each for each in (self.engine, self.hpcgen and f"hpcgen {self.hpcgen}") if each)
        return f"compiled {self.made or 'at an unknown time'} by {by or 'an unknown engine'}"


class BuildRecord(RecordPart, frozen=True):
    """One build. ``content`` is the plan's hash (label io.hpcgen.content), ``lock`` the sha256 of the kit's lock.

    Times are UTC, ISO 8601.

    ``notest``: the self-test at its end was left out. ``folder``: where it was started, an absolute path.
    ``lock_signer``: who signed the kit's lock, with the key, as far as the builder could tell.
    ``artifacts``: the origins of what was compiled before and was not again, by block.
    """

    id: str
    hpcgen: str
    started: str
    site: Name
    stack: Name
    partition: str
    format: FormatName
    content: str
    engine: BuilderName
    engine_version: str = ""
    machine: str = ""
    result: Literal["built", "failed", "interrupted"] = "built"
    seconds: float = 0.0
    command: str = ""
    folder: str = ""
    notest: bool = False
    lock: str = ""
    lock_signer: str = ""
    blocks: dict[str, str] = {}
    artifacts: dict[str, ArtifactOrigin] = {}
    inputs: list[str] = []
    steps: list[BuiltStep] = []
    image: BuiltImage | None = None
    failure: BuildFailure | None = None
    log: str = ""
    tests: list[TestRun] = []

    def with_signed_image(self, digest: str, size: int | None) -> "BuildRecord":
        """The record once its image carries a signature, which changes the file."""
        assert self.image is not None
        return msgspec.structs.replace(self, image=msgspec.structs.replace(self.image, digest=digest, bytes=size))

    def __repr__(self) -> str:
        image = f" {self.image.kind} {self.image.name}" if self.image is not None else ""
        return f"<BuildRecord {self.id}: {self.result}{image} in {self.seconds:.0f} s by {self.engine}>"
