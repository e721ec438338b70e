"""``hpcgen data``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import PATH, TRUST, catalog_of, print_json, say, shows_progress
from hpcgen.cli.words import IMAGE, SITE, STACK
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import duration, files, size

if TYPE_CHECKING:
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.support.progress import Watch
    from hpcgen.running.models import FetchedModel


@click.group("data")
def command() -> None:
    """Data of jobs: models and data sets fetched before they start, and many files packed into one that is mounted."""


@command.command("pack")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--output", "-o", metavar="FILE", type=PATH, help="The file, ending in .sqfs; by default DIR.sqfs.")
@click.option("--site", type=SITE, help="Compress so that its engines can mount it; by default for any engine.")
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


@command.command("fetch")
@click.argument("image", required=False, type=IMAGE)
@click.option(
    "--site", type=SITE, help="The site whose scratch gets them; by default that of the image or config file."
)
@click.option("--stack", type=STACK, help="The stack that names them; by default that of this folder, or the image's.")
@TRUST
@click.option("--account", metavar="NAME", help="The account, where the site's scratch has a folder for each.")
@click.option("--bundle", metavar="DIR|FILE.tar", type=PATH, help="Take them from a bundle, where no network is.")
@click.option("--json", "as_json", is_flag=True, help="Print where they are as JSON.")
@click.pass_context
def fetch_command(
    ctx: click.Context,
    image: str | None,
    site: str | None,
    stack: str | None,
    trust_image: bool,
    account: str | None,
    bundle: Path | None,
    as_json: bool,
) -> None:
    """Fetch the models and data sets that jobs of a stack read, as run and submit do by themselves.

    What is there already is not fetched again. With --bundle alone, those that the bundle's own lock names.
    """
    from hpcgen.cli.job_options import JobOptions, planned_job

    if bundle is not None and image is None and stack is None:
        plan = _bundled_plan(ctx, bundle, site, account)
    else:
        asked = JobOptions(image=image, site=site, stack=stack, trust_image=trust_image, account=account)
        plan = planned_job(ctx, asked).plan
    found = fetched(plan, Path.cwd(), bundle)
    if as_json:
        rows = [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]
        print_json([{**row, "folder": str(each.folder)} for row, each in zip(rows, found, strict=True)])
    elif not found:
        say(f"{plan.stack.name} names no models: run.models")


def fetched(plan: Plan, start: Path, bundle: Path | None = None) -> list[FetchedModel]:
    """Have the models of a plan where its job looks for them; nothing is done for a plan without.

    Parameters
    ----------
    start: the folder that the job starts in.
    """
    if not plan.stack.run.models:
        return []
    from hpcgen.core.support.processes import interruptible
    from hpcgen.running.models import fetch_models, store_folder

    watch = _watch()
    with interruptible():
        return fetch_models(plan, store_folder(plan.site, plan.job.account, os.environ, start), watch, bundle=bundle)


def _watch() -> Watch:
    from hpcgen.core.support.progress import ProgressBar, ProgressLines

    return ProgressBar(say, sys.stderr) if shows_progress() else ProgressLines(say)


def _bundled_plan(ctx: click.Context, bundle: Path, site: str | None, account: str | None) -> Plan:
    """The plan of a bundle's lock, at the user's own site of that name."""
    from msgspec.structs import replace

    from hpcgen.core.model.image_paths import LOCK
    from hpcgen.kit.lockfile.lock import parse_lock
    from hpcgen.supply.bundle.reading import open_bundle

    text = open_bundle(bundle).read(LOCK).decode(errors="replace")
    plan = parse_lock(text, f"{bundle}/{LOCK}").plan
    here = catalog_of(ctx).site(site or plan.site.name)
    return replace(plan, site=here, job=replace(plan.job, account=account or plan.job.account))


@command.command("pin")
@click.argument("address", metavar="ADDRESS")
@click.option("--name", help="What it is called; by default as the address ends.")
@click.option("--to", metavar="/PATH", help="Where programs see it; by default /models/NAME.")
@click.option("--revision", metavar="NAME", default="", help="Of a repository: branch, tag or commit; by default main.")
@click.option(
    "--include", "patterns", multiple=True, metavar="PATTERN", help="Of a repository: these files, as *.safetensors."
)
def pin_command(address: str, name: str | None, to: str | None, revision: str, patterns: tuple[str, ...]) -> None:
    """Print the entry of run.models for what ADDRESS has now: a file, or a repository of the Hugging Face hub.

    A repository is https://huggingface.co/ORG/NAME or …/datasets/ORG/NAME. HF_TOKEN and HF_ENDPOINT count.
    """
    import re

    from hpcgen.cli.terminal import echo
    from hpcgen.core.support.writing import yaml_text
    from hpcgen.supply.net.web import Web
    from hpcgen.supply.pin.model_files import Pinning, hub_tokens

    short = re.sub(r"[^a-z0-9]+", "-", address.rstrip("/").rpartition("/")[2].lower()).strip("-")
    called = name or short or "model"
    pinning = Pinning(Web(tokens=hub_tokens(os.environ)), os.environ, _watch())
    model = pinning.model(address.rstrip("/"), called, to or f"/models/{called}", revision, patterns)
    echo(yaml_text([msgspec.to_builtins(model)], blocks=True), nl=False)
