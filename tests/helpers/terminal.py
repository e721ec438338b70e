"""A command on a terminal of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def on_a_terminal(words: list[str], typed: str, env: Mapping[str, str], folder: Path) -> str:
    """What a command says on a terminal, on which something is typed."""
    near, far = os.openpty()
    try:
        os.write(near, typed.encode())
        process = subprocess.Popen(words, stdin=far, stdout=far, stderr=far, env=dict(env), cwd=folder)
        os.close(far)
        said = b""
        while True:
            try:
                said += os.read(near, 4096)
            except OSError:  # Linux says EIO when the last one on the other side is gone
                break
        process.wait(timeout=60)
    finally:
        os.close(near)
    return said.decode()
