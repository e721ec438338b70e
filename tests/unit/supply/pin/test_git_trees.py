"""Git trees, fetched from a real repository on this machine and unpacked as the recipes do."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.blocks.steps import GitTree
from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.model.image_paths import MOUNT, SCRATCH, file_path
from hpcgen.supply.pin.git_trees import commit_of, fetch_tree

ADDRESS = "https://git.example.org/tools/probe.git"

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """git in a repository that answers at ADDRESS, with a configuration of its own."""
    repository = tmp_path / "origin"
    settings = tmp_path / "gitconfig"
    settings.write_text(
        "[user]\n name = Nobody\n email = nobody@example.org\n[init]\n defaultBranch = main\n"
        f'[url "file://{repository}"]\n insteadOf = {ADDRESS}\n[protocol "file"]\n allow = always\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def run(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(repository), *words], check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()

    repository.mkdir()
    run("init", "-q")
    (repository / "README").write_text("one\r\ntwo\n")
    (repository / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (repository / "run.sh").chmod(0o755)
    (repository / "lib").mkdir()
    (repository / "lib" / "größe.txt").write_text("$Id$\n")
    (repository / "lib-x").write_text("sorts between lib and lib/\n")
    (repository / "link").symlink_to("lib/größe.txt")
    # What would make an archive differ from the commit.
    (repository / ".gitattributes").write_text("README text eol=crlf\n*.txt ident\nlib-x export-ignore\n")
    run("add", "-A")
    run("commit", "-q", "-m", "first")
    return run


def test_the_commit_of_a_branch_or_a_tag_is_the_one_that_git_takes(git: Git) -> None:
    first = git("rev-parse", "HEAD")
    git("tag", "-a", "v1", "-m", "annotated")
    git("branch", "other/main")
    git("commit", "-q", "--allow-empty", "-m", "second")
    second = git("rev-parse", "HEAD")
    assert [commit_of(ADDRESS, name) for name in ("v1", "other/main", "main", "HEAD")] == [first, first, second, second]
    with pytest.raises(FetchError, match=r"at nothing could not be fetched: it has no branch or tag with that name"):
        commit_of(ADDRESS, "nothing")


def test_the_archive_holds_the_files_of_the_commit_as_they_are(git: Git, tmp_path: Path) -> None:
    tree = GitTree(ADDRESS, git("rev-parse", "HEAD"))
    (tmp_path / "origin" / "README").write_text("later\n")
    git("commit", "-q", "-a", "-m", "second")

    sha256 = fetch_tree(tree, tmp_path / "a")

    archive = tmp_path / "a" / tree.file
    assert archive.name == f"probe-{tree.commit[:12]}.tar"
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256
    assert [path.name for path in (tmp_path / "a").iterdir()] == [archive.name]
    shutil.rmtree(tmp_path / "a")
    assert fetch_tree(tree, tmp_path / "b") == sha256
    with tarfile.open(tmp_path / "b" / archive.name) as tar:
        names = sorted(member.name for member in tar if not member.isdir())
        readme = tar.extractfile("README")
        assert readme is not None
        assert names == [".gitattributes", "README", "lib-x", "lib/größe.txt", "link", "run.sh"]
        assert tar.getmember("run.sh").mode & 0o111
        # The repository asks for CRLF on the way in and out; the commit has what git made of it.
        assert readme.read() == b"one\ntwo\n"


def test_both_ways_give_the_same_files(git: Git, tmp_path: Path) -> None:
    tree = GitTree(ADDRESS, git("rev-parse", "HEAD"))
    online, offline = tmp_path / "online", tmp_path / "offline"
    _run(tree.online_commands(str(online)), tmp_path)

    sha256 = fetch_tree(tree, tmp_path / "fetched")
    held = tmp_path / "bundle" / file_path(sha256, tree.file)
    held.parent.mkdir(parents=True)
    shutil.move(tmp_path / "fetched" / tree.file, held)
    _run(tree.bundled_commands(sha256, str(offline)), tmp_path)

    assert _content(online) == _content(offline) != {}
    assert not (online / ".git").exists()


def test_commands_are_simple_and_fail_each_on_its_own(git: Git, tmp_path: Path) -> None:
    tree = GitTree(ADDRESS, git("rev-parse", "HEAD"))
    for line in [*tree.online_commands("/opt/x"), *tree.bundled_commands("0" * 64, "/opt/x")]:
        assert not any(sign in line for sign in ("&&", "||", ";", "|"))
        assert "\n" not in line
    changed = [line.replace(f"= {tree.commit}", f"= {'0' * 40}") for line in tree.online_commands(str(tmp_path / "x"))]
    with pytest.raises(subprocess.CalledProcessError) as failed:
        _run(changed, tmp_path)
    assert "test" in str(failed.value.cmd)


def test_an_altered_archive_of_a_bundle_is_refused(git: Git, tmp_path: Path) -> None:
    tree = GitTree(ADDRESS, git("rev-parse", "HEAD"))
    sha256 = fetch_tree(tree, tmp_path)
    held = tmp_path / "bundle" / file_path(sha256, tree.file)
    held.parent.mkdir(parents=True)
    held.write_bytes((tmp_path / tree.file).read_bytes().replace(b"echo ran", b"echo bad"))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        _run(tree.bundled_commands(sha256, str(tmp_path / "out")), tmp_path)
    assert "sha256sum" in str(failed.value.cmd)
    assert not list((tmp_path / "out").iterdir())


def test_a_tree_that_is_not_in_the_lock_is_refused() -> None:
    with pytest.raises(InputError, match="does not pin"):
        GitTree(ADDRESS, "1" * 40).bundled_commands("", "/opt/x")


def test_submodules_are_empty_folders(git: Git, tmp_path: Path) -> None:
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},part")
    git("commit", "-q", "-m", "with a submodule")
    tree = GitTree(ADDRESS, git("rev-parse", "HEAD"))
    fetch_tree(tree, tmp_path)
    with tarfile.open(tmp_path / tree.file) as tar:
        assert tar.getmember("part").isdir()


def test_a_commit_that_no_branch_names_is_still_fetched(git: Git, tmp_path: Path) -> None:
    git("config", "uploadpack.allowAnySHA1InWant", "false")
    first = git("rev-parse", "HEAD")
    (tmp_path / "origin" / "README").write_text("later\n")
    git("commit", "-q", "-a", "-m", "second")
    assert fetch_tree(GitTree(ADDRESS, first), tmp_path)


def test_a_commit_that_is_not_there_names_address_and_commit(git: Git, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as failed:
        fetch_tree(GitTree(ADDRESS, "1" * 40), tmp_path / "out")
    message = str(failed.value)
    assert ADDRESS in message
    assert "1" * 40 in message
    assert "git says" in message
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("url", "commit"),
    [
        ("http://git.example.org/x.git", "1" * 40),
        ("file:///srv/x.git", "1" * 40),
        ("ssh://git@example.org/x.git", "1" * 40),
        ("https://git.example.org/x.git --upload-pack=sh", "1" * 40),
        (ADDRESS, "main"),
        (ADDRESS, "1" * 39),
        (ADDRESS, "1" * 40 + "\n"),
    ],
)
def test_anything_but_https_and_a_whole_commit_is_refused(url: str, commit: str, tmp_path: Path) -> None:
    for attempt in (
        lambda: GitTree(url, commit).online_commands("/opt/x"),
        lambda: GitTree(url, commit).bundled_commands("0" * 64, "/opt/x"),
        lambda: fetch_tree(GitTree(url, commit), tmp_path),
    ):
        with pytest.raises(InputError):
            attempt()


def test_another_protocol_is_refused_by_git_itself(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is https, but git's own settings send it elsewhere: a protocol nobody allowed."""
    settings = (tmp_path / "gitconfig").read_text().replace('[protocol "file"]\n allow = always\n', "")
    (tmp_path / "gitconfig").write_text(settings)
    with pytest.raises(FetchError, match="transport 'file' not allowed"):
        fetch_tree(GitTree(ADDRESS, git("rev-parse", "HEAD")), tmp_path / "out")


def _run(commands: list[str], tmp_path: Path) -> None:
    """Run a recipe's commands one by one, with the image's places below a folder of the test."""
    for line in commands:
        here = line.replace(MOUNT, str(tmp_path / "bundle")).replace(SCRATCH, str(tmp_path / "scratch"))
        subprocess.run(["sh", "-c", here], check=True, capture_output=True, timeout=60)


def _content(folder: Path) -> dict[str, tuple[bool, bytes]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (False, str(path.readlink()).encode())
        elif path.is_file():
            found[str(path.relative_to(folder))] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found


@pytest.mark.parametrize("end", ["", "/", ".git", "/.git"])
def test_a_repository_has_its_own_name_however_its_address_ends(end: str) -> None:
    """With none, a bill of materials could not be written."""
    tree = GitTree(f"https://example.org/group/solver{end}", "a" * 40)
    assert (tree.name, tree.file) == ("solver", f"solver-{'a' * 12}.tar")
