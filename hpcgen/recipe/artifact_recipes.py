"""Artifacts: which blocks of a plan are such, by which keys, and the recipe of an image that compiles one alone.

The image has the base, what the block needs and the block; nothing of the rest of the stack. So the key, which is a
hash of that recipe, names everything that decides what is compiled, but for OS packages that no lock pins: of these it
has the names. Mirrors, certificates and dates are left out: they decide where files come from, not what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from hpcgen.blocks.base import Facts
from hpcgen.blocks.steps import TextFile, run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.image_paths import SELFTEST
from hpcgen.core.model.network import Network
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import RunSpec
from hpcgen.core.support.hashing import sha256_of
from hpcgen.recipe.artifacts import StoredArtifact, with_artifacts
from hpcgen.recipe.assemble import builder_stage, content_hash, image_labels
from hpcgen.recipe.bind_targets import bind_targets, bound_onto
from hpcgen.recipe.package_steps import package_manager, package_names
from hpcgen.recipe.parts import PlannedPart, parts_of
from hpcgen.recipe.selftest import selftest_script
from hpcgen.recipe.stages import Assembly, Stage

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins

NUMBER = 1
"""Of the format of artifacts and of how keys are made."""


class KeyedBlock(NamedTuple):
    """A block of a plan whose compiled files can be kept: by which key, in which folders, made with which others.

    ``needs``: the keys of those that it is compiled with, by block. ``blocks``: all that an image needs to compile it.
    """

    name: str
    label: str
    key: str
    folders: tuple[str, ...]
    needs: dict[str, str]
    base: str
    blocks: frozenset[str]


def keyed_blocks(plan: Plan, catalog: Catalog, pins: Pins | None = None) -> list[KeyedBlock]:
    """The blocks of a plan that can be kept, in build order; none where nothing says which base image it is.

    ``pins``: exact versions and digests of a lock. InputError, ConflictError: as :func:`hpcgen.recipe.parts.parts_of`.
    """
    if plan.extends is not None or plan.found is not None:
        return []
    neutral = replace(
        plan, site=replace(plan.site, network=Network(internet=plan.site.network.internet)), supply="network"
    )
    parts = parts_of(neutral, catalog, pins).parts
    # What makes the site's certificates known downloads nothing itself, and nothing says that it needs it.
    facts = Facts.of(plan.site, plan.partition)
    certified = {each.planned.name for each in parts if each.block.host_files(replace(each.ctx, facts=facts))}
    found: list[KeyedBlock] = []
    for part in parts:
        folders = part.block.artifact(part.ctx)
        if not folders or part.block.of_project:
            continue
        own = _closure(parts, part.planned.name)
        stage = builder_stage(neutral, own, pins)
        if not stage.image.digest:
            continue
        names = {one.planned.name for one in own}
        needs = {each.name: each.key for each in found if each.name in names}
        key = _key(stage, folders, plan.site.system.architecture)
        base = f"{stage.image.name}@{stage.image.digest}"
        blocks = frozenset(names | certified)
        found.append(KeyedBlock(part.planned.name, part.label, key, folders, needs, base, blocks))
    return found


def _key(stage: Stage, folders: Sequence[str], architecture: str) -> str:
    arguments = {name: value for name, value in stage.arguments.items() if name != "SOURCE_DATE_EPOCH"}
    content = content_hash([replace(stage, arguments=arguments, host_files=[])])
    return sha256_of(msgspec.json.encode([NUMBER, content, folders, architecture]))


def _closure(parts: Sequence[PlannedPart], name: str) -> list[PlannedPart]:
    """The base, a block, and what it needs, and what that needs."""
    wanted = {parts[0].planned.name, name}
    # Build order: what a block needs comes before it.
    for part in reversed(parts):
        if part.planned.name in wanted:
            wanted |= set(part.planned.needs.values())
    return [part for part in parts if part.planned.name in wanted]


def artifact_plan(plan: Plan, keyed: KeyedBlock) -> Plan:
    """The plan of an image in which one block of another plan is compiled."""
    stack = replace(
        plan.stack,
        name="artifact",
        title=f"{keyed.label}, to be kept",
        blocks={name: each for name, each in plan.stack.blocks.items() if name in keyed.blocks},
        run=RunSpec(command=["true"], mpi=False),
        copy=[],
        git=[],
        build=None,
        commands=[],
        notes=[],
        open=[],
    )
    blocks = [each for each in plan.blocks if each.name in keyed.blocks]
    less = replace(plan, stack=stack, blocks=blocks, copied=[], project=None, conda=None, spack=None)
    return replace(less, findings=[], licences=[])


def artifact_assembly(
    plan: Plan, whole: Plan, catalog: Catalog, pins: Pins | None, stored: Mapping[str, StoredArtifact]
) -> Assembly:
    """The one stage of such an image. It has no self-test: that of each image which is made with the block is one.

    plan: as :func:`artifact_plan` made it.
    whole: of which it made it: on the versions of their Python packages, all its blocks have to agree.
    stored: artifacts that it is compiled with.
    """
    names = {each.name for each in plan.blocks}
    asked = [part for part in parts_of(whole, catalog, pins).parts if part.planned.name in names]
    parts = with_artifacts(asked, stored)
    script = selftest_script(plan, [], [])
    stage = replace(builder_stage(plan, parts, pins), name="final", before_copies=0)
    written = run("self-test", TextFile("selftest.sh", SELFTEST, str(script), executable=True))
    stage.steps += [bound_onto(plan, set(bind_targets(plan))), ("hpcgen", written)]
    content = content_hash([stage])
    return Assembly(
        builder=Stage("builder", stage.image, host_files=stage.host_files),
        final=stage,
        labels=image_labels(plan, content, stage.image, pins),
        selftest=script,
        rank_tests=[],
        inputs=[(part.planned, item) for part in parts for item in part.inputs],
        packages={"builder": [], "final": package_names("builder", parts)},
        notices=[],
        manager=package_manager(parts),
    )
