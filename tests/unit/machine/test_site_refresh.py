"""``hpcgen site refresh``: cited repositories are read again, and nothing of them runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hpcgen.machine.site_refresh import Cited, citations
from tests.conftest import Command
from tests.helpers.file_server import make_certificate
from tests.helpers.git_server import serving_git

PROFILE = """\
name: mine
title: Ours
extends: slurm-cpu
partitions: {{main: {{queues: [{{name: batch, max_time: "24:00:00"}}], cpu: {{cores: 64}}}}}}
file_systems: {{work: {{kind: lustre, path: /work}}}}
sources:
  partitions.main.queues: {{from: "github.com/centre/docs@{commit} docs/queues.md{lines}", {rest}}}
  partitions.main.cpu: {{from: "github.com/centre/docs@{commit} hardware", {rest}}}
  file_systems: {{from: "https://example.org/files", {rest}}}
"""
REST = "checked: 2026-11-27, as_of: 2026-01-01, verified: yes"
QUEUES = [f"queue {number}: {number} h" for number in range(100)]


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_COMMITTER_DATE": "2026-01-01T12:00:00Z"}
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(folder), *who, *words], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(clone: Path, lines: list[str]) -> None:
    (clone / "docs").mkdir(exist_ok=True)
    (clone / "docs" / "queues.md").write_text("\n".join([*lines, ""]))
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "said")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "hardware").mkdir()
    (folder / "hardware" / "nodes.md").write_text("64 cores\n")
    write(folder, QUEUES)
    return folder


def refresh(
    hpcgen: Command, clone: Path, commit: str, *words: str, lines: str = "", given: bool = True
) -> tuple[int, dict]:  # type: ignore[type-arg]
    profile = clone.parent / "mine.yaml"
    profile.write_text(PROFILE.format(commit=commit[:8], lines=lines, rest=REST))
    more = ("--clone", f"centre/docs={clone}") if given else ()
    done = hpcgen("site", "refresh", str(profile), *more, *words, "--json")
    return done.returncode, json.loads(done.stdout)


def queues(found: dict) -> dict:  # type: ignore[type-arg]
    (read,) = [each for each in found["files"] if each["file"] == "docs/queues.md"]
    return read  # type: ignore[no-any-return]


def test_nothing_is_told_where_the_cited_files_are_as_they_were(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    (clone / "other.md").write_text("new")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "another file")
    code, found = refresh(hpcgen, clone, commit)
    assert code == 0
    assert {each["file"]: each["status"] for each in found["files"]} == {"docs/queues.md": "same", "hardware": "same"}
    assert [page["source"] for page in found["pages"]] == ["https://example.org/files"]


def test_a_change_is_shown_beside_the_facts_that_rest_on_it(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    write(clone, ["queue 0: 12 h", *QUEUES[1:]])
    code, found = refresh(hpcgen, clone, commit)
    (changed,) = [each for each in found["files"] if each["status"] != "same"]
    assert code == 1
    assert (changed["status"], changed["cited_on"], found["changed"]) == ("changed", "2026-01-01", 1)
    assert [fact["path"] for fact in changed["facts"]] == ["partitions.main.queues"]
    assert "-queue 0: 0 h\n+queue 0: 12 h\n" in changed["hunks"][0]
    before = (clone.parent / "mine.yaml").read_text()
    said = hpcgen("site", "refresh", str(clone.parent / "mine.yaml"), "--clone", f"centre/docs={clone}")
    assert "+queue 0: 12 h" in said.stdout
    assert "partitions.main.queues: [{name: batch, max_time: 24:00:00}]" in said.stdout
    assert (clone.parent / "mine.yaml").read_text() == before


def test_a_change_far_from_the_cited_lines_is_none_of_the_fact(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    write(clone, ["queue 0: 12 h", *QUEUES[1:]])
    code, found = refresh(hpcgen, clone, commit, lines=":80-90")
    assert (code, queues(found)["status"]) == (0, "elsewhere")
    code, found = refresh(hpcgen, clone, commit, lines=":4")
    assert (code, queues(found)["status"], queues(found)["lines"]) == (1, "changed", "4")


def test_a_file_that_is_gone_and_a_folder_that_changed(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    git(clone, "rm", "-q", "docs/queues.md")
    (clone / "hardware" / "nodes.md").write_text("128 cores\n")
    git(clone, "commit", "-q", "-a", "-m", "moved")
    code, found = refresh(hpcgen, clone, commit)
    assert code == 1
    assert {each["file"]: each["status"] for each in found["files"]} == {
        "docs/queues.md": "gone",
        "hardware": "changed",
    }


def test_what_cannot_be_read_is_told_with_its_facts_and_what_to_give(hpcgen: Command, clone: Path) -> None:
    code, found = refresh(hpcgen, clone, git(clone, "rev-parse", "HEAD"), given=False)
    assert (code, found["files"]) == (13, [])
    (unread,) = found["unread"]
    assert unread["why"] == "it was not read → give a clone of it (--clone centre/docs=DIR), or --network"
    assert {"partitions.main.queues", "partitions.main.cpu.cores"} <= {fact["path"] for fact in unread["facts"]}
    code, found = refresh(hpcgen, clone, "0123abcd")
    assert code == 13
    assert "does not have 0123abcd" in found["unread"][0]["why"]


def test_nothing_of_a_clone_runs(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    (clone / ".gitattributes").write_text("*.md diff=evil filter=evil\n")
    write(clone, ["queue 0: 12 h"])
    ran = clone.parent / "ran"
    program = clone.parent / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    for name in (
        "diff.evil.command",
        "diff.evil.textconv",
        "diff.external",
        "core.pager",
        "core.fsmonitor",
        "filter.evil.smudge",
        "core.sshCommand",
        "core.gitProxy",
    ):
        git(clone, "config", name, str(program))
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (clone / ".git" / "hooks" / hook).write_text(program.read_text())
        (clone / ".git" / "hooks" / hook).chmod(0o755)
    assert not ran.exists()
    code, found = refresh(hpcgen, clone, commit)
    assert (code, found["changed"]) == (1, 1)
    assert not ran.exists()


def test_files_that_a_clone_left_with_its_server_are_not_fetched(hpcgen: Command, clone: Path, tmp_path: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    write(clone, ["queue 0: 12 h"])
    git(clone, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{clone}", "partial")
    code, found = refresh(hpcgen, tmp_path / "partial", commit)
    assert code == 13
    assert found["unread"][0]["why"].startswith("git says: ")


def test_a_folder_that_is_no_clone_is_not_taken_for_the_one_above_it(hpcgen: Command, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    code, found = refresh(hpcgen, clone / "docs", commit)
    assert (code, found["files"]) == (13, [])


def test_the_words_of_a_source_say_which_file_of_which_commit() -> None:
    said = "github.com/a/b@0123abcd docs/x.md:12 and gitlab.com/c/d.e@01234567 README.md, github.com/f/g."
    assert citations(said) == [
        Cited("github.com/a/b", "0123abcd", " docs/x.md:12 and "),
        Cited("gitlab.com/c/d.e", "01234567", " README.md, "),
        Cited("github.com/f/g", "", "."),
    ]


def test_a_clone_that_is_not_there_is_refused(hpcgen: Command) -> None:
    done = hpcgen("site", "refresh", "frontera", "--clone", "TACC/TACC-Docs=nowhere")
    assert done.returncode == 3
    assert "--clone: nowhere is not a folder" in done.stderr
    assert hpcgen("site", "refresh", "frontera", "--clone", "TACC-Docs").returncode == 2


def test_a_repository_is_fetched_by_https_and_nothing_of_it_stays(hpcgen: Command, clone: Path, tmp_path: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    write(clone, ["queue 0: 12 h", *QUEUES[1:]])
    served = tmp_path / "served" / "centre"
    served.mkdir(parents=True)
    git(served, "clone", "-q", "--bare", str(clone), "docs")
    key, certificate = make_certificate(tmp_path)
    profile = tmp_path / "mine.yaml"
    profile.write_text(PROFILE.format(commit=commit[:8], lines="", rest=REST))
    home, left = tmp_path / "home", tmp_path / "left"
    home.mkdir()
    left.mkdir()
    with serving_git(served.parent, key, certificate) as address:
        # The machine's own way to the repository: a mirror, and the authority that its certificate is from.
        settings = f'[url "{address}"]\n insteadOf = https://github.com/\n'
        (home / ".gitconfig").write_text(settings)
        env = {"HOME": str(home), "TMPDIR": str(left), "GIT_SSL_CAINFO": str(certificate)}
        done = hpcgen("site", "refresh", str(profile), "--network", "--json", env=env)
    found = json.loads(done.stdout)
    assert [each["why"] for each in found["unread"]] == []
    assert done.returncode == 1
    assert "-queue 0: 0 h\n+queue 0: 12 h\n" in queues(found)["hunks"][0]
    assert [*left.iterdir()] == []


def test_no_protocol_but_https_is_followed(hpcgen: Command, clone: Path, tmp_path: Path) -> None:
    (tmp_path / "centre").mkdir()
    git(tmp_path / "centre", "clone", "-q", "--bare", str(clone), "docs")
    profile = tmp_path / "mine.yaml"
    profile.write_text(PROFILE.format(commit=git(clone, "rev-parse", "HEAD"), lines="", rest=REST))
    home = tmp_path / "home"
    home.mkdir()
    allowed = '[protocol "file"]\n allow = always\n'
    (home / ".gitconfig").write_text(f'[url "file://{tmp_path}/"]\n insteadOf = https://github.com/\n{allowed}')
    env = {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    done = hpcgen("site", "refresh", str(profile), "--network", "--json", env=env)
    assert done.returncode == 13
    assert "transport 'file' not allowed" in json.loads(done.stdout)["unread"][0]["why"]
