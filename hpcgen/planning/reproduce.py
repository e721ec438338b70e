"""The command line that gives a plan again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hpcgen.core.model.job import JobRequest
from hpcgen.core.support.places import recorded
from hpcgen.core.support.quoting import command, sh


def reproduce(
    site: str,
    stack: str,
    partition: str | None,
    settings: Sequence[str],
    format: str | None,
    allow_unsupported: bool,
    job: JobRequest,
    before: Sequence[str] = (),
    verb: str = "render",
    mirrors: Sequence[str] = (),
    image_directory: str | None = None,
    added: Sequence[str] = (),
    latest_base: bool = False,
    engine: str | None = None,
    base_images: Mapping[str, str] = MappingProxyType({}),
    driver: str | None = None,
) -> str:
    """The command that gives the same result, where the files that it names are in the present folder.

    ``before``: words that stand before the subcommand ``verb``. ``base_images``: where base images were taken from, by
    their names.
    """
    words = ["hpcgen", *before, verb, "--site", recorded(site), "--stack", recorded(stack)]
    places = (("--partition", partition), ("--driver", driver), ("--engine", engine), ("--format", format))
    for option, value in places:
        if value is not None:
            words += [option, value]
    for setting in settings:
        words += ["--set", setting]
    for name in added:
        words += ["--add", name]
    for mirror in mirrors:
        words += ["--mirror", mirror]
    for name, reference in sorted(base_images.items()):
        words += ["--image", f"{name}={reference}"]
    words += ["--latest-base"] if latest_base else []
    words += ["--allow-unsupported"] if allow_unsupported else []
    for option, asked in (
        ("--nodes", job.nodes),
        ("--ranks-per-node", job.ranks_per_node),
        ("--threads", job.threads_per_rank),
        ("--gpus", job.gpus_per_node),
        ("--rank-gpus", job.rank_gpus),
        ("--time", job.walltime),
        ("--queue", job.queue),
        ("--account", job.account),
        ("--memory-per-rank", job.memory_per_rank_gb),
        ("--job-name", job.name),
        ("--image-directory", image_directory),
    ):
        if asked is not None:
            words += [option, str(asked)]
    words += step_words(job)
    if job.command:
        words += ["--", *job.command]
    return " ".join(sh(word) for word in words)


def to_lock(line: str) -> str:
    """The command that locks what this one renders; "" of a plan that no command makes."""
    return line.replace("hpcgen render ", "hpcgen lock ", 1)


def step_words(job: JobRequest) -> list[str]:
    """The options by which the user asks for a job's steps."""
    return [word for step in job.steps or () for word in ("--step", f"{step.name}={command(*step.command)}")]
