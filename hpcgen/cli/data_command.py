"""``hpcgen data``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.cli.words import SITE
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import duration, files, size


@click.group("data")
def command() -> None:
    """Pack data for jobs: one file that is mounted, in the place of many that a shared file system has to find."""


@command.command("pack")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--output", "-o", metavar="FILE", type=PATH, help="The file, ending in .sqfs; by default DIR.sqfs.")
@click.option("--site", type=SITE, help="Compress as its engines can mount it; by default for any engine.")
@click.option(
    "--compressor", type=click.Choice(["gzip", "zstd"]), help="Instead of what the profile of the site allows."
)
@click.option("--fixed-times", is_flag=True, help="Give all files the date 0, so that copies give the same bytes.")
@click.option("--force", "-f", is_flag=True, help="Replace an existing FILE once the new one is complete.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def pack_command(
    ctx: click.Context,
    folder: Path,
    output: Path | None,
    site: str | None,
    compressor: str | None,
    fixed_times: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Pack a folder into one squashfs file, which --bind FILE:/data mounts in a job."""
    from hpcgen.running.data_pack import compressor_at, pack

    chosen, why = compressor_at(catalog_of(ctx).site(site) if site is not None else None)
    if compressor is not None:
        chosen, why = ("zstd" if compressor == "zstd" else "gzip"), "--compressor"
    say(f"compressed by {chosen}: {why}")
    target = output or folder.absolute().with_name(f"{folder.absolute().name}.sqfs")
    packed = pack(folder, target, chosen, fixed_times=fixed_times, force=force, tell=say)
    took = duration(packed.seconds)
    say(f"packed {files(packed.files)}, {size(packed.bytes)}, into {size(packed.packed_bytes)} in {took}")
    if as_json:
        print_json({**{name: getattr(packed, name) for name in packed.__struct_fields__}, "path": str(packed.path)})
        return
    click.echo(f"--bind {sh(packed.bind)}")
