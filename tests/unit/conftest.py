"""Fixtures of the unit tier."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.run import follow
from tests.helpers.trees import unpack


@pytest.fixture
def quick_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are followed more closely than a batch system of many users would like, and their output settles at once."""
    for name, seconds in (("FIRST_ASK_S", 0.1), ("LOOK_S", 0.05), ("SETTLE_S", 0.2)):
        monkeypatch.setattr(follow, name, seconds)


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captured trees of tests/trees, by name, as ``hpcgen site capture`` would have written them."""
    return unpack(tmp_path_factory.mktemp("trees"))
