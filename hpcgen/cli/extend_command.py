"""``hpcgen extend``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import EMULATION, PATH, START, catalog_of, collection_words, option_group, say, say_findings
from hpcgen.cli.licences import licence_option, with_licences
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.words import IMAGE, SETTING, SITE, EngineChoice
from hpcgen.core.model.image_paths import NOTEST

if TYPE_CHECKING:
    from hpcgen.backends.engines.base import Engine
    from hpcgen.builders import BuildOptions
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import BuildRecord
    from hpcgen.images.recorded import RecordedKit
    from hpcgen.images.reference import ImageReference
    from hpcgen.kit.folder import KitFolder


class ExtendOptions(Options, frozen=True, kw_only=True):
    """What is added to an image, by what it is built, and what is written beside the new one."""

    added: tuple[str, ...]
    settings: tuple[str, ...] = ()
    site: str | None = None
    output: str | None = None
    engine: str | None = None
    notest: bool = False
    emulate: bool = False
    engine_option: tuple[str, ...] = ()
    allow_unsupported: bool = False
    record: bool = True
    log: Path | None = None
    lock: Path | None = None
    sbom: Path | None = None
    start: bool = False
    accept: tuple[str, ...] = ()

    def how(self, engine: str | None, image: ImageReference) -> BuildOptions:
        """How it is built, by this program."""
        from hpcgen.builders import BuildOptions
        from hpcgen.builders.choosing import new_name

        return BuildOptions(
            engine=engine,
            output=self.output or new_name(image),
            notest=self.notest,
            emulate=self.emulate,
            words=self.engine_option,
            log=self.log,
            record=self.record,
        )


@click.command("extend")
@click.argument("image", type=IMAGE)
@click.option(
    "--add",
    "added",
    multiple=True,
    required=True,
    metavar="WORD",
    help="Add this: pip:NAME==VERSION, apt:NAME (of the base's package manager), copy:FOLDER=/opt/NAME, or a block.",
)
@click.option("--set", "settings", multiple=True, type=SETTING, help="Set an option or the version of an added block.")
@click.option(
    "--site", type=SITE, help="Reach the network as this site does (mirrors, proxy, certificates), not the image's."
)
@click.option("-o", "--output", metavar="IMAGE", help="The new image; by default IMAGE's name with -extended.")
@click.option("--engine", type=EngineChoice("builders"), help="The program that builds; by default by IMAGE's kind.")
@click.option("--kit", "keep", metavar="DIR", type=PATH, help="Keep the new kit in this folder.")
@click.option(
    "--notest", is_flag=True, envvar=NOTEST, help="Leave out the self-test that ends a build: for another CPU, say."
)
@EMULATION
@click.option("--engine-option", multiple=True, metavar="WORD", help="An extra word for the engine's build command.")
@click.option("--allow-unsupported", is_flag=True, help="Go on even if the contract with the host is broken.")
@click.option("--dry-run", is_flag=True, help="Print the engine's commands, build nothing.")
@click.option("--record/--no-record", default=True, help="Keep a record of the build (hpcgen records).")
@click.option("--log", metavar="FILE", type=PATH, help="Write the engine's whole output here.")
@click.option("--lock", metavar="FILE", type=PATH, help="Write the additions to this file, with versions and hashes.")
@click.option("--sbom", metavar="FILE", type=PATH, help="Write the bill of materials of the additions, CycloneDX.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
@START
@licence_option
@option_group(click.pass_context, in_record(ExtendOptions))
def command(
    ctx: click.Context, image: str, keep: Path | None, dry_run: bool, as_json: bool, options: ExtendOptions
) -> None:
    """Build a new image on top of a finished one: what that has stays as it is, and only what is added is built.

    IMAGE may be one that hpcgen did not build; --site then says for which machine.

    The new image carries the plan of the whole and says what it was added to; inspect, run, test and submit take it
    as any other. Nothing of IMAGE is started on this machine but by the engine, as a build would.
    """
    from hpcgen.builders.choosing import adding_engine
    from hpcgen.cli.build_command import build_and_tell, dry_run_of, say_result
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.core.support.writing import check_folder_of
    from hpcgen.images.recorded import known_kit
    from hpcgen.images.reference import parse_image

    for file in (options.lock, options.sbom):
        if file is not None:
            check_folder_of(file)
    found = parse_image(image, options.start)
    kit = known_kit(found)
    if kit is None:
        from hpcgen.cli.extend_foreign import extend_foreign

        extend_foreign(ctx, found, keep, dry_run, as_json, options)
        return
    engine = adding_engine(found, kit.plan, options.engine)
    how = options.how(engine.builder_name(), found)
    with scratch_folder("hpcgen-kit-") as folder:
        made = _kit(ctx, found, kit, engine, keep or folder / "kit", dry_run, options)
        if dry_run:
            dry_run_of(made, how)
            return
        record = build_and_tell(made, how)
        _write_difference(ctx, made, record, options)
    say_result(record, as_json)


def _write_difference(ctx: click.Context, kit: KitFolder, record: BuildRecord, options: ExtendOptions) -> None:
    """Lock and bill of materials of what was added, where they are asked for."""
    lock_file, sbom_file, built = options.lock, options.sbom, record.image
    if built is None or not (lock_file or sbom_file):
        return
    from hpcgen.core.support.writing import write_file
    from hpcgen.images.reference import ImageReference
    from hpcgen.kit.sbom import cyclonedx
    from hpcgen.supply.pin.extended import lock_of_added

    catalog = catalog_of(ctx)
    image = ImageReference(built.kind, built.name, start=options.start)
    lock = lock_of_added(kit.plan, catalog, image, kit.content)
    for file, text in ((lock_file, lock.text), (sbom_file, cyclonedx(lock, [], catalog) if sbom_file else "")):
        if file is not None:
            write_file(file, text)
            say(f"wrote {file}")


def _kit(
    ctx: click.Context,
    image: ImageReference,
    kit: RecordedKit,
    engine: Engine,
    folder: Path,
    dry_run: bool,
    options: ExtendOptions,
) -> KitFolder:
    """The kit of the new image, in its folder, with the finished one beside it."""
    from hpcgen.builders.choosing import extended_image, put_beside
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit, store_kit
    from hpcgen.planning.extending import extended_plan
    from hpcgen.planning.question import added_words

    catalog = catalog_of(ctx)
    added = added_words(options.added)
    extended = extended_image(image, kit, engine)
    plan = extended_plan(
        kit.plan,
        extended,
        added,
        catalog,
        settings=options.settings,
        format=engine.format,
        allow_unsupported=options.allow_unsupported,
        network=catalog.site(options.site).network if options.site is not None else None,
        command=lambda: again(ctx, image, options),
    )
    if not dry_run:
        plan = with_licences(plan, options.accept, before=kit.plan.licences)
    _know_files(catalog, kit, str(image))
    made = make_kit(plan, catalog)
    store_kit(folder, made.all_files)
    put_beside(image, extended, folder)
    _say_added(plan)
    say_findings(plan, made.notices)
    return read_kit(folder)


def _know_files(catalog: Catalog, kit: RecordedKit, name: str) -> None:
    """Of the files that the image has of its stack, the list alone is at hand, and is all that is asked of them."""
    from hpcgen.core.support.hashing import LIST
    from hpcgen.kit.copied import trees_of_list

    if kit.plan.copied:
        trees = trees_of_list(kit.files[LIST].text, kit.plan, f"{LIST} in {name}")
        catalog.copied.places.append(lambda copy: trees.get(copy.to))


def _say_added(plan: Plan) -> None:
    from hpcgen.recipe.extension import added_blocks

    names = [block.label for block in added_blocks(plan)] + [each.to for each in plan.brought]
    extended = plan.extends
    assert extended is not None
    say(f"adding {', '.join(names)} to {extended.image} of plan hash {extended.content[:12]}")


def again(ctx: click.Context, image: ImageReference, options: ExtendOptions) -> str:
    """The command line that makes the same kit again, where the image lies in the present folder."""
    from hpcgen.core.support.places import recorded
    from hpcgen.core.support.quoting import sh

    name = str(image) if image.image_kind.stored else Path(image.name).name
    words = ["hpcgen", *collection_words(ctx), "extend", name]
    for word in options.added:
        source, equals, target = word.partition("=") if word.startswith("copy:") else (word, "", "")
        shown = f"copy:{recorded(source.removeprefix('copy:'))}" if word.startswith("copy:") else source
        words += ["--add", f"{shown}{equals}{target}"]
    for setting in options.settings:
        words += ["--set", setting]
    words += ["--site", options.site] if options.site is not None else []
    words += ["--allow-unsupported"] if options.allow_unsupported else []
    return " ".join(sh(word) for word in words)
