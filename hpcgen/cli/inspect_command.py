"""``hpcgen inspect``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import click

from hpcgen.cli.common import START, print_json, say
from hpcgen.cli.image_to_read import image_to_read
from hpcgen.cli.tables import table, word
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import IMAGE
from hpcgen.core.errors import InputError
from hpcgen.core.support.units import harmless, size

if TYPE_CHECKING:
    from hpcgen.images.reference import ImageReference
    from hpcgen.images.summary import ImageSummary, SummaryBuild


@click.command("inspect")
@click.argument("image", type=IMAGE)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--plan", "part", flag_value="plan.json", help="Print only the plan, as it is in the image.")
@click.option("--lock", "part", flag_value="hpcgen.lock", help="Print only the lock, as it is in the image.")
@click.option("--recipe", "part", flag_value="recipe", help="Print only the recipe, as it is in the image.")
@click.option(
    "--contents",
    is_flag=True,
    help="Read its contents (MPI, fabric, GPU code), as for images that hpcgen did not build.",
)
@click.option("--sbom", is_flag=True, help="Print its contents as a bill of materials (CycloneDX).")
@START
def command(image: str, as_json: bool, part: str | None, contents: bool, sbom: bool, start: bool) -> None:
    """Show what an image was built from, for which site, and by which hpcgen; of other images what is in them.

    IMAGE is a file (.sif, .sqfs, .tar, .tar.gz, OCI archive), a folder, or a name in a store: podman:NAME,
    docker:NAME, ch-image:NAME; docker://NAME is fetched from its registry to be read. None is started, unless --start
    allows it.
    """
    with image_to_read(image, start) as found:
        _show(found, as_json, part, contents, sbom)


def _show(found: ImageReference, as_json: bool, part: str | None, contents: bool, sbom: bool) -> None:
    from hpcgen.images.recorded import found_kit, stored_kit, with_its_files
    from hpcgen.recipe.formats import format_for

    kit = stored_kit(found) if part is not None else None if contents or sbom else found_kit(found)
    if kit is None:
        _contents(found, as_json, sbom)
        return
    if part is not None:
        name = format_for(str(kit.plan.get("format"))).recipe_file if part == "recipe" else part
        click.echo(_for(sys.stdout, kit.files[name].text), nl=False)
        return
    try:
        kit = with_its_files(kit, found)
    except InputError as damaged:
        say(f"note: {damaged.problems[0].message}")
    from hpcgen.builders.records.store import of_image
    from hpcgen.images.summary import summary

    record = of_image(found)
    if record is not None and record.content != kit.lock.get("content"):
        record = None
    told = summary(found, kit, found.bytes_on_disk(), record)
    if as_json:
        print_json(told)
        return
    echo(_shown(told))
    for note in told.notes:
        say(f"note: {note}")


def _contents(image: ImageReference, as_json: bool, sbom: bool) -> None:
    """Print what is in an image, whoever built it."""
    from hpcgen.core.model.image_facts import ImageFacts
    from hpcgen.images.reading.facts import image_facts, read_image
    from hpcgen.images.remembered import remembered

    facts = remembered(image, "facts", ImageFacts, lambda: image_facts(image))
    if sbom:
        from hpcgen.images.convert import own_marks
        from hpcgen.images.reading.bill import bill_of_materials
        from hpcgen.images.recorded import taken_artifacts

        click.echo(bill_of_materials(str(image), facts, taken_artifacts(own_marks(image)[1])), nl=False)
    elif as_json:
        print_json(read_image(image, facts))
    else:
        from hpcgen.cli.image_contents import shown_contents

        echo(shown_contents(image, facts))
    for each in facts.unread if not as_json or sbom else ():
        say(f"note: {harmless(each)}")


def _shown(told: ImageSummary) -> str:
    facts = [
        ("image", f"{told.image.name} ({told.image.kind}, {size(told.image.bytes)})"),
        ("stack", told.stack),
        ("site", f"{told.site}, partition {told.partition}"),
        ("format", f"{told.format} for {told.engine}"),
        ("hpcgen", told.hpcgen),
        ("command", told.command),
        ("content", told.content),
        *([("added to", _beneath(told.extends))] if told.extends is not None else []),
        ("base", " ".join(str(each.get("name")) for each in told.images.values() if isinstance(each, dict))),
        ("job", _layout(told.job)),
        ("starts", _words(told.job.get("command"))),
        ("build", _build(told.record)),
    ]
    parts = [table(["what", "value"], _plain(facts), sys.stdout)]
    blocks = [(each.name, each.version, _options(each.options)) for each in told.blocks]
    parts.append(table(["block", "version", "options"], _plain(blocks), sys.stdout))
    if inputs := _inputs(told.inputs):
        parts.append(table(["input of", "what", "sha256"], _plain(inputs), sys.stdout))
    if told.packages:
        where = "read from" if told.packages_from == "image" else "pinned in"
        found = [(each.name, each.version, each.kind, each.where) for each in told.packages]
        parts.append(table(["package", "version", "kind", where], _plain(found), sys.stdout))
    if told.copied:
        copied = [(each.get("to"), each.get("files"), each.get("sha256")) for each in told.copied]
        parts.append(table(["copied to", "files", "sha256"], _plain(copied), sys.stdout))
    files = [(each.name, size(each.bytes), each.sha256) for each in told.files]
    parts.append(table(["file", "size", "sha256"], _plain(files), sys.stdout))
    return "\n\n".join(parts)


def _beneath(extends: dict[str, object]) -> str:
    """The finished image by its name there, and the hash of its plan."""
    return f"{extends['image']}, whose content is {extends['content']}"


def _for(stream: TextIO, text: str) -> str:
    """File contents; control sequences are stripped for a terminal."""
    if not stream.isatty():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def _plain(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    """Cells as text without what a terminal would obey."""
    return [["".join(c if c.isprintable() else "�" for c in word(cell)) for cell in row] for row in rows]


def _layout(job: dict[str, object]) -> str:
    words = [f"{job.get('nodes', '?')} × {job.get('ranks_per_node', '?')} ranks"]
    words.append(f"{job.get('threads_per_rank', '?')} threads each, {job.get('walltime_s', '?')} s")
    return ", ".join(words + ([f"queue {job['queue']}"] if job.get("queue") else []))


def _words(command: object) -> str:
    return " ".join(str(each) for each in command) if isinstance(command, list) else str(command or "")


def _options(options: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


def _inputs(inputs: Sequence[object]) -> list[tuple[object, object, object]]:
    """One row for each archive and each wheel."""
    rows: list[tuple[object, object, object]] = []
    for each in (item for item in inputs if isinstance(item, dict)):
        requirements = each.get("requirements")
        if not isinstance(requirements, list):
            rows.append((each.get("block"), each.get("archive") or each.get("image"), each.get("sha256")))
            continue
        for requirement in requirements:
            pinned, *hashes = str(requirement).split(" --hash=sha256:")
            rows.append((each.get("block"), pinned, " ".join(hashes)))
    return rows


def _build(record: SummaryBuild | None) -> str:
    if record is None:
        return "no record of the build here"
    tested = "not tested"
    if record.tests is not None:
        tested = f"{record.tests.passed} tests passed, {record.tests.failed} failed"
    return f"{record.id} ({record.started}, {record.engine}, {record.seconds:.0f} s, {tested})"
