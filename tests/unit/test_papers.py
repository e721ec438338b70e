"""docs/papers.md: every command plans, with the version that its line names, or shows what it is to show."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.conftest import ROOT, Command

COMMANDS = re.findall(r"\| `(hpcgen [^`]+)` \|", (ROOT / "docs" / "papers.md").read_text("utf-8"))


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.removeprefix("hpcgen plan --site ").replace("--", ""))
def test_every_command_of_the_page_works(hpcgen: Command, line: str) -> None:
    done = hpcgen(*shlex.split(line)[1:])
    assert done.returncode == 0, done.stderr
    for block, version in re.findall(r"--set (\w+)\.version=(\S+)", line):
        assert re.search(rf"(?m)^{block} +{re.escape(version)} ", done.stdout)


def test_the_page_has_the_software_of_all_three() -> None:
    assert len(COMMANDS) == len(set(COMMANDS)) >= 18
    stacks = {stack for line in COMMANDS for stack in re.findall(r"--stack (\S+)", line)}
    assert {"tf", "tf-xla", "tf-ngraph", "pytorch", "pytorch-glow", "mxnet", "cntk"} <= stacks
    assert {"tf-horovod", "3dgan", "onnxruntime"} <= stacks
