"""Format writers: stages → the text of a recipe. A writer knows no block and no site by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgen.model.plan import Plan
from hpcgen.recipe.assemble import Assembly
from hpcgen.recipe.formats.files import ENGINE_FORMATS, FACTS_FILE, RECIPE_FILES, kit_files

if TYPE_CHECKING:
    from hpcgen.recipe.formats.hpccm_session import Written

__all__ = ["ENGINE_FORMATS", "FACTS_FILE", "RECIPE_FILES", "build_script", "kit_files", "recipe"]


def recipe(plan: Plan, assembly: Assembly) -> Written:
    """The recipe in the plan's format: a Dockerfile, a definition file, or for Charliecloud the build script."""
    if plan.format == "docker":
        from hpcgen.recipe.formats import docker

        return docker.dockerfile(plan, assembly)
    if plan.format == "singularity":
        from hpcgen.recipe.formats import singularity

        return singularity.definition(plan, assembly)
    from hpcgen.recipe.formats import charliecloud

    return charliecloud.build_script(plan, assembly)


def build_script(plan: Plan, assembly: Assembly) -> str:
    """The script that builds a recipe of another file; Charliecloud's recipe is its build script."""
    if plan.format == "docker":
        from hpcgen.recipe.formats import docker

        return docker.build_script(plan, assembly)
    from hpcgen.recipe.formats import singularity

    return singularity.build_script(plan, assembly)
