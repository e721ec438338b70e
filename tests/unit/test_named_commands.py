"""Whatever command or option of hpcgen a text in the code names, there is one; the texts are read from the code."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from tests.conftest import ROOT
from tests.helpers.typed_remedies import PLACES, command_of

sys.path.insert(0, str(ROOT / "tools" / "docs"))

import messages
from said import FILLED_IN

from hpcgen.cli import cli

NAMED = re.compile(
    r"(?<![\w./-])hpcgen ((?:(?:--collection \S+|--trust-collections|--debug|-q) )*)([a-z][a-z-]*)(?!\w)"
)
END = re.compile(r"[`;,()\n\"|→]|: |\. |\.$|&&| and | or | where | which | with the | there$| inside\b")
OPTION = re.compile(r"(?<![\w./…-])--[a-z][a-z0-9-]*")
PROSE = {
    "and", "asks", "at", "build", "built", "calls", "came", "can", "cannot", "chooses", "command", "compares",
    "converts", "could", "did", "does", "finds", "for", "found", "from", "gives", "had", "has", "here", "if",
    "in", "is", "itself", "kit", "knew", "knows", "leaves", "lists", "makes", "may", "named", "needs", "never", "of",
    "on", "only", "or", "reads", "runs", "shows", "starts", "stops", "than", "that", "there", "to",
    "uses", "was", "when", "where", "which", "with", "would", "writes", "wrote",
}  # fmt: skip
"""What follows the name where it is the subject of a sentence, and no command."""
FOREIGN = {
    "--mpi": "srun", "--with-pmi": "a build of Open MPI", "--force-reinstall": "pip", "--hash": "pip",
    "--user": "pip", "--upgrade": "ensurepip", "--explicit": "conda", "--sha256": "conda", "--query-gpu": "nvidia-smi",
    "--dest-compress-format": "skopeo", "--armor": "gpg", "--export": "gpg", "--export-secret-keys": "gpg",
    "--list-secret-keys": "gpg", "--import": "gpg and rpm", "--secret": "apptainer key list",
}  # fmt: skip
"""Options of other programs that messages name."""


def written(folder: Path) -> Iterator[tuple[str, str]]:
    """The texts in the code below a folder with their places; docstrings are for developers."""
    own = messages.all_code().modules
    for file in sorted(folder.rglob("*.py")):
        module = own.get(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        tree = module.tree if module is not None else ast.parse(file.read_text("utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} | {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        for node in ast.walk(tree):
            place = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                yield place, "".join(str(p.value) if isinstance(p, ast.Constant) else FILLED_IN for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield place, node.value
    for file in sorted(each for kind in ("sh", "yaml", "txt", "md") for each in folder.rglob(f"*.{kind}")):
        yield str(file.relative_to(ROOT)), file.read_text("utf-8")


@cache
def texts() -> tuple[tuple[str, str], ...]:
    found = [*written(ROOT / "hpcgen"), *written(ROOT / "building_blocks"), *written(ROOT / "site_profiles")]
    for each in messages.said():
        found += [(f"{each.module}:{each.line}", text) for text in (each.message, each.expected, each.remedy)]
    return tuple(dict.fromkeys((place, text) for place, text in found if "hpcgen " in text or "--" in text))


@cache
def commands() -> tuple[tuple[str, str, str], ...]:
    """Each named command: its place, its first word, and the rest of its words as far as these can be told."""
    found = []
    for place, said in texts():
        text = re.sub(r'"[^"\s]*\$[^"\s]*"', FILLED_IN, said)
        for match in NAMED.finditer(text):
            rest = text[match.end() :]
            end = END.search(rest)
            found.append((place, match[2], rest[: end.start()] if end else rest))
    return tuple(dict.fromkeys(found))


def every_option(command: click.Command, above: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, parent=above)
    if extend := getattr(command, "extend", None):
        extend()
    for each in command.params:
        if isinstance(each, click.Option):
            yield from (*each.opts, *each.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from every_option(below, context)


def fault(name: str, rest: str) -> str:
    """What hpcgen says of such a command line before it does anything; empty where that is nothing."""
    filled = re.sub(r"\b[A-Z]{3,}\b", lambda match: PLACES.get(match[0], "x"), rest.replace(FILLED_IN, "x"))
    try:
        words = [name, *shlex.split(filled)]
    except ValueError:
        words = [name, *filled.split()]
    command, taken = command_of(tuple(words))
    below = words[taken] if len(words) > taken else ""
    if not taken or (isinstance(command, click.Group) and re.fullmatch(r"[a-z]{2,}", below) and below not in PROSE):
        return f"there is no command {below or name}"
    context = click.Context(command, info_name=name)
    try:
        command.make_parser(context).parse_args(words[taken:])
    except click.ClickException as failure:
        return failure.format_message()
    return ""


def test_a_command_that_a_text_names_is_there_and_takes_its_words() -> None:
    checked = [each for each in commands() if each[1] not in PROSE or command_of(each[1:2])[1]]
    assert len(checked) > 1000
    wrong = [f"{place}: hpcgen {name}{rest}: {said}" for place, name, rest in checked if (said := fault(name, rest))]
    assert wrong == []


@pytest.mark.parametrize(
    "words", ["plann --site x", "site doctr", "plan --stie x", "lock --check --image", "bundle made"]
)
def test_a_command_that_is_none_is_found(words: str) -> None:
    name, _, rest = words.partition(" ")
    assert fault(name, f" {rest}")


def test_an_option_that_a_message_names_is_one_of_a_command() -> None:
    known = set(every_option(cli)) | set(FOREIGN)
    named = {
        (option, f"{each.module}:{each.line}")
        for each in messages.said()
        for text in (each.message, each.expected, each.remedy)
        for option in OPTION.findall(text)
    }
    assert len(named) > 250, len(named)
    assert sorted(f"{place}: {option}" for option, place in named if option not in known) == []
