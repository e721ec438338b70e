"""``hpcgen completion``."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell: eval "$(hpcgen completion bash)"."""
    from click.shell_completion import get_completion_class

    from hpcgen.cli.completing import register

    register()
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "hpcgen", "_HPCGEN_COMPLETE").source())
