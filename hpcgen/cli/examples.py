"""Examples that ``--help`` ends with. A test reads every one as the command would, and runs what can run anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcgen.cli import COMMANDS


def examples_of(name: str) -> Mapping[str, Sequence[str]]:
    """The examples of a command and of those below it, by their paths; "" is hpcgen itself."""
    if not name or name in COMMANDS:
        # Not by core/support/templates: help loads as little as it can.
        _, *parts = Path(__file__).with_suffix(".txt").read_text("utf-8").split("#: hpcgen")
        return {lines[0].strip(): lines[1:] for lines in map(str.splitlines, parts)}
    from hpcgen.cli.plugged import plugged_examples

    return plugged_examples(name)
