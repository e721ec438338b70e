"""Fixtures of every tier: the command as a user starts it, and the golden files' update flag."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.command import in_this_process, own_process

# Byte code is kept whatever the machine's own wish: each start of Python would compile hpcgen and its libraries anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The processes of the tests share the processors: a pool of threads for each of numpy's would only be in their way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Nor do the tests see the config file of whoever runs them.
os.environ["HPCGEN_CONFIG"] = ""
# Licences are accepted in them but where a test is about that.
os.environ["HPCGEN_ACCEPT_LICENCES"] = "all"
# How fast a machine is, and whether it may write into the checkout, is no matter of a test.
settings.register_profile("anywhere", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
CONTAINERS = ROOT / "tests" / "containers"

OWN_SETTINGS = {
    "HPCGEN_ENTRY_POINTS": "0",
    "HPCGEN_CONFIG": "",
    "HPCGEN_ACCEPT_LICENCES": "all",
    "HPCGEN_TODAY": "2026-11-27",
}

Command = Callable[..., "subprocess.CompletedProcess[str]"]


# Folders of files that tests read; looking for tests in them takes seconds.
collect_ignore = ["cpus", "golden", "trees"]
MOST_WORKERS = 8
"""With more the slowest tests decide how long it takes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what is rendered now")


def is_unit_tier(config: pytest.Config) -> bool:
    """Whether ``-m`` shuts out all tests that share daemons, mounts or stores of images."""
    return all(f"not {tier}" in config.option.markexpr for tier in ("containers", "root", "slow"))


MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Many times what the temporary folders of a run take; one is removed as its test ends."""


def pytest_configure(config: pytest.Config) -> None:
    """Put the temporary folders of the first tier into memory, where it can be: it writes thousands of small files."""
    if not is_unit_tier(config) or not os.access(MEMORY, os.W_OK):
        return
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize > ROOM and not there.f_flag & os.ST_NOEXEC:
        # Read by pytest when the first test asks for a folder.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process for each CPU that this one may use, and one more, since some tests wait for a server or a queue.

    None beside this one for one CPU, a named test, and the other tiers.
    """
    cpus = len(os.sched_getaffinity(0))
    one = cpus == 1 or config.option.update_golden or any("::" in word for word in config.args)
    return 0 if one or not is_unit_tier(config) else min(cpus + 1, MOST_WORKERS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The container tests are not even read where none of them is asked for."""
    named = any(Path(word).resolve().is_relative_to(CONTAINERS) for word in config.args)
    return True if collection_path == CONTAINERS and is_unit_tier(config) and not named else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a process of the container tests has to say of its builds."""
    for line in getattr(node, "workeroutput", {}).get("reports", []):
        node.config.get_terminal_writer().line(line)


def pytest_collection_finish() -> None:
    """What there is by now stays: looking at thousands of tests again and again for garbage takes time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_collections_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a catalog of another test taught the registries is forgotten."""
    from hpcgen.core.support import registry

    monkeypatch.setattr(registry, "COLLECTIONS", [])


def _command(start: Callable[..., subprocess.CompletedProcess[str]], folder: Path) -> Command:
    def run(
        *words: str, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HPCGEN_")}
        return start(words, {**clean, **OWN_SETTINGS, **(env or {})}, cwd or folder)

    return run


@pytest.fixture
def hpcgen(tmp_path: Path) -> Command:
    """The command with a user's words, in an empty folder; no collection or config file of the machine takes part."""
    return _command(in_this_process, tmp_path)


@pytest.fixture
def hpcgen_process(tmp_path: Path) -> Command:
    """The same as a process of its own: for what depends on how Python starts, or on a limit or time of the test."""
    return _command(own_process, tmp_path)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """An empty collection to put files into."""
    folder = tmp_path / "collection"
    for name in ("site_profiles", "recipes", "building_blocks"):
        (folder / name).mkdir(parents=True)
    return folder
