"""A squashfs that takes over blocks of an older one, read by the real tools: unsquashfs, and Linux itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from container_tools import Tool

import hpcgen

REPACK = """import sys; from pathlib import Path; from hpcgen.images.repacking.repack import repack
print(repack(*map(Path, sys.argv[1:4])))"""
SPECIAL = "ln errors.py hard; mkfifo fifo; mknod null c 1 3; truncate -s 3M sparse; chown 42:43 sparse"
LISTED = """find . ! -type d -printf '%p %m %U %G %s %l %Ts %n %y\\n' | sort
find . -type d -printf '%p %m %U %G %Ts\\n' | sort
find . -type f -exec cksum {} + | sort"""


def listed(folder: Path) -> str:
    """Every name with its mode, owner, size, time and number of links; every content."""
    return subprocess.run(["sh", "-c", LISTED], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_tools_and_linux_read_what_is_written(testbed_env: dict[str, str], tmp_path: Path) -> None:
    here = Tool(testbed_env)
    folder, old, new = (tmp_path / name for name in ("folder", "old.sqfs", "new.sqfs"))
    here.run(["cp", "-a", Path(hpcgen.__file__).parent, folder])
    here.run(["sh", "-euc", SPECIAL], cwd=folder)
    here.run(["mksquashfs", folder, old, "-no-progress", "-quiet"])
    (folder / "errors.py").write_text("changed, for both names\n")
    (folder / "api.py").unlink()
    (folder / "new").write_bytes(bytes(range(256)) * 5000)
    here.run([sys.executable, "-c", REPACK, folder, new, old])
    here.run(["unsquashfs", "-q", "-no-progress", "-d", tmp_path / "out", new])
    wanted = listed(folder)
    assert listed(tmp_path / "out") == wanted
    (tmp_path / "mounted").mkdir()
    here.run(["mount", "-t", "squashfs", "-o", "loop,ro", new, tmp_path / "mounted"])
    try:
        assert listed(tmp_path / "mounted") == wanted
    finally:
        here.run(["umount", tmp_path / "mounted"])
