"""Plug-ins: those of hpcgen are loaded by their own commands alone, and an installed package may bring a command."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import OWN_SETTINGS, ROOT, Command

MODULE = '''
import click

EXAMPLES = {"solve": ("hpcgen solve a.mtx",)}


@click.command("solve")
@click.argument("file")
@click.pass_context
def command(ctx: click.Context, file: str) -> None:
    """Solve a system of equations."""
    if file == "singular":
        raise ArithmeticError("no inverse")
    click.echo(f"solved {file}")


number = 7
'''
ENTRIES = """[console_scripts]
unrelated = some_solver:main

[hpcgen.commands]
solve = some_solver:command
broken = some_solver.missing:command
number = some_solver:number
plan = some_solver:command
fleet = some_solver:command
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """A package as pip leaves it, in a folder of its own; the variables by which Python finds it."""
    folder = tmp_path / "site"
    about = folder / "some_solver-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "some_solver.py").write_text(MODULE)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: some-solver\nSummary: Sparse solvers.\n\nSummary: no\n"
    )
    (about / "entry_points.txt").write_text(ENTRIES)
    return {"PYTHONPATH": f"{folder}:{ROOT}", "HPCGEN_ENTRY_POINTS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def loaded(*words: str, env: dict[str, str] | None = None) -> list[str]:
    """Modules of plug-ins that a command has imported in the end."""
    lines = (
        f"import sys; sys.argv = {['hpcgen', *words]!r}",
        "from hpcgen.cli import main",
        "try: main()",
        "except SystemExit: pass",
        "print('LOADED', *(name for name in sys.modules if name.startswith(('hpcgen.plugins', 'some_solver'))))",
    )
    env = {**os.environ, **OWN_SETTINGS, **(env or {})}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=ROOT, env=env, capture_output=True, text=True)
    return done.stdout.rpartition("LOADED")[2].split()


def test_the_command_of_an_installed_package_is_one_of_hpcgen(
    hpcgen_process: Command, installed: dict[str, str]
) -> None:
    assert hpcgen_process("solve", "a.mtx", "--quiet", env=installed).stdout == "solved a.mtx\n"
    said = hpcgen_process("solve", "--help", env=installed).stdout
    assert said.startswith("Usage: hpcgen solve") and said.endswith("Examples:\n    hpcgen solve a.mtx\n")
    assert "missing argument 'FILE'" in hpcgen_process("solve", env=installed).stderr
    assert "did you mean solve?" in hpcgen_process("slove", env=installed).stderr
    assert hpcgen_process("solve", "a", env={**installed, "HPCGEN_ENTRY_POINTS": "0"}).returncode == 2


def test_it_is_listed_without_being_imported(hpcgen_process: Command, installed: dict[str, str]) -> None:
    assert "  plug-ins     broken, number, solve\n" in hpcgen_process("--help", env=installed).stdout
    table = hpcgen_process("help", "plug-ins", env=installed).stdout
    assert "solve   Sparse solvers.\n" in table
    line = {"_HPCGEN_COMPLETE": "bash_complete", "COMP_WORDS": "hpcgen sol", "COMP_CWORD": "1"}
    assert hpcgen_process(env={**installed, **line}).stdout == "plain,solve\n"
    assert not [name for name in loaded("help", "commands", env=installed) if name != "hpcgen.plugins"]


def test_a_name_that_hpcgen_has_is_not_replaced(hpcgen_process: Command, installed: dict[str, str]) -> None:
    for name in ("plan", "fleet"):
        assert "solve" not in hpcgen_process(name, "--help", env=installed).stdout.lower()
    assert "some_solver" not in " ".join(loaded("plan", "--help", env=installed))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("broken", "ModuleNotFoundError: No module named 'some_solver.missing'"),
        ("number", "is not a click command"),
    ],
)
def test_a_command_that_cannot_be_loaded_is_the_fault_of_its_package(
    name: str, why: str, hpcgen_process: Command, installed: dict[str, str]
) -> None:
    done = hpcgen_process(name, env=installed)
    assert done.returncode == 3 and "a bug in hpcgen" not in done.stderr
    assert why in done.stderr and "remedy: update the package that brings it, or remove it" in done.stderr


def test_a_command_that_fails_is_the_fault_of_its_package(hpcgen_process: Command, installed: dict[str, str]) -> None:
    done = hpcgen_process("solve", "singular", env=installed)
    assert done.returncode == 1 and "a bug in hpcgen" not in done.stderr and "Traceback" not in done.stderr
    assert (
        "the command solve of an installed package failed: ArithmeticError: no inverse\n  remedy: --debug"
        in done.stderr
    )
    assert "Traceback" in hpcgen_process("--debug", "solve", "singular", env=installed).stderr


@pytest.mark.parametrize(
    ("words", "plugins"),
    [
        ("plan --site supermuc --stack mpi-hello", set()),
        ("list sites", set()),
        ("build --site workstation --stack mpi-hello --dry-run", set()),
        ("--help", set()),
        ("fleet", {"fleet"}),
        ("build --all", {"fleet"}),
        ("check hpcgen.yaml", set()),
        ("bench", {"tuning"}),
        ("onnx run --help", {"onnx"}),
    ],
)
def test_a_plug_in_is_loaded_by_its_own_commands_alone(words: str, plugins: set[str]) -> None:
    assert {name.split(".")[2] for name in loaded(*words.split()) if name.count(".") > 1} == plugins


def test_plug_ins_use_what_commands_share_and_no_command() -> None:
    used = set()
    for path in (ROOT / "hpcgen" / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcgen.cli"):
                used.add(node.module)
    assert {"hpcgen.cli", "hpcgen.cli.common"} <= used
    assert not [name for name in used if name is not None and name.endswith("_command")]


def test_an_option_that_a_plug_in_adds_is_one_of_the_command(hpcgen: Command) -> None:
    assert "\n  --all " in hpcgen("build", "--help").stdout
    assert "--force requires --all or --member" in hpcgen("build", "kit", "--force").stderr
    assert "Did you mean '--array'?" in hpcgen("build", "--arry").stderr.replace("(", "").replace(")", "")
    assert "no such option '--nonsense'" in hpcgen("build", "--all", "--nonsense").stderr
