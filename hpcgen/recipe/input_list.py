"""What a build takes from outside, one line each: for people who must say yes to it, and for those who carry it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hpcgen.blocks.steps import Archive, BazelFiles, GitTree, Input, Wheels
from hpcgen.recipe.assemble import Assembly

INDEX = "the Python package index"
LOOSE = "version"
"""What pins something that no hash is known of before a lock is made."""


class InputRow(NamedTuple):
    """One input: the block that wants it, its kind, its name, where it is had from, and what pins it."""

    block: str
    kind: str
    name: str
    origin: str
    pinned_by: str


def input_list(assembly: Assembly) -> list[InputRow]:
    """Base images, OS packages, then the inputs of each block in build order."""
    rows = []
    for stage in (assembly.builder, assembly.final):
        image = stage.image
        rows.append(InputRow(stage.name, "image", image.name, "a registry", image.digest or "name"))
    for stage_name, names in assembly.packages.items():
        rows += [InputRow(stage_name, "package", name, "the distribution", "name") for name in names]
    for label, item in assembly.inputs:
        rows += _rows(label, item)
    return list(dict.fromkeys(rows))


def _rows(label: str, item: Input) -> Iterator[InputRow]:
    if isinstance(item, Archive):
        yield InputRow(label, "archive", item.name, item.url, f"sha256:{item.sha256}")
    elif isinstance(item, Wheels):
        for line in item.requirements:
            name, _, hashes = line.partition(" --hash=")
            yield InputRow(label, "python", name, INDEX, hashes or LOOSE)
    elif isinstance(item, GitTree):
        yield InputRow(label, "git tree", item.url, item.url, f"commit {item.commit}")
    elif isinstance(item, BazelFiles):
        for file in item.files:
            yield InputRow(label, "bazel", file.name, file.urls[0] if file.urls else INDEX, f"sha256:{file.sha256}")
        if not item.files:
            yield InputRow(label, "bazel", item.name, "what its workspace names", "sha256, inside the source")
