"""Several blocks' wheel lists in one Python environment agree on every package, or somebody is told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import hpcgen
from hpcgen.blocks.base import Block, Context, Need, need
from hpcgen.blocks.steps import Input, Run, Wheels, run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.parts import parts_of
from tests.conftest import Command


def listed(*pins: str) -> tuple[str, ...]:
    return tuple(f"{pin} --hash=sha256:{number:064x}" for number, pin in enumerate(pins, 1))


def block(
    name: str,
    *pins: str,
    asks: tuple[str, ...] = (),
    hashed: bool = True,
    into: str = "/opt/python",
    needs: tuple[str, ...] = (),
) -> type[Block]:
    """A block that installs one list."""
    wheels = Wheels(f"{name}-1", listed(*pins) if hashed else pins, hashed, asks)

    class _Block(Block):
        def inputs(self, ctx: Context) -> list[Input]:
            return [wheels]

        def build(self, ctx: Context) -> Iterable[Run]:
            yield run("install", ctx.pip(wheels, into=into))

    asked: tuple[Need, ...] = (need("python"), *map(need, needs))
    return type(name, (_Block,), {"name": name, "needs": asked, "releases": {"1": {}}})


def planned(*blocks: type[Block]) -> Plan:
    stack = {
        "name": "ours",
        "title": "ours",
        "blocks": {each.name: {} for each in blocks},
        "run": {"command": ["true"]},
    }
    catalog = Catalog([], blocks)
    return hpcgen.plan("workstation", hpcgen.load_stack(stack, catalog=catalog), catalog=catalog)


def versions(plan: Plan, *blocks: type[Block], package: str = "numpy") -> list[str]:
    """What each list that is installed has of a package."""
    found = parts_of(plan, Catalog([], blocks)).installed
    lines = [line.partition(" ")[0] for each in found for line in each.wheels.requirements]
    return [line for line in lines if line.startswith(f"{package}==")]


def doubts(plan: Plan) -> list[str]:
    return [each.message for each in plan.findings if each.name == "python-packages"]


def test_the_same_version_twice_is_nothing_to_speak_of() -> None:
    plan = planned(block("one", "numpy==2.1.0"), block("two", "numpy==2.1.0", asks=("numpy<3",)))
    assert doubts(plan) == []


def test_a_later_list_takes_what_is_there_if_its_block_allows_it() -> None:
    blocks = block("one", "numpy==2.1.0"), block("two", "numpy==2.3.0", asks=("numpy<3",))
    plan = planned(*blocks)
    assert doubts(plan) == []
    assert versions(plan, *blocks) == ["numpy==2.1.0", "numpy==2.1.0"]


def test_an_earlier_list_takes_what_a_later_block_needs_if_its_own_allows_it() -> None:
    blocks = block("one", "numpy==2.1.0", asks=("numpy<3",)), block("two", "numpy==1.26.4", asks=("numpy<2",))
    assert versions(planned(*blocks), *blocks) == ["numpy==1.26.4", "numpy==1.26.4"]


def test_a_true_conflict_names_blocks_package_versions_and_what_to_do() -> None:
    with pytest.raises(ConflictError) as failure:
        planned(
            block("one", "numpy==2.1.0", asks=("one==1", "numpy>=2")),
            block("two", "numpy==1.26.4", asks=("two==1", "numpy<2")),
        )
    problem = failure.value.problems[0]
    assert problem.message == "no version of numpy suits all packages: one 1 asks for numpy>=2, two 1 asks for numpy<2"
    assert "--set two.version=" in problem.remedy
    assert "hpcgen --collection DIR wheels lock --python 3.12.3 two-1 two==1 'numpy>=2'" in problem.remedy


def test_what_nobody_knows_is_a_warning_and_no_refusal() -> None:
    blocks = block("one", "numpy==2.1.0", asks=("one==1",)), block("two", "numpy==2.3.0", asks=("two==1",))
    plan = planned(*blocks)
    assert [each.severity for each in plan.findings if each.name == "python-packages"] == ["warning"]
    (told,) = doubts(plan)
    assert "one 1" in told and "two 1" in told and "numpy 2.3.0 instead of 2.1.0" in told
    assert versions(plan, *blocks) == ["numpy==2.3.0", "numpy==2.3.0"]


def test_three_lists_agree_on_one_version() -> None:
    blocks = (
        block("one", "numpy==2.3.0", asks=("numpy<3",)),
        block("two", "numpy==1.26.4", asks=("numpy<2",)),
        block("three", "numpy==2.1.0", asks=("numpy>=1",)),
    )
    assert set(versions(planned(*blocks), *blocks)) == {"numpy==1.26.4"}


def test_what_a_block_puts_in_the_place_of_another_ones_is_meant() -> None:
    """As keras does with the Keras that TensorFlow brings."""
    plan = planned(
        block("one", "keras==3.10.0"), block("two", "keras==3.15.1", asks=("keras==3.15.1",), needs=("one",))
    )
    assert doubts(plan) == []


def test_an_environment_of_its_own_is_not_compared() -> None:
    plan = planned(block("one", "numpy==2.1.0"), block("two", "numpy==1.26.4", asks=("numpy<2",), into="/opt/two"))
    assert doubts(plan) == []


def test_a_package_for_another_python_is_not_compared() -> None:
    plan = planned(block("one", "numpy==2.1.0"), block("two", 'numpy==1.26.4 ; python_version < "3.9"'))
    assert doubts(plan) == []


def test_a_range_that_leaves_out_what_is_there_takes_another_lists_version() -> None:
    blocks = block("one", "numpy==2.1.0"), block("two", "numpy<2", asks=("numpy<2",), hashed=False)
    (plan,) = [planned(*blocks)]
    assert versions(plan, *blocks) == ["numpy==1.26.4"]


def test_packages_of_ones_own_hold_the_lists_of_blocks_to_their_versions() -> None:
    wanted = {"python_packages.packages": ["numpy==2.2.6"]}
    plan = hpcgen.plan("workstation", "pytorch", add=["python_packages"], settings=wanted)
    assert doubts(plan) == []
    with pytest.raises(ConflictError, match=r"pytorch 2\.1\.2 asks for numpy<2"):
        older = {**wanted, "pytorch.version": "2.1.2"}
        hpcgen.plan("workstation", "pytorch", add=["python_packages"], settings=older)


@pytest.mark.parametrize(
    ("stack", "settings"),
    [
        ("mxnet-horovod", {}),
        ("onnx-convert", {}),
        ("deepspeed", {}),
        ("deepspeed", {"pytorch.install": "source"}),
        ("pytorch-horovod", {}),
        ("pytorch-horovod", {"pytorch.install": "source"}),
        ("tf-horovod", {"tensorflow.install": "pip"}),
        ("tf-horovod", {"tensorflow.install": "source"}),
    ],
)
def test_the_lists_of_shipped_stacks_agree_as_they_are(stack: str, settings: dict[str, str]) -> None:
    plan = hpcgen.plan("supermuc", stack, settings=settings)
    assert doubts(plan) == []
    found: dict[str, set[str]] = {}
    for step in (step for _, step in assemble(plan, Catalog()).builder.steps):
        for file in step.files if any(each.folder == "/opt/python" for each in step.installs) else ():
            for line in file.text.splitlines():
                name, _, version = line.partition(" ")[0].partition("==")
                found.setdefault(name, set()).add(version)
    assert {name: each for name, each in found.items() if len(each) > 1} == {}


# what packages require, by the built-in requires.json


def project(tmp_path: Path, *requirements: str, site: str = "workstation", **settings: str) -> Plan:
    """The plan of a project with these lines in its requirements.txt."""
    (tmp_path / "requirements.txt").write_text("\n".join(requirements) + "\n")
    stack = tmp_path / "hpcgen.yaml"
    stack.write_text(
        "name: ours\ntitle: ours\nrun: {command: ['true']}\n"
        "blocks: {python_packages: {options: {files: [requirements.txt]}}}\n"
    )
    said = {key.replace("__", "."): value for key, value in settings.items()}
    return hpcgen.plan(site, str(stack), settings=said, catalog=Catalog())


def chosen(plan: Plan) -> dict[str, set[str]]:
    """The versions of each package in the lists as they are installed; empty of a range."""
    found: dict[str, set[str]] = {}
    for each in parts_of(plan, Catalog()).installed:
        for line in each.wheels.requirements if each.folder == "/opt/python" else ():
            name, _, version = line.partition(" ")[0].partition("==")
            found.setdefault(re.split("[<>=!~[]", name)[0], set()).add(version)
    return found


def test_a_range_beside_a_framework_moves_the_frameworks_own_choice(tmp_path: Path) -> None:
    plan = project(tmp_path, "torch", "numpy<2")
    assert chosen(plan)["numpy"] == {"1.26.4", ""}
    assert doubts(plan) == []


def test_a_version_that_a_framework_does_not_take_is_refused_with_both_lines(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as failure:
        project(tmp_path, "tensorflow==2.20.0", "numpy==1.23.5")
    (problem,) = failure.value.problems
    assert "requirements.txt:2 asks for numpy==1.23.5, tensorflow-cpu 2.20.0 (of tensorflow 2.20.0) requires " in (
        problem.message
    )
    assert "--set tensorflow.version=RANGE" in problem.remedy


def test_an_exact_version_that_all_take_is_taken_by_version(tmp_path: Path) -> None:
    plan = project(tmp_path, "jax==0.10.2", "scipy==1.16.3", "numpy==2.1.2")
    found = chosen(plan)
    assert found["numpy"] == {"2.1.2"} or found["numpy"] == {"2.5.5", "2.1.2"}
    assert doubts(plan) == []


def test_a_range_that_nothing_is_in_is_refused_and_one_that_no_list_has_is_left_open(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match=r": requirements.txt:2 asks for protobuf<4, tensorflow"):
        project(tmp_path, "tensorflow==2.20.0", "protobuf<4")
    plan = project(tmp_path, "torch==2.10.0", "networkx>=3.1,<3.3")
    assert chosen(plan)["networkx"] == {"", "3.7"} or chosen(plan)["networkx"] == {""}


def test_what_a_list_has_besides_gives_way_to_a_pin_of_the_project_with_a_warning(tmp_path: Path) -> None:
    plan = project(tmp_path, "torch==2.2.0", "deepspeed", "typing-extensions==4.8.0")
    (said,) = [text for text in doubts(plan) if "not all of" in text]
    assert "deepspeed 0" in said and "pydantic 2.14.3 requires typing-extensions>=4.16.0" in said


def test_packages_of_the_project_are_held_against_each_other_too(tmp_path: Path) -> None:
    said = (
        r"requirements.txt:2 asks for numpy==2.2.6, scipy 1.10.1 \(requirements.txt:1\) requires numpy<1.27.0,>=1.19.5"
    )
    with pytest.raises(ConflictError, match=said):
        project(tmp_path, "scipy==1.10.1", "numpy==2.2.6", python__version="3.11")


def test_both_demands_are_told_where_only_one_has_alternatives(tmp_path: Path) -> None:
    loose = block("one", "one==1", "numpy<2", asks=("one==1", "numpy<2"), hashed=False)
    mine = block("two", "numpy==2.1.2", asks=("numpy==2.1.2",), hashed=False)
    with pytest.raises(ConflictError, match=r"one 1 asks for numpy<2, two 1 asks for numpy==2\.1\.2"):
        planned(loose, mine)


def test_every_contradiction_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as failure:
        project(tmp_path, "tensorflow==2.20.0", "numpy==1.23.5", "protobuf==3.20.3")
    assert len(failure.value.problems) == 2


# the self-test


def test_several_lists_are_checked_by_pip_in_the_self_test() -> None:
    one, two = block("one", "numpy==2.1.0"), block("two", "numpy==2.1.0")
    script = assemble(planned(one, two), Catalog([], [one, two])).selftest
    assert script.count("/opt/python/bin/python -m pip check") == 1


@pytest.mark.parametrize(
    ("stack", "settings"),
    [("tf", {"tensorflow.install": "hub"}), ("pytorch", {"pytorch.install": "package"}), ("mpi-hello", {})],
)
def test_packages_of_others_are_none_of_its_business(stack: str, settings: dict[str, str]) -> None:
    assert "pip check" not in assemble(hpcgen.plan("workstation", stack, settings=settings), Catalog()).selftest


# the Python


def test_a_python_that_has_wheels_of_what_is_pinned_is_chosen(tmp_path: Path) -> None:
    python = project(tmp_path, "numpy==1.23.5").block("python")
    assert python is not None and python.version.startswith("3.10")
    with pytest.raises(ConflictError) as failure:
        project(tmp_path, "numpy==1.23.5", python__version="3.12.3")
    text = str(failure.value)
    assert "numpy==1.23.5 of requirements.txt:1, by its wheels, asks for python >=3.8,<3.12" in text
    assert "--set python asks for python ==3.12.3" in text


def test_a_range_too_counts_for_the_python_and_a_package_that_any_python_takes_does_not(tmp_path: Path) -> None:
    python = project(tmp_path, "numpy<1.20").block("python")
    assert python is not None and python.version.startswith("3.8")
    python = project(tmp_path, "six==1.10.0", "tqdm", "numpy>=1.20").block("python")
    assert python is not None and python.version.startswith("3.12")


def test_a_conda_environment_has_a_python_of_its_own(hpcgen: Command, tmp_path: Path) -> None:
    """Its pip takes what there is for that one, whatever the image's other Python has no wheels for."""
    packages = "channels: [conda-forge]\ndependencies: [python=3.10, pip, {pip: [numpy==1.23.5]}]\n"
    (tmp_path / "environment.yml").write_text(f"name: old\n{packages}")
    (tmp_path / "train.py").write_text("import numpy\n")
    assert hpcgen("init").returncode == 0
    done = hpcgen("plan", "--site", "workstation")
    assert done.returncode == 0, done.stderr
