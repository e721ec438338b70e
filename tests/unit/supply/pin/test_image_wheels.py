"""A project's packages are locked beside the blocks' lists, whose versions move only if they must."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

import pytest

import hpcgen
from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Wheels, run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.lock import Lock, Pins
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.parts import parts_of
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.image_wheels import lock_image_wheels
from tests.helpers.stub_packages import index, sha256, wheel


class Before(NamedTuple):
    """What is asked of an older lock."""

    plan: Plan
    pins: Pins


class World:
    """An index in a folder, a block ``frame`` with a list of it, and a project's packages beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[Path] = []

    def package(self, name: str, version: str, *needs: str) -> str:
        path = wheel(self.folder, name, version, needs=needs)
        self.files.append(path)
        return f"{name}=={version} --hash=sha256:{sha256(path)}"

    def locked(
        self, lines: list[str], packages: list[str], left_out: str = "", asked: tuple[str, ...] = ("frame==1.0",)
    ) -> dict[str, set[str]]:
        """The versions of each package in all lists as a kit from the lock installs them."""
        whole = Wheels("frame-1", tuple(lines), hashed=True, asked=asked)
        wheels = whole.without(left_out) if left_out else whole

        class Frame(Block):
            name = "frame"
            distributions = ("frame",)
            needs = (need("python"),)
            releases = {"1": {}}

            def inputs(self, ctx: Context) -> list[Input]:
                return [wheels]

            def build(self, ctx: Context) -> Iterable[Run]:
                yield run("install", ctx.pip(wheels))

        catalog = Catalog([], [Frame])
        blocks = {"frame": {}, "python_packages": {"options": {"packages": packages}}}
        stack = {"name": "ours", "title": "ours", "blocks": blocks, "run": {"command": ["true"]}}
        plan = hpcgen.plan("workstation", hpcgen.load_stack(stack, catalog=catalog), catalog=catalog)
        loose = assemble(plan, catalog)
        for tool in (
            line for each in loose.installed if each.block.name == "python" for line in each.wheels.requirements
        ):
            self.package(*tool.partition(" ")[0].split("=="))
        os.environ["PIP_INDEX_URL"] = index(self.folder, *self.files)
        found = lock_image_wheels(plan, catalog, loose, None, lambda text: None)
        pins = Pins(wheels=found)
        old = cast(Lock, Before(plan, pins))
        assert lock_image_wheels(plan, catalog, loose, old, lambda text: None) == found, "it stays while it fits"
        versions: dict[str, set[str]] = {}
        for each in parts_of(plan, catalog, pins).installed:
            for line in each.wheels.requirements if each.block.name != "python" else ():
                name, _, version = line.partition(" ")[0].partition("==")
                versions.setdefault(name, set()).add(version)
        return versions


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Nothing of this machine's pip and uv takes part."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "")
    pip_settings.cache_clear()
    yield World(tmp_path)
    pip_settings.cache_clear()


def test_lists_stay_as_they_are_where_the_project_can_do_with_them(world: World) -> None:
    world.package("pack", "1.0")
    lines = [world.package("frame", "1.0", "pack"), world.package("pack", "2.0")]
    world.package("pack", "3.0")
    world.package("mine", "1.0", "pack>=1")
    assert world.locked(lines, ["mine==1.0"]) == {"frame": {"1.0"}, "pack": {"2.0"}, "mine": {"1.0"}}


def test_a_lists_version_moves_if_the_projects_packages_do_not_take_it(world: World) -> None:
    lines = [world.package("frame", "1.0", "pack>=1"), world.package("pack", "2.0"), world.package("other", "1.0")]
    world.package("pack", "1.0")
    world.package("pack", "1.5")
    world.package("other", "2.0")
    world.package("mine", "1.0", "pack<2", "other")
    found = world.locked(lines, ["mine==1.0"])
    assert found == {"frame": {"1.0"}, "pack": {"1.5"}, "other": {"1.0"}, "mine": {"1.0"}}


def test_a_lists_version_moves_for_a_pin_of_the_project_that_nothing_of_the_project_leads_to_it(world: World) -> None:
    """What pydantic 2.14.3 requires is in the table, which has no older one for which the pin is new enough."""
    pydantic = world.package("pydantic", "2.14.3", "typing-extensions>=4.16.0")
    lines = [world.package("frame", "1.0", "pydantic>=2"), pydantic, world.package("typing-extensions", "4.16.0")]
    world.package("pydantic", "2.7.0", "typing-extensions>=4.6.1")
    world.package("typing-extensions", "4.8.0")
    found = world.locked(lines, ["typing-extensions==4.8.0"])
    assert found == {"frame": {"1.0"}, "pydantic": {"2.7.0"}, "typing-extensions": {"4.8.0"}}


def test_what_a_block_is_does_not_move_though_its_list_asks_for_no_version(world: World) -> None:
    lines = [world.package("frame", "1.0", "pack>=2"), world.package("pack", "2.0")]
    world.package("frame", "0.5")
    world.package("pack", "1.0")
    world.package("mine", "1.0", "pack<2")
    with pytest.raises(ConflictError, match="frame"):
        world.locked(lines, ["mine==1.0"], asked=())


def test_a_contradiction_names_what_is_part_of_it_and_nothing_else(world: World) -> None:
    lines = [world.package("frame", "1.0", "pack>=2"), world.package("pack", "2.0"), world.package("innocent", "1.0")]
    world.package("pack", "1.0")
    world.package("mine", "1.0", "pack<2")
    with pytest.raises(ConflictError) as failure:
        world.locked(lines, ["mine==1.0"])
    text = str(failure.value)
    assert all(word in text for word in ("mine", "pack<2", "frame", "pack>=2"))
    assert "innocent" not in text


def test_what_comes_another_way_is_not_brought_again(world: World) -> None:
    """A framework by its wheel's address is in no list; a package that needs it must not bring that of the index."""
    lines = [world.package("frame", "1.0", "driver"), world.package("pack", "2.0")]
    world.package("frame", "2.0", "driver")
    world.package("driver", "1.0")
    world.package("mine", "1.0", "frame>=1", "pack")
    assert world.locked(lines, ["mine==1.0"], left_out="frame") == {"pack": {"2.0"}, "mine": {"1.0"}}
