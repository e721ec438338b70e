"""``hpcgen data pack`` and stripes: mksquashfs and lfs are small programs here; the container tier has the real one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpcgen.core.support.striping import LARGE, stripe
from tests.conftest import Command

MKSQUASHFS = """\
#!/bin/bash
echo "$*" > "${0%/*}/called"
[ -z "$REFUSES" ] || { echo "Failed to read file $1/secret"; exit 1; }
echo packed > "$2"
"""
LFS = '#!/bin/bash\necho "$*" >> "${0%/*}/lfs-called"\n[ "$1" != getstripe ] || [ -z "$NOT_LUSTRE" ]\n'


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "data" / "below" / "one").write_text("12345")
    (tmp_path / "data" / "two").symlink_to("below/one")
    program(tmp_path, "mksquashfs", MKSQUASHFS)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_it_counts_and_says_how_to_bind(hpcgen: Command, folder: Path) -> None:
    done = hpcgen("data", "pack", "data", "-o", "packed data.sqfs", "--fixed-times")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "--bind 'packed data.sqfs:/data'\n"
    assert "packed 2 files, 5 B, into 7 B" in done.stderr and "compressed by gzip: no site is named" in done.stderr
    called = (folder / "called").read_text()
    assert "-mkfs-time 0" in called and "-all-time 0" in called and "-comp gzip" in called
    assert f"-processors {len(os.sched_getaffinity(0))} " in called
    assert json.loads(hpcgen("data", "pack", "data", "--json").stdout)["files"] == 2


def test_zstd_only_where_the_profile_states_it_for_the_preferred_engine(hpcgen: Command, folder: Path) -> None:
    (folder / "site_profiles").mkdir()
    for preferred in ("apptainer", "podman"):
        containers = {"preferred": preferred, "engines": {"apptainer": {"squashfs": "zstd"}, "podman": {}}}
        profile = {"name": f"with-{preferred}", "extends": "workstation", "containers": containers}
        (folder / "site_profiles" / f"with-{preferred}.yaml").write_text(json.dumps(profile))
    for site, compressor in (("with-apptainer", "zstd"), ("with-podman", "gzip")):
        done = hpcgen("data", "pack", "data", "-f", "--site", site, env={"HPCGEN_COLLECTIONS": str(folder)})
        assert f"compressed by {compressor}: the profile of {site} " in done.stderr, done.stderr
        assert f"-comp {compressor}" in (folder / "called").read_text()


def test_what_cannot_be_read_leaves_the_older_file(hpcgen: Command, folder: Path) -> None:
    (folder / "data.sqfs").write_text("older")
    assert "it exists" in hpcgen("data", "pack", "data").stderr
    done = hpcgen("data", "pack", "data", "--force", env={"REFUSES": "1"})
    assert done.returncode != 0 and "Failed to read file data/secret" in done.stderr
    assert (folder / "data.sqfs").read_text() == "older"
    assert not [*folder.glob(".hpcgen-*")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing",), "missing is not a folder"),
        (("data", "-o", "data.tar"), "ending in .sqfs"),
        (("data", "-o", "data/x.sqfs"), "inside the folder that is packed"),
        (("data", "-o", "no/x.sqfs"), "there is no no"),
    ],
)
def test_places_that_do_not_serve(hpcgen: Command, folder: Path, words: tuple[str, ...], said: str) -> None:
    done = hpcgen("data", "pack", *words)
    assert done.returncode != 0 and said in done.stderr and "remedy" in done.stderr


def test_stripes_of_large_files_on_lustre_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stripe(folder / "new", LARGE)  # no lfs
    program(folder, "lfs", LFS)
    assert not stripe(folder / "new", LARGE - 1)
    monkeypatch.setenv("NOT_LUSTRE", "1")
    assert not stripe(folder / "new", LARGE)
    monkeypatch.delenv("NOT_LUSTRE")
    assert stripe(folder / "new", LARGE)
    with open(folder / "there", "wb") as file:
        file.truncate(LARGE)
    assert stripe(folder / "there")
    changes = [line for line in (folder / "lfs-called").read_text().splitlines() if not line.startswith("getstripe")]
    assert changes == [f"setstripe -c 8 {folder}/new", f"migrate -c 8 {folder}/there"]
