"""The plan of an image on top of a finished one: its blocks as they are, and the added ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, InputError, PolicyError, Problems
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.network import Network
from hpcgen.core.model.plan import ExtendedImage, Plan, PlannedBlock, PlannedCopy
from hpcgen.core.model.project import BLOCK
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.planning.code import check_seen
from hpcgen.planning.contract.site import OTHER_FORMAT
from hpcgen.planning.planner import make_plan
from hpcgen.planning.question import AddedWords
from hpcgen.recipe.extension import added_blocks

_OF_FILES = ("files", "groups", "without")
"""Options that name files of a project, which were read when the image was planned; the plan has what they said."""
PACKAGES = "packages"


def extended_plan(
    recorded: Plan,
    image: ExtendedImage,
    added: AddedWords,
    catalog: Catalog,
    *,
    settings: Sequence[str] = (),
    format: FormatName | None = None,
    network: Network | None = None,
    allow_unsupported: bool = False,
    command: Callable[[], str] | None = None,
) -> Plan:
    """The plan of the whole image, which says what of it the finished one has.

    recorded: the plan of the finished image.
    image: what is known of that, with the blocks of its plan.
    settings: ``--set`` for blocks that are added.
    format: of the recipe, where it is another one than the image was built from.
    network: how the build reaches what it takes, where that is not as the image's site has it.
    ConflictError: a package or a block that is asked for does not suit what is there; both are named.
    InputError: nothing is added, or a place in the image is taken.
    HpcgenError: as :func:`hpcgen.planning.planner.make_plan`.
    """
    if network is not None:
        site = msgspec.structs.replace(recorded.site, network=network)
        recorded = msgspec.structs.replace(recorded, site=site)
    _check_versions(recorded, added)
    copied = copied_of(recorded.site, added, catalog)
    _check_settings(recorded, settings)
    try:
        planned = make_plan(
            catalog,
            recorded.site,
            _held(recorded),
            partition=recorded.partition,
            settings=settings,
            added=added.others,
            format=format,
            allow_unsupported=allow_unsupported,
            latest_base=recorded.latest_base,
            job=_request(recorded.job),
            command=command,
            kept={block.name: block.version for block in recorded.blocks},
            unchecked=("network",),
        )
    except PolicyError as error:
        raise _by_kind_of_image(error) from None
    if planned.project is not None:
        names = some([each.asked for each in planned.project.packages])
        remedy = "rebuild the image with it, by --add or in its stack"
        raise InputError(f"no release table has {names}", "--add", remedy=remedy)
    plan = _whole(recorded, planned, added, copied, image)
    if taken := plan.contradiction():
        raise InputError(taken, "--add", remedy="choose another target for the copied files")
    if not (added_blocks(plan) or plan.brought):
        raise InputError("already in the image", "--add", remedy="name something that the image lacks")
    return plan


def _request(job: Job) -> JobRequest:
    """The request that gives the job of the image again."""
    return JobRequest(
        nodes=job.nodes,
        ranks_per_node=job.ranks_per_node,
        threads_per_rank=job.threads_per_rank,
        memory_per_rank_gb=job.memory_per_rank_gb,
        gpus_per_node=job.gpus_per_node,
        queue=job.queue or None,
        command=job.command or None,
        steps=job.steps or None,
    )


def _by_kind_of_image(error: PolicyError) -> PolicyError:
    """The same refusal; the recipe's format follows from the kind of the image, since there is no ``--format`` here."""
    remedy = "convert the image to a kind that engines of the site build (hpcgen convert)"
    return PolicyError(
        [
            msgspec.structs.replace(each, remedy=each.remedy.replace(OTHER_FORMAT, remedy, 1))
            if each.remedy.startswith(OTHER_FORMAT)
            else each
            for each in error.problems
        ]
    )


def _whole(
    recorded: Plan, planned: Plan, added: AddedWords, copied: Sequence[PlannedCopy], image: ExtendedImage
) -> Plan:
    """The plan of the image as it was, completed to a plan of the whole."""
    before = {block.name: block for block in recorded.blocks}
    return msgspec.structs.replace(
        planned,
        engine=recorded.engine if planned.format == recorded.format else planned.engine,
        blocks=[_as_it_was(block, before.get(block.name)) for block in planned.blocks],
        stack=_stack(recorded, planned.stack, added),
        job=recorded.job,
        settings={**recorded.settings, **planned.settings},
        licences=[*recorded.licences, *(each for each in planned.licences if each not in recorded.licences)],
        copied=[*recorded.copied, *copied],
        project=recorded.project,
        conda=recorded.conda,
        extends=image,
    )


def _check_settings(recorded: Plan, settings: Sequence[str]) -> None:
    there = {block.name for block in recorded.blocks}
    problems = Problems()
    for text in settings:
        name = text.partition(".")[0]
        if name in there or any(name in block.provides for block in recorded.blocks):
            problems.add(
                f"{name} is in the image already, and stays as it is: {text}",
                "--set",
                "a block that --add names",
                "rebuild the image for another version or other options",
            )
    problems.raise_as(InputError)


def _check_versions(recorded: Plan, added: AddedWords) -> None:
    """ConflictError for packages that the image has in another version."""
    block = recorded.block(BLOCK)
    value = block.options.get(PACKAGES) if block is not None else None
    there = [str(each) for each in value] if isinstance(value, list) else []
    problems = Problems()
    for text in added.packages("pip"):
        clashes = [each for each in there if _name(each) == _name(text) and each != text]
        problems += _clash(text, [*clashes, *_of_project(recorded, text)])
    problems.raise_as(ConflictError)


def _clash(text: str, there: Sequence[str]) -> Problems:
    problems = Problems()
    for each in there:
        remedy = f"leave {text} out, or rebuild the image with it"
        problems.add(f"{text} is requested, but the image has {each}", "--add", "a version as in the image", remedy)
    return problems


def _of_project(recorded: Plan, text: str) -> list[str]:
    """The same package in another version from the project's files."""
    packages = recorded.project.packages if recorded.project is not None else []
    version = text.partition("==")[2]
    return [
        f"{each.name}=={each.version} ({each.origin})"
        for each in packages
        if each.version and each.name == _name(text) and each.version != version
    ]


def _name(pin: str) -> str:
    name: str = normal_name(pin.partition("==")[0])
    return name


def copied_of(site: Site, added: AddedWords, catalog: Catalog) -> list[PlannedCopy]:
    """The files of this machine that are added; InputError where they cannot be copied, or jobs would not see them."""
    check_seen(site, [("--add", each.entry.to) for each in added.copies], lambda at: "--add")
    problems = Problems()
    copied = []
    for each in added.copies:
        with problems.caught(lambda: "--add"):
            copied.append(catalog.copied.planned_from(each.folder, each.entry))
    problems.raise_as(InputError)
    return copied


def _held(recorded: Plan) -> Stack:
    """A stack that asks for every block of the image in its version and with its options."""
    blocks = {}
    for block in recorded.blocks:
        options = {name: value for name, value in block.options.items() if name not in _OF_FILES}
        blocks[block.name] = StackBlock(version=f"=={block.version}", options=options)
    return msgspec.structs.replace(recorded.stack, blocks=blocks, copy=[], git=[], build=None, extends=None)


def _as_it_was(block: PlannedBlock, before: PlannedBlock | None) -> PlannedBlock:
    """A block of the image as its own plan has it, with the packages that are added to it."""
    if before is None:
        return block
    if PACKAGES not in before.options or before.options[PACKAGES] == block.options[PACKAGES]:
        return before
    return msgspec.structs.replace(before, options={**before.options, PACKAGES: block.options[PACKAGES]})


def _stack(recorded: Plan, planned: Stack, added: AddedWords) -> Stack:
    """The image's stack, with entries for the additions."""
    blocks = dict(recorded.stack.blocks)
    there = {block.name: block.options.get(PACKAGES) for block in recorded.blocks}
    for name, said in planned.blocks.items():
        packages = said.options.get(PACKAGES)
        if name not in there:
            blocks.setdefault(name, said)
        elif packages is not None and packages != there[name]:
            known = blocks.get(name, StackBlock())
            blocks[name] = msgspec.structs.replace(known, options={**known.options, PACKAGES: packages})
    entries = [*recorded.stack.copy, *(each.entry for each in added.copies)]
    return msgspec.structs.replace(recorded.stack, blocks=blocks, copy=entries)
