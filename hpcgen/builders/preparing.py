"""What is asked of a build, and what can be checked before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from hpcgen.backends.engines import Engine
from hpcgen.backends.engines.building import EngineCommand, Work
from hpcgen.backends.engines.steps import Recipe, without_test
from hpcgen.backends.hardware.emulation import check_architecture, here
from hpcgen.builders.artifacts.bundled import hold_taken
from hpcgen.builders.artifacts.quick import QuickRecipe
from hpcgen.builders.bundles import open_bundle
from hpcgen.builders.choosing import check_base_beside, choose_builder
from hpcgen.core.support.processes import require_program
from hpcgen.images.kinds import kind_for
from hpcgen.kit.folder import KitFolder, check_host_files
from hpcgen.recipe.formats import format_for


class BuildOptions(msgspec.Struct, frozen=True):
    """What is asked of a build.

    engine: the program; by the plan and what is installed if None.
    output: the image's file, folder or name; where the job script looks for it if None.
    cache: whether steps may be taken from the engine's cache.
    notest: leave out the self-test that ends a build.
    emulate: build for another architecture than this machine's, by the emulator that is registered.
    words: further words for the engine's build command.
    log: the file for the engine's whole output; beside the record if None.
    record: whether a record is kept.
    bundle: the folder of the bundle that a kit for one takes everything from.
    signers: a file of allowed signers, one of whom must have signed the bundle, and what is taken of ``artifacts``.
    artifacts: the folder in which compiled blocks are kept.
    artifact_sources: folders, ``https://`` addresses of such, and ``docker://`` ones of repositories of registries,
        from which those are brought that it lacks.
    local_wheels: whether Python packages in folders of this machine are taken, by the hashes of the lists.
    quick: the recipe that is built in place of the kit's, for the same image.
    pgp_key: the fingerprint of the OpenPGP key that signs the image itself; "" for none.
    """

    engine: str | None = None
    output: str | None = None
    cache: bool = True
    notest: bool = False
    emulate: bool = False
    words: tuple[str, ...] = ()
    log: Path | None = None
    record: bool = True
    bundle: Path | None = None
    signers: Path | None = None
    artifacts: Path | None = None
    artifact_sources: tuple[str, ...] = ()
    local_wheels: bool = False
    quick: QuickRecipe | None = None
    pgp_key: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """A build that could begin: who builds, what, with which steps."""

    kit: KitFolder
    builder: Engine
    work: Work
    recipe: Recipe


def prepare(kit: KitFolder, options: BuildOptions, token: str, scratch: Path) -> Prepared:
    """Choose the builder and the image's place, and check what can be checked before anything is started.

    InputError, MissingToolError, OutputError, PolicyError: see :func:`build_kit`.
    """
    if options.quick is not None:
        kit = msgspec.structs.replace(kit, recipe=options.quick.recipe, facts=options.quick.facts)
    check_architecture(kit.plan.site, options.emulate)
    check_host_files(kit)
    bundle = open_bundle(kit, options.bundle, options.signers)
    if bundle is not None:
        hold_taken(bundle.folder, options.signers, options.quick.origins if options.quick is not None else {})
    builder = choose_builder(kit.plan, options.engine)
    check_base_beside(kit.plan, kit.folder)
    if kit.plan.base is not None and kit.plan.base.kind == "oci-archive" and builder.archive_by and bundle is None:
        program = builder.archive_by
        require_program(program, "bring the OCI archive to the builder", f"install {program}")
    target = builder.target(kit.plan, options.output, token)
    for program, purpose in builder.requires_programs(target).items():
        require_program(program, purpose)
    if options.pgp_key:
        kind_for(target.kind).check_signing_key(options.pgp_key)
    recipe = builder.recipe(kit.recipe, kit.facts.steps if kit.facts is not None else None)
    steps = [*recipe.steps, *builder.later_steps(target)]
    form = format_for(kit.plan.format)
    untested = without_test(steps) if options.notest else steps
    # Recipes of hpcgen 0.1.0 have no such step, or it is the engine's own.
    notest = form.notest if untested != steps else ()
    recipe = msgspec.structs.replace(recipe, steps=untested)
    own = options.quick is None
    system = kit.plan.site.system
    emulated = builder.platform_words(system.architecture) if system.architecture != here() else ()
    work = Work(
        plan=kit.plan,
        kit=kit.folder,
        recipe=(kit.folder if form.engine_file == form.recipe_file and own else scratch) / form.engine_file,
        context=kit.folder if not form.certificate_folder and bundle is None and own else scratch / "context",
        token=token,
        scratch=scratch / "tmp",
        target=target,
        steps=recipe.steps,
        cache=options.cache,
        options=(*emulated, *os.environ.get("HPCGEN_BUILD_OPTIONS", "").split(), *options.words, *notest),
        root=os.geteuid() == 0,
        bundle=bundle,
        epoch=kit.lock.get("pinned_epoch"),
        bases=tuple(kit.facts.bases) if kit.facts is not None else (),
        stored=tuple(kit.facts.stored) if kit.facts is not None else (),
        kept=kit.facts.kept if kit.facts is not None else None,
        certificates=tuple(kit.facts.certificates) if kit.facts is not None else (),
    )
    return Prepared(kit, builder, work, recipe)


def commands(prepared: Prepared) -> list[str]:
    """The commands of a build as lines of shell."""
    # What is kept is built from files of a build that runs.
    builder, work = prepared.builder, msgspec.structs.replace(prepared.work, kept=None)
    lines = [call.shown() for call in [*builder.load(work), *builder.build(work)]]
    if work.target.is_file:
        lines.append(EngineCommand(("mv", work.target.temporary, work.target.name)).shown())
    return [*lines, *(call.shown() for call in [*builder.publish(work), *builder.clean(work, True)])]
