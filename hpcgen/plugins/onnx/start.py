"""One step of a conversion started: in an image, sealed off from host and network, or in the present environment."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from hpcgen.core.errors import MissingToolError
from hpcgen.core.model.fields import Name, Version
from hpcgen.core.support.extras import extra
from hpcgen.core.support.refusals import explained
from hpcgen.plugins.onnx.records import Ensemble, Origin
from hpcgen.plugins.onnx.work import ModelWork, remove_any
from hpcgen.running.here import status_text
from hpcgen.running.python_inside import FoundPython, lacking
from hpcgen.running.verify.starts import StartResult, start_job, start_script, with_layout

ALWAYS = ("numpy", "onnx", "onnxruntime")
"""What every program needs."""

BETTER = {"onnxscript": "models of PyTorch are traced alone, which proves less than PyTorch's exporter on torch.export"}
"""What an image may lack, and what does not work then."""

_FRAMEWORKS: dict[Origin, tuple[str, ...]] = {
    "pytorch": ("torch",),
    "torch-export": ("torch",),
    "tensorflow": ("tensorflow", "tf2onnx"),
    "keras": ("tensorflow", "keras", "tf2onnx"),
    "sklearn": ("sklearn", "skl2onnx"),
    "onnx": (),
}
_OLDEST = (3, 9)
"""Python: the programs use str.removeprefix."""

_PACKAGES = {"sklearn": "scikit-learn"}
"""What the package index calls a module that has another name."""


def modules_for(ensemble: Ensemble, names: Iterable[str]) -> list[str]:
    """The modules by which these models are converted, or measured in their frameworks."""
    origins = {ensemble.models[name].from_ for name in names}
    found = [module for origin in sorted(origins) for module in _FRAMEWORKS[origin]]
    return list(dict.fromkeys([*ALWAYS, *found]))


def refuse_lacking(python: FoundPython, needs: Sequence[str], image: str) -> None:
    """MissingToolError with all that an image lacks, and how it gets that."""
    if tuple(int(each) for each in python.version.split(".")[:2]) < _OLDEST:
        raise MissingToolError(
            f"{image} has Python {python.version}, which is too old for the programs",
            expected=f"Python {'.'.join(map(str, _OLDEST))} or later",
            remedy="name an image with a newer one; `hpcgen onnx convert` without --image builds one",
        )
    if missing := lacking(python, needs):
        packages = " ".join(_PACKAGES.get(each, each) for each in missing)
        raise MissingToolError(
            f"{image} lacks what is needed: {', '.join(missing)} (it has {python})",
            remedy=f"add them where it is built: {python.program} -m pip install {packages}; "
            "or leave out --image where one converts: then one is built for the models",
        )


if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.image_job import ImageJob

MOST_LOGGED = 64 * 1024 * 1024
LAST_LINES = 8
PROGRAM = "programs/main.py"
TOO_LONG = 124
"""The exit status of a program of which a step took longer than it may."""
_AVAILABLE = re.compile(r"^MemAvailable:\s+(\d{1,15}) kB$", re.MULTILINE)


class Ended(msgspec.Struct, frozen=True):
    """How a step ended: its exit status, None if its time was up; the last lines that it printed; its seconds."""

    status: int | None
    last: list[str]
    seconds: float

    def why(self, timeout_s: float) -> str:
        """What went wrong with a step that said nothing at its end."""
        how = (
            f"it was ended after {timeout_s:g} s"
            if self.status is None
            else f"it ended with {status_text(self.status)}"
        )
        said = " | ".join(line.strip() for line in self.last if line.strip())
        return f"{how} and said: {said or 'nothing'}"


class Runner(Protocol):
    """Where steps run.

    ``content``: the plan hash of the image, "" without one; of a ``foreign`` one, which hpcgen did not build, what
    tells it from others. ``blocks`` of it by version, or packages of its Python. ``memory_gb``: what each process of a
    step may take; by default nine tenths of what is free when it starts.
    """

    content: str
    foreign: bool
    blocks: dict[Name, Version]
    threads: int
    memory_gb: float | None

    def start(self, work: ModelWork, words: list[str], timeout_s: float, log: LogFile) -> StartResult:
        """Start the program with these words in the folder, and give its lines to the log."""


class ImageRunner:
    """In an image, without a network and with nothing of the host but the work folder."""

    def __init__(
        self,
        image: ImageReference,
        catalog: Catalog,
        threads: int | None = None,
        memory_gb: float | None = None,
        needs: Sequence[str] = ALWAYS,
        tell: Callable[[str], None] = lambda text: None,
        **how: Any,
    ) -> None:
        """

        threads: of each step, those of the image's job if None.
        memory_gb: as in :class:`Runner`.
        needs: modules that the image must have, whoever built it.
        tell: told of an archive that is unpacked.
        how: as for :func:`~hpcgen.running.image_job.plan_for_image`, which says what is raised.
        MissingToolError: the image lacks one of them. JobFailedError: it cannot be started.
        """
        from hpcgen.images.identity import identity_of
        from hpcgen.images.unpacked import startable
        from hpcgen.running.image_job import plan_for_image
        from hpcgen.running.python_inside import lacking, python_inside

        started = startable(image, tell)
        job: ImageJob = plan_for_image(started, catalog, foreign=lambda: catalog.site("workstation"), **how)
        whole = job.plan.job
        self.threads = threads or max(1, whole.ranks_per_node * whole.threads_per_rank)
        self.memory_gb = memory_gb
        self.job = msgspec.structs.replace(with_layout(job, [], 1, threads=self.threads), sealed=True)
        self.foreign = job.foreign
        python = python_inside(self.job, [*needs, *BETTER], str(image))
        refuse_lacking(python, needs, str(image))
        self.python = python.program
        self.lacks = [
            f"{image} has no {each}: {BETTER[each]}" for each in lacking(python, [*BETTER]) if "torch" in needs
        ]
        self.content = job.content or identity_of(image)
        known = {each.name: each.version for each in job.plan.blocks}
        self.blocks = python.versions() if self.foreign else dict(sorted(known.items()))

    def start(self, work: ModelWork, words: list[str], timeout_s: float, log: LogFile) -> StartResult:
        job = with_layout(self.job, [self.python, PROGRAM, *words], 1, threads=self.threads)
        return start_job(job, timeout_s, log.line, work.folder)


class HereRunner:
    """With the Python that hpcgen runs with; foreign code then runs as the user."""

    content = ""
    foreign = False
    blocks: dict[Name, Version] = {}

    def __init__(self, threads: int | None = None, memory_gb: float | None = None) -> None:
        """MissingToolError where packages of the extra ``onnx`` are not installed."""
        from importlib.util import find_spec

        with extra("onnx", "convert models here"):
            for name in ALWAYS:
                if find_spec(name) is None:
                    raise ModuleNotFoundError(name=name)
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory_gb = memory_gb

    def start(self, work: ModelWork, words: list[str], timeout_s: float, log: LogFile) -> StartResult:
        from hpcgen.core.support.quoting import command

        words = [sys.executable, PROGRAM, *words]
        script = f"export OMP_NUM_THREADS={self.threads}\nexec {command(*words)}\n"
        return start_script(script, timeout_s, log.line, folder=work.folder)


def run_steps(runner: Runner, work: ModelWork, steps: Sequence[str], job: dict[str, Any], timeout_s: float) -> Ended:
    """Run steps of one model, one after the other in one start.

    steps: ``convert``, ``validate``, ``time`` or a variant's name.
    job: what the programs are asked.
    timeout_s: for each step.
    OutputError: its log or its job cannot be written, as on a full disk.
    KeyboardInterrupt: after what was started has been ended.
    """
    most = int(runner.memory_gb * 1e9) if runner.memory_gb else free_memory() * 9 // 10
    work.write({**job, "memory_bytes": most, "timeout_s": timeout_s})
    work.begin(steps)
    with _logged(work.log(steps[0])) as log:
        # The program ends itself in time unless foreign code keeps it from that.
        ended = runner.start(work, [work.model, *steps], timeout_s * len(steps), log)
    return Ended(None if ended.status == TOO_LONG else ended.status, list(log.last), ended.seconds)


def free_memory() -> int:
    """The bytes that are free for a program here: on the machine, and below the limits of its cgroups, as of a job."""
    free = [int(match[1]) * 1024 for match in _AVAILABLE.finditer(_text(Path("/proc/meminfo")))]
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, place = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup") / ("memory" if controllers else "")
            here = root / place.lstrip("/")
            free += [left for each in (here, *here.parents) if each.is_relative_to(root) for left in _left(each)]
    return min(free, default=sys.maxsize)


def _left(cgroup: Path) -> Iterator[int]:
    """The bytes that a cgroup may still take, by the names of version 2 or 1; nothing without a limit."""
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        most, now = _text(cgroup / limit).strip(), _text(cgroup / used).strip()
        if most.isdigit() and now.isdigit():
            yield max(0, int(most) - int(now))


def _text(path: Path) -> str:
    """What the kernel says in a file, "" where it says nothing."""
    try:
        return path.read_text()
    except OSError:
        return ""


class LogFile:
    """What a program prints: a file that does not grow without end, and the last lines."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = MOST_LOGGED
        self._cut = 0
        self.last: deque[str] = deque(maxlen=LAST_LINES)

    def line(self, text: str) -> None:
        """One line more."""
        self.last.append("".join(sign if sign.isprintable() else " " for sign in text[:1000]))
        data = f"{text}\n".encode("utf-8", "replace")
        if self._cut or len(data) > self._left:
            self._cut += len(data)
            return
        self._left -= len(data)
        self._stream.write(data)

    def end(self) -> None:
        """Say what was left out."""
        if self._cut:
            self._stream.write(f"… ({self._cut} more bytes were left out)\n".encode())


@contextmanager
def _logged(path: Path) -> Iterator[LogFile]:
    with explained(path):
        remove_any(path)
        with open(path, "xb") as stream:
            log = LogFile(stream)
            yield log
            log.end()
