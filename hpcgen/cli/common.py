"""What several subcommands share: options, finding what was named, and saying findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from hpcgen.cli.project_stack import (
    HOW_TO_SAY_SITE,
    PROJECT,
    WITHOUT,
    required_stack,
    site_missing,
    stack_here,
    usual_site,
)
from hpcgen.cli.steps import STEP
from hpcgen.cli.words import BLOCK, COUNT, FORMAT, GIGABYTES, JOB_NAME, PARTITION, QUEUE, SETTING, SITE, STACK, WHOLE
from hpcgen.core.support.places import recorded

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.job import JobRequest
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.site import Site
    from hpcgen.kit.folder import KitFolder

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)


def option_group(*each: Callable[[Any], Any]) -> Callable[[F], F]:
    """One decorator for several options and arguments; the help has them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(each):
            function = option(function)
        return function

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


def _named(alone: bool) -> list[Callable[[Any], Any]]:
    """The options that name what is planned; ``alone``: nothing else can be named in their place."""
    ends = "." if alone else "; not with a kit, lock or bundle."
    return [
        click.option("--site", type=SITE, help=f"Site profile, by default that of your config file{ends}"),
        click.option("--stack", type=STACK, help=f"Stack recipe, by default {PROJECT} of this folder{ends}"),
    ]


LAYOUT = option_group(
    click.option("--ranks-per-node", type=COUNT, help="MPI ranks on each node."),
    click.option("--threads", type=COUNT, help="Threads of each rank."),
    click.option("--gpus", type=WHOLE, help="GPUs that the job asks for on each node; 0 for none."),
    click.option(
        "--rank-gpus",
        type=click.Choice(["own", "all"]),
        help="Whether each rank sees its own GPUs, or all of its node and chooses by itself.",
    ),
    click.option("--time", metavar="TIME", help="Wall time: 36:00:00, 36h or 90m."),
    click.option("--job-name", metavar="NAME", type=JOB_NAME, help="What the job is called; by default as its stack."),
    click.option(
        "--step",
        "steps",
        multiple=True,
        type=STEP,
        help="Start several commands one after the other, each on all ranks, until one fails; once for each.",
    ),
)
CHARGE = option_group(
    click.option("--account", metavar="NAME", help="Account or project that the job is charged to."),
    click.option(
        "--memory-per-rank", type=GIGABYTES, metavar="GB", help="Memory of each rank, checked against the node's."
    ),
)
TRUST = click.option(
    "--trust-image",
    is_flag=True,
    help="Let the image's own record decide what runs on this host: variables, modules, binds, launcher.",
)
START = click.option(
    "--start", is_flag=True, help="Start IMAGE to read it where nothing else can: a SIF that is no squashfs."
)
NOTES = click.option("--notes", is_flag=True, help="Show all notes, not only their number.")
_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--partition", type=PARTITION, help="Kind of node; by default the profile's."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        type=SETTING,
        help="Set a block's option, its version (BLOCK.version=RANGE) or a virtual's provider (mpi.provider=mpich).",
    ),
    click.option(
        "--add",
        "added",
        multiple=True,
        type=BLOCK,
        help="Put a block into the image that the stack does not have, or a package: pip:h5py==3.11.0, apt:git.",
    ),
    click.option(
        "--format",
        type=FORMAT,
        help="A format other than that of the site's engine: docker, singularity, charliecloud or a collection's.",
    ),
    click.option(
        "--mirror",
        "mirrors",
        multiple=True,
        metavar="KIND=ADDRESS",
        help="Use this mirror instead of the profile's: apt, apt-security, dnf, pip, files or images.",
    ),
    click.option(
        "--latest-base",
        is_flag=True,
        help="Start from the base image that its tag stands for today, not from the dated one of the release table.",
    ),
    click.option("--allow-unsupported", is_flag=True, help="Go on even if the contract with the host is broken."),
    click.option("--nodes", type=COUNT, help="Nodes of the job."),
    LAYOUT,
    click.option("--queue", type=QUEUE, help="Scheduler partition or queue; by default chosen by nodes and time."),
    CHARGE,
    click.option("--image-directory", metavar="DIR", help="Where the job script looks for images first."),
    NOTES,
]


_COMMAND = click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
_KIT_OR_COMMAND = click.argument("words", nargs=-1, metavar="[KIT] [-- COMMAND...]")

plan_options = option_group(*_named(True), *_OPTIONS, _COMMAND, click.pass_context)
"""The options of every command that makes a plan."""
optional_plan_options = option_group(*_named(False), *_OPTIONS, _COMMAND, click.pass_context)
"""The same where a lock or a bundle may say all of it."""
word_or_plan_options = option_group(
    *_named(False), *_OPTIONS, click.argument("words", nargs=-1, metavar="[WORD]..."), click.pass_context
)
"""The same for a command that is given words in place of a job's command."""
kit_or_plan_options = option_group(*_named(False), *_OPTIONS, _KIT_OR_COMMAND, click.pass_context)
"""The same for a command that may be given a kit instead: ``words`` are the kit, or the job's command."""


def with_usual_site(asked: dict[str, Any]) -> None:
    """Give options that name a plan and no site the user's usual one."""
    if asked["site"] is None and (asked["stack"] is not None or (not asked["words"] and stack_here() is not None)):
        asked["site"] = usual_site(say)


def named_kit(asked: Mapping[str, Any]) -> KitFolder | None:
    """The kit that is named in place of ``--site`` and ``--stack``; None with both, UsageError with neither or one."""
    here, words = stack_here(), asked["words"]
    if asked["site"] is not None:
        if asked["stack"] is None and here is None:
            raise click.UsageError(f"--stack is missing, and {WITHOUT}; a KIT alone needs neither --site nor --stack")
        return None
    if asked["stack"] is not None:
        raise click.UsageError("--site is missing; a KIT alone needs neither --site nor --stack")
    if not words and here is not None:
        raise site_missing("built")
    if len(words) != 1:
        raise click.UsageError(
            f"give one KIT (a folder that hpcgen render -o wrote), or --site and --stack; {WITHOUT}"
            if here is None
            else "give one KIT (a folder that hpcgen render -o wrote), or --site"
        )
    if more := options_given(asked, free=("words", "notes")):
        raise click.UsageError(f"{', '.join(more)}: a kit contains the whole plan; give --site and --stack instead")
    from hpcgen.kit.folder import read_kit

    return read_kit(Path(asked["words"][0]))


_SPELT = {"settings": "--set", "added": "--add", "mirrors": "--mirror", "steps": "--step", "command": "a command"}


def options_given(asked: Mapping[str, Any], free: Collection[str]) -> list[str]:
    """The options of a plan that the command line has, as people write them, without those in ``free``."""
    # A number of 0 was asked for, though it equals False.
    given = (name for name, value in asked.items() if value is not None and value is not False and value != ())
    more = sorted(name for name in given if name not in free)
    return [_SPELT.get(name, f"--{name.replace('_', '-')}") for name in more]


def plan_from(
    ctx: click.Context,
    catalog: Catalog,
    site: str,
    stack: str | None,
    verb: str = "render",
    kept: Mapping[str, str] | None = None,
    unchecked: Sequence[str] = (),
    **asked: Any,
) -> Plan:
    """The plan that the command line asks for.

    Parameters
    ----------
    stack: that of the present folder if None.
    verb: the subcommand that the plan's own command line names.
    kept: versions of blocks that are tried before all others.
    unchecked: parts of the contract that are not asked.
    """
    from hpcgen.planning.planner import make_plan
    from hpcgen.planning.reproduce import reproduce

    recipe = required_stack(stack)
    # A lock is shared: what belongs to one user gets into it only by an option.
    found, account, images = _site_asked_for(catalog.site(site), asked, personal=verb != "lock")
    request = job_request(asked, account, list(asked["command"]))
    # The options of a job for an image that exists lack it.
    latest = bool(asked.get("latest_base"))

    def again() -> str:
        given = (asked["partition"], asked["settings"], asked["format"], asked["allow_unsupported"])
        more = (asked["mirrors"], images, asked["added"], latest)
        return reproduce(site, recipe, *given, request, collection_words(ctx), verb, *more)

    return make_plan(
        catalog,
        found,
        catalog.stack(recipe),
        partition=asked["partition"],
        settings=asked["settings"],
        added=asked["added"],
        format=asked["format"],
        allow_unsupported=asked["allow_unsupported"],
        latest_base=latest,
        job=request,
        site_document=catalog.site_document(site),
        stack_document=catalog.stack_document(recipe),
        command=again,
        kept=kept,
        # A lock is what goes to a machine without a network.
        unchecked=("network",) if verb == "lock" else unchecked,
    )


def _site_asked_for(site: Site, asked: Mapping[str, Any], personal: bool) -> tuple[Site, str | None, str | None]:
    """The site with the mirrors and the folder of images that are asked for; the account to charge; that folder.

    Parameters
    ----------
    personal: account and folder are those of the user's settings, where the options do not say them.
    """
    from hpcgen.backends.hardware.mirrors import with_mirrors
    from hpcgen.cli.personal import account_for, images_of, with_images

    account, images = asked["account"], asked.get("image_directory")
    if personal:
        account, images = account_for(site, account), images_of(site, images)
    site = with_images(site, images)
    return with_mirrors(site, asked["mirrors"]) if asked["mirrors"] else site, account, images


def collection_words(ctx: click.Context) -> list[str]:
    """``--collection`` as it was given, for a command that others read too."""
    return [word for folder in ctx.obj for word in ("--collection", recorded(str(folder)))]


def job_request(asked: Mapping[str, Any], account: str | None, command: list[str] | None) -> JobRequest:
    """What the options ask of a job; ``account`` may also come from the user's settings."""
    from hpcgen.cli.steps import together
    from hpcgen.core.model.job import JobRequest

    return JobRequest(
        nodes=asked["nodes"],
        ranks_per_node=asked["ranks_per_node"],
        threads_per_rank=asked["threads"],
        walltime=asked["time"],
        queue=asked["queue"],
        account=account,
        memory_per_rank_gb=asked["memory_per_rank"],
        gpus_per_node=asked["gpus"],
        rank_gpus=asked["rank_gpus"],
        command=command or None,
        steps=together(asked["steps"], command) or None,
        name=asked["job_name"],
    )


def asked_plan(ctx: click.Context, catalog: Catalog, asked: Mapping[str, Any], **more: Any) -> Plan:
    """The plan of options, for the user's usual site where none is given; UsageError without a site or a stack."""
    site = asked["site"] or usual_site(say)
    if site is None:
        lacks = f" and --stack: {WITHOUT}" if asked["stack"] is None and stack_here() is None else ""
        raise click.UsageError(f"missing option --site{lacks or f': {HOW_TO_SAY_SITE}'}")
    return plan_from(ctx, catalog, **{**asked, "site": site}, **more)


_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether notes and progress are left out from now on."""
    global _quiet
    _quiet = quiet


def shows_progress() -> bool:
    """Whether there is somebody at a terminal who wants to see how it goes on."""
    return sys.stderr.isatty() and not _quiet


def say(message: str) -> None:
    """A message for a person, on stderr: stdout is only ever the result. With ``--quiet`` warnings and errors alone."""
    if not _quiet or message.startswith(("warning:", "error:")):
        ask(message)


def ask(message: str) -> None:
    """What a person has to see, since something is asked then."""
    click.echo(f"hpcgen: {message}", err=True)


PRINTED = "hpcgen.printed"
"""In a context's ``meta``: the JSON of a result is on stdout."""


def print_json(data: Any) -> None:
    """The result as indented JSON on stdout: records, or what is made of plain data."""
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.meta[PRINTED] = True
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def print_json_list(items: Iterable[Any]) -> None:
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
    """Names of the files of a kit for a person; a folder stands for all that is in it."""
    parts = (name.partition("/") for name in names)
    return ", ".join(sorted({first + slash for first, slash, _ in parts}))


def say_findings(
    plan: Plan, notices: Sequence[str] = (), *, long_builds: Sequence[str] = (), notes: bool = False
) -> None:
    """What a person should know of a plan: errors and warnings first, then what its blocks note.

    Parameters
    ----------
    long_builds: those of the notices that nobody should miss before a build.
    notes: say every note; else several are told in one line, with the option that shows them.
    """
    folded = [f"note: {notice}" for notice in notices if notice not in long_builds]
    count = len(folded)
    for finding in plan.findings:
        text = f"{finding.severity}: {finding.message}" + (f" ({finding.remedy})" if finding.remedy else "")
        if finding.severity == "note":
            folded.insert(len(folded) - count, text)
        else:
            say(text)
    for text in long_builds:
        say(text)
    if notes or len(folded) < 2:
        for text in folded:
            say(text)
    else:
        say(f"{len(folded)} notes on what is not verified, not checked or built in a special way: --notes shows them")
