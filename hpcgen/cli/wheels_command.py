"""``hpcgen wheels``: hashed lists of the Python packages that a building block installs."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.core.errors import InputError

ARCHITECTURES = ("x86_64", "aarch64")
FOLDER = Path("building_blocks", "wheels")


@click.group("wheels")
def command() -> None:
    """Write hashed lists of Python packages for building blocks."""


@command.command("lock")
@click.argument("name", metavar="NAME")
@click.argument("requirements", nargs=-1, required=True, metavar="REQUIREMENT...")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="X.Y.Z",
    help="Exact version of CPython. Repeatable; by default all that base images have and that there are wheels for.",
)
@click.option(
    "--architecture",
    "architectures",
    multiple=True,
    type=click.Choice(ARCHITECTURES),
    help="Repeatable; by default x86_64.",
)
@click.option("--glibc", default="", metavar="X.Y", help="The C library of the oldest base, if newer than usual.")
@click.option("--sdist", "sdists", multiple=True, metavar="NAME==X", help="Take this package as source. Repeatable.")
@click.option("--every-python", is_flag=True, help="One list for all Pythons; with the oldest as --python.")
@click.option("--one-file", is_flag=True, help="One list with what each Python needs, for each architecture.")
@click.option(
    "--into", metavar="DIR", type=PATH, help="By default building_blocks/wheels of the first --collection, or here."
)
@click.option("--json", "as_json", is_flag=True, help="Print the lists with their packages as JSON.")
@click.pass_context
def lock(
    ctx: click.Context,
    name: str,
    requirements: tuple[str, ...],
    pythons: tuple[str, ...],
    architectures: tuple[str, ...],
    glibc: str,
    sdists: tuple[str, ...],
    every_python: bool,
    one_file: bool,
    into: Path | None,
    as_json: bool,
) -> None:
    """Write what requirements need, with hashes, one list for each Python and architecture; uses the network.

    NAME is that of the lists: jax-0.10.2 gives jax-0.10.2-cp312.txt and jax-0.10.2-aarch64-cp312.txt. A range as
    REQUIREMENT holds a version back. The package index is that of pip's settings, and its address is never written.
    """
    from hpcgen.supply.pin.one_file import in_one_file
    from hpcgen.supply.pin.wheels import ListRequest, lock_lists, pythons_of, write_lists

    folder = into or _folder(ctx)
    asked = ListRequest(
        name=name,
        requirements=requirements,
        pythons=tuple(dict.fromkeys(pythons)) or pythons_of(catalog_of(ctx).releases("python")),
        architectures=tuple(dict.fromkeys(architectures)) or ("x86_64",),
        glibc=glibc,
        sdists=sdists,
        every_python=every_python,
        optional=not pythons,
    )
    found = lock_lists(asked, say)
    if one_file and not every_python:
        found = in_one_file(asked, found)
    paths = write_lists(found, folder)
    if as_json:
        print_json({"folder": str(folder), "lists": found.lists, "skipped": found.skipped})
    else:
        for path in paths:
            click.echo(path)


@command.command("requires")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "--into", metavar="DIR", type=PATH, help="By default building_blocks/wheels of the first --collection, or here."
)
@click.pass_context
def requires(ctx: click.Context, names: tuple[str, ...], into: Path | None) -> None:
    """Write what the packages of all lists require, beside the lists; uses the network.

    Plans need it where lists, or a project's own packages, share a Python environment. It is taken from the metadata of
    the listed wheels in the package index; no wheel is downloaded. Only versions that are missing are looked up. With
    NAME, those of all releases of that package: one that projects often pin.
    """
    from hpcgen.supply.pin.wheel_facts import update_wheel_facts
    from hpcgen.supply.pin.wheels import pythons_of

    minors = [version.rpartition(".")[0] for version in pythons_of(catalog_of(ctx).releases("python"))]
    click.echo(update_wheel_facts(into or _folder(ctx), minors, names, say=say))


def _folder(ctx: click.Context) -> Path:
    """Of the first collection that was named, or here; not a new one somewhere by accident."""
    if ctx.obj:
        return Path(ctx.obj[0]) / FOLDER
    if not FOLDER.parent.is_dir():
        raise InputError("no building_blocks/ here", remedy="pass --into DIR")
    return FOLDER
