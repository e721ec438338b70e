"""A page for each command of hpcgen, from what the command itself says of its words and options."""

from __future__ import annotations

from collections.abc import Iterator

import click
from writing import cell, code, prose, table

from hpcgen.cli import QUIET, cli
from hpcgen.cli.examples import examples_of
from hpcgen.cli.plugged import ExtensibleCommand, every_group


def pages() -> dict[str, str]:
    """reference/commands/NAME.md, each with the subcommands of NAME, and a list of all."""
    context = click.Context(cli, info_name="hpcgen")
    found = {"reference/commands/index.md": _index()}
    for name in _lines():
        command = cli.get_command(context, name)
        assert command is not None
        parts = [_described(each, path) for path, each in _below(command, name, context)]
        found[f"reference/commands/{name}.md"] = "\n".join(parts)
    return found


def _lines() -> dict[str, str]:
    """The commands with a line about each, without those of whatever else is installed."""
    return {name: line for group in every_group(installed=False).values() for name, line in group.items()}


def _index() -> str:
    rows = [[f"[{name}]({name}.md)", cell(text)] for name, text in _lines().items()]
    options = [row for each in cli.params if (row := _option(each)) is not None]
    head = "# Commands\n\n" + prose(cli.help or "") + "\n"
    before = f"Before a command:\n\n{table(['option', 'meaning'], options)}"
    return f"{head}\n{table(['command', 'what it does'], rows)}\n{before}"


def _below(command: click.Command, path: str, above: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The command and its subcommands, with the words that call them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=command.name, parent=above)
        for name in command.list_commands(context):
            if (each := command.get_command(context, name)) is not None:
                yield from _below(each, f"{path} {name}", context)


def _described(command: click.Command, path: str) -> str:
    if isinstance(command, ExtensibleCommand):
        command.extend()
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    level = "#" if " " not in path else "##"
    text = [f"{level} {path}\n", prose(command.help or command.short_help or "") + "\n"]
    text.append(f"```text\nhpcgen {path} {usage}\n```\n")
    rows = [row for each in command.params if each is not QUIET and (row := _option(each)) is not None]
    if rows:
        text.append(table(["option", "meaning"], rows))
    if lines := examples_of(path.partition(" ")[0]).get(path, ()):
        text.append("Examples:\n\n```sh\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(text)


def _option(parameter: click.Parameter) -> list[str] | None:
    """The cells of an option's row; None for what is no option, or is not shown."""
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return None
    record = parameter.get_help_record(click.Context(click.Command("none")))
    return [code(record[0]), cell(record[1])] if record is not None else None
