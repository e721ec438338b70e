"""``hpcgen site capture``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, print_json, say


@click.command("capture")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the written files as JSON.")
def command(folder: Path, as_json: bool) -> None:
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
