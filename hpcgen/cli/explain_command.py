"""``hpcgen explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import asked_plan, catalog_of, print_json, word_or_plan_options
from hpcgen.cli.recorded_plan import named_plan
from hpcgen.errors import InputError, Problems, UnknownNameError

if TYPE_CHECKING:
    from hpcgen.explain.case import Case


@click.command("explain")
@word_or_plan_options
@click.option("--from", "origin", metavar="KIT|LOCK|IMAGE", help="Explain a kit, a lock or an image that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanations as JSON.")
def command(ctx: click.Context, origin: str | None, as_json: bool, **asked: Any) -> None:
    """Say where things in a kit come from: the fact, the stack's line, the block, the rule, and what was refused.

    WORD is a block, BLOCK.OPTION, a variable, a package, a folder, a module, a fact's path, a line of the job script,
    or FILE:LINE of the recipe, the job script or selftest.sh; KIT/FILE:LINE needs neither --site nor --stack. Without
    a word, what can be asked for is listed.
    """
    from hpcgen.explain.answers import explain, words
    from hpcgen.explain.explanation import explanation_text

    given = tuple(asked.pop("words"))
    case = _case(ctx, origin or _kit_of(given, asked), asked)
    if not given:
        listed = words(case)
        if as_json:
            print_json(listed)
        else:
            click.echo("\n".join(f"{kind}: {', '.join(names)}" for kind, names in listed.items()))
        return
    found, problems = [], Problems()
    for word in given:
        try:
            found += explain(case, word)
        except (UnknownNameError, InputError) as error:
            problems += error.problems
    if problems:
        raise UnknownNameError(problems)
    if as_json:
        print_json(found)
    else:
        click.echo("\n\n".join(explanation_text(each) for each in found))


def _kit_of(given: tuple[str, ...], asked: dict[str, Any]) -> str | None:
    """The kit that a word of the kind KIT/FILE:LINE names, or the present folder if that is one."""
    if asked["site"] is not None or asked["stack"] is not None:
        return None
    folders = [Path(word.rpartition(":")[0]).parent for word in given if "/" in word] or [Path()]
    return next((str(folder) for folder in folders if (folder / "plan.json").is_file()), None)


def _case(ctx: click.Context, origin: str | None, asked: dict[str, Any]) -> Case:
    """What is to be explained: a plan that is made now, or that of a kit, a lock or an image."""
    from hpcgen.explain.case import Case

    catalog = catalog_of(ctx)
    if origin is None:
        plan = asked_plan(ctx, catalog, {**asked, "command": ()})
        return Case(plan, catalog, site=asked["site"], stack=asked["stack"])
    found = named_plan(origin, asked)
    case = Case(found.plan, catalog, found.sealed(origin))
    for name, there in found.files.items():
        if name in case.files and case.files[name] != there:
            raise InputError(
                f"{name} of {origin} is not what this hpcgen makes of its plan: hpcgen {found.plan.hpcgen} wrote it, "
                "the collections changed, or a person edited it",
                remedy="render the kit again, and explain that",
            )
    return case
