"""``hpcgen ci``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, say
from hpcgen.cli.fleet_command import fleet_options
from hpcgen.errors import InputError


@click.command("ci")
@click.argument("service", type=click.Choice(["gitlab", "github"]))
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
@click.option("--hpcgen", "requirement", metavar="REQUIREMENT", help="What pip installs; by default this release.")
@click.option(
    "--branch", default="main", show_default=True, metavar="NAME", help="GitHub: the branch whose pushes publish."
)
@click.option(
    "--jobs", is_flag=True, help="GitLab: print the child pipeline for what changed; the pipeline calls this."
)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write it here instead of to stdout.")
@click.pass_context
def command(
    ctx: click.Context,
    service: str,
    fleet_file: Path,
    lock_file: Path | None,
    runners: tuple[str, ...],
    images: tuple[str, ...],
    requirement: str | None,
    branch: str,
    jobs: bool,
    output: Path | None,
) -> None:
    """Write a pipeline that builds, tests and publishes the images of a fleet whose plan has changed.

    Keep it as .gitlab-ci.yml or .github/workflows/fleet.yml. Each run determines what has changed.
    """
    from hpcgen.fleet.file import load_fleet
    from hpcgen.fleet.pipelines.options import PipelineOptions, by_format

    if jobs and service != "gitlab":
        raise click.UsageError("--jobs is only for GitLab: GitHub's workflow has a matrix instead")
    if images and service != "gitlab":
        raise click.UsageError("--image is only for GitLab: GitHub's jobs run on the runner itself")
    if ctx.find_root().obj:
        message = "a pipeline does not have the folders of --collection"
        raise InputError(message, "--collection", remedy="name them in the fleet's `collections:`")
    loaded = load_fleet(fleet_file)
    labels = {form: text.split(",") for form, text in by_format(runners, "--runner").items()}
    options = PipelineOptions(
        fleet=_in_repository(fleet_file),
        registry=loaded.fleet.registry or "",
        runners=labels,
        images=by_format(images, "--image"),
        branch=branch,
        **({"requirement": requirement} if requirement else {}),
    )
    if service == "github":
        from hpcgen.fleet.pipelines.github import github_workflow

        text = github_workflow(options)
    elif jobs:
        from hpcgen.fleet.changes import member_states
        from hpcgen.fleet.lock import read_lock
        from hpcgen.fleet.pipelines.gitlab import gitlab_jobs

        states = member_states(loaded, read_lock(lock_file or loaded.lock_path))
        for each in states:
            for problem in each.problems:
                say(f"warning: {problem}")
        text = gitlab_jobs(states, options)
    else:
        from hpcgen.fleet.pipelines.gitlab import gitlab_pipeline

        text = gitlab_pipeline(options)
    _write(text, output)


def _in_repository(file: Path) -> str:
    if file.is_absolute() or ".." in file.parts:
        message = f"{file} is not a path inside a repository"
        raise InputError(message, "--fleet", "a path from the repository's top", "start hpcgen there")
    return file.as_posix()


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    from hpcgen.support.writing import write_file

    write_file(output, text)
    say(f"wrote {output}")
