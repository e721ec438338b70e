"""The options that several subcommands share, and the records in which their values reach a command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click
import msgspec

from hpcgen.cli.common import Decorator, F, option_group
from hpcgen.cli.project_stack import PROJECT
from hpcgen.cli.words import (
    BLOCK,
    COUNT,
    FORMAT,
    GIGABYTES,
    JOB_NAME,
    PARTITION,
    QUEUE,
    SETTING,
    SITE,
    STACK,
    STEP,
    WHOLE,
    EngineChoice,
)

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.fields import EngineName, RankGpus
    from hpcgen.core.model.job import JobStep
    from hpcgen.core.model.site import Site
    from hpcgen.core.model.stack import Staging
    from hpcgen.running.data import DataRequest

R = TypeVar("R", bound="Options")
_SPELT = {
    **{"settings": "--set", "added": "--add", "mirrors": "--mirror", "steps": "--step", "runner": "--engine"},
    **{"command": "a command", "binds": "--bind", "wheel_folders": "--wheel-dir"},
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Values of options and arguments, each under the name of its parameter; a default is what click has for it."""

    def given(self, free: Collection[str] = ()) -> list[str]:
        """The options that the command line has, as people write them, without those in ``free``."""
        return [spelt(name) for name in sorted(self.values()) if name not in free]

    def values(self) -> dict[str, object]:
        """What the command line has of these options, by name: what a function takes by keyword."""
        every = {name: getattr(self, name) for name in self.__struct_fields__}
        # A number of 0 was asked for, though it equals False.
        return {
            name: value for name, value in every.items() if value is not None and value is not False and value != ()
        }


class DataOptions(Options, frozen=True, kw_only=True):
    """What of the host is seen inside."""

    binds: tuple[str, ...] = ()
    no_bind_check: bool = False
    stage: Staging | None = None

    def data(self, stack_folder: Path = Path()) -> DataRequest:
        """The same in the words of :func:`~hpcgen.running.image_job.plan_for_image`."""
        from hpcgen.running.data import DataRequest

        return DataRequest(self.binds, stack_folder, not self.no_bind_check, self.stage)


class PlanOptions(DataOptions, frozen=True, kw_only=True):
    """What is planned, and for which job.

    ``runner``: the engine that starts the image. ``time``: as written, such as 90m. ``memory_per_rank``: in GB.
    ``command``: the job's; ``words``: what stands in its place where that may also be a kit, or words to explain.
    """

    site: str | None = None
    stack: str | None = None
    partition: str | None = None
    driver: str | None = None
    runner: EngineName | None = None
    settings: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    format: str | None = None
    mirrors: tuple[str, ...] = ()
    latest_base: bool = False
    allow_unsupported: bool = False
    nodes: int | None = None
    ranks_per_node: int | None = None
    threads: int | None = None
    gpus: int | None = None
    rank_gpus: RankGpus | None = None
    time: str | None = None
    job_name: str | None = None
    steps: tuple[JobStep, ...] = ()
    queue: str | None = None
    account: str | None = None
    memory_per_rank: float | None = None
    image_directory: str | None = None
    notes: bool = False
    command: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Place(TypedDict):
    """Where and by what an image is started, as functions take it by keyword."""

    trust: bool
    site: Site | None
    partition: str | None
    engine: EngineName | None


class ImageOptions(DataOptions, frozen=True, kw_only=True):
    """Where and by what an image that exists is started."""

    site: str | None = None
    trust_image: bool = False
    partition: str | None = None
    engine: str | None = None

    def place(self, catalog: Catalog) -> Place:
        """The same in the words of :func:`~hpcgen.running.image_job.plan_for_image`."""
        site = catalog.site(self.site) if self.site is not None else None
        return {"trust": self.trust_image, "site": site, "partition": self.partition, "engine": self.engine}


def spelt(name: str) -> str:
    """A parameter's option, as people write it."""
    return _SPELT.get(name, f"--{name.replace('_', '-')}")


def options_from(record: type[R], values: Mapping[str, object]) -> R:
    """The record of the values of a command's parameters, of which it may have others too."""
    return record(**{name: values[name] for name in record.__struct_fields__ if name in values})


def in_record(record: type[Options], name: str = "options") -> Decorator:
    """A decorator by which a command takes the values of its options in a record, as its parameter ``name``."""

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def call(*arguments: object, **values: object) -> object:
            rest = {each: value for each, value in values.items() if each not in record.__struct_fields__}
            return function(*arguments, **rest, **{name: options_from(record, values)})

        return call

    return decorate


def _named(alone: bool) -> list[Decorator]:
    """The options that name what is planned; ``alone``: nothing else can be named in their place."""
    ends = "." if alone else "; not with a kit, lock or bundle."
    return [
        click.option("--site", type=SITE, help=f"Site profile, by default that of {PROJECT} or your config file{ends}"),
        click.option("--stack", type=STACK, help=f"Stack recipe, by default {PROJECT} of this folder{ends}"),
    ]


SHAPE = option_group(
    click.option("--ranks-per-node", type=COUNT, help="MPI ranks on each node."),
    click.option("--threads", type=COUNT, help="Threads of each rank."),
    click.option("--gpus", type=WHOLE, help="GPUs that the job asks for on each node; 0 for none."),
    click.option(
        "--rank-gpus",
        type=click.Choice(["own", "all"]),
        help="Whether each rank sees only its own GPUs, or all GPUs of the node.",
    ),
    click.option("--time", metavar="TIME", help="Wall time: 36:00:00, 36h or 90m."),
    click.option("--job-name", metavar="NAME", type=JOB_NAME, help="Name of the job; by default that of its stack."),
)
LAYOUT = option_group(
    SHAPE,
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
DATA = option_group(
    click.option(
        "--bind",
        "binds",
        multiple=True,
        metavar="SRC[:DST[:ro]]",
        help="Show a folder or file of the host inside; once for each. $NAME has the value that it has in the job.",
    ),
    click.option("--no-bind-check", is_flag=True, help="Do not check binds here: only the nodes have them."),
)
NOTES = click.option(
    "--notes", is_flag=True, help="Show all notes: also facts that are not verified, and checks that lack a fact."
)
_OPTIONS: list[Decorator] = [
    click.option("--partition", type=PARTITION, help="Kind of node; by default the profile's."),
    click.option("--driver", metavar="VERSION", help="Driver of the nodes' GPUs, instead of the profile's."),
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
        help="Start from today's base image of that tag, not the dated one in the release table.",
    ),
    click.option("--allow-unsupported", is_flag=True, help="Go on even if the contract with the host is broken."),
    click.option("--nodes", type=COUNT, help="Nodes of the job."),
    LAYOUT,
    click.option("--queue", type=QUEUE, help="Scheduler partition or queue; by default chosen by nodes and time."),
    CHARGE,
    click.option("--image-directory", metavar="DIR", help="Where the job script looks for images first."),
    NOTES,
]


RUNNER = click.option(
    "--engine", "runner", type=EngineChoice("runners"), help="An engine other than the site's preferred one."
)


def _plan_options(alone: bool, argument: Decorator, *more: Decorator) -> Callable[[F], F]:
    return option_group(*_named(alone), *more, *_OPTIONS, argument, click.pass_context, in_record(PlanOptions))


_COMMAND = click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
plan_options = _plan_options(True, _COMMAND, RUNNER)
"""The options of every command that makes a plan; the command gets them as ``options: PlanOptions``."""
optional_plan_options = _plan_options(False, _COMMAND, RUNNER)
"""The same where a lock or a bundle may say all of it."""
word_or_plan_options = _plan_options(False, click.argument("words", nargs=-1, metavar="[WORD]..."), RUNNER)
"""The same for a command that is given words in place of a job's command."""
kit_or_plan_options = _plan_options(False, click.argument("words", nargs=-1, metavar="[KIT] [-- COMMAND...]"))
"""The same for a command that may be given a kit instead: ``words`` are the kit, or the job's command."""
