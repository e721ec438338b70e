"""The program that a request brings: pinned or refused, in a stack that is a file of the kit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.core.model.job import JobRequest
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.optimise.application import stack_text
from hpcgen.plugins.tuning.optimise.decide import Optimised, optimise
from hpcgen.plugins.tuning.requests.reading import request_from
from hpcgen.recipe.assemble import assemble
from tests.conftest import Command

CATALOG = Catalog()
COMMIT, SHA256 = "c" * 40, "a" * 64
SOURCE = "https://example.org/group/solver"
BUILD: dict[str, Any] = {
    "src": f"{SOURCE}@{COMMIT}",
    "build_command": "make \\\n -j {{BUILD_PARALLELISM}} {{X}}\n\nmake x\n",
}
REQUEST: dict[str, Any] = {
    "kind": "mpi",
    "site": "workstation",
    "build": {**BUILD, "parallelism": 16},
    "run": {"command": ["./solver"], "arguments": ["$(x)"]},
}


def optimised(**more: Any) -> Optimised:
    read = request_from(loads(json.dumps({**REQUEST, **more}, indent=1), "request.yaml"))
    site = CATALOG.site("workstation")
    return optimise(CATALOG, read.request, site, Measurements([]), where=read.where)


def test_the_program_is_compiled_after_all_that_the_stack_has() -> None:
    result = optimised()
    (block,) = [each for each in result.plan.blocks if each.name == "application"]
    assert block.options["commands"] == ["make   -j 16 {{X}}", "make x"]
    assert (block.options["source"], block.options["commit"], block.options["mpi"]) == (SOURCE, COMMIT, True)
    assert result.plan.job.command == ["solver", "$(x)"]
    assert result.decision.stack == result.plan.stack.name == "mpi-hello-application"
    assert any("./solver is started as solver" in each.message for each in result.decision.findings)


@pytest.mark.parametrize(
    "more",
    [{}, {"kind": "ai_training", "framework": "tensorflow"}, {"kind": "hpc", "run": {"command": ["a"], "mpi": False}}],
)
def test_the_stack_of_the_kit_gives_the_same_plan(more: dict[str, Any], tmp_path: Path) -> None:
    result = optimised(**more)
    assert result.stack is not None and "--stack stack.yaml " in result.decision.command
    path = tmp_path / "stack.yaml"
    path.write_text(stack_text(result.stack))
    catalog = Catalog()
    job = JobRequest(command=result.plan.job.command)
    again = make_plan(catalog, catalog.site("workstation"), catalog.stack(str(path)), partition="main", job=job)
    assert (again.stack, again.blocks, again.job) == (result.plan.stack, result.plan.blocks, result.plan.job)
    assert assemble(again, catalog).labels == assemble(result.plan, CATALOG).labels


def test_a_program_of_one_process_is_started_without_mpi() -> None:
    plan = optimised(kind="hpc", run={"command": ["a"], "mpi": False}).plan
    assert not plan.stack.run.mpi
    assert [each.options["mpi"] for each in plan.blocks if each.name == "application"] == [False]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        ({"src": SOURCE}, f"`git ls-remote {SOURCE} HEAD` says the newest commit"),
        ({"src": f"{SOURCE}@v1.2"}, f"`git ls-remote {SOURCE} v1.2` says its commit"),
        ({"src": f"{SOURCE}-1.2.tar.gz"}, "`sha256sum solver-1.2.tar.gz` the hash"),
        ({"src": f"{SOURCE}.tar", "sha256": SHA256, "commit": COMMIT}, "both `commit` and `sha256` pin"),
        ({"src": f"{SOURCE}@{COMMIT}", "commit": "d" * 40}, "does not pin"),
    ],
)
def test_what_nothing_pins_is_refused_at_its_place(build: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        optimised(build={**BUILD, **build})
    assert said in str(caught.value) and "request.yaml:5:10: " in str(caught.value)


@pytest.mark.parametrize(
    "build", [{"src": f"{SOURCE}.tgz", "sha256": SHA256}, {"src": f"{SOURCE}.tgz#sha256={SHA256}"}]
)
def test_an_archive_is_pinned_by_its_hash(build: dict[str, str]) -> None:
    plan = optimised(build={**BUILD, **build}).plan
    (options,) = [each.options for each in plan.blocks if each.name == "application"]
    assert (options["source"], options["sha256"], options["commit"]) == (f"{SOURCE}.tgz", SHA256, None)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"run": {}}, "does not say which command starts it"),
        ({"hardware": {"accelerator": "nvidia"}, "site": "workstation"}, "supports GPUs"),
    ],
)
def test_what_is_probably_not_meant_is_told(more: dict[str, Any], said: str) -> None:
    from hpcgen.plugins.tuning.optimise.application import checked_build

    read = request_from(loads(json.dumps({**REQUEST, **more}), "request.yaml"))
    assert any(said in each.message for each in checked_build(read.request)[1])


def test_files_that_a_request_names_lie_beside_it_and_its_stack_is_in_the_kit(hpcgen: Command, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "pc.yaml").write_text("name: pc\ntitle: a copy\nextends: workstation\n")
    own = {"name": "mine", "title": "mine", "blocks": {"mpi": {}}, "run": {"command": ["true"]}}
    (ours / "mine.yaml").write_text(json.dumps(own))
    (ours / "request.yaml").write_text(json.dumps({**REQUEST, "site": "pc.yaml", "stack": "mine.yaml"}))
    done = hpcgen("optimise", "ours/request.yaml", "-o", "kit")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kit" / "stack.yaml").read_text().startswith("name: mine-application\n")
    assert json.loads((tmp_path / "kit" / "plan.json").read_text())["site"]["name"] == "pc"
