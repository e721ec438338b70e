"""The command. Each subcommand is a module of its own, loaded when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

import click

from hpcgen._version import __version__
from hpcgen.core.errors import HpcgenError, Problem, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hpcgen.cli.terminal import Colour

EVERY_DAY = "every day"
GROUPS: Mapping[str, Mapping[str, str]] = {
    EVERY_DAY: {
        "init": "Write a stack for the project in a folder.",
        "plan": "Show what would be built, and why.",
        "build": "Build an image with a container engine.",
        "run": "Start an image right here, as its site does.",
        "submit": "Submit an image as a job and follow it.",
    },
    "project": {
        "render": "Write the recipe, or the whole kit with -o.",
        "explain": "Say where things in a kit come from.",
        "graph": "Draw the blocks of a plan and their dependencies.",
        "diff": "Show the differences between two sites, kits, locks or images.",
        "contract": "Check whether the image will work on the host.",
        "stack": "Write a new stack recipe.",
        "block": "Write a new building block.",
    },
    "images": {
        "test": "Test an image on this machine.",
        "shell": "Open a shell in an image, here or on a node.",
        "job": "Print the job script that starts an image.",
        "extend": "Add packages, files or blocks to a finished image.",
        "inspect": "Show the plan, blocks and labels of an image.",
        "convert": "Convert an image to another format.",
        "verify": "Check where an image comes from by a signed statement.",
        "rebuild": "Extract the kit from an image.",
        "data": "Pack a folder of many files into one that jobs mount.",
        "install": "Make programs of an image commands of this machine.",
        "uninstall": "Remove an installed image's files.",
        "records": "List, show, compare and remove build records.",
        "cache": "List, check and remove what blocks compiled once.",
        "clean": "Remove images without a name, caches and unfinished work.",
    },
    "offline": {
        "lock": "Pin everything that a build downloads.",
        "bundle": "Fetch, check, compare and join the files that a lock pins.",
        "wheels": "Write hashed lists of Python packages.",
    },
    "sites": {
        "list": "List sites, stacks, blocks or engines; alone, what can be listed.",
        "show": "Show one site, stack or block.",
        "site": "Write and check site profiles.",
        "check": "Check profiles, recipes, blocks, tables, collections.",
        "schema": "Print the JSON Schema of a kind of file.",
    },
    "help": {
        "help": "Show the commands of a group, the exit codes, or a command's help.",
        "completion": "Print the shell completion script.",
    },
}
"""The core's commands with a line about each, by what they are for; :mod:`hpcgen.cli.plugged` adds the others."""
COMMANDS: Mapping[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}
_IN_ANOTHER = {
    "verify": "hpcgen.cli.provenance:verify",
    "stack": "hpcgen.cli.block_command:stack",
    "submit": "hpcgen.cli.run_command:submit",
    "uninstall": "hpcgen.cli.install_command:uninstall",
}
"""Commands in the module of another one, of which they are the counterpart, or of what they share."""
INTERNAL_ERROR = 70
_EXAMPLE_WIDTH = 76
"""Of lines of examples: click indents them in 80 columns."""


def _be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from hpcgen.cli.common import be_quiet

        be_quiet(True)


QUIET = click.Option(
    ["-q", "--quiet"],
    is_flag=True,
    expose_value=False,
    callback=_be_quiet,
    help="Print only results, warnings and errors: no notes, no progress.",
)


def _choose_colour(ctx: click.Context, param: click.Parameter, value: Colour | None) -> None:
    if value is not None:
        from hpcgen.cli.terminal import choose_colour

        choose_colour(value)


COLOUR = click.Option(
    ["--color"],
    type=click.Choice(["auto", "always", "never"]),
    metavar="WHEN",
    expose_value=False,
    callback=_choose_colour,
    help="Colours in messages: auto (on a terminal, without NO_COLOR), always or never.",
)
COMMON = (QUIET, COLOUR)
"""Options of every command."""


class LazyCommands(click.Group):
    """A group that imports a subcommand when it is used, not to list it.

    ``rows``: what each subcommand is, as ``module:attribute``, and the line about it.
    """

    rows: ClassVar[Mapping[str, tuple[str, str]]]

    def lines(self) -> Mapping[str, str]:
        """The subcommands with the line about each."""
        return {name: line for name, (_, line) in self.rows.items()}

    def load(self, name: str) -> click.Command | None:
        """The subcommand of a name; None if there is none."""
        if name not in self.rows:
            return None
        module, _, attribute = self.rows[name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(module), attribute)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lines())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self.load(cmd_name)
        if command is not None:
            _add_common(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As of every group, without importing the subcommands."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=line) for name, line in self.lines().items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not {*rest}.isdisjoint(ctx.help_option_names):
            _add_examples(command, " ".join([*ctx.command_path.split()[1:], str(name)]))
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines().items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _add_examples(self, " ".join(ctx.command_path.split()[1:]))
        super().format_epilog(ctx, formatter)


def _add_common(command: click.Command) -> None:
    """Give a command, or those below it, ``--quiet`` and ``--color``."""
    if not isinstance(command, click.Group):
        command.params += [option for option in COMMON if option not in command.params]
    for each in getattr(command, "commands", {}).values():
        _add_common(each)


def _add_examples(command: click.Command, path: str) -> None:
    """End the help of a command, and of those below it, with examples."""
    from hpcgen.cli.examples import examples_of

    if path in (examples := examples_of(path.partition(" ")[0])):
        shown = [f"  {line}" for line in examples[path]]
        if sys.stdout.isatty():
            from hpcgen.cli.terminal import command_lines

            shown = [part for line in examples[path] for part in command_lines(line, "  ", _EXAMPLE_WIDTH)]
        command.epilog = "\n".join(["\b", "Examples:", *shown])
    for name, each in getattr(command, "commands", {}).items():
        _add_examples(each, f"{path} {name}")


class _Commands(LazyCommands):
    rows = {
        name: (_IN_ANOTHER.get(name, f"hpcgen.cli.{name}_command:command"), line) for name, line in COMMANDS.items()
    }

    def lines(self) -> Mapping[str, str]:
        """Those of plug-ins, too."""
        from hpcgen.cli.plugged import every_group

        return {name: line for group in every_group().values() for name, line in group.items()}

    def load(self, name: str) -> click.Command | None:
        """The core's own comes first: no plug-in is looked for then, and none can take its name."""
        if name in COMMANDS:
            return super().load(name)
        from hpcgen.cli.plugged import plugged_command

        return plugged_command(name)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first, on one screen: what is used every day with a line each, the others by their names."""
        from hpcgen.cli.plugged import every_group

        with formatter.section("Every day"):
            formatter.write_dl(list(GROUPS[EVERY_DAY].items()))
        with formatter.section("More, by group ('hpcgen help GROUP' says what each is for)"):
            formatter.write_dl([(name, ", ".join(group)) for name, group in every_group().items() if name != EVERY_DAY])
        click.Command.format_options(self, ctx, formatter)

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; what goes wrong is printed as JSON too, where that is asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Without its number, by which click would end with 1 instead of leaving it to `main`.
            raise BrokenPipeError from error
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            failure = error
            if ctx.invoked_subcommand not in COMMANDS and not isinstance(error, (HpcgenError, click.ClickException)):
                from hpcgen.cli.plugged import failure_of

                failure = failure_of(str(ctx.invoked_subcommand), error)
            if "--json" in sys.argv:
                from hpcgen.cli.error_report import report_as_json

                report_as_json(ctx, failure)
            if failure is error:
                raise
            raise failure from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.load(args[0]) is None:
            ctx.fail(
                f"no command is called {args[0]!r}: {did_you_mean(args[0], self.list_commands(ctx), 'hpcgen --help')}"
            )
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder with site_profiles/, recipes/ or building_blocks/ of your own; the first one that has a name wins.",
)
@click.option(
    "--trust-collections",
    is_flag=True,
    help="Let the Python of collections run that a fleet or a bundle names; also $HPCGEN_TRUST_COLLECTIONS=1.",
)
@click.option("-q", "--quiet", is_flag=True, help=QUIET.help)
@click.option(
    "--color",
    type=COLOUR.type,
    metavar="WHEN",
    default="auto",
    expose_value=False,
    callback=_choose_colour,
    help=COLOUR.help,
)
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
@click.version_option(__version__, message="hpcgen %(version)s")
@click.pass_context
def cli(ctx: click.Context, collections: tuple[Path, ...], trust_collections: bool, quiet: bool, debug: bool) -> None:
    """Container recipes for HPC: a site profile × a software stack → recipe, build script, job script."""
    from hpcgen.cli.common import be_quiet

    be_quiet(quiet)
    ctx.obj = list(collections)


def main() -> NoReturn:
    """The command of ``sys.argv``: errors become messages and exit codes."""
    debug = "--debug" in sys.argv[1:]
    if "_HPCGEN_COMPLETE" in os.environ:
        from hpcgen.cli.completing import register

        register()
    try:
        code = cli.main(prog_name="hpcgen", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except HpcgenError as error:
        if debug:
            raise
        _say_problems(error.problems)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        from hpcgen.cli.error_report import problem_of

        _say_problems([problem_of(error)])
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away, as `head` does; nothing is left to be said on stdout.
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if debug:
            raise
        if (refused := _refused(error)) is not None:
            _say_problems(refused.problems)
            sys.exit(refused.exit_code)
        from hpcgen.cli.common import ask

        ask(f"internal error: {type(error).__name__}: {error}")
        ask("this is a bug in hpcgen: run the same command with --debug before the subcommand, and report it")
        sys.exit(INTERNAL_ERROR)


def _refused(error: Exception) -> HpcgenError | None:
    if not isinstance(error, OSError):
        return None
    from hpcgen.core.support.refusals import refused

    return refused(error)


def _say_problems(problems: Sequence[Problem]) -> None:
    from hpcgen.cli.common import ask

    for problem in problems:
        ask(f"error: {problem}")
    if len(problems) > 1:
        ask(f"{len(problems)} errors")
