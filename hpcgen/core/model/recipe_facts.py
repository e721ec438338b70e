"""Facts of a recipe that a build needs and does not read out of its text: a kit's recipe.json."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import AbsolutePath, Digest, Name, Record, Text, matching
from hpcgen.core.model.image_paths import KIT_PATH
from hpcgen.core.model.performance import Measure

KitPath = Annotated[str, matching(rf"^{KIT_PATH}$(?!\n)", "a path inside the kit", "files/rank_test.c")]
ContextName = Annotated[
    str, matching(r"^(?!\.{1,2}$)[A-Za-z0-9._+@%:,=-]+$(?!\n)", "a file's name without a folder", "site-ca.crt")
]


class StepLabel(Record, frozen=True):
    """The purpose of one instruction of a recipe, and its block (with its version; ``hpcgen`` for its own)."""

    block: Text
    about: Text


class Certificate(Record, frozen=True):
    """A certificate of the building machine that the recipe copies: its file, and its name in the build context."""

    source: AbsolutePath
    name: ContextName


class PulledBase(Record, frozen=True):
    """A base image as the recipe names it, without a digest, and the digest that it is to have."""

    name: Text
    digest: Digest


class StoredBase(Record, frozen=True):
    """A base image as the recipe names it, which may have been imported into the store of ch-image.

    ``argument``: the build argument that tells the store's cache which image it is.
    """

    name: Text
    argument: Text


class KeptPart(Record, frozen=True):
    """What of a definition file is the same whatever the project is, for engines that keep no steps themselves.

    Lines count from 0. ``stage``: where the builder begins, ``files``: what it takes from the kit, ``variables`` and
    ``steps``: where these begin, ``end``: the first line of the project's steps. ``copied``: the line that takes the
    stack's own files, 0 if there is none. ``count``: how many steps. ``needs``: the kit's files that they install, from
    ``arrival``. ``base``: a base image that is a file.
    """

    stage: int
    files: int
    variables: int
    steps: int
    end: int
    count: int
    arrival: AbsolutePath
    copied: int = 0
    needs: list[KitPath] = []
    base: Text = ""


RankLayout = Literal["", "two", "pair", "per_node", "per_gpu", "all"]
FigureTable = Literal["", "osu", "nccl_tests", "hpl"]


class RankTest(Record, frozen=True):
    """A test of a block that is started as ranks of a job over several nodes; its fields are those of a block's test.

    ``block``: its name. ``device``: the file that stands for the device on the plan's site. ``measure``: which figure
    of a profile's partition it measures.
    """

    block: Name
    name: Text
    command: Text
    ranks: RankLayout
    device: Text = ""
    expect: Text = ""
    figures: FigureTable = ""
    measure: Measure | None = None


class RecipeFacts(Record, frozen=True):
    """``recipe``: the file's format. ``steps``: labels of the instructions that run commands, in order, by stage.

    ``files``: the files in folders of the kit, which the recipe copies into the image. ``heredoc``: the word that ends
    what the engine reads, where the recipe is a script with that in a here-document. ``bases``: those whose digest
    the engine does not check itself. ``stored``: those of which its cache is told what they are. ``rank_tests``: what
    ``hpcgen test --nodes`` starts beside the self-test. ``kept``: what an engine without a cache of steps need not do
    again.
    """

    recipe: int
    steps: list[list[StepLabel]]
    certificates: list[Certificate] = []
    files: list[KitPath] = []
    heredoc: Text = ""
    bases: list[PulledBase] = []
    stored: list[StoredBase] = []
    rank_tests: list[RankTest] = []
    kept: KeptPart | None = None
