"""A start whose script runs inside the image, because the batch system starts that by itself."""

from __future__ import annotations

from msgspec.structs import replace

from hpcgen.backends.engines.inside import InsideImage
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.plan import Plan
from hpcgen.launch.start import Start


def inside_image(plan: Plan, how: Start) -> Start:
    """The same without an engine, modules and binds, which are the batch system's.

    PolicyError: something of the host would be needed inside, or the image is of a kind that it does not start.
    """
    problems = []
    remedy = "correct the profile, or leave out scheduler.container_universe so that the script starts the image"
    if how.engine.starts[0] not in ("sif", "sandbox"):
        message = f"the batch system starts Apptainer images, and images for {how.engine.name} are of another kind"
        problems.append(Problem(message, "scheduler.container_universe", remedy=remedy))
    if how.outer or how.call.binds:
        message = "an image started by the batch system has neither the host's launcher nor its MPI"
        problems.append(Problem(message, "scheduler.container_universe", remedy=remedy))
    if problems:
        raise PolicyError(problems)
    return replace(how, engine=InsideImage(None), call=replace(how.call, file_systems=()), modules=[])


def container_image(plan: Plan, how: Start, image: str | None) -> str:
    """The image's file as the batch system is told of it: by its path, or in the folder of the script."""
    if image is not None:
        return image
    (name, *_) = how.engine.image_names(plan.stack.name, plan.site.name)
    return f"{plan.site.containers.image_directory or '.'}/{name}"
