"""Fixtures of the unit tier."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.trees import unpack


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captured trees of tests/trees, by name, as ``hpcgen site capture`` would have written them."""
    return unpack(tmp_path_factory.mktemp("trees"))
