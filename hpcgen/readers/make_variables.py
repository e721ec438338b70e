"""The variables of a Makefile, and those that make has to be given where the file suits another machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpcgen.core.model.own_project import CompilerFlag, FileWord
from hpcgen.readers.make_compilers import (
    COMPILER,
    FOR_GPUS,
    MPI_WRAPPER,
    compiler_here,
    gnu_configuration,
    language_of,
)
from hpcgen.readers.make_text import USED, for_gnu, gnu_row

_ON = {"no": "yes", "0": "1", "off": "on", "OFF": "ON", "false": "true", "FALSE": "TRUE", "NO": "YES", "n": "y"}


class Assignments:
    """What a Makefile assigns.

    ``set_at``: how and where each variable is set, ``commented``: what comments have for it, ``open``: variables whose
    value is not sure, ``commands``: those that start a command, ``asked``: those that a condition asks for,
    ``switches``: those that turn MPI on.
    """

    def __init__(self) -> None:
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpu_block = ""
        self.values: dict[str, str] = {}
        self.set_at: dict[str, tuple[str, FileWord]] = {}
        self.commented: dict[str, list[FileWord]] = {}
        self.switches: dict[str, FileWord] = {}
        self.stops: list[FileWord] = []
        self.commands: set[str] = set()
        self.asked: set[str] = set()
        self.open: set[str] = set()

    def on_the_command_line(self, by_sources: bool = False) -> dict[str, FileWord]:
        """Variables for make, as the file's own value gives way to the environment or suits another machine.

        ``by_sources``: only sources say that MPI is required, so that the compilers of the file do not have it.
        """
        found: dict[str, FileWord] = {}
        assigned = {name: value for name, (_, value) in self.set_at.items()}
        if self.mpi is None:
            self._switch_on()
        over_mpi = self.mpi is not None or bool(self.switches)
        for name, (how, value) in self.set_at.items():
            if match := COMPILER.fullmatch(name):
                if how == "?=" and MPI_WRAPPER.search(value.text):
                    found[name] = value
                elif (
                    put := compiler_here(match[2], value.text, over_mpi, by_sources, self.fortran is not None)
                ) is not None:
                    found[name] = FileWord(put, value.where)
            elif over_mpi and re.search(r"(^|_)MPI($|_)", name) and value.text in _ON and "NO" not in name.split("_"):
                found[name] = FileWord(_ON[value.text], value.where)
        return {
            **found,
            **gnu_row(self.values, assigned),
            **self._for_gnu(assigned),
            **self.switches,
            **self._for_cpus(),
        }

    def with_flags(self, weak: dict[str, FileWord], flags: Sequence[CompilerFlag]) -> dict[str, FileWord]:
        """Variables for make in which compilers have these options; those that a condition asks stay as they are."""
        found = dict(weak)
        for flag in flags:
            for name, (_, value) in self.set_at.items():
                text = found.get(name, value).text
                command = name in self.commands or COMPILER.fullmatch(name)
                if command and name not in self.asked and language_of(text) == flag.language:
                    found[name] = FileWord(f"{text} {flag.word}", value.where)
        return found

    def _for_gnu(self, assigned: dict[str, FileWord]) -> dict[str, FileWord]:
        """Flags that the file has in comments for GNU compilers, or its own without those of other compilers."""
        closed = {name: value for name, value in assigned.items() if name not in self.open}
        taken = {name: for_gnu(name, value, self.commented.get(name, [])) for name, value in closed.items()}
        return {name: put for name, put in taken.items() if put is not None}

    def _for_cpus(self) -> dict[str, FileWord]:
        """The configuration in comments for GNU's compilers and MPI, where that of the file is for GPUs."""
        assigned = {name: value for name, (_, value) in self.set_at.items()}
        gpus = [value for name, value in assigned.items() if name not in self.open and FOR_GPUS.search(value.text)]
        found = gnu_configuration(assigned, self.commented) if gpus and not self.gpu_block else {}
        if gpus and not found and not self.gpu_block:
            text = f"{gpus[0].text} is for GPUs: `build:` has to set what is for CPUs, or a block to bring the compiler"
            self.stops.append(FileWord(text, gpus[0].where))
        return found

    def _switch_on(self) -> None:
        """Switches that are off, and alternatives in comments, that say MPI, of a file that is serial as it stands."""
        for name, (_, value) in self.set_at.items():
            if re.search(r"(^|_)MPI($|_)", name) and value.text in _ON and "NO" not in name.split("_"):
                self.switches[name] = FileWord(_ON[value.text], value.where)
        for name, others in self.commented.items():
            if name not in self.set_at:
                continue
            for each in others:
                compiler = COMPILER.fullmatch(name) and MPI_WRAPPER.match(each.text)
                if compiler or (re.search(r"(^|_)MPI($|_)", name) and re.match(r"-D\w*MPI|yes|1|on", each.text, re.I)):
                    self.switches.setdefault(name, each)
                    break

    def value(self, text: str) -> str:
        """A text with the variables that are known."""
        for _ in range(6):
            text = USED.sub(lambda match: self.values.get(match[1], match[0]), text)[:4000]
        return text.strip()
