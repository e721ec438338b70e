"""``hpcgen install`` and ``hpcgen uninstall``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, START, TRUST, catalog_of, print_json, say, say_findings
from hpcgen.cli.options import ImageOptions, in_record
from hpcgen.cli.project_stack import changed_since, stack_folder, stack_here, wanted_here
from hpcgen.cli.words import IMAGE, PARTITION, SITE, STACK, EngineChoice

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.stack import Stack
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.image_job import ImageJob
    from hpcgen.running.install.files import InstalledCommand
    from hpcgen.running.install.manifest import InstallRecord


PREFIX = click.option("--prefix", required=True, metavar="DIR", type=PATH, help="The folder that gets bin/, share/ …")


class InstallOptions(ImageOptions, frozen=True, kw_only=True):
    """What of which image is installed; ``stack``: the person's own, which names the commands."""

    image: str | None = None
    stack: str | None = None
    commands: tuple[str, ...] = ()
    name: str | None = None
    kernel: bool = False
    start: bool = False
    force: bool = False


@click.command("install")
@click.argument("image", required=False, type=IMAGE)
@PREFIX
@click.option("--site", type=SITE, help="Another site than the image's, or your own profile of it.")
@TRUST
@click.option("--stack", type=STACK, help="Your stack, which names the commands; by default that of the image's name.")
@click.option("--partition", type=PARTITION, help="Kind of node.")
@click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one.")
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="NAME[=PATH]",
    help="A program of the image, instead of those that the stack names; once for each.",
)
@click.option("--name", metavar="NAME", help="Name of the files and the module; by default that of its stack.")
@click.option("--kernel", is_flag=True, help="A Jupyter kernel, too: the image needs ipykernel.")
@click.option(
    "--devcontainer", metavar="DIR", type=PATH, help="A devcontainer.json for the project in this folder, too."
)
@START
@click.option("--force", is_flag=True, help="Also overwrite installed files that were changed.")
@click.option("--json", "as_json", is_flag=True, help="Print the installed files as JSON.")
@click.pass_context
@in_record(InstallOptions)
def command(
    ctx: click.Context, prefix: Path, as_json: bool, devcontainer: Path | None, options: InstallOptions
) -> None:
    """Make programs of IMAGE commands of this machine: wrappers, a module, on request a Jupyter kernel.

    Without IMAGE, of the one that was built last from this folder's hpcgen.yaml.
    """
    from hpcgen.running.install.files import devcontainer_text, files_of
    from hpcgen.running.install.manifest import manifest_data
    from hpcgen.running.install.prefix import install

    prefix = absolute(prefix)
    catalog = catalog_of(ctx)
    job, own = _job(catalog, options)
    say_findings(job.plan)
    installed, commands = _described(job, own, options)
    files = files_of(job, prefix, installed.name, commands, kernel=options.kernel)
    place = Path(".devcontainer", installed.name, "devcontainer.json")
    outside = {absolute(devcontainer) / place: devcontainer_text(job)} if devcontainer is not None else {}
    if options.kernel and not may_have(job.plan, "ipykernel"):
        say("warning: the image's plan does not include ipykernel, without which the kernel does not start")
    done = install(prefix, installed, files, outside, force=options.force, tell=say)
    if as_json:
        print_json({"prefix": str(prefix), **manifest_data(done)})
        return
    for path in [*(str(prefix / each.path) for each in done.files if each.path.startswith("bin/")), *done.outside]:
        click.echo(path)
    say(f"{done.name} {done.version} installed: module use {prefix}/modulefiles, module load {done.name}")
    if options.kernel:
        say(f"Jupyter finds the kernel {done.name} with that module, or with JUPYTER_PATH={prefix}/share/jupyter")


def absolute(path: Path) -> Path:
    """As it stands in the files that are written, which are used from any folder; links on the way stay."""
    import os

    return Path(os.path.normpath(Path.cwd() / path.expanduser()))


def _job(catalog: Catalog, options: InstallOptions) -> tuple[ImageJob, Stack | None]:
    """The image as one process of it is started here, and the person's own stack that it is of, if there is one."""
    from hpcgen.core.errors import UnknownNameError
    from hpcgen.core.model.job import JobRequest
    from hpcgen.images.reference import parse_image
    from hpcgen.running.image_job import plan_for_image

    named, here = options.image, stack_here()
    image: ImageReference
    image = wanted_here(catalog, options.site, say) if named is None else parse_image(named, options.start)
    given = options.stack or (here if named is None else None)
    stack = catalog.stack(given) if given is not None else None
    job = plan_for_image(
        image,
        catalog,
        request=JobRequest(nodes=1, ranks_per_node=1),
        stack=stack,
        data=options.data(stack_folder(catalog, given) if given is not None else Path()),
        **options.place(catalog),
    )
    if named is None and (changed := changed_since(catalog, job.plan)):
        say(f"warning: changed since that was built: {changed} (build it again: hpcgen build)")
    if stack is None and not options.trust_image:
        try:
            stack = catalog.stack(job.plan.stack.name)
        except UnknownNameError:
            return job, None
    return job, stack


def _described(
    job: ImageJob, own: Stack | None, options: InstallOptions
) -> tuple[InstallRecord, list[InstalledCommand]]:
    """What is said of what will be installed, and its commands."""
    import msgspec

    from hpcgen._version import __version__
    from hpcgen.core.config.decoding import record_from
    from hpcgen.core.errors import InputError
    from hpcgen.core.model.fields import Name
    from hpcgen.running.install.files import version_of, wanted_commands
    from hpcgen.running.install.manifest import InstallRecord

    plan = job.plan
    commands = wanted_commands(options.commands, plan.stack, own, trust=options.trust_image)
    try:
        name = record_from(options.name or plan.stack.name, Name)
    except msgspec.ValidationError as failure:
        raise InputError(
            f"{options.name!r} is not a name", "--name", expected="lower-case letters, digits, . _ -"
        ) from failure
    installed = InstallRecord(
        hpcgen=__version__,
        name=name,
        version=version_of(plan),
        stack=plan.stack.name,
        site=plan.site.name,
        engine=plan.engine,
        image=job.image,
        commands=[each.name for each in commands],
        files=[],
    )
    return installed, commands


@click.command("uninstall")
@click.argument("name", required=False)
@PREFIX
@click.option("--force", is_flag=True, help="Remove files that were changed since, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the removed files as JSON.")
def uninstall(name: str | None, prefix: Path, force: bool, as_json: bool) -> None:
    """Remove what hpcgen install wrote below a prefix for NAME, and nothing else.

    Without NAME, what is installed there if it is one. The image itself stays.
    """
    from hpcgen.running.install.prefix import uninstall

    place = absolute(prefix)
    installed, removed = uninstall(place, name, force=force)
    if as_json:
        print_json({"prefix": str(place), "name": installed.name, "removed": [str(path) for path in removed]})
        return
    for path in removed:
        click.echo(path)
    say(f"{installed.name} removed from {place}; its image stays: {installed.image}")


def may_have(plan: Plan, package: str) -> bool:
    """Whether options of a block, a file of the project or a conda environment ask for a package by its name."""
    names = {each.name for each in plan.project.packages} if plan.project is not None else set()
    conda = [*plan.conda.needs, *plan.conda.pip, *(each.name for each in plan.conda.packages)] if plan.conda else []
    return package in names or any(package in each for each in conda) or package in str(plan.blocks)
