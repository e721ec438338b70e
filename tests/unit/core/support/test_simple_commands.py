"""What the shell would read as more than one command."""

from __future__ import annotations

import pytest

from hpcgen.blocks.steps import operator_in

MORE = [
    ("cat x | tee y", "|"),
    ("make || true", "||"),
    ("cd a && make", "&&"),
    ("cd a; make", ";"),
    ("sleep 9 &", "&"),
    ("make >log 2>&1 & wait", "&"),
    ("echo `id`", "`"),
    ('test -n "$(a | b)"', "|"),
    ("x=$(a; b)", ";"),
    ("sh -c 'cat x | tee y'", "|"),
    ("bash -ec 'cd a; make'", ";"),
    ("env A=1 /bin/sh -c 'make || true'", "||"),
    ("sh -c \"sh -c 'a && b'\"", "&&"),
    ("echo 'a' | b", "|"),
    ('echo "a" ; b', ";"),
]
ONE = [
    "sed 's|a|b|; s/x/y/' f",
    'awk "{ print; }" f',
    "echo a\\|b \\; \\&",
    "make > log 2>&1",
    "printf '%s\\n' 'a & b' >&2",
    "sh -c 'make -j 4'",
    "echo ${x:-a|b}",
    "CFLAGS='-O2' ./configure",
    "grep -c 'a;b' f",
    "echo it\\'s",
    'test -n "$(ls /opt)"',
]


@pytest.mark.parametrize(("line", "found"), MORE)
def test_several_commands_on_a_line_are_seen(line: str, found: str) -> None:
    assert operator_in(line) == found


@pytest.mark.parametrize("line", ONE)
def test_one_command_with_quoted_operators_is_one(line: str) -> None:
    assert operator_in(line) == ""


@pytest.mark.parametrize("line", ["s'h' -c 'a; b'", '"/bin/sh" -c "a; b"', "ba\\sh -c 'a; b'", "env\tsh -c 'a; b'"])
def test_a_shell_is_seen_however_its_name_is_quoted(line: str) -> None:
    assert operator_in(line) == ";"
