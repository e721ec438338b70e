"""Python of the distribution or from a build of its own, and the distributions that are there to be asked for."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from tests.conftest import Command


def rendered(hpcgen_: Command, *words: str) -> str:
    answer = hpcgen_("render", "--site", "workstation", *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_python_that_the_distribution_lacks_comes_as_a_build_with_its_hash(hpcgen: Command) -> None:
    words = ["--stack", "onnxruntime", "--set", "python.obtain=standalone", "--set", "python.version=3.11.*"]
    text = rendered(hpcgen, *words)
    row = Catalog().releases("python")["3.11.18"]
    assert row.archives["x86_64"].sha256 in text
    assert "-m venv" not in text
    assert "python3-venv" not in text
    assert "ln -sf python3.11 /opt/python/bin/python" in text


def test_nothing_but_the_option_brings_a_python_of_its_own() -> None:
    """Else any distribution would do for any Python, and the newest would be taken with a download."""
    for site in ("workstation", "supermuc", "leonardo"):
        plan = hpcgen.plan(site, "onnxruntime", allow_unsupported=True)
        chosen = {each.name: each for each in plan.blocks}["python"]
        assert not Catalog().release(chosen).archives


def test_the_remedy_where_no_distribution_has_it_names_the_option(hpcgen: Command) -> None:
    answer = hpcgen(
        "plan", "--site", "workstation", "--stack", "onnxruntime", "--set", "base.provider=debian",
        "--set", "debian.version=12", "--set", "python.version=3.12.*",
    )  # fmt: skip
    assert answer.returncode == 5
    assert "python.obtain=standalone" in answer.stderr


@pytest.mark.parametrize(
    ("words", "image"),
    [
        (["--set", "ubuntu.version=26.04"], "docker.io/library/ubuntu:resolute-"),
        (["--set", "base.provider=debian", "--set", "debian.version=13"], "docker.io/library/debian:trixie-"),
        (["--set", "base.provider=debian", "--set", "debian.version=11"], "docker.io/library/debian:bullseye-"),
        (["--set", "base.provider=rockylinux", "--set", "rockylinux.version=10"], "rockylinux/rockylinux:10"),
        (["--set", "base.provider=opensuse_leap"], "opensuse/leap:16.0"),
        (["--set", "base.provider=opensuse_leap", "--set", "opensuse_leap.version=15.6"], "opensuse/leap:15.6"),
    ],
)
def test_a_distribution_that_is_no_default_is_there_for_who_asks(hpcgen: Command, words: list[str], image: str) -> None:
    python = ["--set", "python.obtain=standalone"] if "opensuse_leap" in " ".join(words) else []
    assert image in rendered(hpcgen, "--stack", "onnxruntime", *words, *python)


def test_packages_of_opensuse_are_installed_by_zypper(hpcgen: Command) -> None:
    text = rendered(hpcgen, "--stack", "mpi-hello", "--set", "base.provider=opensuse_leap")
    assert "zypper --non-interactive install --no-recommends " in text
    assert "gcc13-c++" in text
    assert "zypper --non-interactive clean --all" in text
    assert "apt-get" not in text
    assert "dnf " not in text


def test_a_package_manager_that_nobody_knows_is_told() -> None:
    from hpcgen.recipe.bases import known_manager

    with pytest.raises(InputError, match="knows no package manager 'pacman'"):
        known_manager({"package_manager": "pacman"})
