"""``hpcgen ci gitlab`` and ``hpcgen ci github``: pipelines of a fleet."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import PATH, say
from hpcgen.cli.fleet_command import fleet_options
from hpcgen.cli.trust import allow_of
from hpcgen.cli.words import COUNT
from hpcgen.core.errors import InputError

if TYPE_CHECKING:
    from hpcgen.plugins.fleet.file import LoadedFleet
    from hpcgen.plugins.fleet.pipelines.options import PipelineOptions


@fleet_options
@click.option(
    "--runner",
    "runners",
    multiple=True,
    metavar="[FORMAT=]LABEL[,LABEL...]",
    help="Labels (GitHub) or tags (GitLab) of the machine that builds everything, or one format.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="[FORMAT=]IMAGE",
    help="GitLab: the container image for all jobs, or for those that build one format; by default debian:12.",
)
@click.option(
    "--hpcgen", "requirement", metavar="REQUIREMENT", help="The requirement that pip installs; by default this release."
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
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write it here instead of to stdout.")
@click.pass_context
def _pipeline(
    ctx: click.Context,
    service: str,
    fleet_file: Path,
    lock_file: Path | None,
    runners: tuple[str, ...],
    images: tuple[str, ...],
    requirement: str | None,
    branch: str,
    jobs: bool,
    parts: int | None,
    output: Path | None,
) -> None:
    """Write a pipeline that builds, tests and publishes the images of a fleet whose plan has changed.

    Keep it as .gitlab-ci.yml or .github/workflows/fleet.yml. Each run determines what has changed.
    """
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.pipelines.options import PipelineOptions, by_format

    if images and service != "gitlab":
        raise click.UsageError("--image is only for GitLab: GitHub's jobs run on the runner itself")
    if ctx.find_root().obj:
        message = "a pipeline does not have the folders of --collection"
        raise InputError(message, "--collection", remedy="name them in the fleet's `collections:`")
    loaded = load_fleet(fleet_file, allow=allow_of(ctx))
    labels = {form: text.split(",") for form, text in by_format(runners, "--runner").items()}
    options = PipelineOptions(
        fleet=_in_repository(fleet_file),
        registry=loaded.fleet.registry or "",
        runners=labels,
        images=by_format(images, "--image"),
        branch=branch,
        trusted=bool(loaded.fleet.collections),
        parts=_parts(service, len(loaded.members), parts, jobs),
        **({"requirement": requirement} if requirement else {}),
    )
    if jobs:
        texts = _jobs(service, loaded, lock_file, options)
    elif service == "github":
        from hpcgen.plugins.fleet.pipelines.github import github_workflow

        texts = [github_workflow(options)]
    else:
        from hpcgen.plugins.fleet.pipelines.gitlab import gitlab_pipeline

        texts = [gitlab_pipeline(options)]
    if len(texts) > 1 and output is None:
        raise click.UsageError("--parts requires -o FILE: each child pipeline is a file")
    _write(texts, output)


def pipeline_command(service: str) -> click.Command:
    """The command that writes a service's pipeline."""

    @wraps(_pipeline)
    def callback(**values: Any) -> None:
        _pipeline(service=service, **values)

    # The list is taken from the function that becomes a command.
    callback.__click_params__ = list(_pipeline.__click_params__)  # type: ignore[attr-defined]
    return click.command(service)(callback)


def _most(service: str) -> tuple[int, int]:
    """Jobs of one part, and how many parts there can be."""
    from hpcgen.plugins.fleet.pipelines import github, gitlab

    return (github.MATRIX, github.MOST_PARTS) if service == "github" else (gitlab.CHILD, 100)


def _parts(service: str, members: int, asked: int | None, jobs: bool) -> int:
    """As many as were asked for, else as the fleet takes; what a running pipeline has not asked for, it has not."""
    each, most = _most(service)
    return min(asked or (1 if jobs else -(-members // each)), most)


def _jobs(service: str, loaded: LoadedFleet, lock_file: Path | None, options: PipelineOptions) -> list[str]:
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.lock import read_lock

    states = member_states(loaded, read_lock(lock_file or loaded.lock_path))
    for each in states:
        for problem in each.problems:
            say(f"warning: {problem}")
    room = _most(service)[0] * options.parts
    if (more := sum(each.to_build for each in states) - room) > 0:
        say(f"warning: {more} members have to wait for the next run: this pipeline has {room} jobs")
        say(f"  remedy: write it again: hpcgen ci {service}")
    if service == "github":
        from hpcgen.plugins.fleet.pipelines.github import github_matrices

        return [github_matrices(states, options.parts)]
    from hpcgen.plugins.fleet.pipelines.gitlab import gitlab_jobs

    return gitlab_jobs(states, options)


def _in_repository(file: Path) -> str:
    if file.is_absolute() or ".." in file.parts:
        message = f"{file} is not a path inside a repository"
        raise InputError(message, "--fleet", "a path from the repository's top", "start hpcgen there")
    return file.as_posix()


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
