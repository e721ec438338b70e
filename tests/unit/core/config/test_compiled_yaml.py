"""What is kept of the built-in collection's YAML: the same data without PyYAML, and never that of another text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpcgen.core.config import compiled_yaml, yamlfile
from hpcgen.core.config.yamlfile import load
from hpcgen.core.errors import InputError, Position

TEXT = "name: here\ncpus: 4\nlist: [a, {b: 'c'}]\n"
DATA = {"name": "here", "cpus": "4", "list": ["a", {"b": "c"}]}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of what is taken for the built-in collection, which was read once."""
    monkeypatch.setattr(compiled_yaml, "built_in", lambda: tmp_path / "built-in")
    monkeypatch.setattr(sys, "pycache_prefix", None)
    path = tmp_path / "built-in" / "site_profiles" / "here.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    assert load(path).data == DATA
    return path


def kept(file: Path) -> Path:
    (found,) = file.parent.joinpath("__pycache__").iterdir()
    return found


def read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a further ``load`` reads the YAML, and gets what it says."""
    reads: list[str] = []
    with monkeypatch.context() as here:
        real = yamlfile._read
        here.setattr(yamlfile, "_read", lambda text, *more: (reads.append(text), real(text, *more))[1])
        assert load(file).data == load(file).data
        text = file.read_text()
        assert load(file).data == real(text, "x").data
    return bool(reads)


def test_yaml_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read_again(file, monkeypatch)


def test_places_are_known_as_before(file: Path) -> None:
    document = load(file, "here.yaml")
    assert document.position(("list", 1, "b")) == Position("here.yaml", 3, 15)
    assert document.position(("cpus",), key=True) == Position("here.yaml", 2, 1)
    assert document.said_by(("cpus",)) == "here.yaml"


def test_a_changed_text_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(TEXT.replace("4", "8"))
    assert load(file).data["cpus"] == "8"
    file.write_text("name: [\n")
    with pytest.raises(InputError):
        load(file)


@pytest.mark.parametrize("damage", [b"", b"x", None, b"\x93\x01\x02\x03", b"\xc1"])
def test_what_is_damaged_is_made_anew(damage: bytes | None, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = kept(file)
    whole = place.read_bytes()
    head = len(whole) - len(compiled_yaml.msgspec.msgpack.encode(DATA))
    place.write_bytes(whole[: head + 3] if damage is None else whole[:head] + damage)
    assert read_again(file, monkeypatch)
    assert place.read_bytes() == whole


def test_another_reader_reads_anew(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_yaml, "_reader", lambda: 1)
    assert read_again(file, monkeypatch)


def test_a_folder_that_cannot_be_written_is_no_error(file: Path) -> None:
    kept(file).unlink()
    folder = file.parent / "__pycache__"
    folder.rmdir()
    folder.write_text("a file")
    assert load(file).data == DATA
    assert folder.read_text() == "a file"


def test_nothing_is_kept_of_other_collections_or_where_python_keeps_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "mine.yaml"
    other.write_text(TEXT)
    assert load(other).data == DATA and not (tmp_path / "__pycache__").exists()
    kept(file).unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert load(file).data == DATA
    assert not list(file.parent.joinpath("__pycache__").iterdir())
