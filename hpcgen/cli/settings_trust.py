"""A settings file that computes things: whether it may be run."""

from __future__ import annotations

from collections.abc import Callable

import click

from hpcgen.cli.common import ask
from hpcgen.cli.personal import somebody_there


def may_run(told: bool) -> Callable[[str, str], bool]:
    """What decides: the option, or the user's answer on a terminal; elsewhere nothing is run.

    Parameters
    ----------
    told: an option said yes.
    """

    def decide(file: str, why: str) -> bool:
        if told or not somebody_there():
            return told
        ask(f"{file} computes some of its values ({why}); they are known only if it is run, as Python and as you")
        return click.confirm("Run it?", default=False, err=True)

    return decide
