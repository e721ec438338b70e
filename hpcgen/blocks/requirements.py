"""What one thing asks of another while versions are chosen, and where it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.reasons import Reason, requirement_text
from hpcgen.core.model.release import Release

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

LONGEST_RANGE = 1000
"""Python makes no number of more than 4,300 digits."""


@lru_cache(maxsize=65536)
def version(text: str) -> Version:
    """A parsed version; InputError if it is none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        raise InputError(f"{text!r} is not a version", expected="a version such as 2.15.1") from None


@lru_cache(maxsize=4096)
def version_range(text: str) -> SpecifierSet:
    """A parsed range; a bare version means exactly that version. InputError if it is neither."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # nothing that only starts an image asks for it

    if len(text) > LONGEST_RANGE:
        raise InputError(f"{text[:40]!r}… is not a version range", expected=f"at most {LONGEST_RANGE} characters")
    try:
        return SpecifierSet(f"=={text}" if text[:1].isdigit() else text)
    except InvalidSpecifier:
        raise InputError(
            f"{text!r} is not a version range", expected="a range such as >=2.3,<2.16 or a version such as 2.15.1"
        ) from None


@lru_cache(maxsize=65536)
def in_range(text: str, versions: str) -> bool:
    """Whether a version lies in a range; pre-releases count like any other version."""
    return not versions or version_range(versions).contains(version(text), prereleases=True)


class Origin(msgspec.Struct, frozen=True):
    """Where a requirement comes from.

    by: who asks: a block (``version`` is its own), the stack, the command line; what the site bounds it by.
    place: the position in a file; asked only when somebody wants to know.
    path: the path in the site profile or the stack.
    bounds: of a site's, or of Python packages', why it is bounded, as the plan keeps it.
    asked: of the stack and the command line, the block or virtual as it is called there.
    why: what happens otherwise and the way out, where a release table says that.
    """

    by: str
    place: Callable[[], Position | str | None] = lambda: None
    kind: str = "block"
    version: str = ""
    path: str = ""
    bounds: tuple[Reason, ...] = ()
    asked: str = ""
    why: str = ""

    @property
    def text(self) -> str:
        """Who asks, for messages: a block with its version, the stack, or ``--set``."""
        return f"{self.by} {self.version}".strip()


class Requirement(msgspec.Struct, frozen=True, eq=False):
    """One requirement on an identifier (a block, or a virtual with all its providers).

    allowed: each acceptable provider with its range; None accepts every provider and version.
    enough: the option values of a smaller form that is enough; empty asks for the whole, None takes every form.
    demanded: whether it must be there; else the requirement holds where something else needs it.
    """

    identifier: str
    allowed: Mapping[str, str] | None
    origin: Origin
    enough: Mapping[str, str] | None = None
    demanded: bool = True

    def accepts(self, candidate: Candidate) -> bool:
        """Whether a candidate satisfies it."""
        if self.enough is not None and any(self.enough.get(option) != value for option, value in candidate.form):
            return False
        if self.allowed is None:
            return True
        versions = self.allowed.get(candidate.block)
        return versions is not None and in_range(candidate.version, versions)

    def __str__(self) -> str:
        return requirement_text(self.identifier, self.allowed)


Form = tuple[tuple[str, str], ...]
"""Values of a block's options in a smaller form of it, such as CUDA without its compiler; () is the whole."""


class Candidate(msgspec.Struct, frozen=True):
    """One version of one block, as a whole or in a smaller form."""

    identifier: str
    block: str
    version: str
    form: Form = ()

    def __str__(self) -> str:
        return f"{self.block} {self.version}"


class Refusal(msgspec.Struct, frozen=True):
    """A version that is ruled out before anything is searched, by a fact of the node or an option of the block.

    ``reason.place`` is the fact's path in the profile, empty for an option.
    """

    candidate: Candidate
    reason: Reason

    @property
    def bound(self) -> Reason:
        """The fact or option alone, which a group of refusals may share."""
        return msgspec.structs.replace(self.reason, requires=None, newer="")


def refusing_facts(release: Release, facts: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Which of the node's facts rule a release out, each with what it requires instead.

    ``facts`` maps the name of a host range (``driver``) or ``target`` to the fact and its path in the profile.
    A fact that is not known rules nothing out; one without a path is assumed.
    """
    found = {
        str(name): versions
        for name, versions in sorted(release.host.items())
        if name in facts and not in_range(facts[name][0], versions)
    }
    if release.targets and "target" in facts and facts["target"][0] not in release.targets:
        found["target"] = " or ".join(release.targets)
    return found


def host_refusals(candidate: Candidate, release: Release, facts: Mapping[str, tuple[str, str]]) -> Iterator[Refusal]:
    """Each of the node's facts that rules a release out; see :func:`refusing_facts`."""
    for name, wanted in refusing_facts(release, facts).items():
        value, path = facts[name]
        found, newer = value if path else f"{value} (assumed)", candidate.version
        reason = Reason(rule="fact", by=name, requires={name: wanted}, found=found, newer=newer, place=path)
        yield Refusal(candidate, reason)


def option_refusals(candidate: Candidate, release: Release, options: Mapping[str, object]) -> Iterator[Refusal]:
    """Each of the block's options that rules a release out, by the row's ``only``."""
    for name, values in sorted(release.only.items()):
        if str(options.get(name)) not in values:
            setting, value, newer = f"{candidate.block}.{name}", str(options.get(name)), candidate.version
            requires = {setting: " or ".join(values)}
            yield Refusal(candidate, Reason(rule="option", by=setting, requires=requires, found=value, newer=newer))
