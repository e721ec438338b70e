"""Containers that are sealed off, by each engine's own words: no network, nothing of the host but what is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from container_tools import BaseImage, ChImage, Sid

from hpcgen.backends.engines import Call, engine_for
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.support.quoting import line

LOOK = """\
echo "interfaces: $(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n')"
echo "secret: ${SECRET-none}, given: $GIVEN"
touch made && echo made
cat /media/shown
for path in /etc/x "$1"; do touch "$path" 2> /dev/null && echo "wrote $path"; done
[ ! -e "$1" ] || cat "$1"
true
"""
FOUND = ["interfaces: lo", "secret: none, given: 1", "made", "shown"]


def script(engine: str, version: str, top: str, image: str = "") -> str:
    """bash that looks around in a sealed container of an image, by default the one in the folder ``top``."""
    binds = (Bind(f"{top}/data", "/media"),)
    given = {"inherited": ("GIVEN",), "unset": ("TMPDIR",), "binds": binds}
    call = Call(image=image or f"{top}/root", folder=f"{top}/work", sealed=True, **given)
    words = [line(group) for group in engine_for(engine, version).words(call)]
    return " ".join(["export SECRET=key GIVEN=1;", *words, line(["bash", "look.sh", f"{top}/secret"])])


@pytest.fixture
def folder(tmp_path: Path, plain_base_image: BaseImage) -> Path:
    for name in ("root", "work", "data"):
        (tmp_path / name).mkdir()
    subprocess.run(["tar", "-xf", plain_base_image.root_tar, "-C", tmp_path / "root", "--exclude=./dev/*"], check=True)
    (tmp_path / "root" / "mnt" / "0").mkdir()
    (tmp_path / "work" / "look.sh").write_text(LOOK)
    (tmp_path / "data" / "shown").write_text("shown\n")
    (tmp_path / "secret").write_text("key\n")
    return tmp_path


def test_charliecloud_as_root(ch_image: ChImage, folder: Path) -> None:
    text = script("charliecloud", "0.31", str(folder))
    assert ch_image.run(["bash", "-c", text]).stdout.splitlines() == FOUND
    assert (folder / "work" / "made").exists()


def test_podman_as_root(ch_image: ChImage, plain_base_image: BaseImage, folder: Path) -> None:
    text = script("podman", "4.3", str(folder), plain_base_image.oci)
    # What it may write to in the container itself goes with it.
    found = [each for each in ch_image.run(["bash", "-c", text]).stdout.splitlines() if each != "wrote /etc/x"]
    assert found == FOUND
    assert (folder / "work" / "made").exists() and (folder / "secret").read_text() == "key\n"


@pytest.mark.parametrize(("engine", "version"), [("apptainer", "1.4.5"), ("charliecloud", "0.45")])
def test_engines_of_an_ordinary_user(engine: str, version: str, sid: Sid, folder: Path) -> None:
    sid.folder(folder)
    text = script(engine, version, "/seal")
    done = sid.run(["bash", "-c", text], binds=[(folder, "/seal")])
    assert done.stdout.splitlines() == FOUND
    assert (folder / "work" / "made").exists()
