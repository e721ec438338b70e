"""Explanations as records and as text; and their data: a plan, all that is made from it, and the files it is from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.project import CONDA
from hpcgen.core.config.provenance import Fact, facts_of, shown_value
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import HpcgenError, Position, Problems
from hpcgen.core.model.fields import Digest, Record, Source
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.project import BLOCK, PackageFile
from hpcgen.core.support.traced import Subject, subjects_of
from hpcgen.launch.script import job_script
from hpcgen.launch.start import Start, start
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from hpcgen.recipe.parts import PlannedPart, parts_of
from hpcgen.recipe.stages import Assembly

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.record import ArtifactOrigin


class ExplainCase:
    """A plan with what is made of it, each worked out when somebody asks.

    site, stack: what profile and recipe are called here, where that is not what the plan calls them.
    lock: what pins the plan, if something does.
    artifacts: of an image, the blocks that were compiled before it.
    """

    def __init__(
        self,
        plan: Plan,
        catalog: Catalog,
        lock: Lock | None = None,
        site: str | None = None,
        stack: str | None = None,
        artifacts: Mapping[str, ArtifactOrigin] | None = None,
    ) -> None:
        self.plan = plan
        self.catalog = catalog
        self.lock = lock
        self.artifacts = artifacts or {}
        self._site = site or plan.site.name
        self._stack = stack or plan.stack.name

    @cached_property
    def parts(self) -> list[PlannedPart]:
        """The plan's blocks with all that their methods are given."""
        return parts_of(self.plan, self.catalog, self.lock.pins if self.lock is not None else None).parts

    @cached_property
    def assembly(self) -> Assembly:
        """Both stages of the image."""
        if self.lock is None:
            return assemble(self.plan, self.catalog)
        return assemble(self.plan, self.catalog, self.lock.pins, self.lock.content)

    @cached_property
    def start(self) -> Start:
        """How the job is started."""
        return start(self.plan, self.assembly.final.environment)

    @cached_property
    def files(self) -> dict[str, str]:
        """The files of the kit whose lines know what they are of, by name."""
        form = format_for(self.plan.format)
        name, job = job_script(self.plan, self.assembly.final.environment)
        recipe = form.recipe(self.plan, self.assembly).text
        return {form.recipe_file: recipe, name: job, "selftest.sh": self.assembly.selftest}

    @cached_property
    def subjects(self) -> dict[Subject, str]:
        """Everything that has a line of its own in one of them, with the first such line."""
        found: dict[Subject, str] = {}
        for text in self.files.values():
            lines = text.splitlines()
            for number, subject in sorted(subjects_of(text).items()):
                found.setdefault(subject, lines[number].strip())
        return found

    # the files that it was made of

    @cached_property
    def asked_files(self) -> AskedFiles:
        """Files of the user's project, as far as they are here."""
        return AskedFiles(self.plan, self.catalog, self.stack_document)

    @cached_property
    def site_document(self) -> Document | None:
        """The profile, if it is here."""
        try:
            return self.catalog.site_document(self._site)
        except HpcgenError:
            return None

    @cached_property
    def stack_document(self) -> Document | None:
        """The recipe, if it is here."""
        try:
            return self.catalog.stack_document(self._stack)
        except HpcgenError:
            return None

    @cached_property
    def facts(self) -> dict[str, Fact]:
        """The facts of the profile, by path; a list is one."""
        return {fact.path: fact for fact in facts_of(self.site_document)} if self.site_document is not None else {}

    def fact(self, path: str, what: str = "") -> Ground:
        """The value of the plan's site at a path, with its place in the profile here.

        ``what``: more words, such as what follows from it.
        """
        path = path.replace("*", self.plan.partition)
        value = value_at(msgspec.to_builtins(self.plan.site), path)
        shown = f"{path}: {shown_value(value)}" if value is not None else f"{path}: the default"
        nearest = path
        while nearest and nearest not in self.facts:
            nearest = nearest.rpartition(".")[0]
        below = [fact for name, fact in self.facts.items() if name.startswith(f"{path}.")]
        fact = self.facts.get(nearest) or (below[0] if below else None)
        text = f"{shown}; {what}" if what else shown
        if fact is None or (value is None and not below):
            return Ground(kind="site", text=text)
        assert self.site_document is not None
        where = place(self.site_document.position(_steps(path)))
        return Ground(kind="site", text=text, place=where, source=fact.source)

    def said_by_stack(self, path: str, what: str = "") -> Ground:
        """The value of the plan's stack at a path."""
        value = value_at(msgspec.to_builtins(self.plan.stack), path)
        text = f"{self.plan.stack.name}: {path}: {shown_value(value)}"
        document, steps = self.stack_document, _steps(path)
        there = document is not None and (document.has(path.split(".")) or value_at(document.data, path) is not None)
        where = place(document.position(steps)) if there and document is not None else ""
        return Ground(kind="stack", text=f"{text}; {what}" if what else text, place=where)

    def option_words(self, block: str, option: str) -> list[str]:
        """The words of a block's option that is a list; none where the plan has no such block."""
        planned = self.plan.block(block)
        value = planned.options.get(option) if planned is not None else None
        return [str(word) for word in value] if isinstance(value, list) else []

    def said_in_list(self, block: str, option: str, number: int, otherwise: str = "") -> Ground:
        """The origin of a word of such an option: a line of the stack, or the command line.

        ``otherwise``: an ``--add`` that can have done so.
        """
        path, setting = f"blocks.{block}.options.{option}.{number}", f"{block}.{option}"
        if setting in self.plan.settings:
            return Ground(kind="command", text=f"--set {setting}={self.plan.settings[setting]}")
        if otherwise and self.stack_document is not None and value_at(self.stack_document.data, path) is None:
            return Ground(kind="command", text=otherwise)
        return self.said_by_stack(path)

    def method(self, block: str, name: str, what: str) -> Ground:
        """A statement of a block's method, with the place of the method."""
        code = inspect.unwrap(getattr(self.catalog.block(block), name)).__code__
        path = Path(code.co_filename)
        package = Path(__file__).parents[2]
        shown = f"hpcgen/{path.relative_to(package)}" if path.is_relative_to(package) else self.catalog.shown(path)
        return Ground(kind="block", text=what, place=f"{shown}:{code.co_firstlineno}")

    def release(self, block: str, version: str, *below: str) -> str:
        """The file and line of a row of a release table, or of something in it; "" where there is none."""
        for document in self.catalog.release_documents(block):
            if document.has(["releases", version]):
                steps = ["releases", version, *below]
                return place(document.position(steps if document.has(steps) else steps[:2], key=True))
        return ""


def parts_in(case: ExplainCase, stage: str) -> list[PlannedPart]:
    """The blocks that a stage has."""
    return [part for part in case.parts if stage == "builder" or not part.planned.build_only]


def place(position: Any) -> str:
    """A file and a line, without the column."""
    return f"{position.file}:{position.line}" if position.line else str(position)


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split(".")]


def value_at(data: Any, path: str) -> Any:
    """The value in plain data at a path of words with dots; None if there is none."""
    for step in path.split("."):
        if isinstance(data, list) and step.isdigit() and int(step) < len(data):
            data = data[int(step)]
        elif isinstance(data, dict) and step in data:
            data = data[step]
        else:
            return None
    return data


# The files of a user's project that asked for packages, as they lie here, if they are still those of the plan.


class _Read(Protocol):
    """A file that was read, with the sha256 of each that belongs to it."""

    @property
    def read(self) -> dict[str, Digest]: ...


F = TypeVar("F", bound=_Read)


class AskedFiles:
    """Facts of the project's files that the plan does not have; nothing without the files.

    ``document``: the stack's file, if it is here; without one, paths are from the present folder.
    """

    def __init__(self, plan: Plan, catalog: Catalog, document: Document | None) -> None:
        self._plan, self._catalog, self._document = plan, catalog, document

    @cached_property
    def python(self) -> list[PackageFile]:
        """Files of Python packages."""
        known = self._plan.project.files if self._plan.project is not None else {}
        return self._same(BLOCK, self._catalog.project.packages, known)

    @cached_property
    def conda(self) -> list[CondaFile]:
        """Files of conda packages."""
        known = self._plan.conda.files if self._plan.conda is not None else {}
        return self._same(CONDA, self._catalog.project.conda, known)

    @cached_property
    def apt(self) -> dict[str, Position]:
        """Names in apt.txt beside the stack, which `hpcgen init` takes the option of the block from."""
        from hpcgen.readers.apt_txt import read_apt
        from hpcgen.readers.folder import ProjectFolder

        if self._document is None or self._document.file_of(["blocks"]) is None:
            return {}
        folder = ProjectFolder(self._catalog.project.folder(self._document, "os_packages"))
        try:
            return {each.text: each.where for each in read_apt(folder, "apt.txt", Problems())}
        except HpcgenError:
            return {}

    def shown(self, origin: str, block: str = BLOCK) -> str:
        """A file and line of the project, relative to the present folder."""
        return str(self._catalog.project.folder(self._document, block) / origin)

    def _same(
        self,
        block: str,
        read: Callable[[Document | None, Sequence[str]], list[F]],
        known: Mapping[str, Digest],
    ) -> list[F]:
        """Those that have not changed since the plan was made."""
        planned = self._plan.block(block)
        names = planned.options.get("files") if planned is not None else None
        if not isinstance(names, list) or not names or not known:
            return []
        try:
            files = read(self._document, [str(name) for name in names])
        except HpcgenError:
            return []
        return files if {path: digest for each in files for path, digest in each.read.items()} == known else []


GroundKind = Literal["site", "stack", "file", "command", "block", "release", "job", "lock", "image", "rule"]

_TITLES: dict[GroundKind, str] = {
    "site": "site profile",
    "stack": "stack",
    "file": "project file",
    "command": "asked for",
    "block": "block",
    "release": "release table",
    "job": "job",
    "lock": "lock",
    "image": "image",
    "rule": "rule",
}


class Ground(Record, frozen=True):
    """One reason.

    ``kind``: who says it. ``text``: what it says. ``place``: the file and line, as far as they are known here.
    ``source``: what stands for a fact of the profile.
    """

    kind: GroundKind
    text: str
    place: str = ""
    source: Source | None = None


class Refused(Record, frozen=True):
    """A refused alternative, with the reason."""

    what: str
    why: str
    place: str = ""


class Explanation(Record, frozen=True):
    """One subject of a kit: its kind and value, the reasons, refused alternatives, and what to ask next."""

    kind: str
    name: str
    value: str = ""
    stage: str = ""
    grounds: list[Ground] = []
    refused: list[Refused] = []
    see: list[str] = []


def explanation_text(each: Explanation) -> str:
    """The explanation for the user, over several lines."""
    stage = f", {each.stage} stage" if each.stage else ""
    name = f" {each.name}" if each.name else ""
    value = f" = {each.value}" if each.value else ""
    lines = [f"{each.kind}{name}{value}{stage}", *_grounds(each.grounds)]
    if each.refused:
        lines.append("  not taken:")
        lines += [f"    {other.what}: {other.why}{_at(other.place)}" for other in each.refused]
    if each.see:
        lines.append(f"  see also: {', '.join(each.see)}")
    return "\n".join(lines)


def _grounds(grounds: Sequence[Ground]) -> Iterator[str]:
    width = max((len(_TITLES[ground.kind]) for ground in grounds), default=0)
    for ground in grounds:
        yield f"  {_TITLES[ground.kind].ljust(width)}  {ground.text}{_at(ground.place)}"
        if ground.source is not None:
            source = ground.source
            verified = "verified" if source.verified == "yes" else "not verified"
            note = f"; {source.note}" if source.note else ""
            yield f"  {' ' * width}  source: {source.from_} (checked {source.checked}, {verified}{note})"


def _at(place: str) -> str:
    return f"  [{place}]" if place else ""
