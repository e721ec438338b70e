"""What shells complete after an installed command: words of the stack beside files, read by a real bash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.running.install.files import InstalledCommand, completion_files
from tests.conftest import Command as Hpcgen
from tests.unit.running.install.test_install import image, own_stack, prefix, programs, tree

__all__ = ["image", "prefix", "programs"]
WORDS = [{"program": "train=/usr/bin/printf", "words": ["fit", "evaluate", "--epochs", "-v"]}, "sh"]
FILES = ("share/bash-completion/completions/train", "share/fish/vendor_completions.d/train.fish")
ASK = """\
. "$1"
declared=$(complete -p train) || exit
# What a TAB asks: the same declaration, for a word that is begun.
eval "compgen ${declared#complete } -- $(printf %q "$2")" | sort
"""
Installed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def installed(hpcgen: Hpcgen, image: Path, prefix: Path, programs: Path, tmp_path: Path) -> Installed:
    """``installed(commands)``: the image, by a stack of the user's own that names these commands."""

    def run(commands: object = WORDS, *words: str) -> subprocess.CompletedProcess[str]:
        ours = own_stack(tmp_path, commands=commands)
        return hpcgen(*ours, "install", str(image), "--prefix", str(prefix), *words)

    return run


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("", ["--epochs", "-v", "a b.csv", "evaluate", "fit", "fitness.txt"]),
        ("fi", ["fit", "fitness.txt"]),
        ("--e", ["--epochs"]),
        ("a", ["a b.csv"]),
        ("x", []),
    ],
)
def test_bash_completes_words_beside_files(
    installed: Installed, prefix: Path, tmp_path: Path, begun: str, offered: list[str]
) -> None:
    done = installed()
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("fitness.txt", "a b.csv"):
        (folder / name).touch()
    # compgen takes the name that the declaration is for as no word of its own.
    words = [
        "bash",
        "-c",
        ASK.replace("${declared#complete }", "$(sed 's/^complete //; s/ train$//' <<< \"$declared\")"),
    ]
    said = subprocess.run(
        [*words, "ask", prefix / FILES[0], begun],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.stdout.splitlines(), said.stderr) == (offered, "")


def test_only_commands_with_words_have_files_and_they_go_again(
    installed: Installed, hpcgen: Hpcgen, prefix: Path
) -> None:
    installed()
    share = [path for path in tree(prefix) if path.startswith("share/") and "hpcgen" not in path]
    assert share == [*FILES, "share/zsh/site-functions/_train"]
    for name in ("1", "1.lua"):
        assert "XDG_DATA_DIRS" in (prefix / "modulefiles/mpi-hello" / name).read_text()
    installed(["sh"])
    assert not (prefix / "share/zsh").exists() or tree(prefix / "share/zsh") == []
    assert "XDG_DATA_DIRS" not in (prefix / "modulefiles/mpi-hello/1").read_text()
    installed()
    assert hpcgen("uninstall", "--prefix", str(prefix)).returncode == 0
    assert not prefix.exists()


@pytest.mark.parametrize("word", ["$(id)", "a b", "`id`", "a;b", "'", "--lr=", "", "a\\nb", "---x", "x" * 66, "*"])
def test_a_word_that_a_shell_could_read_otherwise_is_refused(installed: Installed, prefix: Path, word: str) -> None:
    done = installed([{"program": "sh", "words": ["fit", word]}])
    assert done.returncode == 3 and "words[1]" in done.stderr
    assert not prefix.exists()


def test_what_the_other_shells_read() -> None:
    files = completion_files(
        [InstalledCommand("g++", "/opt/a/g++", ("fit", "--epochs")), InstalledCommand("sh", "sh")], "mine"
    )
    zsh, fish = (
        files[path].text for path in ("share/zsh/site-functions/_g++", "share/fish/vendor_completions.d/g++.fish")
    )
    assert len(files) == 3 and zsh.startswith("#compdef g++\n") and "compadd -- fit --epochs &&" in zsh
    assert fish.endswith("complete -c g++ -a 'fit --epochs'\n")
