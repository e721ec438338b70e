"""Fixtures of the unit tier."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.images import remembered
from hpcgen.running import follow
from hpcgen.supply.net import pip_settings
from tests.helpers.trees import unpack

PIP_READS = ("HOME", "PATH", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS")
"""Variables by which pip finds its files, beside its own."""


@pytest.fixture
def quick_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are followed more closely than a batch system of many users would like, and their output settles at once."""
    for name, seconds in (("FIRST_ASK_S", 0.1), ("LOOK_S", 0.05), ("SETTLE_S", 0.2)):
        monkeypatch.setattr(follow, name, seconds)


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captured trees of tests/trees, by name, as ``hpcgen site capture`` would have written them."""
    return unpack(tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="session", autouse=True)
def pip_is_asked_once() -> Iterator[None]:
    """What pip says of its settings is asked once for the same environment: it takes half a second to start."""
    ask, known, one_at_a_time = pip_settings._pip, {}, threading.Lock()

    def answer(python: str) -> subprocess.CompletedProcess[str]:
        counts = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in PIP_READS}
        about = (python, *sorted(counts.items()))
        with one_at_a_time:
            if about not in known:
                known[about] = ask(python)
        return known[about]

    with pytest.MonkeyPatch.context() as here:
        here.setattr(pip_settings, "_pip", answer)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """What these tests write need not outlive a failure of power; some write a thousand files."""
    with pytest.MonkeyPatch.context() as here:
        here.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def what_is_read_of_images_is_kept_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """And not in the cache of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("facts")
    with pytest.MonkeyPatch.context() as here:
        here.setattr(remembered, "cache_folder", lambda part="": folder / part)
        yield
