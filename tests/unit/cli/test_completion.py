"""Completion in a real, interactive bash: what a TAB offers, and what it leaves on the line."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

END = "=== end ==="
PROMPT = "ready> "


class Bash:
    """A bash on a terminal of its own, in which ``hpcgen`` completes."""

    def __init__(self, folder: Path) -> None:
        program = folder / "hpcgen"
        program.write_text(f'#!/bin/bash\nexec {sys.executable} -m hpcgen "$@"\n')
        program.chmod(0o755)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ |= {
                "PATH": f"{folder}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "PS1": PROMPT,
                "TERM": "dumb",
            }
            os.chdir(folder)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.type("bind 'set completion-query-items 0'; bind 'set page-completions off'; bind 'set bell-style none'\n")
        self.run("stty cols 300")
        self.run('eval "$(hpcgen completion bash)"')

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until_end(self) -> str:
        """What it says up to the end of the command; it waits for the next one then."""
        said, stop = "", time.monotonic() + 60
        while PROMPT not in said.partition(END)[2]:
            assert time.monotonic() < stop, said
            if select.select([self.terminal], [], [], 1)[0]:
                said += os.read(self.terminal, 65536).decode()
        return said.partition(END)[0]

    def run(self, line: str) -> str:
        # Echoed, the command itself does not hold the words that are waited for.
        self.type(f"{line}; echo '===' 'end' '==='\n")
        return self.until_end()

    def completed(self, line: str) -> str:
        """What is on the line after a TAB and one more letter, which shows whether a space came before it."""
        # To the beginning of the line, an echo before it, and its words are printed.
        self.type(f"{line}\tX; echo '===' 'end' '==='\x01echo \n")
        return self.until_end().replace("\r", "").splitlines()[-1]

    def offered(self, line: str) -> list[str]:
        """The words below the line after two TABs."""
        self.type(f"{line}\t\t\x15")
        return self.run(":").replace("\r", "").partition("\n")[2].partition(PROMPT)[0].split()


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    shell = Bash(tmp_path_factory.mktemp("bash"))
    yield shell
    shell.type("exit\n")
    os.waitpid(shell.pid, 0)


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("hpcgen show site supermuc-p", "hpcgen show site supermuc-phase2 X"),
        ("hpcgen show block python_p", "hpcgen show block python_packages X"),
        ("hpcgen site doctor work", "hpcgen site doctor workstation X"),
        ("hpcgen plan --site work", "hpcgen plan --site workstation X"),
        ("hpcgen plan --site=work", "hpcgen plan --site=workstation X"),
        ("hpcgen job --stack mpi-h", "hpcgen job --stack mpi-hello X"),
        ("hpcgen test image.sif --site work", "hpcgen test image.sif --site workstation X"),
        ("hpcgen plan --add python_p", "hpcgen plan --add python_packages X"),
        ("hpcgen plan --site supermuc --partition f", "hpcgen plan --site supermuc --partition fat X"),
        ("hpcgen plan --site supermuc --queue gen", "hpcgen plan --site supermuc --queue general X"),
        ("hpcgen plan --set tensorf", "hpcgen plan --set tensorflow.X"),
        ("hpcgen plan --set tensorflow.inst", "hpcgen plan --set tensorflow.install=X"),
        ("hpcgen plan --set tensorflow.install=so", "hpcgen plan --set tensorflow.install=source X"),
        ("hpcgen plan --set mpi.provider=mpi", "hpcgen plan --set mpi.provider=mpich X"),
        ("hpcgen plan --set gnu.fortran=t --site work", "hpcgen plan --set gnu.fortran=t --site workstation X"),
        ("hpcgen lock --accept-licence intel-eu", "hpcgen lock --accept-licence intel-eula X"),
        ("hpcgen build --site supermuc --stack mpi-hello --accept-licence in", "… --accept-licence intel-eula X"),
        ("hpcgen build --all --on work", "hpcgen build --all --on workstation X"),
        ("hpcgen inspect ./hpcg", "hpcgen inspect ./hpcgen X"),
    ],
)
def test_a_tab_completes_a_name(bash: Bash, line: str, completed: str) -> None:
    found = bash.completed(line)
    assert found.endswith(completed.removeprefix("… ")), found


def test_two_tabs_offer_what_fits(bash: Bash) -> None:
    assert bash.offered("hpcgen show site supermuc") == ["supermuc", "supermuc-phase2"]
    assert sorted(bash.offered("hpcgen plan --set tensorflow.install=")) == ["hub", "intel", "pip", "source"]
    assert {"cuda.", "mpi.", "tensorflow."} <= set(bash.offered("hpcgen plan --set "))
    assert {"all", "intel-eula"} <= set(bash.offered("hpcgen build --accept-licence "))
    assert bash.offered("hpcgen plan --site nowhere --partition ") == []
