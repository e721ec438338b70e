"""What blocks that install conda packages have in common: which they are, and how their files come into the builder."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from hpcgen.backends.hardware.mirrors import channel_addresses, channel_of, conda_mirror
from hpcgen.blocks.context import Context
from hpcgen.blocks.steps import CondaFiles, Part, TextFile, Wheels, command, lines
from hpcgen.core.model.conda import PIP_LIST
from hpcgen.core.model.plan import PlannedConda


def asked_of_conda(ctx: Context) -> PlannedConda:
    """What the stack and its files ask for, with what a lock has chosen."""
    return ctx.conda or PlannedConda()


def conda_files(ctx: Context, prefix: str) -> CondaFiles:
    """The packages of the environment ``prefix``."""
    asked = asked_of_conda(ctx)
    return CondaFiles(prefix, tuple(asked.channels), tuple(asked.needs), tuple(asked.packages))


def conda_wheels(ctx: Context) -> Wheels:
    """What the environment has of a Python package index: as a user's lock has it, or hpcgen's; else without hashes."""
    lines = tuple(asked_of_conda(ctx).pip)
    if lines and all(" --hash=" in each for each in lines):
        return Wheels(PIP_LIST, lines, True)
    return ctx.wheels(PIP_LIST, lines) if lines else Wheels(PIP_LIST, (), True)


def conda_fetch(ctx: Context, files: CondaFiles, folder: str) -> list[Part]:
    """Parts of a step that brings the packages' files into the builder, and checks the sha256 of each."""
    places = ctx.supply.conda_sources(files.packages, folder)
    hashes = {each.file: each.sha256 for each in files.packages}
    listed = [f"{hashes[path.rpartition('/')[2]]}  {path}" for path in places]
    wanted = [line for path, url in places.items() if url for line in (f'url = "{url}"', f'output = "{path}"')]
    parts: list[Part] = [command("mkdir", "-p", folder)]
    if wanted:
        settings = f"{folder}/urls"
        parts.append(TextFile("files/conda/urls", settings, lines(*wanted)))
        parts.append(command("curl", "-fsSL", "--fail-early", "--proto", "=https", "--retry", "3", "-K", settings))
    if listed:
        sums = f"{folder}/SHA256SUMS"
        parts.append(TextFile("files/conda/SHA256SUMS", sums, lines(*listed)))
        parts.append(command("sha256sum", "-c", "--quiet", sums))
    return parts


def conda_request(ctx: Context, files: CondaFiles, folder: str) -> str:
    """What ``conda_program.py`` is asked to do, as JSON."""
    places = {path.rpartition("/")[2]: path for path in ctx.supply.conda_sources(files.packages, folder)}
    packages = [
        {"path": places[each.file], "sha256": each.sha256, "url": each.url}
        for each in sorted(files.packages, key=lambda each: each.name)
    ]
    asked = question(asked_of_conda(ctx), partial(conda_mirror, ctx.supply.mirrors))
    request = {"prefix": files.folder, "packages": packages, **asked}
    return json.dumps(request, indent=1) + "\n"


def question(asked: PlannedConda, address: Callable[[str], str]) -> dict[str, object]:
    """What a solver is asked; ``address`` tells the one by which a channel is asked."""
    return {
        "channels": [address(each) for each in asked.channels],
        "needs": [_from(each, address) for each in asked.needs],
        "subdir": asked.subdir,
        "virtual": asked.virtual,
        "held": asked.held,
    }


def _from(need: str, address: Callable[[str], str]) -> str:
    """What is asked of one package, with the address of the channel that it is to be from."""
    channels = channel_addresses([channel_of(need)]) if channel_of(need) else []
    return f"{address(channels[0])}::{need.partition('::')[2]}" if len(channels) == 1 else need
