"""A shell in an image: with the terminal of the user, on this machine or on a node that is asked for."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.quoting import command
from hpcgen.core.support.writing import write_file
from hpcgen.launch.command import command_script
from hpcgen.running.here import asking_words
from hpcgen.running.image_job import ImageJob
from hpcgen.running.job_files import job_folder
from hpcgen.running.submission import require_programs

SHELL = ("/bin/sh", "-c", "if command -v bash > /dev/null; then exec bash; fi; exec sh")
"""What is started where nothing else is asked for: bash, where the image has it."""


def live_binds(stack: Stack, folder: Path) -> list[Bind]:
    """The user's own files in the place of those that a stack copied into the image.

    ``folder``: the one that paths of the stack are from.
    """
    return [Bind(source=str((folder / each.from_).resolve()), target=each.to) for each in stack.copy]


def hidden_by(stack: Stack, binds: Sequence[Bind]) -> str:
    """The folder whose compiled files such binds hide; "" where nothing was compiled there."""
    if stack.build is None:
        return ""
    built = stack.build.in_ or next(iter(place for _, _, place in stack.code_places), "")
    return next((bind.target for bind in binds if f"{built}/".startswith(f"{bind.target}/")), "")


def shell_words(job: ImageJob, folder: Path, words: Sequence[str], *, on_node: bool) -> list[str]:
    """The command that starts a program of an image with the terminal. Its script is written among the job's files.

    folder: where it starts. words: the program and its arguments.
    on_node: the batch system is asked for a node.
    PolicyError: hpcgen knows no way to start it so at this site, or by this engine.
    MissingToolError: bash, or the batch system's commands, are not here.
    """
    plan = job.plan
    text = command_script(plan, job.environment, job.image, job.inside, named=job.named, shown=job.shown)
    before: list[str] = []
    if on_node:
        queue = scheduler_for(plan.site.scheduler)
        asking = asking_words(plan)
        terminal = queue.terminal_words(plan.job.ranks_per_node * plan.job.threads_per_rank)
        if terminal is None:
            known = queue.takes_jobs and queue.interactive
            remedy = f"hpcgen shell in it: {command(*asking)}" if known else "leave out --nodes and --queue"
            raise PolicyError(f"hpcgen cannot request an interactive node from {plan.site.name}", remedy=remedy)
        require_programs(queue, plan.site.name)
        before = [*asking, *terminal]
    bash = require_program("bash", "start a shell", "install bash")
    own = job_folder(folder, "shell")
    write_file(own / "start", text, executable=True)
    return [*before, bash, str(own / "start"), *words]


def with_terminal(words: Sequence[str], folder: Path) -> int:
    """Start it, and wait; the status with which it ended. A Ctrl-C is for what runs in the shell."""
    with _left_to_it():
        return subprocess.call(words, cwd=folder)


@contextlib.contextmanager
def _left_to_it() -> Iterator[None]:
    # A handler, since what is ignored would be ignored inside too.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
