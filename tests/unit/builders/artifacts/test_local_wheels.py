"""Packages in folders of this machine, put beside a recipe: which, in which step, and in which formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import hpcgen
from hpcgen.builders.artifacts.local_wheels import with_local_wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.cli import cli
from hpcgen.core.support.hashing import file_sha256
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import FORMATS, format_for
from hpcgen.recipe.stages import Assembly
from hpcgen.supply.net.pip_settings import look_in

STACK = """name: mine
title: my project
blocks: {python_packages: {options: {files: [requirements.txt]}}}
run: {mpi: false, command: [python3, -c, import mine]}
"""
MINE = "mine-1.0-py3-none-any.whl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose one package is a wheel in ``wheels``, and pip without settings of its own."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    (tmp_path / "wheels").mkdir()
    wheel = tmp_path / "wheels" / MINE
    wheel.write_bytes(b"of the folder")
    (tmp_path / "requirements.txt").write_text(f"mine==1.0 --hash=sha256:{file_sha256(wheel)}\n")
    (tmp_path / "hpcgen.yaml").write_text(STACK)
    return tmp_path


def assembly(folder: Path, format: str, told: list[str]) -> tuple[Assembly, Assembly, str]:
    """Of the project: as it is, with the folder's wheels, and the text of the latter."""
    plan = hpcgen.plan(
        "workstation", str(folder / "hpcgen.yaml"), format=format, catalog=Catalog(), allow_unsupported=True
    )
    plain = assemble(plan, Catalog())
    look_in([folder / "wheels"])
    try:
        found = with_local_wheels(plain, told.append)
    finally:
        look_in([])
    return plain, found, str(format_for(format).recipe(plan, found).text)


@pytest.mark.parametrize("format", FORMATS.names())
def test_a_step_of_pip_finds_the_file_that_its_list_names(folder: Path, format: str) -> None:
    told: list[str] = []
    plain, found, text = assembly(folder, format, told)
    assert told == [f"{MINE} is taken from {folder}/wheels"]
    ((path, source),) = [(each.path, each.source) for each in found.archives]
    assert path.startswith("artifacts/wheels/builder-") and path.endswith(MINE) and source == folder / "wheels" / MINE
    assert "PIP_FIND_LINKS=/opt/hpcgen/build/wheels/builder-" in text and MINE in text
    # It is the same image.
    assert found.labels == plain.labels


def test_a_file_of_that_name_with_other_bytes_is_left(folder: Path) -> None:
    (folder / "wheels" / MINE).write_bytes(b"another")
    told: list[str] = []
    plain, found, _ = assembly(folder, "docker", told)
    assert found is plain
    assert told == [
        "--wheel-dir: no file there has a hash of this recipe's package lists; hpcgen lock --wheel-dir pins them"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bundle", "B"), "a bundle has all packages"),
        (("KIT",), "does not apply to a KIT: give --locked KIT/hpcgen.lock"),
        (("--locked", "hpcgen.lock", "--wheel-dir", "missing"), "missing is not a folder"),
    ],
)
def test_where_it_means_nothing_it_is_refused(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(cli, ["build", "--wheel-dir", str(folder / "wheels"), *words])
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)
