"""Field types that several records share; their patterns are what the JSON Schema publishes."""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.support.quoting import ENV_NAME_PATTERN, NAME_PATTERN, PATH_PATTERN, URL_PATTERN, VERSION_PATTERN


def matching(pattern: str, description: str, example: str, schema: dict[str, str] | None = None) -> msgspec.Meta:
    """What text of a field looks like: as a regular expression, in words, by an example; more of its schema."""
    return msgspec.Meta(pattern=pattern, description=description, examples=[example], extra_json_schema=schema)


NAMES_OF = "x-names-of"
"""Keyword of a field's schema: which registry knows its names. ``schema_text`` writes these in its place."""

Name = Annotated[
    str,
    matching(
        NAME_PATTERN,
        "a name of at most 64 lower-case letters, digits, '.', '_' and '-', starting with a letter or digit",
        "my-cluster2",
    ),
]
Version = Annotated[str, matching(VERSION_PATTERN, "a version of letters, digits, '.', '_', '+' and '-'", "2.15.1")]
VersionRange = Annotated[
    str, matching(r"^[0-9A-Za-z.*+!<>=~, _-]*$(?!\n)", "a version range, or '' for any version", ">=2.3,<2.16")
]
Reference = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9._~/][A-Za-z0-9._~/+@%:,=-]*$(?!\n)",
        "the name of a site or stack, or a file that ends in .yaml, from the folder of this file",
        "mpi-hello",
    ),
]
AbsolutePath = Annotated[
    str,
    matching(
        PATH_PATTERN, "an absolute path of letters, digits and . _ / + @ % : , = - without quotes or $", "/opt/mpi"
    ),
]
Url = Annotated[str, matching(URL_PATTERN, "an https:// address without spaces or quotes", "https://example.org/a")]
EnvName = Annotated[str, matching(ENV_NAME_PATTERN, "an environment variable's name", "OMP_NUM_THREADS")]
Text = Annotated[
    str,
    matching(
        r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$(?!\n)", "text on one line, without control characters", "a few words"
    ),
]
ModuleName = Annotated[
    str, matching(r"^[A-Za-z0-9][A-Za-z0-9._+/-]*$(?!\n)", "a module's name without spaces", "intel-mpi/2019")
]
Sha256 = Annotated[str, matching(r"^[0-9a-f]{64}$(?!\n)", "64 lower-case hexadecimal digits", "0123456789abcdef" * 4)]
Digest = Annotated[
    str,
    matching(
        r"^sha256:[0-9a-f]{64}$(?!\n)",
        "sha256: and 64 lower-case hexadecimal digits",
        "sha256:" + 4 * "0123456789abcdef",
    ),
]
DatedTag = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9_.-]*[.-]20[0-9]{6}([.-][A-Za-z0-9_.-]+)?$(?!\n)",
        "the tag of one build of an image, with its date and without the image's name",
        "jammy-20260901.2",
    ),
]
Commit = Annotated[
    str, matching(r"^[0-9a-f]{40}$(?!\n)", "40 lower-case hexadecimal digits", "0123456789abcdef0123" * 2)
]
GIT_REFERENCE = r"^(?!.*(\.\.|/$|\.lock$))[A-Za-z0-9_][A-Za-z0-9._/+-]*$(?!\n)"
GitReference = Annotated[str, matching(GIT_REFERENCE, "a branch or tag of a git repository, or HEAD", "v1.2")]
SourceAddress = Annotated[
    str,
    matching(
        r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*)+$(?!\n)",
        "the https:// address of a git repository or a file, without ?, % and @",
        "https://example.org/solver-1.2.tar.gz",
    ),
]
Date = Annotated[str, matching(r"^\d{4}-\d{2}-\d{2}$(?!\n)", "a date: year, month and day", "2026-11-20")]
PartialDate = Annotated[str, matching(r"^\d{4}(-\d{2}(-\d{2})?)?$(?!\n)", "a year, a month or a day", "2024-01")]
Count = Annotated[int, msgspec.Meta(ge=1, description="a whole number of at least 1")]
WholeNumber = Annotated[int, msgspec.Meta(ge=0, description="a whole number of at least 0")]
Bytes = Annotated[int, msgspec.Meta(ge=0, description="a number of bytes")]
RankGpus = Literal["own", "all"]
Gigabytes = Annotated[float, msgspec.Meta(gt=0, description="gigabytes, more than 0")]

FormatName = Annotated[str, matching(NAME_PATTERN, "a recipe format", "docker", {NAMES_OF: "formats"})]
EngineName = Annotated[str, matching(NAME_PATTERN, "a container engine", "apptainer", {NAMES_OF: "engines"})]
FileName = Annotated[
    str,
    matching(r"^[A-Za-z0-9_][A-Za-z0-9._+~%!@=-]*$(?!\n)", "a file's name: no folder, no space, no quote", "a.tar.gz"),
]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every record: immutable, by keyword, unknown fields are errors."""


Account = Annotated[
    str,
    matching(r"^[A-Za-z0-9][A-Za-z0-9._@:/+-]*$(?!\n)", "an account or project as the batch system knows it", "pn12ab"),
]


class ImageRules(Record, frozen=True):
    """Which images may be started. ``require_signature``: only those with a statement that an allowed signer signed."""

    require_signature: bool = False


class PlanDefaults(Record, frozen=True):
    """What a file says once for all plans.

    ``site``: that of a plan without ``--site``. The others are for that site, or without one for each that they fit:
    ``partition``, the kind of node; ``engine``, which is preferred to the profile's; ``account``, which jobs are
    charged to.
    """

    site: Name | None = None
    partition: Name | None = None
    engine: EngineName | None = None
    account: Account | None = None

    def counts_at(self, site: str) -> bool:
        """Whether what is said besides ``site`` is said for this one."""
        return self.site in (None, site)


class Source(Record, frozen=True, rename={"from_": "from"}):
    """Where a fact is from, when it was looked up, and whether that source was really read.

    ``as_of``: the source's own date, which is that of the fact: of a commit, a page, a file, or the day on which a
    machine was examined. ``dated_by``: a page or a log without a date of its own has only that of its ``reading``,
    which says nothing of the fact's age. A fact that is corroborated only by third parties, or known from memory, has
    ``verified: no``.
    """

    from_: Text
    checked: Date
    verified: Literal["yes", "no"]
    as_of: PartialDate | None = None
    dated_by: Literal["source", "reading"] = "source"
    note: Text = ""

    @property
    def date(self) -> str | None:
        """The date of the fact, or None where the source has none."""
        return self.as_of if self.dated_by == "source" else None

    @property
    def words(self) -> str:
        """The source, and what is noted of it."""
        return f"{self.from_} ({self.note})" if self.note else self.from_

    @property
    def from_memory(self) -> bool:
        """Whether nobody found a source, which profiles and release tables say by these words."""
        return "from memory" in self.from_ or "from memory" in self.note

    @property
    def old(self) -> bool:
        """Whether the source was more than two years old when it was looked up."""
        if self.date is None:
            return False
        limit = f"{int(self.checked[:4]) - 2}{self.checked[4:]}"
        return self.date < limit[: len(self.date)]
