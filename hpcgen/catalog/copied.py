"""The files that stacks copy into images: found below the folder of the stack's file, read once, known by hash."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import HpcgenError, InputError, Position, Problems
from hpcgen.core.model.image_paths import KIT, OWN_FOLDER
from hpcgen.core.model.plan import Plan, PlannedCopy
from hpcgen.core.model.stack import Copied, Stack
from hpcgen.core.secret_rules import secret_file
from hpcgen.core.support.hashing import MOST_FILES, SELF, FileTree, TreeFile, hash_file, read_plain, tree_of, wrong_name
from hpcgen.core.support.units import files, size, some

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog

T = TypeVar("T")
ALWAYS_LEFT = (".git", "__pycache__", OWN_FOLDER)
"""Names of folders, and of what a git worktree has in their place, that are in no image."""
IGNORE, MOST_IGNORED = ".hpcgenignore", 100_000
"""A list of patterns in the folder that is copied, and its largest size in bytes."""
Place = Callable[[PlannedCopy], FileTree | None]
"""Where files that a plan names may be: their tree, or None where they are not there."""


class CopiedFiles:
    """What stacks of a catalog copy.

    ``places``: where else the files of a plan that was made before may lie, such as its bundle, asked in their order.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._read: dict[tuple[str, str, tuple[str, ...]], FileTree] = {}
        self._known: dict[str, FileTree] = {}
        self.places: list[Place] = []
        self._below: list[Path] = []

    def planned(self, stack: Stack, document: Document | None) -> list[PlannedCopy]:
        """What a plan says of the files that a stack copies, which are read for that, once.

        ``document``: the stack's file; of a stack that is in none, paths are from the present folder. InputError:
        something cannot be copied, each with its place.
        """
        if stack.copy and (document is None or document.file_of(["copy"]) is None):
            document = self._document(stack) or document
        return _each(stack, document, self.planned_from)

    def planned_from(self, folder: Path, entry: Copied) -> PlannedCopy:
        """What a plan says of the files of one entry below a folder; InputError where one cannot be copied."""
        tree = self.read(folder, entry)
        check_public((file.path for file in tree.files), entry)
        return _planned(tree, entry.to)

    def read(self, folder: Path, entry: Copied) -> FileTree:
        """The files of one entry as they are below ``folder``; InputError where one cannot be copied."""
        key = (str(folder.absolute()), entry.from_, tuple(entry.ignore))
        if key not in self._read:
            tree = tree_of(_hashed(path, file) for path, file in files_of(folder, entry))
            self._read[key] = self._known[tree.sha256] = tree
        return self._read[key]

    def look_below(self, folder: Path, plan: Plan) -> None:
        """Look for the files of a plan also below a folder, as if the stack's file lay there."""

        def place(copy: PlannedCopy) -> FileTree | None:
            entry = _entry(plan, copy)
            try:
                # A stranger's plan could name a folder that takes hours to read.
                sizes = [file.stat().st_size for _, file in files_of(folder, entry)] if entry is not None else []
                alike = (len(sizes), sum(sizes)) == (copy.files, copy.bytes)
                return self.read(folder, entry) if entry is not None and alike else None
            except (HpcgenError, OSError):
                return None

        self._below.append(folder)
        self.places.append(place)

    def look_beside(self, stack: str, plan: Plan) -> None:
        """Look for the files of a plan also where a stack has them, by its name or its file.

        HpcgenError: there is no such stack, or it is damaged.
        """
        self.look_below(_folder_of(self._catalog.stack_document(stack)), plan)

    def tree(self, plan: Plan, copy: PlannedCopy) -> FileTree:
        """The files that a plan names, wherever they lie now.

        InputError: they are nowhere that is looked at, or no longer what they were.
        """
        for place in (lambda copy: self._known.get(copy.sha256), *self.places):
            found = place(copy)
            if found is not None and found.sha256 == copy.sha256:
                return found
        why = self._read_again(plan, copy)
        if copy.sha256 in self._known:
            return self._known[copy.sha256]
        raise InputError(
            f"the files that {plan.stack.name} copies to {copy.to} are not here: {why}",
            expected=f"{files(copy.files)}, {size(copy.bytes)}, list sha256 {copy.sha256}",
            remedy="put it below the folder of the stack's file again and run the command there, name that file "
            "(bundle create --stack FILE) or its collection (--collection DIR), or use the lock's bundle, which has it",
        )

    def _read_again(self, plan: Plan, copy: PlannedCopy) -> str:
        """Read what the stack of that name has today; why it is not what the plan names, where it is not."""
        entry, document = _entry(plan, copy), self._document(plan.stack)
        if entry is None or document is None:
            return self._not_below(plan, entry)
        folder = _folder_of(document)
        try:
            tree = self.read(folder, entry)
        except HpcgenError as error:
            return error.problems[0].message
        return f"{(folder / entry.from_).absolute()} has changed; the sha256 of its list is {tree.sha256}"

    def _not_below(self, plan: Plan, entry: Copied | None) -> str:
        """Why the folders that were looked at do not have what no stack of the collections copies."""
        folders = [folder.absolute() for folder in dict.fromkeys(self._below)]
        if entry is not None and (there := [each / entry.from_ for each in folders if (each / entry.from_).exists()]):
            return f"{there[0]} has changed"
        lacking = f", and there is no {entry.from_!r} in {' or '.join(map(str, folders))}" if entry and folders else ""
        return f"no stack of these collections is called {plan.stack.name} and copies the same{lacking}"

    def _document(self, stack: Stack) -> Document | None:
        """The file of a stack of the catalog that copies the same as this one."""
        try:
            known = self._catalog.document_of(stack)
            if known is None and self._catalog.stack(stack.name).copy == stack.copy:
                known = self._catalog.stack_document(stack.name)
        except HpcgenError:
            return None
        return known


def check_copied(stack: Stack, document: Document) -> None:
    """Whether all that a stack copies is there and can be copied, without reading it.

    InputError: as :meth:`CopiedFiles.planned`.
    """
    _each(stack, document, lambda folder, entry: check_public((path for path, _ in files_of(folder, entry)), entry))


def check_public(paths: Iterable[str], entry: Copied) -> None:
    """InputError where files of a folder may be secret by their names, and the entry does not say that they are not."""
    secret = [path for path in paths if secret_file(path) and not any(_fits(path, each) for each in entry.not_secret)]
    if secret:
        raise InputError(
            f"what is copied of {entry.from_!r} may be secret, and everybody can read an image: {some(secret, 8)}",
            expected="files that everybody may read",
            remedy="name them in `ignore`, or in `not_secret` those that are none",
        )


def _each(stack: Stack, document: Document | None, ask: Callable[[Path, Copied], T]) -> list[T]:
    """What is said of each entry, below the folder of the stack's file; InputError with the place of each mistake."""
    folder = _folder_of(document)
    problems = Problems()
    found: list[T] = []
    for number, entry in enumerate(stack.copy):
        with problems.caught(partial(_place, document, ["copy", number, "from"])):
            found.append(ask(folder, entry))
    problems.raise_as(InputError)
    return found


def _planned(tree: FileTree, target: str) -> PlannedCopy:
    total = sum(file.bytes or 0 for file in tree.files)
    return PlannedCopy(to=target, sha256=tree.sha256, files=len(tree.files), bytes=total, single=tree.single)


def _entry(plan: Plan, copy: PlannedCopy) -> Copied | None:
    return next((each for each in plan.stack.copy if each.to == copy.to), None)


def _folder_of(document: Document | None) -> Path:
    file = document.file_of(["copy"]) if document is not None else None
    return file.parent if file is not None else Path()


def _place(document: Document | None, path: list[str | int]) -> Position | None:
    return document.position(path) if document is not None else None


# finding


def _exists(path: Path) -> bool:
    """Whether there is such a file or folder; InputError for a path of which the system does not say so."""
    try:
        return path.exists()
    except OSError as failure:
        from hpcgen.core.support.refusals import refused

        raise refused(failure) or failure from failure


def files_of(folder: Path, entry: Copied) -> list[tuple[str, Path]]:
    """The files of one entry: their paths below it, and where each lies, links resolved. Nothing is read.

    InputError: there is no such file or folder; something in it is neither, leads out of ``folder``, or has a name that
    cannot be copied; there is nothing in it.
    """
    top = Path(os.path.realpath(folder))
    start = Path(os.path.realpath(folder / entry.from_))
    _check_inside(start, top, entry.from_)
    if not _exists(start):
        raise InputError(
            f"there is no {entry.from_!r} in {folder.absolute()}",
            expected="a file or folder, by its path from the folder of the stack's file",
            remedy="check the spelling of its path",
        )
    if not start.is_dir():
        _check_regular(start, entry.from_)
        return [(SELF, start)]
    problems = Problems()
    found: list[tuple[str, Path]] = []
    for path, place in _walk(start, "", [*entry.ignore, *_ignored(start)]):
        with problems.caught():
            found.append((path, _source(place, top, path, f"{entry.from_}/{path}")))
        if len(found) > MOST_FILES:
            raise InputError(
                f"{entry.from_!r} has more than {MOST_FILES} files",
                remedy="leave some out with `ignore`, or pack them into one archive",
            )
    problems.raise_as(InputError)
    if not found:
        raise InputError(
            f"nothing is copied from {entry.from_!r}: it has no files, or `ignore` matches all of them",
            remedy="remove the entry from `copy`, or patterns from `ignore` and .hpcgenignore",
        )
    return found


def _ignored(folder: Path) -> list[str]:
    """What the folder itself says is to stay behind, and the list in which it does.

    InputError: the list is not text of a bounded size, or has a pattern that would bring something back, as git's can.
    """
    file = folder / IGNORE
    if not os.path.lexists(file):
        return []
    try:
        text = read_plain(file, MOST_IGNORED).decode()
    except (OSError, ValueError) as failure:
        raise InputError(f"{file} cannot be read: {failure}", expected="patterns, one on each line") from failure
    problems = Problems()
    if len(text) > MOST_IGNORED:
        problems.add(
            f"{file} is larger than {size(MOST_IGNORED)}",
            expected="patterns, one on each line",
            remedy="check that it is the right file",
        )
    patterns = [IGNORE]
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line.startswith("!"):
            message = f"{file}:{number}: {line!r} would bring back files that another pattern leaves out"
            problems.add(message, remedy="narrow the other pattern; nothing can be brought back here")
        elif line and not line.startswith("#"):
            patterns.append(line)
    problems.raise_as(InputError)
    return patterns


def _walk(folder: Path, above: str, ignore: list[str]) -> Iterator[tuple[str, Path]]:
    """Everything below a folder but folders, by its path."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as failure:
        raise InputError(
            f"the folder {folder} cannot be read: {failure.strerror}",
            remedy="make it readable, or leave it out with `ignore`",
        ) from failure
    for entry in entries:
        path = f"{above}{entry.name}"
        if entry.name in ALWAYS_LEFT or any(_fits(path, pattern) for pattern in ignore):
            continue
        if entry.is_dir(follow_symlinks=False):
            # An image that was built in the project's folder is no part of the project.
            if Path(entry.path + KIT).is_dir():
                continue
            yield from _walk(Path(entry.path), f"{path}/", ignore)
        else:
            yield path, Path(entry.path)


def _fits(path: str, pattern: str) -> bool:
    plain = pattern.strip("/")
    return fnmatchcase(path, plain) or fnmatchcase(path.rpartition("/")[2], plain)


def _source(place: Path, top: Path, path: str, said: str) -> Path:
    """The regular file that something is, or links to."""
    if why := next(filter(None, map(wrong_name, path.split("/"))), ""):
        raise InputError(f"{path!a} cannot be copied: {why}", remedy="rename it, or name it in `ignore`")
    found = Path(os.path.realpath(place))
    _check_inside(found, top, said)
    _check_regular(found, said)
    return found


def _check_inside(found: Path, top: Path, said: str) -> None:
    if not found.is_relative_to(top):
        raise InputError(
            f"{said!r} leads out of the folder of the stack's file, {top}",
            expected="a path in that folder, not a link out of it",
            remedy="put the files there",
        )


def _check_regular(found: Path, said: str) -> None:
    try:
        mode = found.lstat().st_mode
    except OSError as failure:
        missing = isinstance(failure, FileNotFoundError)
        what = "is a link to something that is not there" if missing else f"cannot be read: {failure.strerror}"
        raise InputError(f"{said!r} {what}", remedy="remove it, or name it in `ignore`") from failure
    if not stat.S_ISREG(mode):
        what = "a link to a folder" if stat.S_ISDIR(mode) else "a device, a named pipe or a socket"
        raise InputError(f"{said!r} is {what}, not a file", remedy="remove it, or name it in `ignore`")


def _hashed(path: str, file: Path) -> TreeFile:
    try:
        digest, count = hash_file(file)
        executable = bool(file.stat().st_mode & stat.S_IXUSR)
    except OSError as failure:
        raise InputError(f"{file} cannot be read: {failure.strerror}") from failure
    return TreeFile(path, digest, executable, file, count)
