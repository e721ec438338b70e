"""The command as tests start it: in their own process, which saves most of its time, or in one of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

LIMIT_S = 120


def own_process(words: tuple[str, ...], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """What ``python -m hpcgen WORDS`` does and says."""
    command = [sys.executable, "-m", "hpcgen", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=LIMIT_S)


def in_this_process(words: tuple[str, ...], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same without a start of Python; the programs that it starts write to the same stdout and stderr."""
    from hpcgen import api, cli
    from hpcgen.core.support import registry
    from hpcgen.supply.net.pip_settings import pip_settings

    pip_settings.cache_clear()
    with pytest.MonkeyPatch.context() as here, _file() as stdout, _file() as stderr:
        here.setattr(registry, "COLLECTIONS", [])
        here.setattr(api, "_default", None)
        here.setattr(sys, "argv", ["hpcgen", *words])
        for name in {*os.environ} - {*env}:
            here.delenv(name)
        for name, value in env.items():
            here.setenv(name, value)
        here.chdir(cwd)
        with open(os.devnull, "rb") as nothing, _streams(here, nothing, stdout, stderr):
            code = _exit_code(cli.main)
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(["hpcgen", *words], code, stdout.read().decode(), stderr.read().decode())


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile("a+b")


def _exit_code(main: Any) -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    return 1


@contextlib.contextmanager
def _streams(here: pytest.MonkeyPatch, *files: IO[bytes]) -> Iterator[None]:
    """stdin, stdout and stderr, for Python and for child processes."""
    saved = [os.dup(number) for number in range(3)]
    try:
        for number, (name, file) in enumerate(zip(("stdin", "stdout", "stderr"), files, strict=True)):
            os.dup2(file.fileno(), number)
            mode, errors = ("r", "strict") if number == 0 else ("w", "strict" if number == 1 else "backslashreplace")
            stream = os.fdopen(number, mode, encoding="utf-8", errors=errors, buffering=1, closefd=False)
            here.setattr(sys, name, stream)
        yield
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
    finally:
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)
