"""Every distinct file of every kit that can be rendered goes through hadolint, shellcheck and a shell's own parser."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.helpers.matrix_files import files
from tests.unit.kit.test_readers import TOOLS

AT_ONCE = 100
pytestmark = pytest.mark.slow


def test_what_plans_renders() -> None:
    found = files()
    assert found.failed == []
    counts = {kind: len(getattr(found, kind)) for kind in ("dockerfiles", "charliecloud", "definitions", "scripts")}
    print(f"\n{found.kits} kits, distinct files: {counts}")
    assert found.kits > 100 and all(counts.values())


def written(texts: Mapping[str, str], folder: Path) -> Iterator[list[Path]]:
    """The texts as files, some at a time."""
    paths = []
    for name, text in texts.items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    for start in range(0, len(paths), AT_ONCE):
        yield paths[start : start + AT_ONCE]


def test_dockerfiles_are_clean_for_hadolint(tmp_path: Path) -> None:
    found = files()
    for paths in written({**found.dockerfiles, **found.charliecloud}, tmp_path):
        words = [TOOLS / "hadolint", "--config", ROOT / ".hadolint.yaml", *paths]
        done = subprocess.run(words, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_scripts_are_clean_for_shellcheck(tmp_path: Path) -> None:
    for paths in written(files().scripts, tmp_path):
        done = subprocess.run([TOOLS / "shellcheck", "--norc", *paths], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_parse(tmp_path: Path) -> None:
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    for paths in written(files().scripts, tmp_path):
        for path in paths:
            shell = "bash" if path.read_text().startswith("#!/bin/bash") else "sh"
            done = subprocess.run([shell, "-n", path], env=env, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), path.name
