"""``hpcgen site``: what an administrator does with a profile."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli import LazyCommands
from hpcgen.cli.common import PATH, print_json, say


class _SiteCommands(LazyCommands):
    """What is done with profiles."""

    rows = {
        "new": ("hpcgen.cli.site_new:command", "Generate a profile from this machine."),
        "capture": ("hpcgen.cli.site_command:capture", "Copy the files that detection reads to a small folder."),
        "doctor": ("hpcgen.cli.site_doctor:command", "Compare a profile with the machine it runs on."),
        "refresh": ("hpcgen.cli.site_refresh:command", "Show what changed in the repositories that a profile cites."),
    }

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ("show", "schema"):
            return _alias(cmd_name)
        return super().get_command(ctx, cmd_name)


def _alias(name: str) -> click.Command:
    """``site NAME …`` for what is ``NAME site …``: an older spelling, which no help shows."""

    @click.command(name, hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(ctx: click.Context, words: tuple[str, ...]) -> None:
        root = ctx.find_root()
        assert isinstance(root.command, click.Group)
        target = root.command.get_command(root, name)
        assert target is not None
        with target.make_context(name, ["site", *words], parent=root) as meant:
            target.invoke(meant)

    return command


@click.group("site", cls=_SiteCommands)
def command() -> None:
    """Write and check site profiles."""


@click.command("capture")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the written files as JSON.")
def capture(folder: Path, as_json: bool) -> None:
    """Write what detection reads on this machine to a new folder, for support.

    `hpcgen site new NAME --detect --root DIR` gives the same facts from it, anywhere. Names of users and of the
    machine, passwords and serial numbers stay out.
    """
    from hpcgen.machine.detect.capture import DROPPED, capture
    from hpcgen.machine.detect.machine import Recorder

    captured = capture(Recorder.live(), folder)
    for what in DROPPED:
        say(f"dropped: {what}")
    if as_json:
        print_json({"folder": str(folder), "files": captured.files, "answers": captured.answers, "dropped": DROPPED})
    say(f"{folder}: {captured.files} files and {captured.answers} outputs; review it before you pass it on")
