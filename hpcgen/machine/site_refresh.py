"""What changed since in the repositories that a profile cites, beside the facts that rest on them.

A repository is untrusted: it is read as git's objects alone. Nothing of it is checked out, and none of its hooks,
filters, diff programs and submodules has a part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from hpcgen.blocks.inputs.git_tree import HTTPS_ALONE
from hpcgen.core.config.provenance import Fact, shown_value
from hpcgen.core.errors import FetchError
from hpcgen.core.support.git import GitFailure, git_output
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.units import harmless

TIMEOUT_S = 600.0
"""How long one git command may take."""

NEAR = 20
"""Lines between a change and the cited lines, up to which the change is told of them."""

_MOST_LINES, _MOST_BYTES = 40, 4 * 1024 * 1024
_WIDE = 160
_BY_CLONE = "give a clone of it (--clone OWNER/REPO=DIR) that you can read"
_CITED = re.compile(r"(github\.com|gitlab\.com)/([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([0-9a-f]{7,40}))?\b")
_FILE = re.compile(r"(?<![\w./-])([\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*)(?::(\d{1,6})(?:-(\d{1,6}))?)?")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+")
_PAGE = re.compile(r"https://(?!github\.com/|gitlab\.com/)[^\s,;]+")


class Cited(msgspec.Struct, frozen=True):
    """A repository at a commit, as a source names it.

    repository: such as ``github.com/TACC/TACC-Docs``.
    commit: as cited; empty where none is.
    words: what the source says after the commit, where the names of files are.
    """

    repository: str
    commit: str
    words: str


class RestingFact(msgspec.Struct, frozen=True):
    """A fact, what the profile says, and where."""

    path: str
    value: str
    place: str


Status = Literal["same", "elsewhere", "changed", "gone"]
"""What became of a cited file; ``elsewhere``: it changed, but not near the cited lines."""


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    """A cited file, read again.

    lines: those that are cited, such as 12-20; empty where none are.
    cited, newest: the commits; ``cited_on``, ``newest_on``: their days.
    hunks: what changed near the cited lines, or in the file where none are cited; the first few.
    """

    repository: str
    file: str
    lines: str
    status: Status
    cited: str
    cited_on: str
    newest: str
    newest_on: str
    facts: list[RestingFact]
    hunks: list[str]

    @property
    def changed(self) -> bool:
        """Whether somebody should look at the facts again."""
        return self.status in ("changed", "gone")


class Unread(msgspec.Struct, frozen=True):
    """A source that was not read again, why, and the facts that rest on it."""

    source: str
    why: str
    facts: list[RestingFact]


class Refreshed(msgspec.Struct, frozen=True):
    """All that was read again, what could not be, and the pages, which are not read."""

    files: list[ReadFile]
    unread: list[Unread]
    pages: list[Unread]


class _Clone(NamedTuple):
    """A clone, and whether it was fetched now: then it has no files yet, and what is read of it is fetched, too."""

    folder: Path
    fetched: bool = False


def refreshed(facts: Iterable[Fact], clones: Mapping[str, Path], scratch: Path | None) -> Refreshed:
    """Read the repositories again that a profile's sources cite.

    clones: by OWNER/REPO; what their HEAD is counts as the newest.
    scratch: where repositories without a clone are fetched to; None where the network is not to be used.
    MissingToolError: there is no git.
    """
    require_program("git", "read the cited repositories", "install git")
    cited: dict[Cited, list[RestingFact]] = {}
    pages: dict[str, list[RestingFact]] = {}
    for fact in facts:
        resting = RestingFact(fact.path, shown_value(fact.value), f"{fact.where.file}:{fact.where.line}")
        text = fact.source.from_ if fact.source is not None else ""
        for each in citations(text):
            cited.setdefault(each, []).append(resting)
        for page in _PAGE.findall(text):
            pages.setdefault(page, []).append(resting)
    files: dict[tuple[str, str, str, str], ReadFile] = {}
    unread: dict[tuple[str, str], Unread] = {}
    opened: dict[str, _Clone | FetchError] = {}
    for each, those in cited.items():
        if each.repository not in opened:
            opened[each.repository] = _opened(each.repository, clones, scratch)
        try:
            for read in _read(each, opened[each.repository], those):
                key = (read.repository, read.cited, read.file, read.lines)
                known = files.get(key)
                files[key] = msgspec.structs.replace(read, facts=[*known.facts, *those]) if known else read
        except FetchError as error:
            source, why = f"{each.repository}@{each.commit}".rstrip("@"), error.problems[0].on_one_line
            before = unread[source, why].facts if (source, why) in unread else []
            unread[source, why] = Unread(source, why, [*before, *those])
    of_pages = [Unread(page, "pages are not read again", those) for page, those in pages.items()]
    return Refreshed([*files.values()], [*unread.values()], of_pages)


def citations(text: str) -> list[Cited]:
    """The repositories that a source names, each with the words up to the next one."""
    starts = [*_CITED.finditer(text)]
    ends = [*(each.start() for each in starts[1:]), len(text)]
    return [
        Cited(f"{each[1]}/{each[2].rstrip('.')}", each[3] or "", text[each.end() : end])
        for each, end in zip(starts, ends, strict=False)
    ]


def _opened(repository: str, clones: Mapping[str, Path], scratch: Path | None) -> _Clone | FetchError:
    """The folder of its clone, or why there is none."""
    name = repository.partition("/")[2]
    if name in clones:
        return _Clone(clones[name])
    if scratch is None:
        return FetchError("it was not read", remedy=f"give a clone of it (--clone {name}=DIR), or --network")
    folder = scratch / name.replace("/", "+")
    try:
        # All commits and folders, but no file: those that are compared are fetched when they are read.
        words = ("clone", "-q", "--bare", "--no-tags", "--single-branch", "--filter=blob:none", "--template=")
        _git(scratch, *HTTPS_ALONE, *words, "--", f"https://{repository}", str(folder), lazy=True)
    except FetchError as error:
        return error
    return _Clone(folder, fetched=True)


def _read(cited: Cited, clone: _Clone | FetchError, facts: list[RestingFact]) -> Iterator[ReadFile]:
    """Every file that a source names, as it was and as it is; FetchError for what cannot be read."""
    if not cited.commit:
        raise FetchError("no commit of it is cited", expected=f"{cited.repository}@COMMIT and the file's name")
    if isinstance(clone, FetchError):
        raise clone
    folder = clone.folder
    old, newest = _commit(folder, cited.commit), _commit(folder, "HEAD")
    named = False
    for match in _FILE.finditer(cited.words):
        name = match[1].rstrip(".")
        if _type(folder, old[0], name) is None:
            continue
        named = True
        lines = (int(match[2]), int(match[3] or match[2])) if match[2] else None
        status, hunks = _changes(clone, old[0], newest[0], name, lines)
        yield ReadFile(
            repository=cited.repository,
            file=name,
            lines=match[0].removeprefix(match[1])[1:],
            status=status,
            cited=cited.commit,
            cited_on=old[1],
            newest=newest[0][:8],
            newest_on=newest[1],
            facts=facts,
            hunks=_few(hunks, [fact.value for fact in facts]),
        )
    if not named:
        raise FetchError("its source names no file of the commit", expected="the file's path after the commit")


def _few(hunks: list[list[str]], values: list[str]) -> list[str]:
    """Some lines of the changes, first of those that a fact's value stands in."""
    telling = sorted(hunks, key=lambda hunk: not any(value in line for line in hunk for value in values))
    shown, left = [], _MOST_LINES
    for hunk in telling:
        if left > 0:
            shown.append("\n".join(hunk[:left]))
            left -= len(hunk)
    return shown


def _commit(folder: Path, name: str) -> tuple[str, str]:
    """Its full hash and its day; FetchError where the clone lacks it."""
    try:
        said = _git(folder, "log", "-1", "--format=%H %cs", "--end-of-options", name, "--")
    except FetchError:
        raise FetchError(f"the clone {folder} does not have {name}", remedy="give a clone with all commits") from None
    commit, _, day = said.decode().strip().partition(" ")
    return commit, day


def _type(folder: Path, commit: str, name: str) -> str | None:
    """``blob`` for a file, ``tree`` for a folder, None for what is not there."""
    said = _git(folder, "--literal-pathspecs", "ls-tree", commit, "--", name).decode(errors="replace").split()
    return said[1] if len(said) > 2 and said[1] in ("blob", "tree") else None


def _changes(
    clone: _Clone, old: str, new: str, name: str, lines: tuple[int, int] | None
) -> tuple[Status, list[list[str]]]:
    """What became of a file or a folder, and the changes near the lines."""
    folder = clone.folder
    if _type(folder, new, name) is None:
        return "gone", []
    shape = ["--stat=120"] if _type(folder, old, name) == "tree" else ["-U3"]
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
    text = _git(folder, "--literal-pathspecs", "diff", *plain, *shape, old, new, "--", name, lazy=clone.fetched)
    if not text.strip():
        return "same", []
    said = [harmless(each)[:_WIDE] for each in text.decode(errors="replace").splitlines()]
    if shape != ["-U3"]:
        return "changed", [said]
    hunks = [*_hunks(said)]
    near = [hunk for hunk in hunks if lines is None or _is_near(hunk[0], lines)]
    if hunks and not near:
        return "elsewhere", []
    return "changed", near


def _hunks(lines: list[str]) -> Iterator[list[str]]:
    """The hunks of a diff, without its head."""
    starts = [number for number, each in enumerate(lines) if _HUNK.match(each)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield lines[start:end]


def _is_near(head: str, lines: tuple[int, int]) -> bool:
    match = _HUNK.match(head)
    assert match is not None
    first = int(match[1])
    last = first + int(match[2] or 1)
    return first <= lines[1] + NEAR and last >= lines[0] - NEAR


def _git(folder: Path, *words: str, lazy: bool = False) -> bytes:
    """What git prints, up to some size; FetchError with its last words.

    ``lazy``: it may fetch files that are not there yet, by https alone.
    """
    # Of git's own variables those alone that say how https reaches a server.
    kept = ("GIT_SSL_", "GIT_HTTP_")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(kept)
    }
    environment |= {"GIT_ALLOW_PROTOCOL": "https" if lazy else "none"}
    # Not the repository of a folder above, and no setting of the machine that starts programs.
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent), "GIT_NO_LAZY_FETCH": "0" if lazy else "1"}
    quiet = ("--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    try:
        found = git_output(["git", *quiet, "-C", str(folder), *words], environment, TIMEOUT_S)
    except GitFailure as failure:
        why = f"git did not finish within {TIMEOUT_S:.0f} s" if failure.timed_out else f"git says: {failure.line(-1)}"
        raise FetchError(why, remedy=_BY_CLONE) from None
    if len(found) > _MOST_BYTES:
        raise FetchError("git says: more than can be shown", remedy=_BY_CLONE)
    return found
