"""``hpcgen site new``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import NEW_FILE, PATH, print_json, say
from hpcgen.cli.described_sites import KINDS, read_files, sources_option
from hpcgen.cli.new_files import check_absent, check_name, write_or_print

if TYPE_CHECKING:
    from hpcgen.machine.detect.seen import Seen


@click.command("new")
@click.argument("name")
@click.option("--detect", is_flag=True, help="Fill it in from this machine.")
@click.option(
    "--root",
    metavar="DIR",
    type=PATH,
    help="Examine a tree that `hpcgen site capture` wrote, not this machine.",
)
@sources_option(f"Fill it in from a file: {', '.join(KINDS)}, and its path. Several add up; the first counts.")
@click.option(
    "--system", metavar="SYSTEM", help="The system of a ReFrame settings file; by default the one called NAME."
)
@click.option(
    "--run-settings", is_flag=True, help="Run a ReFrame settings file that computes things, in its own process."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=NEW_FILE,
    help="Write the profile here instead of to stdout; an existing file is never replaced.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the profile, with detected and missing facts, as JSON.")
def command(
    name: str,
    detect: bool,
    root: Path | None,
    sources: tuple[tuple[str, Path], ...],
    system: str | None,
    run_settings: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write a new site profile: a skeleton, or one filled in from this machine or from files.

    Detection only reads, needs no privileges and uses no network. Run it on a node of the kind that jobs use. Files of
    administrators (of Slurm, Spack, Stackinator, ReFrame) are read as data. What is not known is a comment
    in the profile, and is listed on stderr.
    """
    from hpcgen.core.config.schemas import editor_comment
    from hpcgen.machine.detect.profile import skeleton

    if root is not None and not detect:
        raise click.UsageError("--root requires --detect")
    if (system is not None or run_settings) and not any(kind == "reframe" for kind, _ in sources):
        raise click.UsageError("--system and --run-settings are about a settings file; add --from reframe FILE")
    check_name(name, "profile")
    if output is not None:
        # Before the machine is examined, which takes a while.
        check_absent(output)
    if detect or sources:
        text, seen = _filled_in(name, _seen(detect, root, sources, system or name, run_settings), detect, root, sources)
    else:
        text, seen = skeleton(name), {}
    text = editor_comment(output) + text
    if as_json:
        print_json({"name": name, "text": text, **seen})
    if output is not None or not as_json:
        write_or_print(text, output, name, "profile")


def _seen(
    detect: bool, root: Path | None, sources: Sequence[tuple[str, Path]], system: str, run_settings: bool
) -> Seen:
    """What the files say, and then what the machine shows."""
    found = read_files(sources, system, run_settings) if sources else []
    if detect:
        from hpcgen.machine.detect.detection import detect as examine
        from hpcgen.machine.detect.machine import Machine

        found.append(examine(Machine.live() if root is None else Machine.captured(root)))
    if not sources:
        return found[0]
    from hpcgen.machine.detect.detection import combine

    return combine(found)


def _filled_in(
    name: str, seen: Seen, detect: bool, root: Path | None, sources: Sequence[tuple[str, Path]]
) -> tuple[str, dict[str, object]]:
    """The profile's text, and as data what is known, what stays open and what has no place in a profile."""
    import datetime

    from hpcgen.machine.detect.profile import LIVE, profile_of

    places = [str(path) for _, path in sources]
    if detect:
        places.append(LIVE if root is None else "a captured tree")
    options = " ".join([*(f"--from {kind} {path}" for kind, path in sources), *(["--detect"] if detect else [])])
    profile = profile_of(seen, name, datetime.date.today().isoformat(), ", ".join(places), options)
    for each in seen.contradictions:
        say(f"contradiction: {each}")
    for path, why in profile.open.items():
        say(f"open: {path}: {why}")
    for note in seen.notes:
        say(f"note: {note}")
    say(f"{len(seen.facts)} facts {'known' if sources else 'detected'}, {len(profile.open)} open")
    if not profile.complete:
        say("warning: the profile lacks required facts; `hpcgen check` names them")
    facts = {each.path: {"value": each.value, "how": each.how} for each in seen.facts.values()}
    contradictions = [
        {"path": each.path, "written": [each.kept.value, each.kept.how], "other": [each.other.value, each.other.how]}
        for each in seen.contradictions
    ]
    data = {"facts": facts, "open": profile.open, "notes": seen.notes, "complete": profile.complete}
    return profile.text, {**data, **({"contradictions": contradictions} if sources else {})}
