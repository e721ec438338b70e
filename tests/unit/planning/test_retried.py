"""What a refusal tells to try instead has a plan."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Command

REFUSED = [
    ("workstation mpi-hello --ranks-per-node 200", "try --ranks-per-node 8"),
    ("workstation mpi-hello --ranks-per-node 200 --threads 4", "try --ranks-per-node 2"),
    ("workstation mpi-hello --nodes 3", "try --nodes 1"),
    ("hlrs-testbed mpi-hello --nodes 999", "try --nodes 1"),
    ("workstation mpi-hello --queue long", "leave --queue out"),
    ("workstation mpi-hello --gpus 1", "leave --gpus out"),
    ("supermuc mpi-hello --nodes 100000 --ranks-per-node 200", "try --ranks-per-node 48 --nodes 6336"),
    ("supermuc mpi-hello --memory-per-rank 50 --ranks-per-node 10", "try --ranks-per-node 1 or --partition fat"),
    ("supermuc mpi-hello --memory-per-rank 500", "try --partition fat"),
    ("supermuc mpi-hello --queue micro --nodes 100", "try --queue general or --nodes 16"),
    ("supermuc mpi-hello --queue micr", "try --queue micro"),
    ("supermuc mpi-hello --queue micr --nodes 100", "did you mean micro? or try --queue general"),
    ("leonardo tf-horovod --time 100h", "try --time 96:00:00"),
    ("leonardo tf-horovod --nodes 1000", "try --nodes 256"),
    ("leonardo tf-horovod --nodes 1000 --time 1000h", "try --time 96:00:00 --nodes 8"),
    ("leonardo tf-horovod --gpus 6", "try --gpus 4"),
    ("leonardo onnxruntime --nodes 6", "try --nodes 1"),
    ("leonardo tf-horovod --ranks-per-node 16 --threads 16", "try --threads 2 or --ranks-per-node 2"),
    ("leonardo tf-horovod --threads 1600", "try --threads 8"),
    (
        "leonardo tf-horovod --ranks-per-node 200 --threads 200 --nodes 100000",
        "try --ranks-per-node 1 --nodes 256 without --threads",
    ),
]


def options_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"(--[a-z-]+) ([^- ]\S*)", text))


@pytest.mark.parametrize(("asked", "remedy"), REFUSED, ids=[asked for asked, _ in REFUSED])
def test_the_remedy_of_a_job_that_does_not_fit_is_a_question_that_plans(
    hpcgen: Command, asked: str, remedy: str
) -> None:
    site, stack, given = (*asked.split(" ", 2),)
    refused = hpcgen("plan", "--site", site, "--stack", stack, *given.split())
    assert refused.returncode == 6 and f"  remedy: {remedy}" in refused.stderr, refused.stderr
    for text in remedy.partition("? or ")[2].split(" or ") if "? or " in remedy else remedy.split(" or "):
        omitted = re.findall(r"(--[a-z-]+)", text.partition("without ")[2] + text.partition("leave ")[2])
        words = {key: value for key, value in options_of(given).items() if key not in omitted}
        words |= options_of(text.partition(" without ")[0].partition("leave ")[0])
        done = hpcgen("plan", "--site", site, "--stack", stack, *(word for pair in words.items() for word in pair))
        assert done.returncode == 0, (text, done.stderr)


@pytest.mark.parametrize("setting", ["python_packages.packages=h5py==3.11.0", "openmpi.pmix=separate"])
def test_a_setting_of_a_block_that_is_not_there_says_how_to_add_it(hpcgen: Command, setting: str) -> None:
    words = ["plan", "--site", "workstation", "--stack", "mpi-hello", "--set", setting]
    refused = hpcgen(*words)
    block = setting.partition(".")[0]
    assert refused.returncode == 4 and f"  remedy: put it into the image: --add {block}\n" in refused.stderr
    assert hpcgen(*words, "--add", block).returncode == 0


def test_where_adding_a_block_is_not_enough_what_stands_against_it_is_told(hpcgen: Command) -> None:
    done = hpcgen("plan", "--site", "workstation", "--stack", "mpi-hello", "--set", "cmake.version=3.20")
    assert done.returncode == 4
    assert "error: with --add cmake: no known release fits: --set cmake asks for cmake ==3.20" in done.stderr
    assert "remedy: --set cmake.version=3.28.4 instead of 3.20 (plans" in done.stderr
