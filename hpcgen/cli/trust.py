"""Collections that a file names: asked for once, as licences are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import ask, collections_of
from hpcgen.cli.personal import save_accepted, somebody_there

if TYPE_CHECKING:
    from hpcgen.catalog.trust import Allow, Offered

VARIABLE = "HPCGEN_TRUST_COLLECTIONS"


def allow_of(ctx: click.Context) -> Allow:
    """What decides, for the command that runs: its options, the environment, the config file, or the user's answer."""

    def allow(offered: Sequence[Offered]) -> None:
        from hpcgen.catalog.trust import FIELD, not_trusted, untrusted

        told = ctx.find_root().params.get("trust_collections") or os.environ.get(VARIABLE, "0") not in ("", "0")
        missing = [] if told else untrusted(offered, collections_of(ctx))
        if not missing:
            return
        if not somebody_there():
            raise not_trusted(missing)
        refused = [each for each in missing if not _accepted(each)]
        save = [each.key for each in missing if each not in refused]
        if save:
            save_accepted(FIELD, save)
        if refused:
            raise not_trusted(refused)

    return allow


def _accepted(each: Offered) -> bool:
    ask(f"{each.by} names the collection {each.folder}; its Python code would run here as you")
    return click.confirm("Do you trust it?", default=False, err=True)
