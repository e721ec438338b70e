"""Kinds of inputs: a class and a row are all that another one takes, from the list for people to the bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from hpcgen.blocks.inputs import KINDS
from hpcgen.blocks.inputs.base import Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.component import Component
from hpcgen.core.model.network import Mirrors
from hpcgen.kit.folder import KitFolder
from hpcgen.kit.lockfile.changes import changes
from hpcgen.kit.sbom import cyclonedx, spdx
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import input_list
from hpcgen.supply.pin.wanted import wanted
from tests.helpers.locks import lock

if TYPE_CHECKING:
    from typing_extensions import Self


class Weights(Input, frozen=True):
    """The weights of a model, from a hub that knows them by their hash."""

    model: str
    sha256: str
    size: int
    key = "weights"

    def entry(self) -> dict[str, Any]:
        return {self.key: self.model, "sha256": self.sha256}

    def pinned(self) -> Iterator[Pinned]:
        yield Pinned("weights", self.model, "a hub of models", f"sha256:{self.sha256}")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "weights of models"

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"weights {entry['weights']} sha256:{entry['sha256']}"]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        return [
            WantedFile(
                kind="archive",
                name=item.model,
                file=f"{item.model}.bin",
                sha256=item.sha256,
                urls=[f"https://hub.example.org/{item.sha256}"],
                size=item.size,
                licence=fetcher.release(block).licence,
            )
            for block, item in inputs
        ]

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        for block, item in inputs:
            ref, where = f"weights:{item.model}", view.prefix(block.name)
            licence = view.licence(item.sha256, block)
            yield Component(ref, "software", item.model, block.version, licence=licence, where=where), bool(where)


@pytest.fixture
def speech(collection: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Catalog, str]:
    """A collection with a block that takes weights, and a stack of it."""
    monkeypatch.setitem(KINDS, Weights.key, Weights)
    blocks = collection / "building_blocks"
    (blocks / "speech.py").write_text(
        "from hpcgen.blocks.base import Block\n"
        "from hpcgen.blocks.steps import Runtime\n"
        f"from {__name__} import Weights\n\n\n"
        "class Speech(Block):\n"
        "    name = 'speech'\n\n"
        "    def inputs(self, ctx):\n"
        "        return [Weights('whale', ctx.release.values['sha256'], 1000)]\n\n"
        "    def runtime(self, ctx):\n"
        "        return Runtime(copies=('/opt/speech',))\n"
    )
    rows = "".join(f'  "{version}": {{values: {{sha256: {version * 64}}}}}\n' for version in "12")
    (blocks / "speech.yaml").write_text(f"block: speech\nlicence: MIT\nreleases:\n{rows}")
    recipe = collection / "speech.yaml"
    recipe.write_text("name: speech\ntitle: x\nblocks: {speech: {}}\nrun: {command: [speech], mpi: false}\n")
    return Catalog([collection]), str(recipe)


def test_a_new_kind_is_listed_locked_fetched_billed_and_recorded(speech: tuple[Catalog, str], tmp_path: Path) -> None:
    catalog, stack = speech
    made = lock(stack, catalog=catalog)
    sha256 = "2" * 64

    rows = [tuple(row) for row in input_list(assemble(made.plan, catalog))]
    assert ("speech 2", "weights", "whale", "a hub of models", f"sha256:{sha256}") in rows

    overview = yaml.safe_load(made.text)
    assert {"block": "speech 2", "weights": "whale", "sha256": sha256} in overview["inputs"]
    assert f"weights whale sha256:{sha256}" in KitFolder(tmp_path, made.plan, "", overview).inputs()

    (file,) = [each for each in wanted(made, catalog, tmp_path, own=False) if each.kind != "package"]
    assert (file.file, file.sha256, file.size, file.licence) == ("whale.bin", sha256, 1000, "MIT")

    (component,) = [each for each in json.loads(cyclonedx(made, [], catalog))["components"] if each["name"] == "whale"]
    assert component["licenses"] == [{"expression": "MIT"}]
    assert component["properties"] == [{"name": "hpcgen:folder", "value": "/opt/speech"}]
    assert "whale" in {package["name"] for package in json.loads(spdx(made, [], catalog))["packages"]}


def test_what_differs_in_a_new_kind_is_said(speech: tuple[Catalog, str]) -> None:
    catalog, stack = speech
    old, new = (lock(stack, settings=(f"speech.version={version}",), catalog=catalog) for version in "12")
    (change,) = [each for each in changes(old, new) if each.what == "input"]
    assert change.name == "speech" and change.why == "speech 1 → speech 2"
    assert [change.old, change.new] == [f"weights whale sha256:{version * 64}" for version in "12"]
