"""What people get when they write YAML, rightly and wrongly."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hpcgen.core.config import plain_yaml, yamlfile
from hpcgen.core.config.yamlfile import load, loads
from hpcgen.core.errors import InputError, Position


def messages(text: str) -> list[str]:
    """All problems of ``text``, as printed."""
    with pytest.raises(InputError) as caught:
        loads(text, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


def first_lines(text: str) -> list[str]:
    return [message.splitlines()[0] for message in messages(text)]


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_words_without_quotes_stay_the_text_that_was_written(loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_yaml, "LOADER", getattr(yaml, loader))
    document = loads(
        "version: 2.10\nyear: 2021\nday: 2021-05-01\ntime: 1:30:00\nswitch: on\nno: yes\noctal: 0777\n"
        "2.10.0: x\nempty:\ntilde: ~\nnone: null\nright: true\nwrong: False\n"
        "quoted: 'true'\nalso: \"null\"\nlist: [a, 1, {b: .5}]\ntext: |\n  two\n  lines\n",
        "f.yaml",
    )
    assert document.data == {
        "version": "2.10",
        "year": "2021",
        "day": "2021-05-01",
        "time": "1:30:00",
        "switch": "on",
        "no": "yes",
        "octal": "0777",
        "2.10.0": "x",
        "empty": None,
        "tilde": None,
        "none": None,
        "right": True,
        "wrong": False,
        "quoted": "true",
        "also": "null",
        "list": ["a", "1", {"b": ".5"}],
        "text": "two\nlines\n",
    }
    assert next(iter(document.data)) == "version"


def test_positions_of_values_keys_and_nearest_parents() -> None:
    document = loads("a: 1\nparts:\n  cpu:\n    - x: 7\n    - {y: 8, z: 9}\n", "site.yaml")
    assert document.position(()) == Position("site.yaml", 1, 1)
    assert document.position(("a",)) == Position("site.yaml", 1, 4)
    assert document.position(("a",), key=True) == Position("site.yaml", 1, 1)
    assert document.position(("parts", "cpu", 1, "z")) == Position("site.yaml", 5, 17)
    assert document.position(("parts", "cpu", 1, "z"), key=True) == Position("site.yaml", 5, 14)
    assert document.position(("parts", "cpu", 1)) == Position("site.yaml", 5, 7)
    # no such node: the nearest parent that is there, and then its value even where a key was asked for
    assert document.position(("parts", "cpu", 9, "q")) == Position("site.yaml", 4, 5)
    assert document.position(("parts", "gpu"), key=True) == Position("site.yaml", 3, 3)
    assert document.position(("a", "b", "c")) == Position("site.yaml", 1, 4)


def test_columns_count_characters_and_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes("ä: {ö: 1}\r\nb: 2\r\n".encode("utf-8-sig"))
    document = load(file, "x.yaml")
    assert document.data == {"ä": {"ö": "1"}, "b": "2"}
    assert document.position(("ä", "ö")) == Position("x.yaml", 1, 8)
    assert document.position(("b",)) == Position("x.yaml", 2, 4)


def test_all_duplicate_keys_at_once() -> None:
    assert messages("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n'a': 3\n") == [
        "f.yaml:2:1: `a` occurs twice in the same mapping, first on line 1\n"
        "  expected: each key once\n"
        "  remedy: remove one of the two, or give it another name",
        "f.yaml:5:3: `c` occurs twice in the same mapping, first on line 4\n"
        "  expected: each key once\n"
        "  remedy: remove one of the two, or give it another name",
        "f.yaml:6:1: `a` occurs twice in the same mapping, first on line 1\n"
        "  expected: each key once\n"
        "  remedy: remove one of the two, or give it another name",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\nb: *x\n", ["f.yaml:1:4: anchors (`&x`) are not read here",
                              "f.yaml:2:4: aliases (`*x`) are not read here"]),
        ("a: &x {b: 1}", ["f.yaml:1:4: anchors (`&x`) are not read here"]),
        ("a: !!python/name:os.system", ["f.yaml:1:4: tags (`!!python/name:os.system`) are not read here"]),
        ("a: !mine 1", ["f.yaml:1:4: tags (`!mine`) are not read here"]),
        ("!x a: 1", ["f.yaml:1:1: tags (`!x`) are not read here"]),
        ("<<: {a: 1}", ["f.yaml:1:1: merge keys (`<<`) are not read here"]),
        ("null: 1\ntrue: 2", ["f.yaml:1:1: `null` cannot be a key", "f.yaml:2:1: `true` cannot be a key"]),
        ("?\n: 1", ["f.yaml:1:2: a value without a key"]),
        ("? [a, b]\n: 1\n? {c: d}\n: 2", ["f.yaml:1:3: a list or mapping cannot be a key",
                                           "f.yaml:3:3: a list or mapping cannot be a key"]),
        ('"a\\nb": 1\nc\u00a0: 2', ["f.yaml:1:1: the key 'a\\nb' contains an invisible character",
                                  "f.yaml:2:1: the key 'c\\xa0' contains an invisible character"]),
        ("a: 1\n---\nb: 2", ["f.yaml:2:1: a second document starts here"]),
        ("", ["f.yaml:1:1: this file is empty"]),
        ("# only this\n", ["f.yaml:1:1: this file is empty"]),
        ("---\n", ["f.yaml:2:1: this file is empty"]),
        ("\n- a\n", ["f.yaml:2:1: this file contains a list"]),
        ("hello", ["f.yaml:1:1: this file contains a single value"]),
        ("a: x\x1b[31m", ["f.yaml:1:5: the character U+001B is not allowed here"]),
        ("a: 1\nb: x\0", ["f.yaml:2:5: the character U+0000 is not allowed here"]),
        ("a: x\u202ey", ["f.yaml:1:5: the character U+202E is not allowed here"]),
        ("a: x\ud800", ["f.yaml:1:5: the character U+D800 is not allowed here"]),
        ("a: 1\rb: 2", ["f.yaml:1:5: the character U+000D is not allowed here"]),
        ('a: "\\e[31m"', ["f.yaml:1:4: this text contains the character U+001B, written as an escape"]),
        ('"a\\0": 1', ["f.yaml:1:1: the key 'a\\x00' contains an invisible character"]),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, expected: list[str]) -> None:
    assert first_lines(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("a:\n\tb: 1", "f.yaml:2:1: a tab where only spaces are allowed", "indent with spaces"),
        ("a: b: c", "f.yaml:1:5: a `key:` where none is allowed",
         "check the indentation; put a value that contains `: ` in quotes"),
        ("b: 1\na", "f.yaml:3:1: a key without `:`", "write `key: value`, with a space after the colon"),
        ("a: 'x\nb: 1", "f.yaml:1:4: the file ends inside a quoted text",
         "close the quote that was opened here"),
        ("a: [1,\nb", "f.yaml:1:4: a `[` or `{` that is not closed",
         "close it, and separate the items with commas"),
        ("a:\n    b: 1\n  c: 2", "f.yaml:3:3: a line that does not match the lines above it",
         "indent all keys of one mapping by the same number of spaces"),
        ("- a\nb: 1", "f.yaml:2:1: a line that does not match the list above it",
         "start each item of the list with `- `, all indented by the same number of spaces"),
        ("a: @x", "f.yaml:1:4: a character that cannot start a value",
         "put the value in quotes; indent with spaces, not tabs"),
        ('a: "\\q"', "f.yaml:1:5: this is not valid YAML: found unknown escape character",
         "check the line and the one above it"),
    ],
)  # fmt: skip
def test_text_that_is_not_yaml(text: str, message: str, remedy: str) -> None:
    (problem,) = messages(text)
    assert problem.splitlines()[0] == message
    assert problem.splitlines()[-1] == f"  remedy: {remedy}"


def test_problems_before_a_syntax_error_are_told_too() -> None:
    assert first_lines("a: 1\na: 2\nb: 'x") == [
        "f.yaml:2:1: `a` occurs twice in the same mapping, first on line 1",
        "f.yaml:3:4: the file ends inside a quoted text",
    ]


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_deep_nesting_stops_early(loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_yaml, "LOADER", getattr(yaml, loader))
    deepest_allowed = plain_yaml.MAX_DEPTH - 1
    assert first_lines("a: " + "[" * (deepest_allowed + 1)) == ["f.yaml:1:35: this is nested too deeply"]
    # Newer libyaml gives up by itself at 1000 levels and names that place.
    (problem,) = messages("a: " + "[" * 100_000)
    assert re.fullmatch(
        r"f.yaml:1:\d+: this is nested too deeply\n  expected: at most 32 levels\n  remedy: .*", problem
    )
    assert loads("a: " + "[" * deepest_allowed + "]" * deepest_allowed, "f.yaml").data["a"]


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_text("a: " + "x" * (yamlfile.MAX_BYTES - 3))
    assert len(load(file).data["a"]) == yamlfile.MAX_BYTES - 3
    file.write_text("a: " + "x" * (yamlfile.MAX_BYTES - 2))
    with pytest.raises(InputError) as caught:
        load(file, "big.yaml")
    assert str(caught.value) == (
        "big.yaml: this file is too large\n"
        "  expected: at most 1048576 bytes\n"
        "  remedy: split it, or check that it is the right file"
    )
    with pytest.raises(InputError, match="not a regular file"):
        load(Path("/dev/zero"))
    with pytest.raises(InputError, match="too large"):
        loads("a: " + "ä" * (yamlfile.MAX_BYTES // 2), "f.yaml")


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes("ok: 1\nname: ä Universität".encode() + "ü".encode("latin-1") + b"\n")
    with pytest.raises(InputError) as caught:
        load(file, "latin.yaml")
    assert str(caught.value) == (
        "latin.yaml:2:20: the byte 0xfc is not UTF-8\n"
        "  expected: a text file in UTF-8\n"
        "  remedy: save the file as UTF-8"
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    with pytest.raises(InputError) as caught:
        load(missing)
    assert str(caught.value) == f"{missing}: there is no such file\n  remedy: check the spelling of its path"
    with pytest.raises(InputError) as caught:
        load(tmp_path, "sites")
    assert str(caught.value) == ("sites: this is a directory\n  expected: a YAML file\n  remedy: name a file in it")
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=r"loop\.yaml: this file cannot be read: Too many levels"):
        load(loop)
    with pytest.raises(InputError, match="this file cannot be read: "):
        load(Path("a\0b"), "odd")


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may read everything, so let go of that for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_one_may_not_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        file = Path(name, "secret.yaml")
        file.write_text("a: 1")
        file.chmod(0)
        with as_ordinary_user(), pytest.raises(InputError) as caught:
            load(file, "secret.yaml")
    assert str(caught.value) == (
        "secret.yaml: you are not allowed to read this file\n  remedy: ask its owner, or change its mode"
    )
