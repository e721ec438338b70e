"""What ``hpcgen clean`` lists and removes in folders; tests/containers has the stores of engines."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.core.support.leftovers import work_folder
from hpcgen.supply.bundle.workspace import workspace
from tests.conftest import Command

Clean = Callable[..., list[dict[str, object]]]
RESULT = f"{'0a' * 32}.json"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache, a folder of temporary files and a present folder of the test's own, and no engine."""
    for name in ("cache/hpcgen/matrix", "cache/hpcgen/images", "tmp", "here", "bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    # What the collection's files said is read by every other test.
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    return tmp_path


@pytest.fixture
def clean(places: Path, hpcgen: Command) -> Clean:
    """``clean(*words)``: what the command says with ``--json``."""

    def run(*words: str) -> list[dict[str, object]]:
        done = hpcgen("clean", "--json", *words, cwd=places / "here")
        found: list[dict[str, object]] = json.loads(done.stdout)
        return found

    return run


def names(found: list[dict[str, object]]) -> dict[str, object]:
    return {str(each["place"]): each["names"] for each in found}


def test_a_cache_is_listed_with_its_size_and_removed_on_request(places: Path, clean: Clean, hpcgen: Command) -> None:
    result, image = places / "cache/hpcgen/matrix" / RESULT, places / "cache/hpcgen/images/onnx-0123456789ab-here"
    result.write_bytes(bytes(1000))
    image.mkdir()
    (image / "file").write_bytes(bytes(3000))
    found = clean()
    assert [(each["kind"], each["bytes"]) for each in found] == [("cache", 1000), ("cache", 3000)]
    listed = hpcgen("clean", cwd=places / "here")
    assert "1 kB" in listed.stdout and "nothing is removed: --yes removes all of it" in listed.stderr
    assert hpcgen("clean", "--dry-run", "--yes", cwd=places / "here").returncode == 0
    assert clean("unfinished", "--yes") == []
    assert result.exists() and image.exists()
    assert [each["left"] for each in clean("--yes")] == [[], []]
    assert not result.exists() and not image.exists()
    assert "nothing to remove" in hpcgen("clean", cwd=places / "here").stderr


def test_what_hpcgen_did_not_make_stays(places: Path, clean: Clean) -> None:
    own = places / "thesis.json"
    own.write_text("mine")
    (places / "cache/hpcgen/matrix/notes.json").write_text("mine")
    (places / "cache/hpcgen/matrix" / RESULT).symlink_to(own)
    (places / "cache/hpcgen/images").rmdir()
    (places / "elsewhere").mkdir()
    (places / "elsewhere/onnx-0123456789ab-here.sqfs").write_text("mine")
    (places / "cache/hpcgen/images").symlink_to(places / "elsewhere")
    (places / "tmp/hpcgen-build-mine.work").mkdir()
    (places / "here/data.partial").mkdir()
    assert clean("--yes") == []
    assert own.exists() and (places / "elsewhere/onnx-0123456789ab-here.sqfs").exists()
    assert (places / "tmp/hpcgen-build-mine.work").exists() and (places / "here/data.partial").exists()


def test_work_of_killed_commands_goes_and_that_of_running_ones_stays(places: Path, clean: Clean) -> None:
    with (
        work_folder("hpcgen-kit-") as (running, _),
        work_folder(".hpcgen-convert-", where=places / "here") as (other, _),
    ):
        (running / "file").write_bytes(bytes(500))
        killed = running.with_name(f"{running.name.removesuffix('.work')}x.work")
        left = other.with_name(f"{other.name.removesuffix('.work')}x.work")
        for folder in (killed, left):
            folder.mkdir()
            (folder / "file").write_bytes(bytes(700))
        (killed / "link").symlink_to(places / "here")
        found = clean("unfinished")
        assert names(found) == {str(places / "tmp"): [killed.name], str(places / "here"): [left.name]}
        assert {each["bytes"] for each in found} <= {700, 700 + os.lstat(killed / "link").st_size}
        clean("--yes")
        assert running.exists() and other.exists()
        assert not killed.exists() and not left.exists() and (places / "here").is_dir()


def test_an_unfinished_bundle_goes_unless_somebody_works_at_it(places: Path, clean: Clean) -> None:
    target = places / "here/bundle"
    with workspace(target):
        assert clean("unfinished") == []
        mark = {path.name: path.read_bytes() for path in (places / "here/bundle.partial").iterdir()}
    (places / "here/bundle.partial").mkdir()
    for name, data in mark.items():
        (places / "here/bundle.partial" / name).write_bytes(data)
    (places / "here/other.partial").symlink_to(places / "here/bundle.partial")
    assert names(clean("unfinished")) == {str(places / "here"): ["bundle.partial"]}
    clean("unfinished", "--yes")
    assert not (places / "here/bundle.partial").exists() and (places / "here/other.partial").is_symlink()


def test_what_an_engine_still_uses_is_told(places: Path, hpcgen: Command) -> None:
    docker = places / "bin/docker"
    docker.write_text(
        "#!/bin/sh\n"
        "case $1 in images) echo sha256:abc ;; history) echo 'LABEL io.hpcgen.kit=/opt' ;; *) exit 1 ;; esac\n"
    )
    docker.chmod(0o755)
    done = hpcgen("clean", "images", "--yes", cwd=places / "here")
    assert done.returncode == 1
    assert "not known" in done.stdout
    assert "warning: docker: not removed: in use, or not yours: sha256:abc" in done.stderr


PODMAN = """\
#!/usr/bin/env python3
import json, sys
from pathlib import Path
store = Path(__file__).with_name("store.json")
images, words = json.loads(store.read_text()), sys.argv[1:]
if words[0] == "images":
    print(json.dumps(images))
elif words[:2] == ["image", "inspect"]:
    print(json.dumps([{"Id": name} for name in words[2:]]))
elif words[0] == "rmi":
    store.write_text(json.dumps([each for each in images if each["Id"] not in words]))
else:
    print("[]")
"""


def test_bases_that_builds_loaded_go_but_for_those_that_the_user_named_or_built_on(places: Path, clean: Clean) -> None:
    """A base from a file or a bundle has a name of hpcgen's in the stores of podman and ch-image."""
    base, user = "localhost/hpcgen-base/debian-12:0123", "localhost/mine:1"
    store = [
        {"Id": "a", "Names": [base], "Size": 100},
        {"Id": "b", "Names": [base.replace("12", "13")], "Size": 50},
        {"Id": "c", "Names": [user], "ParentId": "b", "Size": 60},
        {"Id": "d", "Names": [base.replace("12", "11"), user], "Size": 70},
    ]
    (places / "bin/store.json").write_text(json.dumps(store))
    for name in ("img/debian+12", "img/localhost%hpcgen-base%debian-12+0123"):
        (places / "storage" / name).mkdir(parents=True)
    programs = {
        "podman": PODMAN.replace("/usr/bin/env python3", sys.executable),
        "ch-image": f'#!/bin/sh\n[ "$1" = gestalt ] && echo {places}/storage || echo "$@" >> {places}/asked\n',
    }
    for name, text in programs.items():
        (places / "bin" / name).write_text(text)
        (places / "bin" / name).chmod(0o755)
    assert names(clean("build-cache")) == {"podman": ["a"], "ch-image": [base]}
    clean("build-cache", "--yes")
    assert [each["Id"] for each in json.loads((places / "bin/store.json").read_text())] == ["b", "c", "d"]
    assert f"delete {base}" in (places / "asked").read_text()


def test_files_of_old_jobs(places: Path, clean: Clean, hpcgen: Command) -> None:
    """What has changed within a week may be of a job that waits or runs; a link is nobody's job."""
    jobs = places / "here" / ".hpcgen" / "jobs"
    for name in ("pi-1", "pi-2"):
        (jobs / name).mkdir(parents=True)
        (jobs / name / "output").write_text("x" * 100)
    (jobs / "linked").symlink_to(places / "tmp")
    for path in (jobs / "pi-1" / "output", jobs / "pi-1"):
        os.utime(path, (1, 1))
    (found,) = clean("jobs")
    assert (found["kind"], found["names"], found["bytes"]) == ("jobs", ["pi-1"], 100)
    assert [each["names"] for each in clean("jobs", "--older-than", "0")] == [["pi-1", "pi-2"]]
    clean("jobs", "--yes")
    assert sorted(path.name for path in jobs.iterdir()) == ["linked", "pi-2"]
    clean("jobs", "--older-than", "0", "--yes")
    assert [path.name for path in jobs.iterdir()] == ["linked"]
