"""What ``kill -9`` leaves of a build, removed by the next one when nobody works with it any more."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.backends.engines.building import Target
from hpcgen.builders.log import build_folder, note

KIT = Path(__file__).parents[2] / "golden" / "hlrs-testbed" / "mpi-hello"
APPTAINER = """\
#!/bin/sh
[ "$1" = build ] || exec echo "apptainer version 1.4.5"
[ "$2" != --help ] || exit 0
for word; do case $word in *.sif) echo half > "$word" ;; esac; done
[ -z "$WAIT" ] || { echo $$ > "$WAIT.new"; mv "$WAIT.new" "$WAIT"; exec sleep 600; }
"""


@pytest.fixture
def builds(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """``builds(wait)`` starts ``hpcgen build``; with ``wait`` the engine tells its process there, and hangs."""
    for name in ("bin", "tmp"):
        (tmp_path / name).mkdir()
    program = tmp_path / "bin" / "apptainer"
    program.write_text(APPTAINER)
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "TMPDIR": str(tmp_path / "tmp")}
    words = [sys.executable, "-m", "hpcgen", "build", str(KIT), "--engine", "apptainer", "--no-record"]

    def start(wait: str = "") -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*words, "-o", str(tmp_path / "a.sif")], env={**env, "WAIT": wait}, stderr=subprocess.DEVNULL
        )

    return start


def test_a_name_in_a_store_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = tmp_path / "podman"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/told\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def kill_one(builder: str, temporary: str) -> None:
        with build_folder() as (folder, _):
            note(folder, builder, Target("podman", "a:b", temporary, is_file=False))
            # As if it had not come to the end of its own folder.
            shutil.copytree(folder, folder.with_name(f"{folder.name.removesuffix('.work')}x.work"))

    kill_one("podman", "localhost/hpcgen-build:0123abcd")
    kill_one("podman", "localhost/thesis:1")
    kill_one("sh", "localhost/hpcgen-build:0123abcd")
    with build_folder():
        assert (tmp_path / "told").read_text() == "rmi localhost/hpcgen-build:0123abcd\n"
    assert not list(tmp_path.glob("*.work"))


def left(folder: Path) -> list[str]:
    """Half images and folders of builds; a log of a build without a record has its name from that."""
    names = [path.name for path in (*folder.glob(".hpcgen-*"), *(folder / "tmp").glob("hpcgen-build-*"))]
    return sorted(name[:8] for name in names)


def test_the_next_build_removes_what_a_killed_one_left(
    tmp_path: Path, builds: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = builds(str(tmp_path / "pid"))
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert left(tmp_path) == [".hpcgen-", "hpcgen-b"]
    # The engine still writes: it is not ours to remove.
    assert builds().wait(60) == 0
    assert left(tmp_path) == [".hpcgen-", "hpcgen-b"]
    engine = int((tmp_path / "pid").read_text())
    handle = os.pidfd_open(engine)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    while (Path("/proc") / str(engine) / "cmdline").exists() and (Path("/proc") / str(engine) / "cmdline").read_bytes():
        time.sleep(0.05)
    os.close(handle)
    assert builds().wait(60) == 0
    assert left(tmp_path) == []
    assert (tmp_path / "a.sif").read_text() == "half\n"
