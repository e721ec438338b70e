"""``hpcgen verify``, and how ``build`` and ``records`` write the statement that it reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, START, print_json, say
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import IMAGE

if TYPE_CHECKING:
    from hpcgen.core.model.record import BuildRecord


def check_statement(file: Path | None, key: Path | None) -> None:
    """Before anything is built: errors where the statement cannot be written or signed."""
    if key is not None:
        from hpcgen.core.support.signatures import check_key

        check_key(key)
    if file is not None:
        from hpcgen.core.support.writing import check_folder_of

        check_folder_of(file)


def write_provenance(record: BuildRecord, file: Path | None, key: Path | None) -> None:
    """Write the statement of a build, if a file for it or a key is named, and its signature, if a key is.

    InputError: the record has no image with a digest. OutputError: it cannot be written.
    """
    if file is None and key is None:
        return
    from hpcgen.builders.records.provenance import provenance_text, statement_beside
    from hpcgen.core.support.signatures import PROVENANCE
    from hpcgen.images.reference import ImageReference
    from hpcgen.kit.lockfile.lock import signature_of, write_signed

    text = provenance_text(record)
    if file is None:
        assert record.image is not None
        file = statement_beside(ImageReference(record.image.kind, record.image.name))
    if write_signed(file, text, key, PROVENANCE):
        say(f"warning: {file} was signed; the new one is not (--sign KEY)")
    say(f"wrote {file}" + (f"; signed in {signature_of(file)}" if key is not None else ""))


@click.command("verify")
@click.argument("image", type=IMAGE)
@click.option(
    "--provenance",
    "file",
    metavar="FILE",
    type=PATH,
    help="The statement; FILE.sig signs it. By default IMAGE.provenance.json.",
)
@click.option(
    "--signer",
    "signers",
    metavar="FILE",
    type=PATH,
    help="The allowed signers, one of whom must have signed it; by default those of your config file.",
)
@START
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def verify(image: str, file: Path | None, signers: Path | None, start: bool, as_json: bool) -> int:
    """Check that IMAGE is what a statement of build --provenance is about, and who signed that.

    Of docker://NAME it is the statement that fleet publish --sign put beside it in the registry. Signatures that a SIF
    file itself carries (apptainer sign) are checked by the OpenPGP keys among the allowed signers; then it needs no
    statement.

    Exit 6 if something does not hold, or if the image has no digest to be known by.
    """
    from hpcgen.builders.records.provenance import check_image, check_published
    from hpcgen.cli.contract_command import POLICY
    from hpcgen.cli.tables import table
    from hpcgen.core.config.user_config import allowed_signers
    from hpcgen.images.reference import parse_image

    allowed, published = allowed_signers(signers), image.removeprefix("docker://")
    if published != image and file is None:
        checks = check_published(published, allowed)
    else:
        checks = check_image(parse_image(image, start), file, allowed)
    if as_json:
        print_json(checks)
    else:
        echo(
            table(["check", "outcome", "why"], [[each.name, each.outcome, each.reason] for each in checks], sys.stdout)
        )
    broken = any(each.outcome == "does not hold" for each in checks)
    unknown = any(each.name == "digest" and each.outcome == "unknown" for each in checks)
    nothing = all(each.outcome == "unknown" for each in checks)
    return POLICY if broken or unknown or nothing else 0
