"""Stages, everything else that a recipe of any format is made from, and its inputs as lines."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import ArchiveFile, HostFile, Image, Input, Run, TextFile
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Finding, PlannedBlock, PlannedCopy
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.recipe.joint_pins import LeftOpen, ListInstallation


class Stage(msgspec.Struct):
    """One stage. ``steps`` pairs each step with the block it is of; ``copies`` are paths from the builder.

    ``prepared``: how many of the steps come before the OS packages are installed. ``before_copies``: how many come
    before what is taken from the builder, which changes more often. ``made_by_others``: a block chose the base image,
    whose makers may have it start a program of its own. ``copied``: the stack's own files; in the builder those that a
    step finds there, in the image the others. ``own``: those of the copies that come of the stack's own code. ``kept``:
    how many steps come before those of the project; 0 where it has nothing of its own.
    """

    name: str
    image: Image
    arguments: dict[str, str] = {}
    environment: dict[str, str] = {}
    host_files: list[HostFile] = []
    steps: list[tuple[str, Run]] = []
    prepared: int = 0
    before_copies: int = 0
    copies: list[str] = []
    made_by_others: bool = False
    copied: list[PlannedCopy] = []
    own: list[str] = []
    kept: int = 0


class Assembly(msgspec.Struct):
    """Both stages of an image, its labels, tests and inputs, and what the user should know.

    ``packages``: OS packages that blocks ask for, by stage; ``early``: those of the builder that do not wait for the
    project's own. ``loose``: requirements of the wheel lists that nobody
    has made with hashes, by the list's name. ``installed``: the lists that go into Python environments, and
    ``left_open`` what these leave open, by folder. ``capabilities`` of each block, by its name. ``notices``: what the
    user should know, one line each, and first what takes long to build; ``details``: what is shown only on request.
    ``base_notes``: base images that no digest pins, likewise. ``manager``: the package manager of the bases.
    """

    builder: Stage
    final: Stage
    labels: dict[str, str]
    selftest: str
    rank_tests: list[RankTest]
    inputs: list[tuple[PlannedBlock, Input]]
    packages: dict[str, list[str]]
    notices: list[str]
    early: list[str] = []
    details: list[str] = []
    loose: dict[str, tuple[str, ...]] = {}
    installed: list[ListInstallation] = []
    left_open: dict[str, LeftOpen] = {}
    capabilities: dict[str, Capabilities] = {}
    base_notes: list[str] = []
    manager: str = "apt"

    @property
    def stages(self) -> list[Stage]:
        """The stages that a recipe has: of an image that is added to another one, the final one alone."""
        return [self.builder, self.final] if self.builder.steps else [self.final]

    @property
    def files(self) -> dict[str, TextFile]:
        """The text files of the steps by their path in the kit, the self-test among them.

        InputError: two steps have different files of one path.
        """
        found: dict[str, TextFile] = {}
        for label, step in (*self.builder.steps, *self.final.steps):
            for file in step.files:
                other = found.setdefault(file.path, file)
                if (other.text, other.executable) != (file.text, file.executable):
                    raise InputError(
                        f"{label} has a different {file.path} than a block before it", remedy="rename one of them"
                    )
        return dict(sorted(found.items()))

    @property
    def archives(self) -> list[ArchiveFile]:
        """The archives that steps unpack, of what was compiled before."""
        return [each for _, step in (*self.builder.steps, *self.final.steps) for each in step.archives]


class Outline(msgspec.Struct, frozen=True):
    """What a plan's image offers to a host: by the name of each block, and the OS packages of the final stage.

    ``requested``: the OS packages that each block asks for, those of the builder too. ``doubts``: what is not known of
    its Python packages.
    """

    capabilities: dict[str, Capabilities]
    packages: list[str]
    requested: dict[str, set[str]]
    doubts: list[Finding]


# The inputs of a build, one line each: for people who must approve them, and for those who carry them.


class InputRow(NamedTuple):
    """One input: the block that needs it, its kind, its name, where it is fetched from, and what pins it."""

    block: str
    kind: str
    name: str
    origin: str
    pinned_by: str


def input_list(assembly: Assembly) -> list[InputRow]:
    """Base images, OS packages, then the inputs of each block in build order."""
    rows = []
    for stage in (assembly.builder, assembly.final):
        rows += [InputRow(stage.name, *each) for each in stage.image.pinned()]
    for stage_name, names in assembly.packages.items():
        rows += [InputRow(stage_name, "package", name, "the distribution", "name") for name in names]
    for block, item in assembly.inputs:
        rows += [InputRow(block.label, *each) for each in item.pinned()]
    return list(dict.fromkeys(rows))
