"""A machine to look at: this one, or a tree that was captured of another.

Probes ask nothing else than this: files, folders, links, what a fixed list of programs prints, and some variables.
Nothing is ever written, nothing needs rights, and a captured tree runs no program at all.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TypeVar

from hpcgen.core.errors import InputError
from hpcgen.core.support.file_formats import CAPTURE
from hpcgen.machine.detect.commands import COMMANDS, SLURM_CONF, ProgramOutput, ask, not_installed
from hpcgen.machine.detect.tree import MAX_TEXT, Blob, MachineTree

_ENVIRONMENT = """
    USER LMOD_CMD MODULESHOME MODULEPATH LOADEDMODULES I_MPI_ROOT MPI_HOME MPI_ROOT MPICH_DIR CRAY_MPICH_DIR
    CRAY_MPICH_VERSION EBROOTOPENMPI EBROOTIMPI EBROOTPSMPI PATH LD_LIBRARY_PATH SLURM_CONF http_proxy https_proxy
    no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_CONFIG_FILE XDG_CONFIG_HOME VIRTUAL_ENV HOME
    CH_IMAGE_STORAGE CONTAINERS_STORAGE_CONF
"""
ENVIRONMENT = tuple(_ENVIRONMENT.split())
"""Variables that probes may read."""

M = TypeVar("M", bound="Machine")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class Machine(MachineTree):
    """A tree of files with the programs and variables that go with it. Made by :meth:`live` or :meth:`captured`."""

    def __init__(self, root: str, environment: Mapping[str, str], commands: MachineTree | None = None) -> None:
        super().__init__(root)
        self.environment = {name: environment[name] for name in ENVIRONMENT if environment.get(name)}
        self._commands = commands
        self.answers: dict[str, ProgramOutput] = {}

    @classmethod
    def live(cls: type[M]) -> M:
        """The machine that hpcgen runs on, with what its commands say now."""
        environment = dict(os.environ)
        try:
            environment["USER"] = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            environment.setdefault("USER", str(os.geteuid()))
        return cls("/", environment)

    @classmethod
    def captured(cls: type[M], folder: Path) -> M:
        """A tree that ``hpcgen site capture`` wrote: ``root/``, ``commands/`` and ``environment``.

        InputError: it is no such tree, or a newer hpcgen wrote it.
        """
        root = folder / "root"
        if root.is_symlink() or not root.is_dir():
            raise InputError(
                f"{folder} is not a captured tree: it has no folder root",
                expected="a folder that `hpcgen site capture` wrote, with root/ and commands/ in it",
            )
        # What lies beside the root is read through a tree as well: a link there could lead anywhere.
        beside = MachineTree(str(folder))
        numbers = _numbers(beside)
        CAPTURE.check(numbers, str(folder))
        if unknown := [key for key in numbers if key not in (CAPTURE.field, "hpcgen")]:
            raise CAPTURE.not_understood(
                numbers, str(folder), f"capture.json has an unknown field {ascii(unknown[0])[:60]}"
            )
        found = (_ASSIGNMENT.fullmatch(line) for line in (beside.text("/environment") or "").split("\n"))
        return cls(str(root), {match[1]: match[2] for match in found if match}, beside)

    @property
    def is_live(self) -> bool:
        """Whether this is the machine that the program runs on."""
        return self._commands is None

    def output(self, name: str) -> ProgramOutput:
        """What a program of the list prints; asked once."""
        if name not in self.answers:
            self.answers[name] = self._ask(name) if self._commands is None else self._captured(self._commands, name)
        return self.answers[name]

    def how(self, name: str) -> str:
        """The command for people, such as ``srun --mpi=list``."""
        if name == "module-avail":
            return "module -t avail"
        return " ".join(word for word in COMMANDS[name].argv if not word.startswith("{"))

    def program(self, name: str) -> str | None:
        """Where a program is found on PATH."""
        folders = (folder for folder in self.environment.get("PATH", "").split(":") if folder.startswith("/"))
        return next((path for folder in folders if self.is_file(path := f"{folder.rstrip('/')}/{name}")), None)

    def module_init(self) -> str | None:
        """The script that sets up the module command in bash, where there is one."""
        candidates = []
        if lmod := self.environment.get("LMOD_CMD"):
            candidates.append(f"{PurePosixPath(lmod).parent.parent}/init/bash")
        if home := self.environment.get("MODULESHOME"):
            candidates.append(f"{home}/init/bash")
        candidates += ["/usr/share/lmod/lmod/init/bash", "/usr/share/Modules/init/bash", "/usr/share/modules/init/bash"]
        return next((path for path in candidates if self.is_file(path)), None)

    def _ask(self, name: str) -> ProgramOutput:
        command = COMMANDS[name]
        if command.slurm and not any(map(self.is_file, (self.environment.get("SLURM_CONF", ""), *SLURM_CONF))):
            return ProgramOutput(None, "there is no slurm.conf here, and SLURM_CONF names none")
        init = ""
        if name == "module-avail":
            init = self.module_init() or ""
            if not init or not self.environment.get("MODULEPATH"):
                return ProgramOutput(None, "no module system is set up here (MODULEPATH and its init script)")
        # Lmod writes a cache into the user's home where building it took longer than this (Cache.lua of Lmod 8.6).
        quiet = {"LC_ALL": "C", "LMOD_PAGER": "none", "LMOD_SHORT_TIME": "86400"}
        environment = {**os.environ, **quiet, "USER": self.environment["USER"]}
        return ask(command, environment, {"node": os.uname().nodename.split(".")[0], "init": init})

    def _captured(self, tree: MachineTree, name: str) -> ProgramOutput:
        text = tree.text(f"/commands/{name}", 4 * 1024 * 1024)
        if text is not None:
            return ProgramOutput(text)
        why = tree.text(f"/commands/{name}.failed", 4096)
        if why is not None:
            return ProgramOutput(None, why.split("\n", 1)[0])
        return not_installed(COMMANDS[name].argv[0])


def _numbers(tree: MachineTree) -> dict[str, object]:
    """What a captured tree says of itself; nothing if it is of a release that wrote no number."""
    text = tree.text("/capture.json", 4096)
    try:
        said = json.loads(text) if text is not None else {}
        return said if isinstance(said, dict) else {CAPTURE.field: "no mapping"}
    except (ValueError, RecursionError):
        return {CAPTURE.field: "no JSON"}


class Recorder(Machine):
    """Made like a machine; afterwards it knows paths without links, by what was done with them.

    ``links``: what links said. ``existing``: what was found to be there. ``texts``: files that were read. ``blobs``:
    files that were searched. ``answers``: what programs said.
    """

    def __init__(self, root: str, environment: Mapping[str, str], commands: MachineTree | None = None) -> None:
        super().__init__(root, environment, commands)
        self.links: dict[str, str] = {}
        self.existing: set[str] = set()
        self.texts: dict[str, str] = {}
        self.blobs: set[str] = set()

    def trace(self, path: str) -> tuple[str, list[str]] | None:
        found = super().trace(path)
        if found is not None:
            self.existing.add(found[0])
            for link in found[1]:
                self.links[link] = self.link(link) or ""
        return found

    def names(self, path: str, pattern: str = "*") -> list[str]:
        """As a machine does; each name is taken for there."""
        found = super().names(path, pattern)
        if (real := self.real(path)) is not None:
            for name in found:
                here = f"{real.rstrip('/')}/{name}"
                target = self.link(here)
                if target is not None:
                    self.links[here] = target
                else:
                    self.existing.add(here)
        return found

    def text(self, path: str, limit: int = MAX_TEXT) -> str | None:
        found = super().text(path, limit)
        real = self.real(path)
        if found is not None and real is not None:
            self.texts[real] = found
        return found

    @contextmanager
    def blob(self, path: str) -> Iterator[Blob | None]:
        with super().blob(path) as blob:
            real = self.real(path)
            if blob is not None and real is not None:
                self.blobs.add(real)
            yield blob
