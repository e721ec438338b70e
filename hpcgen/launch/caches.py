"""Where the programs of a job keep their caches: what is compiled on each rank's node, what is downloaded once."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpcgen.backends.engines import Engine
from hpcgen.core.model.caches import Cache
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import FileSystem, Site
from hpcgen.core.support.quoting import Shell, expanded, line, quoted, sh
from hpcgen.core.support.templates import Template

SHARED = "HPCGEN_CACHE"
"""The variable with the folder of downloads; without it they go to ``.cache`` in the folder of the job."""
NODE = "/tmp"
"""Where a node's own files go whose profile names no other place that is seen inside. Some engines show the host's."""

FUNCTION = "own_caches"
_PASSED_ON = ("TERM", "INT", "HUP", "USR1", "USR2")
_fill = Template(Path(__file__).with_name("templates") / "caches.sh").fill


class Caches(msgspec.Struct, frozen=True):
    """Those of a job's programs.

    caches: each variable once.
    node: the folder of each node for what is compiled, as a word.
    shared: the folder for downloads, as a word; "" where the profile names none that is seen inside.
    target: for which GPU, or CPU, the node's code is compiled.
    keep: what is compiled is kept for the next job.
    """

    caches: tuple[Cache, ...]
    node: str
    shared: str
    target: str
    keep: bool = False

    def of(self, kind: str) -> list[Cache]:
        """Those of a kind, of the compiled ones what this job has use for."""
        return [cache for cache in self.caches if cache.kind == kind and (self.keep or not cache.only_kept)]

    def inherited(self) -> list[str]:
        """The variables outside that decide inside."""
        return [SHARED, *(cache.variable for cache in self.caches)]

    def words(self) -> list[Shell | str]:
        """The words before each rank's command, inside the container."""
        return ["/bin/bash", "-c", Shell(f'"$(declare -f {FUNCTION}); {FUNCTION} \\"\\$@\\""'), FUNCTION, self.node]

    def export(self) -> str:
        """The line of the job script that says where downloads go."""
        return _fill("shared", folder=quoted(self.shared)) if self.shared else ""

    def function(self) -> str:
        """The shell function that the words call."""
        users = self.of("user")
        downloads = [f"{each.variable}={each.home}" for each in self.of("download")]
        compiled = [each.variable for each in self.of("compiled")]
        parts = [_fill("function")]
        parts += [_fill("folder")] if downloads or (compiled and self.keep) else []
        parts += [_fill("home")] if downloads or users else []
        for each in users:
            moved = each.moved or each.variable
            parts.append(_fill("user", moved=moved, variable=each.variable, path=sh(each.home)))
        parts += [_fill("downloads", downloads=line(downloads))] if downloads else []
        parts.append(self._compiled(compiled) if compiled else _fill("end"))
        return "".join(parts)

    def _compiled(self, variables: list[str]) -> str:
        return _fill(
            "compiled",
            compiled=line(variables),
            traps=[_fill("trap", signal=signal).rstrip() for signal in _PASSED_ON],
            kept=_fill("kept", target=sh(self.target)).splitlines() if self.keep else "",
            keep=_fill("keep").splitlines() if self.keep else "",
        )


def caches_of(plan: Plan, engine: Engine) -> Caches | None:
    """The caches of a plan's programs; None where they have none.

    What is asked of a file system of the site is that the engine shows it inside in its own place.
    """
    found = {cache.variable: cache for block in plan.in_image for cache in block.caches}
    if not found:
        return None
    partition = plan.site.partitions[plan.partition]
    gpu = partition.gpu
    return Caches(
        caches=tuple(found.values()),
        node=expanded(_place(plan.site.file_system("node"), engine) or NODE),
        shared=_shared(plan, engine),
        target=(gpu.target or gpu.capability or gpu.model) if gpu is not None else partition.cpu.target,
    )


def home_limit(plan: Plan) -> str:
    """How much fits into the home directory, in words; "" where the profile states no limit."""
    home = plan.site.file_system("home")
    if home is None:
        return ""
    size = [f"{home.limit_gb:g} GB"] if home.limit_gb is not None else []
    return " and ".join([*size, *([f"{home.limit_files} files"] if home.limit_files is not None else [])])


def downloads_folder(site: Site) -> str:
    """The user's own folder for downloads on scratch, with variables as they are written; "" where none is known."""
    scratch = site.file_system("scratch")
    if scratch is None or not (scratch.folder or scratch.variable):
        return ""
    # What a variable names may be the folder of a project.
    return f"{scratch.place}/hpcgen-cache" if scratch.folder else f"{scratch.place}/hpcgen-cache-${{USER}}"


def _shared(plan: Plan, engine: Engine) -> str:
    """The same, where it is seen inside."""
    return expanded(downloads_folder(plan.site)) if _place(plan.site.file_system("scratch"), engine) else ""


def _place(system: FileSystem | None, engine: Engine) -> str:
    """The folder of a file system that the engine shows in its own place; "" where it shows none."""
    if system is None:
        return ""
    shown = system.bind and engine.bind_in_place() and (system.path is not None or not engine.targets_in_image)
    return system.place if shown else ""
