"""The page of errors has every error, by its literal text: those of the code, and those that commands really print."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command

sys.path.insert(0, str(ROOT / "tools" / "docs"))

import messages
from said import FIELDS, Code, Said

MODULE = """
from ours.words import TAIL

WHERE = "put it there"


def first(name, early):
    what = "early" if early else "late"
    raise InputError(f"{name} comes too {what}", remedy=WHERE)


def _damaged(path, why):
    return OutputError(f"{path} is damaged: {why}", remedy=_advice("copy"))


def _advice(how):
    return f"{how} it again"


def second(path):
    problems.add("no such file" + TAIL, expected="a file")
    raise FetchError([Problem("not {}".format(path)), _damaged(path, "it is empty")])
"""


def of(folder: Path, text: str) -> set[tuple[str, ...]]:
    package = folder / "ours"
    package.mkdir()
    (package / "words.py").write_text('TAIL = " here"\n')
    (package / "made.py").write_text(text)
    code = Code(package)
    kinds = {"InputError": "3", "OutputError": "7", "FetchError": "11", "Problem": ""}
    return {(each.kind, each.message, each.expected, each.remedy) for each in code.said(kinds, {})}


def test_texts_are_followed_through_the_code(tmp_path: Path) -> None:
    assert of(tmp_path, MODULE) == {
        ("3", "… comes too early", "", "put it there"),
        ("3", "… comes too late", "", "put it there"),
        ("7", "… is damaged: it is empty", "", "copy it again"),
        ("", "no such file here", "a file", ""),
        ("11", "not …", "", ""),
    }


def spoken(node: ast.AST) -> Iterator[ast.Constant]:
    """What is written out, but for remedies and expectations."""
    if isinstance(node, ast.Constant):
        yield node
    elif not isinstance(node, ast.keyword) or node.arg == "message":
        for child in ast.iter_child_nodes(node):
            yield from spoken(child)


def test_every_text_in_the_code_is_found() -> None:
    """A new error whose text is not followed fails here: write it in a simpler way, or teach said.py."""
    found = {(each.module, each.line) for each in messages.said()}
    missed = []
    for name, module in messages.all_code().modules.items():
        for node in (call for kind in messages.EXIT_CLASSES for call in module.calls[kind] if call.args):
            words = [each.value for each in spoken(node.args[0])]
            lines = {(name, each.lineno) for each in ast.walk(node) if isinstance(each, ast.Call)}
            if any(isinstance(word, str) and len(word) > 8 for word in words) and not lines & found:
                missed.append(f"{name}:{node.lineno}")
    assert missed == []


def parts(said: Said) -> list[str]:
    return [" ".join(part.split()) for part in said.message.split("…")]


def known(text: str) -> bool:
    """Whether an entry says it, in words of its own."""
    text = " ".join(text.split())
    return any(
        len(each.message.replace("…", "").strip()) >= 8
        # The expression is only made where the text has all of the entry's words.
        and all(part in text for part in parts(each))
        and re.search(f"{'.*'.join(map(re.escape, parts(each)))}$", text)
        for each in messages.said()
    )


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_errors_in_the_documentation_are_on_the_page() -> None:
    printed = [
        line for page in PAGES for line in re.findall(r"^hpcgen: error: (.*)", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(printed) > 5
    assert [line for line in printed if not line.endswith("…") and not known(line)] == []


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--site", "supermucc", "--stack", "mpi-hello"),
        ("plan", "--site", "supermuc"),
        ("plan", "--site", "supermuc", "--stack", "mpi-hello", "--set", "mpich.versoin=1"),
        ("plan", "--site", "supermuc", "--stack", "mpi-hello", "--partition", "gpu"),
        ("plan", "--site", "supermuc", "--stack", "mpi-hello", "--time", "soon"),
        ("plan", "--site", "supermuc", "--stack", "mpi-hello", "--nodes", "100000"),
        ("build", "nowhere"),
        ("inspect", "nowhere.sif"),
        ("explain", "nothing", "--site", "supermuc", "--stack", "mpi-hello"),
        ("diff", "supermuc", "nowhere"),
        ("lock", "--check"),
        ("render", "--site", "supermuc", "--stack", "mpi-hello", "--format", "docker"),
    ],
)
def test_what_commands_print_is_on_the_page(words: tuple[str, ...], hpcgen: Command) -> None:
    done = hpcgen(*words)
    assert done.returncode != 0
    said = re.findall(r"^(?:hpcgen: error|Error): (.*)", done.stderr, re.MULTILINE)
    assert said, done.stderr
    assert [line for line in said if not known(line)] == []


def test_entries_say_what_to_do() -> None:
    """By a remedy or by what was expected; wrong calls by their help, and skipped tests by what is not there."""
    kinds = {each.kind for each in messages.said()}
    made = {kind: [each for each in messages.said() if each.kind == kind] for kind in kinds}
    assert sum(map(len, made.values())) > 1200
    silent = [message for kind, each in made.items() for message in messages.silent(kind, each)]
    # These put words beside a problem that has its own remedy.
    assert sorted(silent) == ["with …: …", "… (full output: …)", "…; tried: …", "…; tried: … and … more"]


def test_no_row_of_the_page_has_a_gap() -> None:
    rows = [
        row
        for text in messages.pages().values()
        if "| what to do |" in text
        for row in text.splitlines()
        if row.startswith("| ")
    ]
    assert len(rows) > 1200
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_page_has_its_sections() -> None:
    text = "\n".join(messages.pages().values())
    assert [f"# Exit code {each}\n" in text for each in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 69)] == [True] * 11
    assert "| the site's certificate … is not on this machine; copy it here or correct the profile | 66 |" in text
    assert FIELDS[0] == "message"
