"""What several subcommands share: finding and planning what was named, and saying findings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec
from msgspec.structs import replace

from hpcgen.cli.project_stack import (
    PROJECT,
    WITHOUT,
    own_stack,
    required_stack,
    site_missing,
    stack_here,
    usual_site,
)
from hpcgen.core.model.image_paths import EMULATE
from hpcgen.core.support.places import recorded

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.options import PlanOptions
    from hpcgen.core.model.job import JobRequest, JobStep
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.site import Site
    from hpcgen.kit.folder import KitFolder

Decorator = Callable[[Callable[..., object]], Callable[..., object]]
F = TypeVar("F", bound=Callable[..., object])
P = TypeVar("P", bound="PlanOptions")
PATH = click.Path(path_type=Path)


class _NewFile(click.Path):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A file that is written, or none for ``-``, by which other programs too mean stdout; one of that name is ./-."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return None if value == "-" else super().convert(value, param, ctx)


NEW_FILE = _NewFile(path_type=Path)
"""The file that is written instead of to stdout."""


def option_group(*each: Decorator) -> Callable[[F], F]:
    """One decorator for several options and arguments; the help has them in this order."""

    def decorate(function: F) -> F:
        decorated: Callable[..., object] = function
        for option in reversed(each):
            decorated = option(decorated)
        return cast("F", decorated)

    return decorate


def catalog_of(ctx: click.Context, first: Iterable[Path] = ()) -> Catalog:
    """The catalog of the ``first`` collections, ``--collection``, the environment and the built-in collection."""
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.catalog.collections import collections_from_environment

    return Catalog([*first, *ctx.obj, *collections_from_environment()])


def collections_of(ctx: click.Context | None) -> list[Path]:
    """The same collections where the command line is only completed or its help shown."""
    from hpcgen.catalog.collections import collections_from_environment

    given = ctx.find_root().params.get("collections") or () if ctx is not None else ()
    return [*given, *collections_from_environment()]


TRUST = click.option(
    "--trust-image",
    is_flag=True,
    help="Let the image's own record decide what runs on this host: variables, modules, binds, launcher.",
)
SIGNER = click.option(
    "--signer",
    "signers",
    metavar="FILE",
    type=PATH,
    help="Require a signature by one of the allowed signers in this file; by default that of your config file.",
)
WHEEL_FOLDERS = click.option(
    "--wheel-dir",
    "wheel_folders",
    multiple=True,
    metavar="DIR",
    type=PATH,
    help="A folder whose wheels are used too, by their hash; pip's own find-links are in any case.",
)
EMULATION = click.option(
    "--emulate",
    is_flag=True,
    envvar=EMULATE,
    help="Build for another architecture than this machine's with the registered emulator (slow).",
)
START = click.option(
    "--start", is_flag=True, help="Start IMAGE to read it if there is no other way, as for a SIF without squashfs."
)


def with_site(catalog: Catalog, options: P) -> P:
    """The same options, for the user's usual site where they name none; UsageError without a site or a stack."""
    if options.site is not None:
        return options
    stack = options.stack or stack_here()
    if stack is None:
        raise click.UsageError(f"missing option --site and --stack: {WITHOUT}")
    site = usual_site(catalog, stack, say)
    if site is None:
        raise site_missing(catalog, stack)
    return replace(options, site=site)


def required_signers(ctx: click.Context) -> Path | None:
    """The file of allowed signers, one of whom must have signed; None where no signature is required.

    UsageError where it is named beside nothing that could be signed.
    """
    from hpcgen.core.config.user_config import allowed_signers

    named = ctx.params.get("signers")
    if named is not None and not any(ctx.params.get(each) for each in ("bundle", "locked", "store")):
        raise click.UsageError("--signer checks the build's sources: it requires --bundle, --locked or --cache")
    return allowed_signers(named)


def named_kit(options: PlanOptions) -> KitFolder | None:
    """The kit that is named in place of ``--site`` and ``--stack``; None with both, UsageError with neither or one."""
    here, words = stack_here(), options.words
    if options.site is not None:
        if options.stack is None and here is None:
            raise click.UsageError(f"--stack is missing, and {WITHOUT}; a KIT alone needs neither --site nor --stack")
        return None
    if len(words) != 1:
        raise click.UsageError(
            f"give one KIT (a folder that hpcgen render -o wrote), or --site and --stack; {WITHOUT}"
            if here is None
            else "give one KIT (a folder that hpcgen render -o wrote), or --site"
        )
    if more := options.given(free=("words", "notes")):
        raise click.UsageError(f"{', '.join(more)}: a kit is a finished plan; give --site and --stack instead")
    from hpcgen.kit.folder import read_kit

    return read_kit(Path(words[0]))


def plan_from(
    ctx: click.Context,
    catalog: Catalog,
    options: PlanOptions,
    verb: str = "render",
    kept: Mapping[str, str] | None = None,
    unchecked: Sequence[str] = (),
    usual: bool = True,
    base_images: Mapping[str, str] | None = None,
) -> Plan:
    """The plan that the command line asks for; UsageError without a site or a stack.

    options: the site is the user's usual one, and the stack that of the present folder, where they name none.
    verb: the subcommand that the plan's own command line names.
    kept: versions of blocks that are tried before all others.
    unchecked: parts of the contract that are not asked.
    usual: partition and engine are those of the user's files, where the options do not say them.
    base_images: what ``--image`` says, by the names of base images.
    """
    from hpcgen.planning.planner import make_plan
    from hpcgen.planning.reproduce import reproduce

    options = with_site(catalog, options)
    site, recipe = options.site, required_stack(options.stack)
    assert site is not None
    if usual:
        options = with_usual_place(catalog, options)
    # A lock is shared: what belongs to one user gets into it only by an option.
    found, options = _site_asked_for(catalog, options, personal=verb != "lock")
    request = job_request(options, options.account, list(options.command))

    def again() -> str:
        given = (options.partition, options.settings, options.format, options.allow_unsupported)
        more = (options.mirrors, options.image_directory, options.added, options.latest_base)
        words = collection_words(ctx)
        last = (options.runner, base_images or {}, options.driver)
        return reproduce(site, recipe, *given, request, words, verb, *more, *last)

    stack, base = catalog.stack(recipe), None
    if stack.from_ is not None:
        from hpcgen.cli.project_stack import stack_folder
        from hpcgen.supply.pin.foreign_base import stack_base

        base = stack_base(catalog, stack, stack_folder(catalog, recipe, ["from"]), found, ask_registry=verb == "lock")
    return make_plan(
        catalog,
        found,
        stack,
        partition=options.partition,
        settings=options.settings,
        added=options.added,
        format=options.format,
        allow_unsupported=options.allow_unsupported,
        latest_base=options.latest_base,
        job=request,
        site_document=catalog.site_document(site),
        stack_document=catalog.stack_document(recipe),
        command=again,
        kept=kept,
        # A lock is what goes to a machine without a network.
        unchecked=("network",) if verb == "lock" else unchecked,
        base=base,
    )


def with_usual_place(catalog: Catalog, options: PlanOptions) -> PlanOptions:
    """Options with the partition and the engine that the user's files name for the site, where they name none."""
    from hpcgen.backends.engines import preferring
    from hpcgen.core.config.user_config import usual

    assert options.site is not None
    site = catalog.site(options.site)
    files = (own_stack(catalog, options.stack), options.stack or PROJECT)
    partition = usual("partition", site.name, *files) if options.partition is None else None
    if partition is not None and partition[0] in site.partitions:
        options = replace(options, partition=partition[0])
    elif partition is not None:
        say(f"note: {site.name} has no partition {partition[0]}, which {partition[1]} names")
    engine = usual("engine", site.name, *files) if options.runner is None else None
    with_it = preferring(site, *engine) if engine is not None else site
    if with_it.containers.preferred != site.containers.preferred:
        options = replace(options, runner=with_it.containers.preferred)
    elif engine is not None and with_it is site:
        say(f"note: the profile of {site.name} lacks or forbids the engine {engine[0]} named by {engine[1]}")
    return options


def _site_asked_for(catalog: Catalog, options: PlanOptions, personal: bool) -> tuple[Site, PlanOptions]:
    """The site with the mirrors, engine, driver and folder of images that are asked for; the options with all of it.

    ``personal``: account and folder are those of the user's files, where the options do not say them.
    """
    from hpcgen.backends.hardware.mirrors import with_mirrors
    from hpcgen.cli.personal import images_of, with_images
    from hpcgen.core.config.user_config import account_for

    assert options.site is not None
    site = catalog.site(options.site)
    if personal:
        account = account_for(site, options.account, own_stack(catalog, options.stack))
        options = replace(options, account=account, image_directory=images_of(site, options.image_directory))
    site = with_images(site, options.image_directory)
    if options.runner is not None:
        site = replace(site, containers=replace(site.containers, preferred=options.runner))
    if options.driver is not None:
        from hpcgen.planning.drivers import with_driver

        site = with_driver(site, options.partition, options.driver)
    return with_mirrors(site, options.mirrors) if options.mirrors else site, options


def collection_words(ctx: click.Context) -> list[str]:
    """``--collection`` as it was given, for a command that others read too."""
    return [word for folder in ctx.obj for word in ("--collection", recorded(str(folder)))]


def job_request(options: PlanOptions, account: str | None, command: list[str] | None) -> JobRequest:
    """What the options ask of a job; ``account`` may also come from the user's settings."""
    from hpcgen.core.model.job import JobRequest

    return JobRequest(
        nodes=options.nodes,
        ranks_per_node=options.ranks_per_node,
        threads_per_rank=options.threads,
        walltime=options.time,
        queue=options.queue,
        account=account,
        memory_per_rank_gb=options.memory_per_rank,
        gpus_per_node=options.gpus,
        rank_gpus=options.rank_gpus,
        command=command or None,
        steps=_together(options.steps, command) or None,
        name=options.job_name,
    )


def _together(steps: Sequence[JobStep], command: Sequence[str] | None) -> list[JobStep]:
    """The steps; wrong usage where two have one name, or where a command is asked for beside them."""
    names = [step.name for step in steps]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.BadParameter(f"two steps are called {twice[0]}", param_hint="--step")
    if steps and command:
        raise click.UsageError("--step and a command after -- exclude each other: make the command a step")
    return list(steps)


_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether notes and progress are left out from now on."""
    global _quiet
    _quiet = quiet


def shows_progress() -> bool:
    """Whether there is somebody at a terminal who wants to see how it goes on."""
    return sys.stderr.isatty() and not _quiet


@contextmanager
def status_line() -> Iterator[Callable[[str], None] | None]:
    """What says on the last line of a terminal what goes on; None where nobody wants to see it."""
    if not shows_progress():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting") as status:
        yield lambda text: status.update(Text(text))


def say(message: str) -> None:
    """A message for the user, on stderr: stdout is only ever the result. With ``--quiet`` warnings and errors alone."""
    if not _quiet or message.startswith(("warning:", "error:")):
        ask(message)


def ask(message: str) -> None:
    """What the user has to see, since something is asked then."""
    from hpcgen.cli.terminal import echo
    from hpcgen.core.secret_rules import without_secrets

    echo(f"hpcgen: {without_secrets(message)}", err=True)


PRINTED = "hpcgen.printed"
"""In a context's ``meta``: the JSON of a result is on stdout."""


def print_json(data: object) -> None:
    """The result as indented JSON on stdout: records, or what is made of plain data."""
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.meta[PRINTED] = True
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def print_json_list(items: Iterable[object]) -> None:
    """As :func:`print_json` prints a list, but one item after the other: only one is in memory."""
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.meta[PRINTED] = True
    before = "["
    for item in items:
        text = msgspec.json.format(msgspec.json.encode(item), indent=2).decode()
        # No line break is part of a JSON text.
        click.echo(before + "\n  " + text.replace("\n", "\n  "), nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


def shown_files(names: Iterable[str]) -> str:
    """Names of the files of a kit for the user; a folder stands for all that is in it."""
    parts = (name.partition("/") for name in names)
    return ", ".join(sorted({first + slash for first, slash, _ in parts}))


def say_findings(plan: Plan, notices: Sequence[str] = (), details: Sequence[str] = (), *, notes: bool = False) -> None:
    """What the user should know of a plan: errors and warnings first, then its notes and what its blocks note.

    ``notices``, ``details``: of its blocks, as a kit has them. ``notes``: say details too, such as facts that are not
    verified and checks that lack a fact.
    """
    found = [each for each in plan.findings if notes or each.severity != "detail"]
    for each in sorted(found, key=lambda each: each.severity == "detail"):
        level = "note" if each.severity == "detail" else each.severity
        say(f"{level}: {each}")
    for text in (*notices, *(details if notes else ())):
        say(f"note: {text}")


def say_foreign(sites: Iterable[Site]) -> None:
    """For which sites this machine builds no images, because they are for another architecture."""
    others = {each.name: each for each in sites if each.system.architecture != os.uname().machine}
    if others:
        from hpcgen.backends.hardware.emulation import foreign

        for problem in filter(None, map(foreign, others.values())):
            say(f"note: {problem.message} ({problem.remedy})")
