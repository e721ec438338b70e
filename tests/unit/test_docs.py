"""The console examples in README and docs are what the command really prints; `…` stands for what is left out.

Those that need a collection of the reader's own are fenced as `console example` and not run. What has a title
(`yaml title="hpcgen.yaml"`) is a file of that name, beside which the examples after it are run.
"""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command
from tests.helpers.first_screen import commands_of

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r'^```(?:console|\w+ title="([^"]+)")\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[str, list[str]]]:
    """Each `$ command` of a page with the lines below it."""
    return [each for title, block in FENCE.findall(page.read_text("utf-8")) if not title for each in commands(block)]


def commands(block: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


CASES = [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES if examples(page)]


def pattern(lines: list[str]) -> str:
    parts = []
    for line in lines:
        parts.append(r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r" *\n")
    return "".join(parts)


@pytest.mark.parametrize("page", CASES)
def test_console_examples_are_true(page: Path, hpcgen: Command, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for title, block in FENCE.findall(page.read_text("utf-8")):
        if title:
            (tmp_path / title).write_text(block, "utf-8")
            continue
        for command, lines in commands(block):
            check(page, command, lines, hpcgen, tmp_path, request)


def check(
    page: Path, command: str, lines: list[str], hpcgen: Command, folder: Path, request: pytest.FixtureRequest
) -> None:
    words = shlex.split(command)
    if words[0] == "hpcgen":
        done = hpcgen(*words[1:])
    else:
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    if command == "echo $?":
        return  # the status of a command in another shell; test_bad_input has them
    # Most examples leave the notes on stderr out.
    printed = done.stdout + done.stderr
    known = re.compile(pattern(lines))
    if known.fullmatch(printed) or known.fullmatch(done.stdout):
        return
    assert request.config.getoption("--update-golden"), f"{page.name}: $ {command}\n{printed}"
    update(page, command, lines, done.stdout or done.stderr)


def update(page: Path, command: str, lines: list[str], printed: str) -> None:
    """Put what is printed now into the page, long lines cut."""
    now = [line if len(line) <= 130 else f"{line[:129].rstrip()}…" for line in printed.splitlines()]
    old, new = ("\n".join([f"$ {command}", *part, ""]) for part in (lines, now))
    text = page.read_text("utf-8")
    assert old in text
    page.write_text(text.replace(old, new), "utf-8")


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_examples_of_the_api_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 3
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/api.md", "docs/api.md", 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_the_pictures_are_what_their_script_makes(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    import pictures

    drawn = pictures.drawings()
    if request.config.getoption("--update-golden"):
        pictures.main()
    assert {path.name: path.read_text("utf-8") for path in pictures.FOLDER.iterdir()} == drawn


def test_the_terminal_shows_the_commands_above_it(
    hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what `hpcgen init` prints now; the others need engines (tests/containers/test_first_screen.py)."""
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    import terminal

    recording = [part.splitlines() for part in terminal.RECORDING.read_text("utf-8").split("\n\n")]
    shown = [lines[0].removeprefix("$ ") for lines in recording]
    assert shown == commands_of(ROOT / "README.md") == commands_of(ROOT / "docs" / "index.md")
    shutil.copytree(ROOT / "examples" / "first-job", tmp_path, dirs_exist_ok=True)
    assert recording[0][1:] == terminal.shortened(hpcgen("init").stderr.splitlines())
