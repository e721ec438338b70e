"""Folders and files of an image onto which the host's are bound: they must be there, since images are read-only."""

from __future__ import annotations

from hpcgen.blocks.steps import Run, command, run
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.image_paths import SUBMIT_FOLDER
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site


def bind_targets(plan: Plan) -> list[str]:
    """Folders that must exist in the image because the host's are bound there (images are read-only at run time)."""
    if plan.found is not None:
        return plan.found.folders
    targets = {bind.target for bind in _binds(plan) if not bind.file}
    return sorted(targets | set(bound_file_systems(plan.site)) | {SUBMIT_FOLDER, *data_targets(plan)})


def data_targets(plan: Plan) -> list[str]:
    """The folders among them for the data and models that the stack names, where the engine makes none."""
    if plan.found is not None:
        return plan.found.folders
    run = plan.stack.run
    if not run.binds and not run.models:
        return []
    from hpcgen.backends.engines import engine_for
    from hpcgen.core.model.host_data import parse_data
    from hpcgen.core.model.hub_cache import HUB_CACHE, hub_repositories

    if not engine_for(plan.engine).targets_in_image:
        return []
    data = [parse_data(text, "run.binds") for text in run.binds]
    targets = {each.target or each.source for each in data if each.target or each.source.startswith("/")}
    hub = [HUB_CACHE] if hub_repositories(run.models) else []
    return sorted(targets | {each.to for each in run.models} | {*hub})


def _binds(plan: Plan) -> list[Bind]:
    """Those of the host's MPI, also of its part for GPUs where a job may use none of them."""
    mpi = plan.site.mpi
    return mpi.with_gpus(plan.gpu_vendor).binds if mpi is not None else []


def bound_file_systems(site: Site) -> dict[str, str]:
    """The name of each file system that is mounted on a folder of the image, by its path."""
    return {each.path: name for name, each in site.file_systems.items() if each.bind and each.path is not None}


def bound_onto(plan: Plan, folders: set[str]) -> tuple[str, Run]:
    make = command("mkdir", "-p", *sorted(folders))
    return ("site", run("mount points for the host's files", make, _bind_files(plan), joins="previous"))


def _bind_files(plan: Plan) -> list[str]:
    """Commands that create the files that must exist for the same reason; files that the image has stay as they are."""
    files = sorted({bind.target for bind in _binds(plan) if bind.file})
    if not files:
        return []
    folders = sorted({file.rsplit("/", 1)[0] or "/" for file in files})
    return [command("mkdir", "-p", *folders), command("touch", *files)]
