"""What an engine is given and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from hpcgen.errors import InputError, PolicyError, Problem
from hpcgen.model.fields import EngineName
from hpcgen.model.site import Bind
from hpcgen.support.shell_words import FOLDER, IMAGE


class Call(msgspec.Struct, frozen=True):
    """One start of a container, without its command.

    Parameters
    ----------
    image, folder: the image, and the folder that the job is started in; words.
    binds: host paths to be seen inside.
    inside: variables to be set inside.
    inherited: names of variables that are set outside and wanted inside.
    unset: names of variables of the host that must not be seen inside.
    gpu: the vendor of the node's GPUs, "" without.
    devices: device files of the fabric.
    join: ranks of a node that share one container, 0 if each has its own.
    shared_memory: whether processes inside talk to each other through memory.
    mpi: the ABI of the host's MPI, if it takes part in the start; "" without.
    fabric: the kind of the site's fabric.
    """

    image: str = IMAGE
    folder: str = FOLDER
    binds: tuple[Bind, ...] = ()
    inside: Mapping[str, str] = {}
    inherited: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    gpu: str = ""
    devices: tuple[str, ...] = ()
    join: int = 0
    shared_memory: bool = False
    mpi: str = ""
    fabric: str = "none"


class Engine:
    """Base of the engines.

    ``host_environment``: the host's variables enter by themselves. ``image_environment``: the image's own are
    set by the engine. ``started_by_launcher``: a launcher on the host can start one container per rank.
    ``library_path``: what the engine adds to the library path, to be kept when that is set inside.
    ``image_is_file``: the image is a file or folder; else it is in the engine's own store. ``within_srun``: the
    container is started by an option of srun. ``brings_mpi``, ``brings_fabrics``: binary interfaces and kinds of fabric
    for which it shows the host's libraries inside without being told of their folders. ``image_releases``: the oldest
    release that starts an image file, by the end of its name.
    """

    program: ClassVar[str]
    host_environment: ClassVar[bool] = True
    image_environment: ClassVar[bool] = True
    started_by_launcher: ClassVar[bool] = True
    library_path: ClassVar[str] = ""
    image_is_file: ClassVar[bool] = True
    within_srun: ClassVar[bool] = False
    brings_mpi: ClassVar[tuple[str, ...]] = ()
    brings_fabrics: ClassVar[tuple[str, ...]] = ()
    image_releases: ClassVar[Mapping[str, str]] = {}

    def __init__(self, name: EngineName, version: str | None) -> None:
        self.name = name
        self.version = version

    def command_name(self) -> str:
        """The program to be found on PATH."""
        return self.program

    def at_least(self, version: str) -> bool:
        """Whether the engine is known to be ``version`` or newer; an unknown version is the oldest."""
        if self.version is None:
            return False
        from packaging.version import Version

        try:
            return Version(self.version) >= Version(version)
        except ValueError:
            return False

    def oldest(self, call: Call) -> str:
        """The oldest release that has every option in the words of a call; "" where every supported one has them."""
        return ""

    def image_names(self, stack: str, site: str) -> list[str]:
        """Names of the image, those to be tried first coming first."""
        raise NotImplementedError

    def words(self, call: Call) -> list[list[str]]:
        """The command line up to the container's command, grouped as it is best read."""
        raise NotImplementedError

    def definition(self, call: Call) -> list[str]:
        """Lines of a file that the engine reads at the start, as words of shell; none for most."""
        return []

    def lacks(self, gpu: str) -> str:
        """Why it cannot show GPUs of a vendor ("" for no GPU) inside; "" if it can."""
        return ""

    def refuse(self, message: str, remedy: str) -> PolicyError:
        """That this engine cannot do what the job needs."""
        return PolicyError(Problem(f"{self.name} {self.version or 'of unknown version'}: {message}", remedy=remedy))


def bind_words(option: str, binds: Iterable[Bind]) -> list[list[str]]:
    """``-b SOURCE:TARGET`` for each bind; a colon or comma in a path would be read as another bind."""
    result = []
    for bind in binds:
        for path in (bind.source, bind.target):
            if ":" in path or "," in path:
                raise InputError(
                    Problem(f"{path!r} cannot be bound: engines read ':' and ',' as separators", "mpi.binds")
                )
        result.append([option, f"{bind.source}:{bind.target}"])
    return result


def environment_words(call: Call, unset: Iterable[str] = ()) -> list[list[str]]:
    """``/usr/bin/env`` with the variables, to be put before the command inside the image.

    Every image has it, whatever the engine's version; no engine's own rules of expansion, quotes or separators
    get between; and it comes after everything that the image sets by itself.
    """
    out = [word for name in unset for word in ("-u", name)]
    values = [[f"{name}={value}"] for name, value in call.inside.items()]
    return [["/usr/bin/env", *out], *values] if out or values else []
