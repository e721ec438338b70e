"""What was read of an image, for people: a line for each thing, with the file that shows it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from hpcgen.cli.tables import table
from hpcgen.core.model.image_facts import ImageFacts, ImageMpi, ImageSettings, ImageSoftware, Shown
from hpcgen.core.support.units import counted, harmless, size
from hpcgen.images.reference import ImageReference

Row = tuple[str, str, str]
_FOLDERS, _WORDS = 8, 12
_KINDS = {"os": "the distribution's", "python": "Python's", "conda": "conda's"}


def shown_contents(image: ImageReference, facts: ImageFacts) -> str:
    """The whole, without what a terminal would obey."""
    rows: list[Row] = [("image", f"{image.shown or image.name} ({image.kind}, {size(image.bytes_on_disk())})", "")]
    for part in (_system(facts), _settings(facts.settings), _mpi(facts), _fabric(facts), _gpu(facts), _software(facts)):
        rows += part
    head = ["what", "value", "shown by"]
    parts = [table(head, [[harmless(cell) for cell in row] for row in rows], sys.stdout)]
    folders = [(each.folder, size(each.bytes), counted(each.files, "file")) for each in facts.folders[:_FOLDERS]]
    if folders:
        parts.append(table(["folder", "size", "files"], [list(map(harmless, row)) for row in folders], sys.stdout))
    return "\n\n".join(parts)


def _fact(name: str, shown: Shown | None) -> Iterator[Row]:
    yield (name, shown.value, shown.file) if shown is not None else (name, "unknown", "")


def _release(each: ImageSoftware) -> str:
    return f"{each.name} {each.version.value if each.version is not None else 'of unknown release'}"


def _by(each: ImageSoftware) -> str:
    return each.version.file if each.version is not None and each.version.file.startswith("/") else each.file


def _system(facts: ImageFacts) -> Iterator[Row]:
    system = facts.system
    yield from _fact("distribution", system.title or system.distribution)
    yield from _fact("processor", system.architecture)
    for level in system.cpu:
        yield "needs at least", level.value, level.file
    library = system.c_library
    yield ("C library", _release(library), _by(library)) if library is not None else ("C library", "unknown", "")
    if system.cxx is not None:
        yield "C++ library", system.cxx.value, system.cxx.file


def _settings(settings: ImageSettings) -> Iterator[Row]:
    by = ", ".join(settings.shown_by)
    for name, words in (("entry point", settings.entrypoint), ("command", settings.command), ("ports", settings.ports)):
        if words:
            yield name, " ".join(words), by
    for name, text in (("user", settings.user), ("working folder", settings.folder)):
        if text:
            yield name, text, by
    if settings.environment:
        yield "variables", _some(settings.environment), by
    if not settings.shown_by:
        yield "entry point", "unknown", ""


def _some(words: Iterable[str]) -> str:
    every = list(words)
    more = f" and {len(every) - _WORDS} more" if len(every) > _WORDS else ""
    return " ".join(every[:_WORDS]) + more


def _mpi(facts: ImageFacts) -> Iterator[Row]:
    for each in facts.mpi:
        yield "MPI", _of_mpi(each), each.file
    for library in facts.pmi:
        yield "PMI", _release(library), _by(library)


def _of_mpi(each: ImageMpi) -> str:
    pmi = ", ".join(dict.fromkeys(shown.value for shown in each.pmi)) or "nothing that is known"
    return f"{_release(each)}, {each.soname}, ranks by {pmi}"


def _fabric(facts: ImageFacts) -> Iterator[Row]:
    for each in facts.fabric.libraries:
        yield "fabric", _release(each), _by(each)
    found = (("providers", facts.fabric.providers), ("UCX transports", facts.fabric.transports))
    for name, shown in (*found, ("verbs drivers", facts.fabric.verbs)):
        if shown:
            yield name, _some(each.value for each in shown), shown[0].file


def _gpu(facts: ImageFacts) -> Iterator[Row]:
    for each in facts.gpu.libraries:
        yield "GPU", _release(each), _by(each)
    for code in facts.gpu.code:
        kinds = (("", code.cubins), ("PTX ", code.ptx), ("", code.gfx))
        what = "; ".join(word + " ".join(targets) for word, targets in kinds if targets)
        yield ("GPU code for" if code.by == "code" else "listed for"), what, code.file


def _software(facts: ImageFacts) -> Iterator[Row]:
    for each in facts.python:
        yield "Python", _release(each), _by(each)
    for framework in facts.frameworks:
        built = f" {framework.built_with.value}" if framework.built_with is not None else ""
        yield "framework", f"{_release(framework)}, for {framework.variant or 'unknown'}{built}", _by(framework)
    for each in facts.openmp:
        yield "OpenMP", _release(each), _by(each)
    for each in facts.compilers:
        yield "compiler", _release(each), _by(each)
    for each in facts.jupyter:
        yield "Jupyter", _release(each) if each.version is not None else each.name, _by(each)
    for (kind, where), count in sorted(Counter((each.kind, each.where) for each in facts.packages).items()):
        yield "packages", f"{count} of {_KINDS[kind]}", where
