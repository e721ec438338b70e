"""Format writers: stages → the text of a recipe. A writer knows no block and no site by name."""

from __future__ import annotations

from hpcgen.assemble import Assembly
from hpcgen.model.fields import EngineName, FormatName
from hpcgen.model.plan import Plan

ENGINE_FORMATS: dict[EngineName, FormatName] = {
    "charliecloud": "charliecloud",
    "apptainer": "singularity",
    "singularity": "singularity",
    "docker": "docker",
    "podman": "docker",
}
"""The format that each engine builds from."""

RECIPE_FILES: dict[FormatName, str] = {
    "docker": "Dockerfile",
    "singularity": "Singularity.def",
    "charliecloud": "build.sh",
}
"""The file of a kit that holds the recipe."""


def recipe(plan: Plan, assembly: Assembly) -> str:
    """The recipe in the plan's format: a Dockerfile, a definition file, or for Charliecloud the build script."""
    if plan.format == "docker":
        from hpcgen.formats import docker

        return docker.dockerfile(plan, assembly)
    if plan.format == "singularity":
        from hpcgen.formats import singularity

        return singularity.definition(plan, assembly)
    from hpcgen.formats import charliecloud

    return charliecloud.build_script(plan, assembly)


def build_script(plan: Plan, assembly: Assembly) -> str:
    """The script that builds a recipe of another file; Charliecloud's recipe is its build script."""
    if plan.format == "docker":
        from hpcgen.formats import docker

        return docker.build_script(plan, assembly)
    from hpcgen.formats import singularity

    return singularity.build_script(plan, assembly)
