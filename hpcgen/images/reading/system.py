"""Distribution, processor and C library."""

from __future__ import annotations

import re
import shlex

from hpcgen.core.model.image_facts import ImageSoftware, ImageSystem, Shown
from hpcgen.images.reading.elf_parts import ProgramFacts, program_facts, text_in
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage, text_of
from hpcgen.images.reading.owners import Owners, first_said, in_order, said_by
from hpcgen.machine.detect.tree import Blob

_FOLDER = r"(?:/usr)?/lib(?:64|32)?(?:/[a-z0-9_]+-linux-[a-z0-9]+)?"
_NEWEST = re.compile(rb"\0GLIBCXX_(\d{1,2}\.\d{1,2}\.\d{1,3})(?=\0)")


def _newest_cxx(blob: Blob) -> str | None:
    """The newest of the versions that stand among the names of symbols."""
    found = _NEWEST.findall(blob.at(0, min(blob.size, 64 * 1024 * 1024)))
    return max((text.decode() for text in found), key=lambda text: [int(n) for n in text.split(".")], default=None)


RELEASE = Look(r"/etc/os-release|/usr/lib/os-release", text_of)
GLIBC = Look(
    rf"{_FOLDER}/libc\.so\.6",
    text_in(rb"GNU C Library [^\n\0]{0,200}release version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)"),
    LIBRARY,
    elf=True,
)
MUSL = Look(rf"{_FOLDER}/ld-musl-[a-z0-9_]+\.so\.1", text_in(rb"\0(1\.\d{1,2}\.\d{1,3})\0"), LIBRARY, elf=True)
CXX = Look(rf"{_FOLDER}/libstdc\+\+\.so\.6[0-9.]*", _newest_cxx, LIBRARY, elf=True)
SHELL = Look(r"(?:/usr)?/bin/sh", program_facts, LIBRARY, elf=True)
PROGRAMS = Look(
    rf"{_FOLDER}/(?:libc\.so\.6|ld-[a-z0-9_.-]+|libstdc\+\+\.so\.6[0-9.]*)", program_facts, LIBRARY, elf=True
)
LOOKS = (RELEASE, GLIBC, MUSL, CXX, SHELL, PROGRAMS)


def system_facts(view: SeenImage, owners: Owners) -> ImageSystem:
    """What os-release, the shell and the C library say."""
    told = view.one(RELEASE)
    file, fields = (told[0], _fields(told[1])) if told is not None else ("", {})
    shell = view.one(SHELL)
    programs: dict[str, ProgramFacts] = {**view.found(PROGRAMS), **view.found(SHELL)}
    machine = shell or next(iter(programs.items()), None)
    cxx = view.one(CXX)
    return ImageSystem(
        distribution=said_by(fields.get("ID"), file),
        release=said_by(fields.get("VERSION_ID"), file),
        title=said_by(fields.get("PRETTY_NAME"), file),
        architecture=Shown(machine[1].machine, machine[0]) if machine is not None else None,
        c_library=_c_library(view, owners, shell[1].loader if shell is not None else ""),
        cxx=Shown(f"GLIBCXX_{cxx[1]}", cxx[0]) if cxx is not None else None,
        cpu=list(in_order(Shown(each.level, path) for path, each in programs.items() if each.level)),
    )


def _fields(text: str) -> dict[str, str]:
    """The assignments of os-release(5)."""
    found = {}
    for name, value in re.findall(r"^([A-Z_]+)=(.{0,500})$", text, re.MULTILINE):
        try:
            found[name] = "".join(shlex.split(value)) if value[:1] in ("'", '"') else value.strip()
        except ValueError:
            continue
    return {name: value for name, value in found.items() if value.isprintable()}


def _c_library(view: SeenImage, owners: Owners, loader: str) -> ImageSoftware | None:
    """That which the shell asks for; without one, the only one that is there."""
    families = {"glibc": view.named(GLIBC), "musl": view.named(MUSL)}
    there = [family for family, files in families.items() if files]
    family = ("musl" if "musl" in loader else "glibc") if loader else there[0] if len(there) == 1 else ""
    if not family or not families[family]:
        return None
    look = GLIBC if family == "glibc" else MUSL
    told = view.one(look)
    file = told[0] if told is not None else next(iter(families[family].values()))
    by_package = owners.release("musl", file) if family == "musl" else None
    return ImageSoftware(
        name=family, file=file, version=first_said(said_by(told[1], file) if told else None, by_package)
    )
