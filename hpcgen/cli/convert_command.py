"""``hpcgen convert``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import START, print_json, say
from hpcgen.cli.terminal import echo_commands
from hpcgen.cli.words import IMAGE
from hpcgen.core.support.units import size


@click.command("convert")
@click.argument("image", type=IMAGE)
@click.argument("output", metavar="OUTPUT")
@click.option("--force", "-f", is_flag=True, help="Replace an existing OUTPUT once the new image is complete.")
@click.option("--dry-run", is_flag=True, help="Print the commands and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@START
def command(image: str, output: str, force: bool, dry_run: bool, as_json: bool, start: bool) -> None:
    """Convert an image to another kind: OCI, SIF, squashfs, folder, tar file, with what is installed here.

    OUTPUT is a file ending in .sif, .sqfs, .tar, .tar.gz or .oci (an OCI archive), a folder, or a name in a store:
    podman:NAME, docker:NAME, ch-image:NAME. KIND:PATH gives the kind of a file without one of these extensions.
    """
    from hpcgen.images.convert import check_output, convert, parse_output, planned, shown
    from hpcgen.images.marks import Marks
    from hpcgen.images.reference import parse_image

    source, target = parse_image(image, start), parse_output(output)
    if dry_run:
        check_output(target, force)
        echo_commands("\n".join(shown(planned(source, target, Path("WORK"), Marks()))))
        return
    from hpcgen.core.support.processes import interruptible

    with interruptible():
        convert(source, target, force, on_step=say)
    _tell(target, as_json)


def _tell(target: object, as_json: bool) -> None:
    from hpcgen.images.reference import ImageReference

    assert isinstance(target, ImageReference)
    count = target.bytes_on_disk()
    say(f"made {target} ({size(count)})")
    if as_json:
        print_json({"kind": target.kind, "name": target.name, "bytes": count})
