"""The values of options in records: every parameter of a command reaches it, in a record or by its own name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
import pytest

from hpcgen.cli import cli
from hpcgen.cli.job_options import JobOptions
from hpcgen.cli.options import Options, PlanOptions, options_from


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    with click.Context(group) as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from commands(command, f"{path}{name} ")
            else:
                yield f"{path}{name}", command


EVERY = dict(commands(cli))


SAID_BY_MODULE = dict.fromkeys(("ci gitlab", "ci github"), "service")
"""Parameters of a function that serves several commands, each of which says its own."""


def records_of(command: click.Command) -> dict[str, type[Options]]:
    """The records that a command takes, by the names of its parameters."""
    function = inspect.unwrap(command.callback)  # type: ignore[arg-type]
    said = {name: each.annotation for name, each in inspect.signature(function).parameters.items()}
    found = {name: function.__globals__.get(annotation) for name, annotation in said.items()}
    return {name: each for name, each in found.items() if isinstance(each, type) and issubclass(each, Options)}


@pytest.mark.parametrize("path", EVERY)
def test_every_parameter_reaches_its_command(path: str) -> None:
    command = EVERY[path]
    records = records_of(command)
    own = inspect.signature(inspect.unwrap(command.callback)).parameters  # type: ignore[arg-type]
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in own.values()}, "options that mypy does not see"
    given = {each.name for each in command.params if each.expose_value}
    in_records = [name for record in records.values() for name in record.__struct_fields__ if name in given]
    assert len(in_records) == len(set(in_records)), "a value is in two records"
    assert given - set(in_records) == set(own) - set(records) - {"ctx", SAID_BY_MODULE.get(path)}


@pytest.mark.parametrize("path", [path for path, command in EVERY.items() if records_of(command)])
def test_a_record_without_a_value_has_what_the_command_line_has(path: str) -> None:
    command = EVERY[path]
    with command.make_context(path, [], resilient_parsing=True) as ctx:
        values: dict[str, Any] = dict(ctx.params)
    for record in records_of(command).values():
        needed = {name: values[name] for name in record.__struct_fields__ if name in required(command)}
        assert options_from(record, values) == record(**needed)


def required(command: click.Command) -> set[str | None]:
    return {each.name for each in command.params if each.required}


def test_what_is_given_is_named_as_it_is_typed() -> None:
    options = PlanOptions(site="here", gpus=0, settings=("mpi.provider=mpich",), latest_base=True, command=("true",))
    assert options.given() == ["a command", "--gpus", "--latest-base", "--set", "--site"]
    assert options.given(free=("site", "command")) == ["--gpus", "--latest-base", "--set"]
    assert JobOptions().given() == []
