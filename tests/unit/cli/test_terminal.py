"""What people see on a terminal: whole words, commands that can be copied, colours where they are wanted."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from hpcgen.cli.terminal import fitted
from tests.conftest import OWN_SETTINGS, Command
from tests.helpers.terminal import COMMANDS, cut, on_a_terminal, prepare, screen

COLUMNS = 80
UNKNOWN = ("plan", "--site", "supermuk", "--stack", "mpi-hello")
RED = "\x1b[31m"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = str(tmp_path_factory.mktemp("home"))
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    own = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": home, "XDG_DATA_HOME": home}
    return {**clean, **OWN_SETTINGS, **own}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> Path:
    made = tmp_path_factory.mktemp("files")
    prepare(made, env)
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_broken_inside_a_word(command: str, env: dict[str, str], folder: Path) -> None:
    said = on_a_terminal([sys.executable, "-m", "hpcgen", *command.split()], "", env, folder, COLUMNS)
    lines = screen(said.replace("\r\n", "\n"))
    assert any(lines)
    assert cut(lines, COLUMNS) == []


def test_a_command_in_a_long_message_can_be_copied_from_a_line_of_its_own() -> None:
    command = "hpcgen lock --site supermuc --stack mpi-hello --set 'a.b=c d' --set mpich.version=4.3.2"
    text = f"hpcgen: note: the lock is of other versions than those that are asked for now; `{command}`, or remove it"
    lines = fitted(text, 60).split("\n")
    assert lines[0].startswith("hpcgen: note: ") and lines[-1] == "  or remove it"
    start = next(number for number, line in enumerate(lines) if line.startswith("    hpcgen lock"))
    copied = "\n".join(lines[start:-1])
    assert re.sub(r" \\\n +", " ", copied).strip() == command
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("plan --site lumi-g --stack pytorch-ddp", 25),
        ("plan --site jupiter --stack pytorch-ddp --nodes 4", 25),
        *((f"show block {name}", 60) for name in ("openmpi", "pytorch", "tensorflow", "mpich")),
        ("show site lumi-g", 60),
    ],
)
def test_what_is_asked_first_fits_a_screen(command: str, most: int, env: dict[str, str], folder: Path) -> None:
    said = on_a_terminal([sys.executable, "-m", "hpcgen", *command.split()], "", env, folder, COLUMNS)
    assert len(screen(said)) <= most


def test_a_block_is_a_line(hpcgen: Command, env: dict[str, str], folder: Path) -> None:
    blocks = json.loads(hpcgen("list", "blocks", "--json").stdout)
    lines = screen(on_a_terminal([sys.executable, "-m", "hpcgen", "list", "blocks"], "", env, folder, COLUMNS))
    assert [line.split()[0] for line in lines] == ["name", *(each["name"] for each in blocks)]
    assert max(map(len, lines)) <= COLUMNS


def test_colours_are_on_a_terminal_alone(hpcgen: Command, env: dict[str, str], tmp_path: Path) -> None:
    def seen(*options: str, **more: str) -> str:
        words = [sys.executable, "-m", "hpcgen", *UNKNOWN, *options]
        return on_a_terminal(words, "", {**env, **more}, tmp_path)

    assert RED in seen()
    assert "\x1b" not in seen(NO_COLOR="1") + seen("--color", "never")
    assert RED in seen("--color", "always", NO_COLOR="1")
    assert "\x1b" not in hpcgen(*UNKNOWN).stderr and RED in hpcgen(*UNKNOWN, "--color", "always").stderr


@pytest.mark.parametrize("words", [("plan", "--nodes", "x"), ("explain",), ("nosuch",), ("list", "nosuch"), UNKNOWN])
def test_every_error_has_one_form(words: tuple[str, ...], hpcgen: Command) -> None:
    said = hpcgen(*words).stderr
    assert re.fullmatch(r"hpcgen: error: [^A-Z\n][^\n]*\n  remedy: [^\n]+\n", said)
