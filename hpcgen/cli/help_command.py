"""``hpcgen help``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from hpcgen.cli import EVERY_DAY, cli
from hpcgen.cli.plugged import every_group
from hpcgen.core.errors import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_CODES: Mapping[str, str] = {
    "0": "done",
    "1": "some other error",
    "2": "wrong usage",
    "3": "an invalid file",
    "4": "an unknown name or option",
    "5": "versions that do not fit together",
    "6": "not allowed by the site",
    "7": "output not written",
    "8": "the image was not built",
    "9": "a test failed",
    "10": "a job failed",
    "11": "an input was not fetched",
    "12": "a model was not converted",
    "13": "nothing found, but not all is known",
    "14": "a table is behind",
    "69": "a program is missing",
    "70": "a bug in hpcgen",
    "130": "interrupted",
    "141": "the reader of a pipe went away",
}


def tables() -> dict[str, Mapping[str, str]]:
    """What is shown as a table of two columns, by the topic."""
    groups = every_group()
    every = {name: line for group in groups.values() for name, line in group.items()}
    shown = {name: group for name, group in groups.items() if name not in (EVERY_DAY, "help")}
    return {"commands": every, "exit-codes": EXIT_CODES, **shown}


class _Topic(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    name = "topic"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names of tables, and of commands."""
        from click.shell_completion import CompletionItem

        known = tables()
        return [CompletionItem(name) for name in (*known, *known["commands"]) if name.startswith(incomplete)]


@click.command("help")
@click.argument("topic", nargs=-1, type=_Topic())
@click.pass_context
def command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Show the commands of a group, "commands" for all, "exit-codes", or the help of a command."""
    known = tables()
    if len(topic) == 1 and topic[0] in known:
        formatter = ctx.make_formatter()
        formatter.write_dl(list(known[topic[0]].items()))
        click.echo(formatter.getvalue(), nl=False)
        return
    if topic and topic[0] not in known["commands"]:
        raise click.UsageError(f"no help on {topic[0]!r}: {did_you_mean(topic[0], [*known, *known['commands']])}")
    # As if the command had been called so, with its own examples.
    cli.main([*topic, "--help"], prog_name="hpcgen", standalone_mode=False)
