"""The recipe that is built in place of a kit's, where something was compiled before."""

from __future__ import annotations

import msgspec

from hpcgen.core.model.recipe_facts import RecipeFacts
from hpcgen.core.model.record import ArtifactOrigin
from hpcgen.core.support.writing import CopiedFile


class QuickRecipe(msgspec.Struct, frozen=True):
    """Another recipe for the image of a kit, which unpacks what was compiled before; the image has the kit's own.

    ``recipe``: as the engine reads it. ``archives``: by their paths in the build context. ``origins``: of the
    artifacts, by block.
    """

    recipe: str
    facts: RecipeFacts
    archives: dict[str, CopiedFile]
    origins: dict[str, ArtifactOrigin]
