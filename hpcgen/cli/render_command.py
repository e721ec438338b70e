"""``hpcgen render``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpcgen.cli.common import catalog_of, plan_from, plan_options, say, say_findings


@click.command("render")
@plan_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the whole kit into this folder: recipe, build script, job script, self-test, lock.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the kit as JSON: file name, text, executable.")
def command(ctx: click.Context, output: Path | None, as_json: bool, **asked: Any) -> None:
    """Write the recipe of a stack for a site to stdout, or the whole kit with -o DIR."""
    catalog = catalog_of(ctx)
    plan = plan_from(ctx, catalog, **asked)
    if output is None and not as_json:
        _recipe_only(plan, catalog)
        return
    from hpcgen.kit import KIT_FILES, make_kit

    kit = make_kit(plan, catalog)
    if output is not None:
        from hpcgen.writing import write_kit

        write_kit(output, kit.files, retired=KIT_FILES)
        say(f"wrote {', '.join(sorted(kit.files))} to {output}")
    if as_json:
        import json

        files = {name: {"text": file.text, "executable": file.executable} for name, file in kit.files.items()}
        click.echo(json.dumps(files, indent=2, ensure_ascii=False))
    say_findings(plan, kit.notices)


def _recipe_only(plan: Any, catalog: Any) -> None:
    from hpcgen.assemble import assemble, notices
    from hpcgen.formats import recipe

    assembly = assemble(plan, catalog)
    click.echo(recipe(plan, assembly), nl=False)
    say_findings(plan, [*notices(assembly), "building it takes the kit's other files too: render with -o DIR"])
