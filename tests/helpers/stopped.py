"""The process that runs writers, and stops them at a call that changes names or waits for the disk.

``python -m tests.helpers.stopped FOLDER LIBRARY`` runs each in a fork of its own, which saves the start of Python. It
is told what to do on stdin, a line of JSON each, and has ``faults.c`` loaded before all else.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import OWN_SETTINGS, ROOT
from tests.helpers.writers import WRITERS, View


class Outcome(NamedTuple):
    """``status``: negative where a signal ended it. ``calls``: that could have failed."""

    status: int
    said: str
    calls: int


class Runner:
    """The process that runs writers, each time in a fork."""

    def __init__(self, work: Path) -> None:
        self.work = work
        library = work / "faults.so"
        source = Path(__file__).with_name("faults.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        (work / "tmp").mkdir()
        environment = {**os.environ, **OWN_SETTINGS, "LD_PRELOAD": str(library), "TMPDIR": str(work / "tmp")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.stopped", str(work), str(library)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **asked: Any) -> list[Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer: list[Any] = json.loads(self.process.stdout.readline())
        return answer

    def run(self, writer: str, numbers: tuple[int, ...] = (0,), call: int = 0, error: int = 0) -> list[Outcome]:
        """Do it, several at once where there are several numbers; ``error`` 0 is a kill."""
        return [Outcome(*each) for each in self.ask(writer=writer, numbers=numbers, call=call, error=error)]

    def begin(self, writer: str) -> None:
        """Make what is there before, in place of all that is there."""
        folder, base = self.work / "w", self.work / "base" / writer.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        if not base.exists():
            folder.mkdir()
            [[status, said, _]] = self.ask(writer=writer, prepare=True)
            assert status == 0, said
            shutil.copytree(folder, base, symlinks=True)
            return
        shutil.copytree(base, folder, symlinks=True)

    def view(self, writer: str) -> View:
        """What is there now."""
        [[status, said, _]] = self.ask(writer=writer, view=True)
        assert status == 0, said
        found: View = json.loads((self.work / "view").read_text())
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def serve(work: Path, library: str) -> None:
    """Read what is to be done, and answer with how each ended."""
    faults = ctypes.CDLL(library)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["XDG_STATE_HOME"] = str(work / "w" / "state")
    os.environ["HOME"] = str(work / "home")
    for line in sys.stdin:
        asked = json.loads(line)
        children = []
        ready, go = os.pipe()
        for number in asked.get("numbers", (0,)):
            said = work / f"said-{number}"
            child = os.fork()
            if child == 0:
                os.close(go)
                os.read(ready, 1)
                os._exit(_child(work, asked, number, said, faults))
            children.append((child, said))
        os.close(ready)
        os.close(go)
        ended = []
        for child, said in children:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            calls = said.with_suffix(".calls")
            count = int(calls.read_text()) if calls.exists() else 0
            ended.append((status, said.read_text(errors="replace"), count))
        for name in (work / "modules").read_text().split() if (work / "modules").exists() else ():
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        print(json.dumps(ended), file=answers, flush=True)


def _child(work: Path, asked: dict[str, Any], number: int, said: Path, faults: Any) -> int:
    descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(work / "w")
    writer = WRITERS[asked["writer"]]
    status = 1
    try:
        if asked.get("prepare"):
            writer.prepare()
            status = 0
        elif asked.get("view"):
            text = json.dumps(writer.view())
            (work / "view").write_text(text)
            status = 0
        else:
            faults.fault_at(ctypes.c_long(asked["call"]), asked["error"])
            status = writer.run(number)
    except BaseException:
        traceback.print_exc()
    calls = faults.faults_seen()
    faults.fault_at(ctypes.c_long(0), 0)
    if not asked.get("call"):
        (work / "modules").write_text(" ".join(name for name in sys.modules if name != "__main__"))
    with contextlib.suppress(OSError):
        said.with_suffix(".calls").write_text(str(calls))
        sys.stdout.flush()
        sys.stderr.flush()
    return status


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
