"""Formats of recipes: stages → text. One class and one file each; ``FORMATS`` names them."""

from __future__ import annotations

from hpcgen.backends.engines import runners
from hpcgen.core.model.fields import EngineName, FormatName
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import LIST
from hpcgen.core.support.registry import Registry
from hpcgen.recipe.formats.base import Format

__all__ = ["FACTS_FILE", "FORMATS", "Format", "engines_reading", "format_for", "kit_files"]

FORMATS: Registry[Format] = Registry(
    "format",
    "formats",
    {
        "docker": "hpcgen.recipe.formats.docker:DockerFormat",
        "singularity": "hpcgen.recipe.formats.singularity:SingularityFormat",
        "charliecloud": "hpcgen.recipe.formats.charliecloud:CharliecloudFormat",
    },
)

FACTS_FILE = "recipe.json"
"""What a build must know of the recipe; kits of hpcgen 0.1.0 have none."""


def format_for(name: FormatName, where: str = "") -> Format:
    """The format of a name that was read at ``where``; errors as :meth:`Registry.find`."""
    return FORMATS.find(name, where)()


def engines_reading(name: FormatName) -> list[EngineName]:
    """The engines that build from recipes of a format, those first whose own it is."""
    own = [engine for engine, each in runners().items() if each.format == name]
    return list(dict.fromkeys([*own, *format_for(name).read_by]))


def kit_files(plan: Plan) -> list[str]:
    """Names of the files that the plan's kit has, and that its image carries in a folder of its own."""
    from hpcgen.backends.schedulers import scheduler_for

    job = scheduler_for(plan.site.scheduler).file_name
    always = {"build.sh", "selftest.sh", "preflight.sh", "plan.json", "hpcgen.lock", FACTS_FILE}
    always |= {LIST} if plan.copied else set()
    return sorted({format_for(plan.format).recipe_file, job, *always})
