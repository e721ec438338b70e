"""One image as another kind: podman's or docker's store, OCI archive, SIF, squashfs, folder, tar file, ch-image.

The output appears under its name when it is whole. Variables and labels go with it, wherever the kind can hold them.
"""

from __future__ import annotations

import heapq
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import BuildFailedError, HpcgenError, InputError, MissingToolError, OutputError
from hpcgen.core.model.fields import EnvName
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.quoting import sh
from hpcgen.images import roots
from hpcgen.images.folder import COPY_AGAIN, SHELL, machine_of
from hpcgen.images.kinds import KINDS, every_kind, kind_for
from hpcgen.images.kinds.base import ConversionRule, ConversionStep, ConversionTask
from hpcgen.images.marks import ENVIRONMENT, Marks
from hpcgen.images.recorded import LABEL, StoredKit, stored_kit
from hpcgen.images.reference import ImageReference, stored_reference

_TAIL = 20


def parse_output(text: str) -> ImageReference:
    """What kind an output is to be: KIND:NAME says it, else the name's ending; another path is a folder."""
    kind, _, rest = text.partition(":")
    named = kind_for(kind) if kind in KINDS and rest else None
    if named is not None and named.stored:
        return stored_reference(kind, rest)
    path = Path(os.path.normpath(Path.cwd() / Path(rest if named else text).expanduser()))
    by_ending = (each.name for each in every_kind() if each.endings and path.name.endswith(each.endings))
    return ImageReference(named.name if named is not None else next(by_ending, "directory"), str(path))


class ConversionPlan(msgspec.Struct, frozen=True):
    """A conversion that is ready to be done: its steps, where it works, and what its output is."""

    steps: list[ConversionStep]
    made: str
    output: ImageReference


def marks_of(image: ImageReference) -> Marks:
    """Variables and labels of an image: its own, and those of its record where it has one; and its machine."""
    environment, labels = own_marks(image)
    machine = ""
    try:
        machine = machine_of(image.read([SHELL]).get(SHELL, b""))
        kit = stored_kit(image)
    except (InputError, MissingToolError):
        return Marks(environment, labels, machine)
    recorded = kit.lock.get("environment")
    try:
        environment |= record_from(recorded or {}, dict[EnvName, str])
    except msgspec.ValidationError as failure:
        raise InputError(f"the lock in {image} cannot be parsed: {failure}", remedy=COPY_AGAIN) from failure
    return Marks(environment, {**_labels_of(kit), **labels}, machine)


def own_marks(image: ImageReference) -> tuple[dict[str, str], dict[str, str]]:
    """Variables and labels that an image has beside a record of hpcgen's, as far as they can be set."""
    if (beside := image.image_kind.settings(image.name)) is not None:
        return _proper(beside.environment.items()), dict(beside.labels)
    places = ["/" + ENVIRONMENT, "/.singularity.d/labels.json"]
    found = image.read(places)
    lines = found.get(places[0], b"").decode("utf-8", "replace").splitlines()
    try:
        labels = msgspec.json.decode(found.get(places[1], b"{}"))
    except (ValueError, RecursionError):
        labels = {}
    return _proper(line.partition("=")[::2] for line in lines if "=" in line), _texts(labels)


def _proper(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in pairs if name.isidentifier() and value.isprintable()}


def _texts(labels: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}


def _labels_of(kit: StoredKit) -> dict[str, str]:
    """The labels that a docker build would have given, where the kind had no room for them."""
    kept = {name: kit.files[name].text.rstrip("\n") for name in ("plan.json", "hpcgen.lock") if name in kit.files}
    labels = {f"{LABEL}kit.{name}": text for name, text in kept.items()}
    for name in ("content", "site", "stack", "partition"):
        if isinstance(value := kit.lock.get(name), str):
            labels[f"{LABEL}{name}"] = value
    return labels | ({f"{LABEL}version": str(kit.lock["hpcgen"])} if "hpcgen" in kit.lock else {})


def rows_for(image: ImageReference, output: ImageReference) -> list[ConversionRule]:
    """The conversions to do, one after the other.

    InputError: it is of this kind already. MissingToolError: a program is not installed here.
    """
    start = image.image_kind.form(image.name)
    if image.kind == output.kind and start == output.kind:
        raise InputError(f"{image} is already of the kind {image.kind}", remedy="copy it as it is")

    def have(program: str) -> bool:
        return shutil.which(program) is not None

    rows = chain(start, output.kind, have)
    if rows is not None:
        return rows
    lacking = missing(start, output.kind, have)
    if not lacking:
        raise InputError(
            f"no known conversion from {image.kind} to {output.kind}",
            remedy="convert in two steps, through an OCI archive or a folder, or build in that format",
        )
    raise MissingToolError(
        f"{' and '.join(lacking)} is not on PATH; it is needed to convert {image.kind} to {output.kind}",
        remedy=f"install {' and '.join(lacking)}, or convert on a machine that has it",
    )


def planned(
    image: ImageReference, output: ImageReference, work: Path, marks: Marks, force: bool = False
) -> ConversionPlan:
    """All steps of a conversion that works in the folder ``work``; with ``force`` the output may be there already."""
    rows = [row for row in rows_for(image, output) if row.cost]
    token = secrets.token_hex(4)
    architecture = marks.architecture or PLATFORMS.get(platform.machine(), platform.machine())
    steps: list[ConversionStep] = []
    place, passing = image.image_kind.source(image.name) if rows else image.name, None
    for number, row in enumerate(rows, 1):
        last = number == len(rows)
        stored = row.end in KINDS and kind_for(row.end).stored
        if stored:
            target = output.image_kind.target(output.name) if last else f"localhost/hpcgen-convert:{token}"
        else:
            ending = next(iter(kind_for(row.end).endings), "") if row.end in KINDS else ""
            target = str(work / f"{number}{ending}")
        task = ConversionTask(place, target, marks, token, last, architecture, replaces=last and force)
        steps += row.steps(task)
        if passing is not None:
            steps.append(_removal(passing))
        place, passing = target, None if stored else Path(target)
    if output.kind == "tar" and not output.name.endswith(".tar"):
        packed = work / "packed.tar.gz"
        loose = Path(place)
        steps.append(ConversionStep("compress it with gzip", action=lambda: roots.compress(loose, packed)))
        place = str(packed)
    return ConversionPlan(steps, place, output)


def _removal(path: Path) -> ConversionStep:
    from hpcgen.core.support.placing import remove

    def action() -> None:
        remove(path)

    return ConversionStep(action=action)


def shown(plan: ConversionPlan) -> list[str]:
    """The steps for people: commands as a shell reads them, and what hpcgen does itself as comments."""
    lines = []
    for step in plan.steps:
        if step.argv:
            lines.append(" ".join(sh(word) for word in step.argv))
        elif step.about:
            lines.append(f"# hpcgen: {step.about}")
    if not plan.output.image_kind.stored:
        lines.append(" ".join(("mv", sh(plan.made), sh(plan.output.name))))
    return lines


def check_output(output: ImageReference, force: bool) -> None:
    """OutputError if the output already exists and may not be replaced, or has no folder to lie in."""
    if output.image_kind.stored:
        if not force and output.image_kind.is_stored(output.name):
            raise OutputError(f"{output} already exists", remedy="--force replaces it")
        return
    path = Path(output.name)
    if not path.parent.is_dir():
        raise OutputError(f"cannot write {path}: there is no folder {path.parent}", remedy="make it first")
    if (path.exists() or path.is_symlink()) and not force:
        raise OutputError(f"{path} already exists", remedy="--force replaces it")


def convert(
    image: ImageReference, output: ImageReference, force: bool = False, on_step: Callable[[str], None] = lambda _: None
) -> None:
    """Do it.

    force: an image that already exists is replaced, once the new one is whole.
    on_step: told of each step before it begins.
    BuildFailedError: a program failed; nothing is left under the output's name that was not there before.
    OutputError: it already exists, or cannot be written.
    """
    check_output(output, force)
    with _work_folder(output) as work:
        plan = planned(image, output, work, marks_of(image), force)
        _run(plan, on_step)
        if not output.image_kind.stored:
            from hpcgen.core.support.placing import put_in_place
            from hpcgen.core.support.striping import stripe

            stripe(Path(plan.made))
            put_in_place(Path(plan.made), Path(output.name))


def _run(plan: ConversionPlan, on_step: Callable[[str], None]) -> None:
    undo: list[list[str]] = []
    try:
        for step, line in zip(plan.steps, _lines(plan), strict=True):
            if line:
                on_step(line)
            if step.undo:
                undo.append(step.undo)
            if step.action is not None:
                _act(step)
            else:
                _start(step)
    except BaseException:
        for argv in reversed(undo):
            _quietly(argv)
        raise


def _lines(plan: ConversionPlan) -> list[str]:
    return [" ".join(step.argv) if step.argv else step.about for step in plan.steps]


def _act(step: ConversionStep) -> None:
    assert step.action is not None
    try:
        step.action()
    except OSError as failure:
        raise OutputError(
            f"could not {step.about or 'clean up'}: {failure.strerror}", remedy="free some space, or write elsewhere"
        ) from failure


def _start(step: ConversionStep) -> None:
    from hpcgen.core.support.processes import stream

    tail: list[str] = []

    def keep(line: str) -> None:
        tail.append(line)
        del tail[:-_TAIL]

    status = stream(step.argv, keep)
    if status:
        said = "\n".join(f"    {line}" for line in tail)
        raise BuildFailedError(
            f"{step.argv[0]} ended with status {status}; its last lines:\n{said}",
            remedy="no image was left under the output's name; the command was " + " ".join(map(sh, step.argv)),
        )


def _quietly(argv: list[str]) -> None:
    from hpcgen.images.commands import ask

    try:
        ask(argv)
    except (HpcgenError, OSError):
        return


@contextmanager
def _work_folder(output: ImageReference) -> Iterator[Path]:
    """A hidden folder beside the output, so that the last step is a rename; for a store, a temporary one."""
    from hpcgen.core.support.leftovers import work_folder

    beside = None if output.image_kind.stored else Path(output.name).parent
    with ExitStack() as stack:
        folder = work_folder(".hpcgen-convert-", where=beside or Path(os.environ.get("TMPDIR") or "/var/tmp"))
        try:
            work, _ = stack.enter_context(folder)
        except OSError as failure:
            raise OutputError(
                f"cannot write next to {output}: {failure.strerror}",
                remedy="name an output in a folder that you may write",
            ) from failure
        yield work


# The shortest chain of single conversions that works here; the kinds of images have these, one row each.
#
# Facts of the programs: ch-convert(1) and its text (0.31), skopeo-copy(1), buildah-push(1), buildah-from(1),
# podman-save(1), Apptainer's "build" reference, unsquashfs and mksquashfs -h; each chain was run.


def every_conversion() -> list[ConversionRule]:
    """The rows of every kind, in the kinds' order."""
    return [row for kind in every_kind() for row in kind.conversions]


def chain(start: str, end: str, have: Callable[[str], bool]) -> list[ConversionRule] | None:
    """The cheapest rows that lead from one kind to the other with programs that ``have`` tells; None if none does."""
    table = every_conversion()
    waiting: list[tuple[int, list[int], str]] = [(0, [], start)]
    done: set[str] = set()
    while waiting:
        cost, taken, kind = heapq.heappop(waiting)
        if kind == end:
            return [table[number] for number in taken]
        if kind in done:
            continue
        done.add(kind)
        for number, row in enumerate(table):
            if row.start == kind and row.end not in done and all(have(program) for program in row.programs):
                heapq.heappush(waiting, (cost + row.cost, [*taken, number], row.end))
    return None


def missing(start: str, end: str, have: Callable[[str], bool]) -> list[str]:
    """The fewest programs that would have to be installed; empty if no program helps."""
    absent = sorted({program for row in every_conversion() for program in row.programs if not have(program)})
    for count in (1, 2, 3):
        for extra in combinations(absent, count):
            if chain(start, end, partial(_with, have, extra)) is not None:
                return list(extra)
    return []


def _with(have: Callable[[str], bool], extra: Sequence[str], program: str) -> bool:
    return program in extra or have(program)
