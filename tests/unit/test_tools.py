"""Tools of maintainers that nothing else tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hpcgen.core.config.decoding import record_from
from hpcgen.core.model.release import DatedImage
from tests.conftest import ROOT

TAG = "debian:bookworm-20260918"
DIGESTS = {name: f"sha256:{number:064x}" for number, name in enumerate(("index", "amd64", "other", "armv7", "arm64"))}


def part(title: str, digest: str) -> str:
    return f"{title}\n\n```console\n$ docker pull debian@{digest}\n```\n\n-\tManifest MIME: `x`\n\n"


TEXT = (
    part(f"## `{TAG}`", DIGESTS["index"])
    + part(f"### `{TAG}` - linux; amd64", DIGESTS["amd64"])
    + part(f"### `{TAG}` - unknown; unknown", DIGESTS["other"])
    + part(f"### `{TAG}` - linux; arm variant v7", DIGESTS["armv7"])
    + part(f"### `{TAG}` - linux; arm64 variant v8", DIGESTS["arm64"])
)


def read(folder: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    file = folder / "repos" / "debian" / "remote" / "bookworm-20260918.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    words = [sys.executable, ROOT / "tools" / "read_base_image.py", name, "43a0ed1e", file]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_entry_of_a_base_image_is_read_from_its_file(tmp_path: Path) -> None:
    done = read(tmp_path, "debian:12", TEXT)
    assert done.returncode == 0, done.stderr
    found = record_from(yaml.safe_load(done.stdout), DatedImage)
    assert (found.name, found.dated, found.digest) == ("debian:12", "bookworm-20260918", DIGESTS["index"])
    assert found.platforms == {"amd64": DIGESTS["amd64"], "arm64": DIGESTS["arm64"]}
    assert found.source is not None
    assert found.source.from_.endswith("repo-info@43a0ed1e repos/debian/remote/bookworm-20260918.md")


@pytest.mark.parametrize(("name", "text"), [("ubuntu:22.04", TEXT), ("debian:12", "# another file\n")])
def test_another_file_is_refused(name: str, text: str, tmp_path: Path) -> None:
    done = read(tmp_path, name, text)
    assert (done.returncode, done.stdout) == (1, "")
    assert "bookworm-20260918.md is " in done.stderr


def test_links_that_lead_nowhere_are_found_in_a_built_site(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="task/#how">a</a><a href="https://example.org">b</a>'
    )
    (tmp_path / "task" / "index.html").write_text('<h2 id="how">x</h2><a href="../#top">a</a><img src="../p.svg">')
    command = [sys.executable, ROOT / "tools" / "docs" / "dead_links.py", tmp_path]
    missing = subprocess.run(command, capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert missing.stdout.splitlines()[0] == "task/index.html links to ../p.svg, which leads nowhere"
    (tmp_path / "p.svg").write_text("<svg/>")
    right = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (right.returncode, right.stdout) == (0, "2 pages, 3 links, 0 of them wrong\n")
    (tmp_path / "task" / "index.html").write_text(
        '<a href="../#gone">a</a><script src="https://example.org/x.js"></script>'
    )
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert wrong.stdout.splitlines() == [
        "index.html links to task/#how, which leads nowhere",
        "task/index.html links to ../#gone, which leads nowhere",
        "task/index.html fetches https://example.org/x.js",
        "2 pages, 2 links, 3 of them wrong",
    ]
