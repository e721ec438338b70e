"""A command on a terminal of its own, and what a reader sees on its screen."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Mapping
from pathlib import Path

COMMANDS = (
    "--help",
    "help images",
    "help exit-codes",
    "plan --help",
    "init --dry-run project",
    "list",
    "list sites",
    "list sites --facts",
    "list stacks",
    "list blocks",
    "list engines",
    "show site lumi-g",
    "show site lumi-g --origin --unverified",
    "show stack pytorch-ddp",
    "show block openmpi",
    "plan --site jupiter --stack pytorch-ddp --nodes 4",
    "plan --site supermuc --stack tf-horovod --notes",
    "plan --site workstation --stack mpi-hello --inputs",
    "render --site supermuc --stack mpi-hello -o new-kit",
    "explain",
    "explain --site supermuc --stack tf-horovod",
    "explain tensorflow OMP_NUM_THREADS --site supermuc --stack tf-horovod",
    "graph --site supermuc --stack tf-horovod",
    "diff supermuc supermuc-phase2",
    "diff kit other-kit",
    "contract --site jupiter --stack pytorch-ddp",
    "build kit --dry-run",
    "submit --site supermuc --stack mpi-hello --dry-run",
    "check bad-site.yaml",
    "check bad-stack.yaml",
    "site doctor workstation",
    "records",
    "clean --dry-run",
    "matrix --site supermuc --site jupiter --stack mpi-hello --stack tf-horovod",
    "measurements --workload lstm",
    "plan --site supermuk --stack mpi-hello",
    "plan --site aurora --stack pytorch-ddp --nodes 4 --set pytorch.install=conda",
)
"""What people type, on the files of :func:`prepare`."""
WIDTHS = (80, 120)


def prepare(folder: Path, env: Mapping[str, str]) -> None:
    """The files that the commands are about."""
    (folder / "project").mkdir()
    (folder / "project" / "requirements.txt").write_text("torch==2.8.0\nnumpy\npandas\n")
    (folder / "project" / "train.py").write_text("import numpy, torch\ntorch.distributed.init_process_group()\n")
    (folder / "bad-site.yaml").write_text("title: 3\nsystem: {distribution: plan9}\npartitions: {a: {nodez: 1}}\n")
    (folder / "bad-stack.yaml").write_text("titel: x\nblocks: {pytorch: {versoin: '2'}, nosuchblock: {}}\n")
    for name, stack in (("kit", "mpi-hello"), ("other-kit", "tf-horovod")):
        words = ["render", "--site", "supermuc", "--stack", stack, "-o", name]
        subprocess.run([sys.executable, "-m", "hpcgen", *words], cwd=folder, env=dict(env), check=True, timeout=120)


def on_a_terminal(words: list[str], typed: str, env: Mapping[str, str], folder: Path, columns: int = 200) -> str:
    """What a command says on a terminal, on which something is typed."""
    near, far = os.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    try:
        os.write(near, typed.encode())
        process = subprocess.Popen(words, stdin=far, stdout=far, stderr=far, env=dict(env), cwd=folder)
        os.close(far)
        said = b""
        while True:
            try:
                said += os.read(near, 4096)
            except OSError:  # Linux says EIO when the last one on the other side is gone
                break
        process.wait(timeout=60)
    finally:
        os.close(near)
    return said.decode()


def screen(said: str) -> list[str]:
    """The lines that stay when a command has ended, however long; without colours."""
    lines, row = [""], 0
    for part in re.split(r"(\n|\r|\x1b\[[0-9;?]*[A-Za-z])", said):
        if part == "\n":
            row += 1
        elif part == "\x1b[2K":
            lines[row] = ""
        elif re.fullmatch(r"\x1b\[\d+A", part):
            row = max(row - int(part[2:-1]), 0)
        elif part != "\r" and not part.startswith("\x1b"):
            lines[row] += part
        lines += [""] * (row + 1 - len(lines))
    return lines if lines[-1] else lines[:-1]


def cut(lines: Iterable[str], columns: int) -> list[str]:
    """Lines that the terminal breaks inside a word, though the word would fit on a line of its own."""
    found = []
    for line in lines:
        ends = range(columns, len(line), columns)
        if any(not line[end - 1].isspace() and not line[end].isspace() and _fits(line, end, columns) for end in ends):
            found.append(line)
    return found


def _fits(line: str, end: int, columns: int) -> bool:
    """Whether the word around a place is no longer than a line."""
    before, after = re.search(r"\S*$", line[:end]), re.match(r"\S*", line[end:])
    assert before is not None and after is not None
    return len(before[0]) + len(after[0]) <= columns - 4


def rows(lines: Iterable[str], columns: int) -> int:
    """How many lines of the screen they take."""
    return sum(max(1, -(-len(line) // columns)) for line in lines)


def main() -> None:
    """Print for each command the lines on screen and those cut in words: python -m tests.helpers.terminal."""
    import tempfile

    from tests.conftest import OWN_SETTINGS

    plain = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    env = {**plain, **OWN_SETTINGS, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    env.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        env["XDG_CACHE_HOME"] = env["XDG_DATA_HOME"] = str(folder / "home")
        prepare(folder, env)
        sums = [0] * (2 * len(WIDTHS))
        for command in COMMANDS:
            told = []
            for width in WIDTHS:
                said = on_a_terminal([sys.executable, "-m", "hpcgen", *command.split()], "", env, folder, width)
                lines = screen(said)
                told += [len(cut(lines, width)), rows(lines, width)]
            sums = [one + other for one, other in zip(sums, told, strict=True)]
            print("{:4} of {:4}   {:4} of {:4}   hpcgen {}".format(*told, command), flush=True)
    print("{:4} of {:4}   {:4} of {:4}   lines cut in words, at 80 and at 120 columns".format(*sums))


if __name__ == "__main__":
    main()
