"""The command in processes that have its libraries already, which is most of the time that a start takes.

They are forked from one that has imported these and nothing of hpcgen, so hpcgen's own modules are imported by every
command anew, in its own order, and nothing that one does is seen by the next.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

LIBRARIES = ["click", "msgspec", "yaml", "resolvelib", "packaging.requirements", "archspec.cpu", "rich.table"]
LIMIT_S = 120
_AT_START = ("PYTHON", "LC_", "LANG", "TZ")
"""Variables that a Python reads when it starts, and not later."""

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload([*LIBRARIES, "tests.start"])


def start(words: tuple[str, ...], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """What ``python -m hpcgen WORDS`` does and says; subprocess.TimeoutExpired after LIMIT_S."""
    changed = {name for name in {*env, *os.environ} if env.get(name) != os.environ.get(name)}
    command = [sys.executable, "-m", "hpcgen", *words]
    if any(name.startswith(_AT_START) for name in changed):
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=LIMIT_S)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _server.Process(target=_run, args=(words, env, cwd, files))
        process.start()
        process.join(LIMIT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, LIMIT_S)
        return subprocess.CompletedProcess(command, process.exitcode, *(file.read_text() for file in files))


def _run(words: tuple[str, ...], env: dict[str, str], cwd: Path, files: list[Path]) -> NoReturn:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    sys.argv = ["hpcgen", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from hpcgen.cli import main

    main()
