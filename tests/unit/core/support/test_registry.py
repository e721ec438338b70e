"""Classes by name: which one is taken, where unknown names lead, and that nothing is imported early."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.core.support import registry
from hpcgen.core.support.registry import Registry

ROWS = {"fraction": "fractions:Fraction", "colour": "colorsys_that_is_not_there:Colour"}
TOY = 'class Base: ...\nclass Toy(Base):\n    name = "toy"\n'


@pytest.fixture
def toys() -> Registry[object]:
    return Registry("toy", "toys", ROWS)


def with_file(folder: Path, name: str, text: str) -> Path:
    (folder / "toys").mkdir(exist_ok=True)
    (folder / "toys" / f"{name}.py").write_text(text)
    Catalog([folder])
    return folder


def test_a_built_in_class_is_imported_when_it_is_asked_for(toys: Registry[object]) -> None:
    assert toys.names() == ["fraction", "colour"]  # though the second could not be imported
    assert toys.find("fraction") is Fraction
    assert "fraction" in toys and "fractoin" not in toys and None not in toys


def test_an_unknown_name_leads_to_the_nearest(toys: Registry[object]) -> None:
    with pytest.raises(UnknownNameError, match=r"stack\.yaml:3: no toy is called 'fractoin'(.|\n)*mean fraction"):
        toys.find("fractoin", "stack.yaml:3")


def test_a_collection_brings_a_class_and_may_replace_one(toys: Registry[object], collection: Path) -> None:
    with_file(collection, "toy", TOY)
    with_file(collection, "fraction", TOY.replace('"toy"', '"fraction"'))
    assert toys.find("toy").__name__ == "Toy"
    assert toys.find("toy") is toys.find("toy")
    assert toys.find("fraction") is not Fraction
    assert toys.names() == ["fraction", "colour", "toy"] and "toy" in toys


def test_a_file_without_the_class_and_one_that_fails_are_named(toys: Registry[object], collection: Path) -> None:
    with_file(collection, "toy", "class Toy: ...\n")
    with_file(collection, "bad", "import nothing_of_this_name\n")
    with pytest.raises(InputError, match="has no toy named 'toy'"):
        toys.find("toy")
    with pytest.raises(InputError, match=r"bad\.py cannot be loaded: ModuleNotFoundError"):
        toys.find("bad")
    for name in ("../toys/toy", "_toy"):
        assert name not in toys


def test_an_installed_package_brings_a_class(
    toys: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_toys-1.0.dist-info"
    package.mkdir()
    (package / "entry_points.txt").write_text(
        "[console_scripts]\nx = y:z\n\n[hpcgen.toys]\nparts = fractions:Fraction\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setenv("HPCGEN_ENTRY_POINTS", "0")
    assert "parts" not in toys
    monkeypatch.setenv("HPCGEN_ENTRY_POINTS", "1")
    assert toys.find("parts") is Fraction and "parts" in toys.names()


def test_what_a_catalog_brings_is_found_once(collection: Path) -> None:
    Catalog([collection])
    Catalog([collection])
    assert list(registry.COLLECTIONS) == [collection]
