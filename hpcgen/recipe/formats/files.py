"""Which format each engine builds from, and the files of a kit by name."""

from __future__ import annotations

from hpcgen.model.fields import EngineName, FormatName
from hpcgen.model.plan import Plan

ENGINE_FORMATS: dict[EngineName, FormatName] = {
    "charliecloud": "charliecloud",
    "apptainer": "singularity",
    "singularity": "singularity",
    "docker": "docker",
    "podman": "docker",
    "podman-hpc": "docker",
    "container-engine": "docker",
}
"""The format that each engine builds from."""

RECIPE_FILES: dict[FormatName, str] = {
    "docker": "Dockerfile",
    "singularity": "Singularity.def",
    "charliecloud": "build.sh",
}
"""The file of a kit that holds the recipe."""


FACTS_FILE = "recipe.json"
"""What a build must know of the recipe; kits of hpcgen 0.1.0 have none."""


def kit_files(plan: Plan) -> list[str]:
    """Names of the files that the plan's kit has, and that its image carries in a folder of its own."""
    from hpcgen.schedulers import scheduler_for

    job = scheduler_for(plan.site.scheduler).file_name
    always = {"build.sh", "selftest.sh", "preflight.sh", "plan.json", "hpcgen.lock", FACTS_FILE}
    return sorted({RECIPE_FILES[plan.format], job, *always})
