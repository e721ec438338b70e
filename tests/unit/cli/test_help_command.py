"""``hpcgen --help`` on one screen, and ``hpcgen help``."""

from __future__ import annotations

import re

import pytest

from hpcgen.cli import EVERY_DAY, INTERNAL_ERROR
from hpcgen.cli.help_command import EXIT_CODES
from hpcgen.cli.plugged import every_group
from hpcgen.core import errors
from tests.conftest import ROOT, Command

GROUPS = every_group(installed=False)
COMMANDS = [name for group in GROUPS.values() for name in group]
SHOWN = [name for name in GROUPS if name not in (EVERY_DAY, "help")]


def test_the_first_help_fits_a_screen_and_names_every_command_once(hpcgen: Command) -> None:
    text = hpcgen("--help").stdout
    assert len(text.splitlines()) <= 45
    everyday, _, rest = text.partition("Every day:")[2].partition("Options:")[0].partition("\nMore")
    rows = re.findall(r"(?m)^ +(?:[a-z]+  +)?((?:[a-z]+,? ?)+)$", rest)
    named = re.findall(r"(?m)^  ([a-z]+) ", everyday) + re.findall("[a-z]+", " ".join(rows))
    assert sorted(named) == sorted(COMMANDS)


@pytest.mark.parametrize("group", SHOWN)
def test_a_group_is_explained(group: str, hpcgen: Command) -> None:
    done = hpcgen("help", group)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(GROUPS[group])


def test_the_exit_codes_are_those_of_the_errors_and_of_the_documentation(hpcgen: Command) -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HpcgenError)]
    assert {str(kind.exit_code) for kind in kinds} | {str(INTERNAL_ERROR)} <= set(EXIT_CODES)
    table = (ROOT / "docs/exit-codes.md").read_text("utf-8").partition("## Exit codes")[2].partition("```")[0]
    documented = [code for row in re.findall(r"(?m)^\| ([\d, ]+) \|", table) for code in row.split(", ")]
    assert documented == list(EXIT_CODES)
    assert [line.split()[0] for line in hpcgen("help", "exit-codes").stdout.splitlines()] == documented


def test_the_help_of_a_command_is_that_of_the_command(hpcgen: Command) -> None:
    assert hpcgen("help", "site", "new").stdout == hpcgen("site", "new", "--help").stdout
    assert hpcgen("help").stdout == hpcgen("--help").stdout


def test_an_unknown_topic_is_refused_with_what_is_near(hpcgen: Command) -> None:
    done = hpcgen("help", "ofline")
    assert done.returncode == 2 and "did you mean offline?" in done.stderr
