"""Plan → stages: the builder and the slim final stage, independent of the format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import (
    Environment,
    Image,
    Run,
    Test,
    TextFile,
    Wheels,
    command,
    image,
    run,
)
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.image_paths import ARTIFACTS_LABEL, CONTENT_LABEL, KIT, SCRATCH, SELFTEST, overlap
from hpcgen.core.model.plan import ExtendedImage, Plan
from hpcgen.core.support.hashing import sha256_of
from hpcgen.recipe.bases import base_check, base_for, base_labels, base_notes
from hpcgen.recipe.bind_targets import bind_targets, bound_onto
from hpcgen.recipe.locked_rpms import undated_rpms
from hpcgen.recipe.package_steps import (
    install_all,
    install_late,
    install_step,
    names_by_block,
    package_manager,
    package_names,
    project_and_others,
)
from hpcgen.recipe.parts import Parts, PlannedPart, in_stage, parts_of
from hpcgen.recipe.selftest import rank_tests, selftest_script
from hpcgen.recipe.stages import Assembly, Outline, Stage

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins
    from hpcgen.recipe.artifacts import StoredArtifact

SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
STAGES = ("builder", "final")


def assemble(
    plan: Plan,
    catalog: Catalog,
    pins: Pins | None = None,
    content: str | None = None,
    listed: bool = False,
    stored: Mapping[str, StoredArtifact] = MappingProxyType({}),
) -> Assembly:
    """Ask every block of the plan for its part and put the stages together.

    pins: exact versions and digests of a lock, which then stand in the recipe.
    content: the plan hash, if the same image is meant that another recipe makes (from a bundle, with other
        mirrors); computed from the stages if None.
    listed: with every file that Bazel is known to fetch, as a list of inputs shows.
    stored: what was compiled before, by the names of the blocks; ``content`` is then that of the plan without it.
    InputError: two blocks give one variable different values, or claim the base image both.
    InputError, ConflictError: as :func:`hpcgen.recipe.parts.parts_of`.
    """
    found = parts_of(plan, catalog, pins, listed)
    parts = found.parts
    kept = in_stage("final", parts)
    folders = sorted({path for part in kept for path in part.block.runtime(part.ctx).copies})
    tests = [(part, [*part.block.test(part.ctx), *_of_python(part, found)]) for part in kept]
    script = selftest_script(plan, [(part.label, each) for part, each in tests], folders)
    takes = {part.label: part.block.long_build(part.ctx) for part in parts}
    long = [f"{label} is compiled from source: {text}" for label, text in takes.items() if text and not plan.extends]
    if plan.extends is not None:
        from hpcgen.recipe.extension import added_parts

        added = added_parts(plan, parts)
        builder, final = _added_stages(plan, plan.extends, parts, added, catalog, script, pins)
    else:
        added = parts
        builder = builder_stage(plan, _without_compiled(parts, stored), pins)
        final = _stage("final", plan, parts, pins)
        _fill_final(final, plan, parts, script, pins, builder)
    unpinned = base_notes(plan, (builder.image, final.image)) if not plan.extends else []
    return Assembly(
        builder=builder,
        final=final,
        labels=image_labels(plan, content or _hash_of(plan, builder, final), final.image, pins) | _of_artifacts(stored),
        selftest=script,
        rank_tests=rank_tests(plan, [(part.planned.name, each) for part, each in tests]),
        inputs=[(part.planned, item) for part in added for item in part.inputs],
        packages={stage: package_names(stage, parts) for stage in STAGES},
        early=package_names("builder", project_and_others(parts)[1]),
        notices=[*long, *unpinned, *undated_rpms(pins), *(notice for part in added for notice in part.notices)],
        details=[detail for part in added for detail in part.block.details(part.ctx)],
        loose=found.loose,
        installed=found.installed,
        left_open=found.left_open,
        capabilities={part.planned.name: part.block.capabilities(part.ctx) for part in parts},
        base_notes=unpinned,
        manager=package_manager(parts),
    )


def outline(plan: Plan, catalog: Catalog) -> Outline:
    """Facts of an image that need no stages, far quicker than :func:`assemble`. Errors as there."""
    found = parts_of(plan, catalog)
    parts = found.parts
    capabilities = {part.planned.name: _capabilities(part) for part in parts}
    return Outline(capabilities, package_names("final", parts), names_by_block("builder", parts), found.doubts)


def _of_python(part: PlannedPart, found: Parts) -> list[Test]:
    """Of the block python: all packages suit each other, where several lists are installed."""
    prefix = part.ctx.me.prefix
    lists = {each.wheels.name for each in found.installed if each.folder == prefix}
    if part.planned.name != "python" or len(lists) < 2 or not all(e.block.suits_pip(e.ctx) for e in found.parts):
        return []
    return [Test("packages", command(f"{prefix}/bin/python", "-m", "pip", "check"))]


def _capabilities(part: PlannedPart) -> Capabilities:
    found, vendor = part.block.capabilities(part.ctx), part.block.gpu_vendor
    return msgspec.structs.replace(found, gpu_vendors=(vendor,)) if vendor and not found.gpu_vendors else found


# stages


def _stage(name: str, plan: Plan, parts: list[PlannedPart], pins: Pins | None) -> Stage:
    contributions = [(part.label, part.block.environment(part.ctx)) for part in in_stage(name, parts)]
    claimed = _claimed_base(name, plan, parts)
    base = base_for(plan, claimed or image(parts[0].ctx.base.release.images["default"]))
    arguments = _merged("build argument", [(label, env.arguments) for label, env in contributions])
    if pins is not None:
        supply = parts[0].ctx.supply
        base = supply.image(base.name, pins.images[base.name]) if base.name in pins.images else base
        arguments = {**arguments, **supply.arguments(), "SOURCE_DATE_EPOCH": str(pins.epoch)}
    if plan.extends is not None:
        base = Image(plan.extends.image, plan.extends.digest or "", in_registry=False)
    return Stage(
        name=name,
        image=base,
        arguments=arguments,
        environment=_environment(name, contributions, plan.base.environment if plan.base is not None else {}),
        host_files=[file for part in parts for file in part.block.host_files(part.ctx)],
        steps=[base_check(plan, base, parts[0].ctx.base.release.values)],
        made_by_others=claimed is not None and plan.extends is None,
    )


def _claimed_base(stage: str, plan: Plan, parts: list[PlannedPart]) -> Image | None:
    """The image that the stack or a block wants to start from; None where it is the distribution's."""
    claims = [(part.label, claim) for part in parts if (claim := part.block.base_image(part.ctx, stage)) is not None]
    if plan.base is not None:
        claims.append(("from", Image(plan.base.image)))
    if len(claims) > 1:
        names = ", ".join(f"{label} ({claim.name})" for label, claim in claims)
        remedy = "let only one of them do so, through its options"
        raise InputError(f"more than one block chooses the base image: {names}", remedy=remedy)
    return claims[0][1] if claims else None


def _environment(
    stage: str, contributions: list[tuple[str, Environment]], of_base: Mapping[str, str]
) -> dict[str, str]:
    """Variables of a stage, PATH-like ones joined; a later block's folders come before an earlier one's.

    Those of an image of others come last, and give way to what a block sets.
    """
    plain = [(label, env.both) for label, env in contributions]
    folders: dict[str, list[str]] = {"PATH": of_base["PATH"].split(":") if "PATH" in of_base else list(SYSTEM_PATH)}
    if stage == "builder":
        plain += [(label, env.build) for label, env in contributions]
    for _, env in contributions:
        for paths in (env.paths, env.build_paths if stage == "builder" else {}):
            for name, added in paths.items():
                known = folders.setdefault(name, of_base[name].split(":") if of_base.get(name) else [])
                folders[name] = [f for f in added if f not in known] + known
    joined = [("the PATH-like variables", {name: ":".join(paths) for name, paths in folders.items()})]
    return dict(sorted({**of_base, **_merged("variable", plain + joined)}.items()))


def _merged(what: str, contributions: list[tuple[str, dict[str, str]]]) -> dict[str, str]:
    merged: dict[str, tuple[str, str]] = {}
    problems = Problems()
    for label, values in contributions:
        for name, value in values.items():
            if name in merged and merged[name][1] != value:
                first, other = merged[name]
                problems.add(
                    f"{what} {name} is {other!r} for {first} and {value!r} for {label}", remedy="remove one of the two"
                )
            merged.setdefault(name, (label, value))
    problems.raise_as(InputError)
    return {name: value for name, (_, value) in sorted(merged.items())}


def _of_artifacts(stored: Mapping[str, StoredArtifact]) -> dict[str, str]:
    """The label of an image that says what was compiled before, and by what."""
    origins = {name: each.record.origin for name, each in stored.items()}
    return {ARTIFACTS_LABEL: msgspec.json.encode(origins).decode()} if stored else {}


def _without_compiled(parts: list[PlannedPart], stored: Mapping[str, StoredArtifact]) -> list[PlannedPart]:
    if not stored:
        return parts
    from hpcgen.recipe.artifacts import with_artifacts

    return with_artifacts(parts, stored)


def builder_stage(plan: Plan, parts: list[PlannedPart], pins: Pins | None) -> Stage:
    """The stage in which these parts of a plan are made."""
    stage = _stage("builder", plan, parts, pins)
    _fill_builder(stage, plan, parts, pins)
    return stage


def _fill_builder(stage: Stage, plan: Plan, parts: list[PlannedPart], pins: Pins | None) -> None:
    stage.steps += _steps(parts, lambda part: part.block.prepare(part.ctx, "builder"))
    stage.prepared = len(stage.steps)
    # What changes more often comes later: the packages that the project asks for, and at last its own code.
    project, others = project_and_others(parts)
    stage.steps += install_all(stage.name, others, pins)
    stage.steps += _steps(others, lambda part: part.build_steps)
    same = len(stage.steps)
    stage.steps += install_late(parts, others, pins)
    built = _steps(project, lambda part: part.build_steps)
    own = {label for label, step in built if step.finds}
    stage.steps += sorted(built, key=lambda step: step[0] in own)
    unpacks = any(step.archives for _, step in stage.steps)
    stage.kept = same if (len(stage.steps) > same or plan.copied) and not unpacks else 0
    found = [step.finds for _, step in stage.steps if step.finds]
    stage.copied = [copy for copy in plan.copied if any(overlap(copy.to, folder) for folder in found)]
    stage.steps += _steps(parts, lambda part: part.block.finish(part.ctx, "builder"))
    stage.steps.append(("hpcgen", run("remove downloads", command("rm", "-rf", SCRATCH), joins="previous")))


def _fill_final(
    stage: Stage, plan: Plan, parts: list[PlannedPart], script: str, pins: Pins | None, builder: Stage
) -> None:
    """Copy the stack's files from the builder, as its steps leave them."""
    kept = in_stage("final", parts)
    stage.steps += _steps(kept, lambda part: part.block.prepare(part.ctx, "final"))
    stage.prepared = len(stage.steps)
    stage.steps += install_all(stage.name, kept, pins)
    runtimes = {part.label: part.block.runtime(part.ctx) for part in kept}
    kept_paths = {path for runtime in runtimes.values() for path in runtime.copies}
    folders = {path for runtime in runtimes.values() for path in runtime.folders} | set(bind_targets(plan))
    stage.steps.append(bound_onto(plan, folders))
    stage.before_copies = len(stage.steps)
    stage.steps.append(("hpcgen", run("self-test", TextFile("selftest.sh", SELFTEST, str(script), executable=True))))
    stage.steps += _steps(kept, lambda part: part.block.finish(part.ctx, "final"))
    stage.copied = [each for each in plan.copied if each not in builder.copied]
    taken = [(each.to, path) for each in stage.copied for path in (*kept_paths, *folders) if overlap(each.to, path)]
    if taken:
        told = "; ".join(f"{target} and {path}" for target, path in taken)
        raise InputError(f"the stack copies files to a path reserved for blocks: {told}", remedy="choose another `to`")
    own = {path for label, step in builder.steps if step.finds for path in runtimes[label].copies}
    brought = {each.to for each in builder.copied}
    stage.copies = _outermost(kept_paths, brought)
    stage.own = [path for path in stage.copies if path in own | brought]


def _added_stages(
    plan: Plan,
    extended: ExtendedImage,
    parts: list[PlannedPart],
    added: list[PlannedPart],
    catalog: Catalog,
    script: str,
    pins: Pins | None,
) -> tuple[Stage, Stage]:
    """No builder, and a final stage that starts from the finished image and has only the steps of the added blocks."""
    from hpcgen.recipe import extension

    final = _stage("final", plan, parts, pins)
    there = package_names("final", extension.before(plan, catalog))
    final.steps += [("hpcgen", run("keep the kit of the extended image", extension.kit_aside(extended), joins="next"))]
    kept = in_stage("final", parts)
    final.steps += extension.prepared(kept, added)
    final.prepared = len(final.steps)
    final.steps += install_step(
        "final", parts, [n for n in package_names("final", parts) if n not in there], pins, extension.PACKAGES
    )
    held, listed = extension.python_stays(added)
    final.arguments = {**final.arguments, **held}
    final.steps += [*listed, *(step for part in added for step in extension.built(part))]
    folders = {path for part in added for path in part.block.runtime(part.ctx).folders} | set(bind_targets(plan))
    final.steps.append(bound_onto(plan, folders))
    final.steps.append(("hpcgen", run("self-test", TextFile("selftest.sh", SELFTEST, str(script), executable=True))))
    final.steps += extension.finished(kept, added)
    final.steps.append(("hpcgen", run("remove downloads", command("rm", "-rf", SCRATCH), joins="previous")))
    final.copied = plan.brought
    return Stage("builder", final.image, host_files=final.host_files), final


def _outermost(paths: set[str], more: set[str]) -> list[str]:
    """Paths with others beside them, without what lies in one of these, or they in one of the first."""

    def inside(path: str, others: set[str]) -> bool:
        return any(path.startswith(f"{other}/") for other in others)

    own, others = ({each for each in one if not inside(each, two)} for one, two in ((paths, more), (more, paths)))
    return sorted(own | others)


def _steps(parts: Iterable[PlannedPart], ask: Callable[[PlannedPart], Iterable[Run]]) -> list[tuple[str, Run]]:
    return [(part.label, step) for part in parts for step in ask(part) if step.commands or step.files]


def _hash_of(plan: Plan, builder: Stage, final: Stage) -> str:
    """The hash of a plan; of an image that it extends decides what that holds, not what it is called here."""
    if plan.extends is None:
        return content_hash([builder, final])
    beneath = Image(plan.extends.content, plan.extends.digest or "")
    return content_hash([msgspec.structs.replace(final, image=beneath)])


def content_hash(stages: Iterable[Stage]) -> str:
    """A hash of all that decides what is in the image: bases, variables, commands, files, copies.

    How it is started does not, nor what a step is called, which of them prepare or share a layer, when the folders come
    from the builder, or where files lie in the kit; nor what only looks at the base.
    """
    decisive = []
    for stage in stages:
        facts = msgspec.structs.asdict(stage)
        del facts["prepared"], facts["before_copies"], facts["made_by_others"], facts["own"], facts["kept"]
        if copied := facts.pop("copied"):
            facts["copied"] = [(each.to, each.sha256) for each in copied]
        # Its digest says which one it is, whatever its tag.
        facts["image"] = {"name": stage.image.name, "digest": stage.image.digest}
        steps = [
            ([str(each) for each in step.commands], [(f.target, f.text, f.executable) for f in step.files])
            for _, step in stage.steps
            if not step.checks
        ]
        decisive.append({**facts, "steps": steps})
    return sha256_of(msgspec.json.encode(decisive, order="sorted"))


def image_labels(plan: Plan, content: str, base: Image, pins: Pins | None) -> dict[str, str]:
    """What an image says of itself where it lies; ``content``: the plan's hash."""
    blocks: Mapping[str, str] = {b.name: b.version for b in plan.blocks}
    return {
        "org.opencontainers.image.title": f"{plan.stack.name} for {plan.site.name}",
        "org.opencontainers.image.description": plan.stack.title,
        **base_labels(plan, base, pins),
        "io.hpcgen.version": plan.hpcgen,
        "io.hpcgen.site": plan.site.name,
        "io.hpcgen.partition": plan.partition,
        "io.hpcgen.stack": plan.stack.name,
        "io.hpcgen.blocks": " ".join(f"{name}@{version}" for name, version in blocks.items()),
        CONTENT_LABEL: content,
        "io.hpcgen.kit": KIT,
    }


def notices(assembly: Assembly) -> list[str]:
    """Notices of the blocks, and the downloads that no hash protects."""
    loose = [f"{block.label} ({i.name})" for block, i in assembly.inputs if isinstance(i, Wheels) and not i.hashed]
    if not loose:
        return assembly.notices
    ranges = [
        f"{block.label} ({i.name})"
        for block, i in assembly.inputs
        if isinstance(i, Wheels) and not i.hashed and not all("==" in line for line in i.requirements)
    ]
    pinned = [each for each in loose if each not in ranges]
    found = list(assembly.notices)
    if pinned:
        found.append(f"no hashed wheel list for {', '.join(pinned)}: versions are pinned, hashes are not checked")
    if ranges:
        found.append(f"no hashed wheel list for {', '.join(ranges)}: neither versions nor hashes are pinned")
    return found
