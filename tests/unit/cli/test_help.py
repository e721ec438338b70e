"""What every ``--help`` has: examples that are true, and ``--quiet``, which leaves out notes and progress."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hpcgen.cli import cli
from hpcgen.cli.examples import examples_of
from hpcgen.cli.plugged import every_group
from tests.conftest import Command

ANYWHERE = {"plan", "render", "contract", "list", "show", "schema", "stack", "block", "check", "site new", "job"}
"""Commands whose examples need no engine, no network and no image."""


def commands(group: click.Group = cli, path: str = "") -> Iterator[str]:
    """The path of every command, groups included; empty for the first."""
    yield path
    with click.Context(group, info_name=path or "hpcgen") as ctx:
        for name in group.list_commands(ctx):
            found = group.get_command(ctx, name)
            below = f"{path} {name}".strip()
            if isinstance(found, click.Group):
                yield from commands(found, below)
            else:
                yield below


EVERY = list(commands())
NAMES = ["", *(name for group in every_group().values() for name in group)]
EXAMPLES = {path: lines for name in NAMES for path, lines in examples_of(name).items()}


def test_every_command_has_examples() -> None:
    assert sorted(EVERY) == sorted(EXAMPLES)


@pytest.mark.parametrize("path", EVERY)
def test_the_help_ends_with_examples_and_offers_quiet(hpcgen: Command, path: str) -> None:
    said = hpcgen(*path.split(), "--help").stdout
    assert said.endswith("Examples:\n" + "".join(f"    {line}\n" for line in EXAMPLES[path]))
    assert "-q, --quiet" in said or any(each.startswith(f"{path} ") for each in EVERY)


@pytest.mark.parametrize("line", sorted({line for lines in EXAMPLES.values() for line in lines}))
def test_an_example_is_read_as_it_stands(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"\S+\.lock", line):
        Path(name).touch()
    words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line))[1:]
    # Click keeps the names of the help option that a command is first asked with, for all later tests.
    ctx, command = click.Context(cli, info_name="hpcgen", **cli.context_settings), cli
    ctx.params["collections"] = ()
    while isinstance(command, click.Group) and words and words[0] in command.list_commands(ctx):
        found = command.get_command(ctx, words.pop(0))
        assert found is not None
        # The group's own options are read with the rest.
        ctx, command = click.Context(found, ctx, info_name=found.name), found  # type: ignore[assignment]
    command.make_context(command.name, words, parent=ctx.parent)


@pytest.mark.parametrize(
    "line",
    [
        line
        for path in EVERY
        if path in ANYWHERE or path.split(" ")[0] in ANYWHERE
        for line in EXAMPLES[path]
        if not re.search(r"image\.sif|--locked|--from |^hpcgen check", line)
    ],
)
def test_an_example_runs(hpcgen: Command, line: str) -> None:
    done = hpcgen(*shlex.split(line)[1:])
    assert done.returncode == 0, done.stderr


def test_the_examples_of_check_run_on_a_collection(hpcgen: Command, tmp_path: Path) -> None:
    hpcgen("block", "new", "petsc", "-o", "ours")
    (tmp_path / "ours" / "site_profiles").mkdir()
    (tmp_path / "ours" / "site_profiles" / "our-cluster.yaml").write_text("name: our-cluster\nextends: slurm-cpu\n")
    for line in EXAMPLES["check"]:
        assert hpcgen("--trust-collections", *shlex.split(line)[1:]).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--site", "supermuc", "--stack", "tf-horovod"),
        ("render", "--site", "supermuc", "--stack", "tf-horovod", "-o", "kit"),
        ("site", "new", "x", "-o", "x.yaml"),
        ("check", "ok.yaml"),
    ],
)
def test_quiet_leaves_notes_and_progress_out_and_keeps_warnings(
    hpcgen: Command, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "ok.yaml").write_text("name: ok\nextends: workstation\n")
    said = hpcgen(*words)
    (tmp_path / "x.yaml").unlink(missing_ok=True)
    quiet = hpcgen(*words, "--quiet")
    (tmp_path / "x.yaml").unlink(missing_ok=True)
    before = hpcgen("-q", *words)
    assert quiet.stdout == before.stdout == said.stdout
    warnings = [line for line in said.stderr.splitlines() if "warning:" in line]
    assert quiet.stderr.splitlines() == before.stderr.splitlines() == warnings != said.stderr.splitlines()
    assert hpcgen(*words[:1], "--nonsense", "-q").returncode == 2


def test_quiet_keeps_errors(hpcgen: Command) -> None:
    done = hpcgen("plan", "--site", "nowhere", "--stack", "mpi-hello", "-q")
    assert (done.returncode, "no site is called 'nowhere'" in done.stderr) == (4, True)
