"""A remedy that names options or a command works when it is typed."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.conftest import Command

PLAN = ("plan", "--site", "workstation")
SITUATIONS = [
    (*PLAN, "--stack", "tf-horovod", "--set", "tensorflow.version=99"),
    (*PLAN, "--stack", "pytorch", "--set", "cmake.version=>=3.20"),
    (*PLAN, "--stack", "pytorch", "--set", "python.version=2.7"),
    (*PLAN, "--stack", "jax", "--set", "jax.version=0.1"),
    (*PLAN, "--stack", "pytorch", "--set", "pytorch.version=>=99"),
]
"""Questions that are refused."""
OPTION = re.compile(r"(?<!without )--(?:set|add|partition|site|nodes) [^\s,;()]+")
DROPPED = re.compile(r"without (--(?:set|add) [^\s,;()]+)")
PROGRAM = re.compile(r"`?\bhpcgen ((?:list|show|explain|plan|check|schema|lock)\b[^`;,()\n]*)`?")


def remedies(said: str) -> list[str]:
    """Each of the alternatives on a line of its own."""
    return [match[1] for match in re.finditer(r"^  (?:remedy|or): (.*)$", said, re.MULTILINE)]


def without(words: list[str], dropped: list[str]) -> list[str]:
    """The words without an option and its value, or with another value for it."""
    for text in dropped:
        option, value = shlex.split(text)
        at = next((n for n in range(len(words) - 1) if words[n : n + 2] == [option, value]), None)
        if at is not None:
            del words[at : at + 2]
    return words


@pytest.mark.parametrize("words", SITUATIONS, ids=lambda each: " ".join(each[1:]))
def test_what_a_remedy_says_works(hpcgen: Command, words: tuple[str, ...]) -> None:
    refused = hpcgen(*words)
    assert refused.returncode not in (0, 1, 2)
    tried = 0
    for remedy in remedies(refused.stderr):
        for program in PROGRAM.findall(remedy):
            if not re.search(r"\b[A-Z]{3,}\b", program):
                assert hpcgen(*shlex.split(program)).returncode == 0, program
        options = [each for text in OPTION.findall(remedy) for each in shlex.split(text)]
        if "=" in "".join(options) or "--add" in options:
            named = [each.partition("=")[0] for each in options if "=" in each]
            replaced = [f"--set {each}" for each in words if each.partition("=")[0] in named]
            again = without(list(words), [*DROPPED.findall(remedy), *replaced])
            done = hpcgen(*again, *options)
            tried += 1
            assert done.returncode == 0, f"{remedy}\n{done.stderr}"
    assert tried, refused.stderr
