"""``hpcgen ci``: pipelines of a fleet, and what other programs for testing take."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli import LazyCommands
from hpcgen.cli.common import NEW_FILE, catalog_of, print_json, say, say_findings
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.test_options import ImageTestOptions, job_for_tests, test_options
from hpcgen.cli.trust import allow_of
from hpcgen.cli.words import COUNT, IMAGE
from hpcgen.core.errors import InputError
from hpcgen.plugins.fleet.cli.fleet import fleet_options
from hpcgen.plugins.fleet.cli.gate import GATE_OPTIONS

if TYPE_CHECKING:
    from hpcgen.plugins.fleet.file import LoadedFleet
    from hpcgen.plugins.fleet.pipelines.options import PipelineOptions

EXAMPLES = {
    "ci": ("hpcgen ci gitlab", "hpcgen ci github"),
    "ci gitlab": ("hpcgen ci gitlab -o .gitlab-ci.yml",),
    "ci github": ("hpcgen ci github -o .github/workflows/fleet.yml",),
    "ci reframe": ("hpcgen ci reframe image.sif --system daint:gpu -o checks.py",),
}


class _CiCommands(LazyCommands):
    rows = {
        "gitlab": (f"{__name__}:gitlab", "Write the GitLab pipeline of a fleet."),
        "github": (f"{__name__}:github", "Write the GitHub workflow of a fleet."),
        "reframe": (f"{__name__}:reframe", "Write the tests of an image as ReFrame checks."),
    }


@click.group("ci", cls=_CiCommands)
def command() -> None:
    """Write pipelines that build a fleet, and checks that test an image."""


# pipelines of a fleet


class PipelineCommandOptions(Options, frozen=True, kw_only=True):
    """What a pipeline depends on beside the fleet, as it is typed; see :class:`PipelineOptions`."""

    runners: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    requirement: str | None = None
    branch: str = "main"
    parts: int | None = None
    minutes: int = 350
    store: str = ""
    watch: bool = False
    advisories: Path | None = None
    fail_on: str = "low"
    sign: bool = False


@fleet_options
@click.option(
    "--runner",
    "runners",
    multiple=True,
    metavar="[FORMAT=]LABEL[,LABEL...]",
    help="Labels (GitHub) or tags (GitLab) of the machine that builds everything, one format, or images for aarch64.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[FORMAT=]IMAGE",
    help="GitLab: the container image for all jobs, or for jobs of one format; by default debian:12.",
)
@click.option(
    "--hpcgen",
    "requirement",
    metavar="REQUIREMENT",
    help="What pip installs: a wheel in the repository, or a requirement; by default where this hpcgen came from.",
)
@click.option(
    "--branch", default="main", show_default=True, metavar="NAME", help="GitHub: pushes to this branch publish."
)
@click.option(
    "--jobs",
    is_flag=True,
    help="Print the child pipeline (GitLab) or matrix for changed images; the pipeline calls this.",
)
@click.option(
    "--parts", type=COUNT, metavar="N", help="Matrices or child pipelines; by default as many as the fleet takes."
)
@click.option("--minutes", type=COUNT, default=350, show_default=True, help="How long one image may take.")
@click.option(
    "--cache",
    "store",
    default="",
    metavar="STORE",
    help="As for build --cache; the service's cache keeps a folder that is inside the checkout.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Look for advisories and newer releases every week, and open an issue if there are any.",
)
@GATE_OPTIONS[0]
@GATE_OPTIONS[1]
@click.option(
    "--sign", is_flag=True, help="Sign published images with the SSH key in the pipeline's secret HPCGEN_SIGNING_KEY."
)
@click.option("-o", "--output", metavar="FILE", type=NEW_FILE, help="Write it here instead of to stdout.")
@click.pass_context
@in_record(PipelineCommandOptions, "given")
def _pipeline(
    ctx: click.Context,
    /,
    service: str,
    fleet_file: Path,
    lock_file: Path | None,
    jobs: bool,
    output: Path | None,
    given: PipelineCommandOptions,
) -> None:
    """Write a pipeline that builds, tests and publishes the images of a fleet whose plan has changed.

    Keep it as .gitlab-ci.yml or .github/workflows/fleet.yml. Each run determines what has changed.
    """
    from hpcgen.plugins.fleet.file import load_fleet

    if given.images and service != "gitlab":
        raise click.UsageError("--image is only for GitLab: GitHub's jobs run on the runner itself")
    if ctx.find_root().obj:
        message = "a pipeline does not have your --collection folders"
        raise InputError(message, "--collection", remedy="name them in the fleet's `collections:`")
    loaded = load_fleet(fleet_file, allow=allow_of(ctx))
    if given.advisories is None and given.fail_on != "low":
        raise click.UsageError("--fail-on requires --advisories")
    if given.sign and not loaded.fleet.registry:
        raise InputError("--sign needs a registry to publish to", "--sign", remedy="add `registry:` to the fleet")
    options = _options(service, loaded, jobs, given)
    if jobs:
        texts = _jobs(service, loaded, lock_file, options)
    else:
        _foretell(service, loaded, options)
        texts = [_whole(service, options)]
    if len(texts) > 1 and output is None:
        raise click.UsageError("--parts requires -o FILE: each child pipeline is a file")
    _write(texts, output)


def _options(service: str, loaded: LoadedFleet, jobs: bool, given: PipelineCommandOptions) -> PipelineOptions:
    """What the command line and the fleet say of the pipeline."""
    from hpcgen.core.support.quoting import plain
    from hpcgen.plugins.fleet.pipelines.options import PipelineOptions, by_format
    from hpcgen.plugins.fleet.pipelines.requirement import in_repository

    folder = loaded.path.parent
    return PipelineOptions(
        fleet=in_repository(loaded.path, "--fleet"),
        registry=loaded.fleet.registry or "",
        runners={form: text.split(",") for form, text in by_format(given.runners, "--runner").items()},
        images=by_format(given.images, "--image"),
        requirement=_requirement(given.requirement, jobs),
        branch=given.branch,
        collections=":".join(str(folder / each) for each in loaded.fleet.collections),
        parts=_parts(service, len(loaded.members), given.parts, jobs),
        minutes=given.minutes,
        store=plain(given.store, "--cache"),
        watch=given.watch,
        advisories=in_repository(given.advisories, "--advisories") if given.advisories is not None else "",
        fail_on=given.fail_on,
        sign=given.sign,
    )


def _whole(service: str, options: PipelineOptions) -> str:
    """The pipeline that is kept in the repository."""
    if service == "github":
        from hpcgen.plugins.fleet.pipelines.github import github_workflow

        return github_workflow(options)
    from hpcgen.plugins.fleet.pipelines.gitlab import gitlab_pipeline

    return gitlab_pipeline(options)


def _pipeline_command(service: str) -> click.Command:
    """The command that writes a service's pipeline."""

    @wraps(_pipeline)
    def callback(**values: Any) -> None:
        _pipeline(service=service, **values)

    # The list is taken from the function that becomes a command.
    callback.__click_params__ = list(_pipeline.__click_params__)  # type: ignore[attr-defined]
    return click.command(service)(callback)


gitlab = _pipeline_command("gitlab")
github = _pipeline_command("github")


def _most(service: str) -> tuple[int, int]:
    """Jobs of one part, and how many parts there can be."""
    from hpcgen.plugins.fleet.pipelines.github import MATRIX, MOST_PARTS
    from hpcgen.plugins.fleet.pipelines.gitlab import CHILD

    return (MATRIX, MOST_PARTS) if service == "github" else (CHILD, 100)


def _parts(service: str, members: int, asked: int | None, jobs: bool) -> int:
    """As many as were asked for, else as the fleet takes; what a running pipeline has not asked for, it has not."""
    each, most = _most(service)
    return min(asked or (1 if jobs else -(-members // each)), most)


def _jobs(service: str, loaded: LoadedFleet, lock_file: Path | None, options: PipelineOptions) -> list[str]:
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.records import read_lock

    states = member_states(loaded, read_lock(lock_file or loaded.lock_path), skip_site_tests=True)
    for each in states:
        for problem in each.problems:
            say(f"warning: {problem}")
    room = _most(service)[0] * options.parts
    if (more := sum(each.to_build for each in states) - room) > 0:
        say(f"warning: {more} members must wait for the next run: this pipeline has {room} jobs")
        say(f"  remedy: write it again: hpcgen ci {service}")
    if service == "github":
        from hpcgen.plugins.fleet.pipelines.github import github_matrices

        return [github_matrices(states, options.parts)]
    from hpcgen.plugins.fleet.pipelines.gitlab import gitlab_jobs

    return gitlab_jobs(states, options)


def _requirement(given: str | None, jobs: bool) -> str:
    """What pip installs; where a running pipeline asks for jobs, it has been told already."""
    from hpcgen.core.support.extras import own_requirement
    from hpcgen.plugins.fleet.pipelines.requirement import OPEN, PINS, doubt, requirement_from

    known = requirement_from(given) if given is not None else own_requirement()
    nowhere = "where this hpcgen came from is unknown or gone: the pipeline needs an address to install it from"
    if not jobs and (why := doubt(known) if known else nowhere):
        say(f"warning: {why}")
        say(f"  remedy: {PINS}" + ("" if known else "; or fill in HPCGEN_REQUIREMENT in the pipeline"))
    return known or OPEN


def _foretell(service: str, loaded: LoadedFleet, options: PipelineOptions) -> None:
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.pipelines import github, gitlab
    from hpcgen.plugins.fleet.pipelines.foretold import foretold

    machine = github.RUNNER if service == "github" else gitlab.IMAGE
    for line in foretold(service, machine, member_states(loaded, {}, skip_site_tests=True), options):
        say(line)


def _write(texts: list[str], output: Path | None) -> None:
    if output is None:
        click.echo(texts[0], nl=False)
        return
    from hpcgen.core.support.writing import write_file
    from hpcgen.plugins.fleet.pipelines.options import part_name

    for number, text in enumerate(texts):
        file = output.with_stem(part_name(output.stem, number))
        write_file(file, text)
        say(f"wrote {file}")


# checks of an image


@click.command("reframe")
@click.argument("image", type=IMAGE)
@test_options
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="SYSTEM[:PARTITION]",
    help="Where ReFrame runs them, by ReFrame's names; by default everywhere.",
)
@click.option(
    "--environ", "environments", multiple=True, metavar="NAME", help="ReFrame's environments; by default all."
)
@click.option("-o", "--output", metavar="FILE", type=NEW_FILE, help="Write the checks here instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print the names of the tests and the file's text as JSON.")
@click.pass_context
def reframe(
    ctx: click.Context,
    /,
    image: str,
    systems: tuple[str, ...],
    environments: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    options: ImageTestOptions,
) -> None:
    """Write the self-tests of IMAGE as checks for ReFrame, one for each test, and those of its ranks.

    The file starts the image by the launch line of the site and needs no hpcgen where ReFrame runs it.
    """
    from hpcgen.core.support.writing import write_file
    from hpcgen.images.recorded import recorded_kit
    from hpcgen.images.reference import parse_image
    from hpcgen.running.verify.reframe import Mapping, names_of_tests, reframe_checks, systems_of
    from hpcgen.running.verify.several import rank_tests_of

    names = Mapping(systems_of(systems), list(environments) or ["*"])
    reference = parse_image(image, False)
    job = job_for_tests(reference, catalog_of(ctx), options)
    kit = recorded_kit(reference)
    selftest = kit.files.get("selftest.sh")
    if selftest is None:
        raise InputError(f"{image} carries no self-test", remedy="build it again with this hpcgen")
    shown = f"hpcgen ci reframe {image}"
    file = str(output) if output is not None else "checks.py"
    text = reframe_checks(job, selftest.text, rank_tests_of(reference) or [], names, shown, file, options.timeout)
    say_findings(job.plan)
    if as_json:
        print_json({"tests": names_of_tests(selftest.text), "systems": names.systems, "text": text})
    if output is not None:
        write_file(output, text)
        say(f"wrote {output}")
    elif not as_json:
        click.echo(text, nl=False)
