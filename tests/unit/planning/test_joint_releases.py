"""Releases of blocks that share an environment: the newest whose Python packages go together, or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

import hpcgen
from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Wheels, run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import Reason
from hpcgen.planning import planner
from hpcgen.planning.joint_releases import first_joint
from hpcgen.planning.resolver.question import Apart


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Apart]]:
    """What was ruled out when each choice was made."""
    made: list[Sequence[Apart]] = []

    def counted(choose: Callable[[Sequence[Apart]], Plan], catalog: Catalog) -> Plan:
        def one(apart: Sequence[Apart]) -> Plan:
            made.append(tuple(apart))
            return choose(apart)

        return first_joint(one, catalog)

    monkeypatch.setattr(planner, "first_joint", counted)
    return made


def project(folder: Path, *lines: str, named: Sequence[str] = (), **settings: str) -> Plan:
    (folder / "requirements.txt").write_text("\n".join(lines) + "\n", "utf-8")
    blocks = {**{name: {} for name in named}, "python_packages": {"options": {"files": ["requirements.txt"]}}}
    stack = {"name": "ours", "title": "ours", "blocks": blocks, "run": {"command": ["true"], "mpi": False}}
    (folder / "stack.yaml").write_text(json.dumps(stack), "utf-8")
    said = {name.replace("__", "."): value for name, value in settings.items()}
    return hpcgen.plan("workstation", str(folder / "stack.yaml"), settings=said)


def version_of(plan: Plan, name: str) -> str:
    block = plan.block(name)
    return block.version if block is not None else ""


def notes(plan: Plan) -> list[str]:
    return [each.message for each in plan.findings if each.name == "python-packages" and each.severity == "note"]


def test_a_block_gives_way_to_what_another_one_is_fixed_to(tmp_path: Path, choices: list[Sequence[Apart]]) -> None:
    plan = project(tmp_path, "tensorflow-cpu==2.18.0", "jax", "torch", named=["jax", "tensorflow", "pytorch"])
    assert (version_of(plan, "tensorflow"), version_of(plan, "jax")) == ("2.18.0", "0.5.3")
    (told,) = notes(plan)
    assert told.startswith("no newer jax than 0.5.3: no version of ml-dtypes suits all: jax 0.6.0 requires ")
    assert told.endswith("tensorflow requires <0.5.0,>=0.4.0")
    assert len(choices) == 2 and choices[0] == ()


def test_the_stacks_first_block_is_the_newest(choices: list[Sequence[Apart]]) -> None:
    def planned(*names: str) -> Plan:
        stack = {"name": "ours", "title": "ours", "blocks": {name: {} for name in names}, "run": {"command": ["true"]}}
        return hpcgen.plan("workstation", hpcgen.load_stack(stack), settings={"tensorflow.version": "<2.19"})

    first, second = planned("tensorflow", "jax"), planned("jax", "tensorflow")
    newest = max(release for release in Catalog().releases("tensorflow") if release.startswith("2.18"))
    assert version_of(first, "tensorflow") == newest and version_of(first, "jax") == version_of(second, "jax")
    assert len(choices) <= 4


def test_a_block_gives_way_to_a_package_of_the_project(tmp_path: Path, choices: list[Sequence[Apart]]) -> None:
    plan = project(tmp_path, "jax", "numpy==1.26.4")
    assert version_of(plan, "jax") == "0.7.1"
    assert "requirements.txt:2 asks for numpy==1.26.4" in notes(plan)[0] and len(choices) <= 4


def test_a_refusal_tells_a_version_that_plans(tmp_path: Path) -> None:
    lines, named = ("tensorflow-cpu==2.18.0", "jax"), ["jax", "tensorflow"]
    with pytest.raises(ConflictError) as failure:
        project(tmp_path, *lines, named=named, jax__version=">=0.8")
    (problem,) = failure.value.problems
    assert problem.message.startswith("no version of ml-dtypes suits all packages: jax ")
    said = re.match(r"--set jax\.version=(\S+) instead of >=0\.8 ", problem.remedy)
    assert said is not None
    assert version_of(project(tmp_path, *lines, named=named, jax__version=said[1]), "jax") == said[1] == "0.5.3"
    assert failure.value.remedies[0].settings == {"jax.version": "0.5.3"}


# any blocks


def block(name: str, releases: dict[str, str]) -> type[Block]:
    """A block each of whose releases asks for a range of numpy, and has a list with a version in it."""

    class _Block(Block):
        def wheels(self, ctx: Context) -> Wheels:
            asked = releases[ctx.version]
            line = f"numpy=={re.sub('[<>=]+', '', asked)} --hash=sha256:{1:064x}"
            return Wheels(f"{name}-{ctx.version}", (line,), True, (f"{name}=={ctx.version}", f"numpy{asked}"))

        def inputs(self, ctx: Context) -> list[Input]:
            return [self.wheels(ctx)]

        def build(self, ctx: Context) -> Iterable[Run]:
            yield run("install", ctx.pip(self.wheels(ctx), into="/opt/python"))

    rows: dict[str, dict[str, str]] = {version: {} for version in releases}
    return type(name, (_Block,), {"name": name, "needs": (need("python"),), "releases": rows})


def planned(*blocks: type[Block]) -> Plan:
    names: dict[str, dict[str, str]] = {each.name: {} for each in blocks}
    stack = {"name": "ours", "title": "ours", "blocks": names, "run": {"command": ["true"]}}
    catalog = Catalog([], blocks)
    return hpcgen.plan("workstation", hpcgen.load_stack(stack, catalog=catalog), catalog=catalog)


def test_releases_that_clash_for_one_reason_are_ruled_out_at_once(choices: list[Sequence[Apart]]) -> None:
    many = {f"{number}": "==2.1.0" for number in range(2, 40)}
    plan = planned(block("one", {"1": "==1.26.4"}), block("two", {"1": "==1.26.4", **many}))
    assert version_of(plan, "two") == "1" and len(choices) == 2
    reason = next(each for each in plan.blocks if each.name == "two").reasons[-1]
    assert isinstance(reason, Reason) and reason.rule == "not beside" and reason.newer == "2"
    assert str(reason) == "not 2: no version of numpy suits all: one 1 requires ==1.26.4, two requires ==2.1.0"


def test_of_three_blocks_each_is_as_new_as_the_others_leave_it() -> None:
    plan = planned(
        block("one", {"1": "==1.26.4", "2": "==2.1.0", "3": "==3.0.0"}),
        block("two", {"1": "==1.26.4", "2": "==2.1.0"}),
        block("three", {"1": "==2.1.0", "2": "==1.26.4", "3": "==3.1.0"}),
    )
    assert [version_of(plan, name) for name in ("one", "two", "three")] == ["2", "2", "1"]


def test_where_every_release_clashes_all_that_were_tried_are_told(choices: list[Sequence[Apart]]) -> None:
    wheels = {f"{number}": f"=={number}.0" for number in range(5, 60)}
    with pytest.raises(ConflictError) as failure:
        planned(block("one", {"1": "==1.26.4"}), block("two", wheels))
    assert "no version of numpy suits all packages: one 1 asks for numpy==1.26.4, two 59 asks" in str(failure.value)
    assert len(choices) <= 4
