"""What a session of tests leaves on the disk, and when it goes.

Images are of hundreds of megabytes and a session makes dozens: those in the test bed's stores live as long as the file
of tests that made them, folders of fixtures as long as their fixture, and what a killed session left goes when the
next one starts. Two sessions at a time share the stores, so nothing is removed while another one runs.

Where the file system tells the disk of every block that is free (ext4's ``discard``), removing a gigabyte takes 15
seconds and next to no CPU: large folders are renamed, and removed while the tests go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest
from container_tools import run, script

MARK = "of-hpcgen-container-tests"
REMOVALS: list[subprocess.Popen[bytes]] = []


class Session:
    """This session's share of the test bed; a lock says whether it is the only one."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.lock = (Path(env["HPCGEN_TESTBED"]) / ".lock-session").open("w")
        self.clean()

    def clean(self, *options: str) -> None:
        """Remove what was left in the stores, unless another session runs."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        else:
            script("clean", *options, env=self.env)
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def close(self) -> None:
        self.clean()
        self.lock.close()
        for removal in REMOVALS:
            removal.wait()


def remove_temporary_folders_of_killed_sessions(basetemp: Path) -> None:
    """pytest itself keeps them for three days, because it does not look whether their process still runs.

    Source: ``_pytest.pathlib.create_cleanup_lock``, which writes the process id into ``.lock``.
    """
    for folder in basetemp.parent.glob("pytest-*"):
        if folder == basetemp or folder.is_symlink() or not (folder / MARK).exists():
            continue
        with contextlib.suppress(OSError, ValueError):
            process = int((folder / ".lock").read_text())
            if not Path(f"/proc/{process}").exists():
                remove(folder)
    (basetemp / MARK).touch()


def remove(folder: Path) -> None:
    """Take a folder away with all in it, after what an engine that was killed left mounted there."""
    prefix = f"{os.path.realpath(folder)}/"

    def mounted() -> list[str]:
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [point for point in points if point.startswith(prefix)]

    for point in reversed(mounted()):
        run(["umount", point], check=False)
    if mounted():
        return
    with contextlib.suppress(FileNotFoundError):
        renamed = folder.rename(folder.with_name(f".removed-{uuid.uuid4().hex}"))
        REMOVALS.append(subprocess.Popen(["rm", "-rf", renamed], stderr=subprocess.DEVNULL))


@contextlib.contextmanager
def kept_while_used(request: pytest.FixtureRequest, factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A temporary folder that goes when its fixture ends, unless a test has failed meanwhile."""
    before = request.session.testsfailed
    folder = factory.mktemp(name)
    yield folder
    if request.session.testsfailed == before:
        remove(folder)


def common_folder(request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of a run, which its processes have theirs in."""
    top = factory.getbasetemp()
    return top.parent if hasattr(request.config, "workerinput") else top


@contextlib.contextmanager
def shared_while_used(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Iterator[Path]:
    """A folder that the first process of a run makes for all of them; it goes with the last one that uses it."""
    top = common_folder(request, factory)
    folder, made = top / name, top / f".made-{name}"
    before = request.session.testsfailed
    with (top / f".lock-{name}").open("w") as lock:
        _once(lock, made, lambda: _make_anew(folder, make))
        yield folder
        if request.session.testsfailed == before:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                made.unlink()
                remove(folder)


def _make_anew(folder: Path, make: Callable[[Path], object]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    make(folder)


def _once(lock: IO[str], made: Path, make: Callable[[], object]) -> None:
    """Come back with a share of the lock when it is made; only who makes it, or takes it away, has the lock alone."""
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if made.exists():
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Several want to make it at once: nobody can while another keeps a share.
            fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.1)
            continue
        make()
        made.touch()
