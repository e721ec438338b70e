"""``hpcgen build --dockerfile``: a Dockerfile or definition file of the user's, built and stored for a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.build_options import BuildCommandOptions
from hpcgen.cli.common import catalog_of, say
from hpcgen.cli.options import PlanOptions
from hpcgen.cli.project_stack import site_missing, usual_site
from hpcgen.cli.provenance import write_provenance
from hpcgen.cli.terminal import echo_commands
from hpcgen.core.support.places import recorded
from hpcgen.core.support.quoting import sh

if TYPE_CHECKING:
    from hpcgen.builders.own_recipe import OwnRecipe

_OF_PLAN = ("site", "partition", "runner", "image_directory")
_OF_BUILD = (
    *("dockerfile", "context", "engine", "output", "no_cache", "emulate", "engine_option", "dry_run", "record", "log"),
    *("as_json", "accept", "notest", "provenance", "sign"),
)
"""Options that mean something without a plan. ``accept`` and ``notest`` may be there by a variable."""


def build_dockerfile(ctx: click.Context, options: PlanOptions, build: BuildCommandOptions) -> None:
    """Build the file that is named, or print how; UsageError for options that are about a plan."""
    from hpcgen.builders.own_recipe import build_own, commands_of_own, prepare_own
    from hpcgen.cli.build_command import built_and_told, say_result
    from hpcgen.images.reference import ImageReference

    if build.dockerfile is None:
        raise click.UsageError("--context requires --dockerfile")
    if more := [*options.given(free=_OF_PLAN), *build.given(free=_OF_BUILD)]:
        raise click.UsageError(f"{', '.join(more)}: --dockerfile takes no plan: the file says what is in the image")
    own = _own(ctx, build.dockerfile, options, build)
    if build.dry_run:
        click.echo(f"# BUILD is a temporary folder with a copy of the {own.what}.")
        echo_commands("\n".join(commands_of_own(prepare_own(own, build.how, "0", Path("BUILD")))))
        return
    result = built_and_told(lambda watcher: build_own(own, build.how, watcher))
    write_provenance(result, build.provenance, build.keys.ssh)
    image = result.image
    assert image is not None
    say(f"what it holds: hpcgen inspect {sh(str(ImageReference(image.kind, image.name)))}")
    say_result(result, build.as_json)


def _own(ctx: click.Context, file: Path, options: PlanOptions, build: BuildCommandOptions) -> OwnRecipe:
    from hpcgen.builders.own_recipe import own_name, read_own
    from hpcgen.cli.common import collection_words
    from hpcgen.core.model.stack import RunSpec, Stack
    from hpcgen.running.foreign import foreign_plan

    catalog = catalog_of(ctx)
    name = options.site or usual_site(catalog, None, say)
    if name is None:
        raise site_missing(catalog, str(file))
    site = catalog.site(name)
    if options.image_directory is not None:
        site = replace(site, containers=replace(site.containers, image_directory=options.image_directory))
    if options.runner is not None:
        site = replace(site, containers=replace(site.containers, preferred=options.runner))
    folder = (build.context or file.parent).absolute()
    called = own_name(build.output) if build.output is not None else own_name(f"{folder}/")
    stack = Stack(name=called, title="an image of a file of its own", blocks={}, run=RunSpec(mpi=False))
    words = ["hpcgen", *collection_words(ctx), "build", "--dockerfile", recorded(str(file)), "--site", name]
    words += ["--context", recorded(str(build.context))] if build.context is not None else []
    plan = replace(foreign_plan(site, options.partition, stack), command=" ".join(map(sh, words)))
    return read_own(file, build.context, plan)
