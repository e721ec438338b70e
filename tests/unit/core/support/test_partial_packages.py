"""Modules of a package without its ``__init__``, by a package made here."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.core.support.partial_packages import module_alone

PACKAGE = {
    "heavy/__init__.py": "from .light import LIGHT\nfrom .rest import REST\nRUNS = globals().get('RUNS', 0) + 1\n",
    "heavy/light.py": "LIGHT = 1\n",
    "heavy/rest.py": "REST = 2\n",
    "outer/__init__.py": "",
    "outer/heavy/__init__.py": "from . import rest\n",
    "outer/heavy/light.py": "LIGHT = 3\n",
    "outer/heavy/rest.py": "REST = 4\n",
}


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("heavy", "outer")]:
        del sys.modules[name]


def test_a_module_comes_without_the_rest_of_its_package() -> None:
    assert module_alone("heavy.light").LIGHT == 1
    assert "heavy.rest" not in sys.modules


def test_the_package_is_whole_for_whoever_imports_it_afterwards() -> None:
    light = module_alone("heavy.light")
    import heavy  # type: ignore[import-not-found]

    assert (heavy.REST, heavy.RUNS) == (2, 1)
    assert heavy.light is light
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = heavy.nothing


def test_another_module_of_it_can_be_imported_afterwards() -> None:
    module_alone("outer.heavy.light")
    import outer.heavy.rest  # type: ignore[import-not-found]

    assert (outer.heavy.rest.REST, outer.heavy.light.LIGHT) == (4, 3)


def test_a_package_that_is_there_stays_as_it_is() -> None:
    import heavy

    assert module_alone("heavy.light") is heavy.light
    assert heavy.RUNS == 1


def test_a_module_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        module_alone("heavy.nothing")
    import heavy

    assert heavy.REST == 2


def test_threads_that_ask_at_once_get_one_module() -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(module_alone("heavy.light"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(module) for module in found}) == 1
