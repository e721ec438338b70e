"""``hpcgen site new``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpcgen.cli.common import PATH, print_json, say
from hpcgen.cli.new_files import check_absent, check_name, write_or_print


@click.command("new")
@click.argument("name")
@click.option("--detect", is_flag=True, help="Fill it in from this machine.")
@click.option(
    "--root",
    metavar="DIR",
    type=PATH,
    help="Examine a tree that `hpcgen site capture` wrote, not this machine.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=PATH,
    help="Write the profile here instead of to stdout; an existing file is never replaced.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the profile, and what was and was not detected, as JSON.")
def command(name: str, detect: bool, root: Path | None, output: Path | None, as_json: bool) -> None:
    """Write a new site profile: a skeleton, or one filled in from this machine.

    Detection only reads, needs no privileges and uses no network. Run it on a node of the kind that jobs use. What it
    could not see is a comment in the profile, and is listed on stderr.
    """
    from hpcgen.config.schemas import editor_comment
    from hpcgen.detect.skeleton import skeleton

    if root is not None and not detect:
        raise click.UsageError("--root says what --detect examines; add --detect")
    check_name(name, "profile")
    if output is not None:
        # Before the machine is examined, which takes a while.
        check_absent(output)
    text, seen = _detected(name, root) if detect else (skeleton(name), {})
    text = editor_comment(output) + text
    if as_json:
        print_json({"name": name, "text": text, **seen})
    if output is not None or not as_json:
        write_or_print(text, output, name, "profile")


def _detected(name: str, root: Path | None) -> tuple[str, dict[str, Any]]:
    """The profile's text, and as data what was detected, what stays open and what has no place in a profile."""
    import datetime

    from hpcgen.detect.detection import detect
    from hpcgen.detect.machine import Machine
    from hpcgen.detect.profile import profile_of

    machine = Machine.live() if root is None else Machine.captured(root)
    seen = detect(machine)
    where = "the machine itself" if root is None else "a captured tree"
    profile = profile_of(seen, name, datetime.date.today().isoformat(), where)
    for path, why in profile.open.items():
        say(f"open: {path}: {why}")
    for note in seen.notes:
        say(f"note: {note}")
    say(f"{len(seen.facts)} facts detected, {len(profile.open)} open")
    if not profile.complete:
        say("warning: the profile lacks required facts; `hpcgen check` names them")
    facts = {each.path: {"value": each.value, "how": each.how} for each in seen.facts.values()}
    return profile.text, {"facts": facts, "open": profile.open, "notes": seen.notes, "complete": profile.complete}
