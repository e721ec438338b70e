"""Things picked from a rendered kit, each with where it comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.core.support.traced import subjects_of
from hpcgen.planning.explain.answers import explain
from hpcgen.planning.explain.case import ExplainCase, Explanation, explanation_text
from hpcgen.planning.planner import make_plan
from tests.conftest import Command


@pytest.fixture(scope="module")
def case() -> ExplainCase:
    catalog = Catalog()
    site, stack = catalog.site("supermuc"), catalog.stack("tf-horovod")
    return ExplainCase(
        make_plan(catalog, site, stack, settings=["tensorflow.install=source", "tensorflow.jobs=4"]), catalog
    )


@pytest.mark.parametrize(
    ("word", "kind", "text", "place"),
    [
        ("tensorflow", "stack", "stack tf-horovod asks for tensorflow", r"recipes/tf-horovod\.yaml:\d+"),
        ("cmake", "block", "horovod 0.28.1 asks for cmake", r"building_blocks/horovod\.(yaml|py)(:\d+)?"),
        ("mpi", "site", "the host's Intel MPI", r"site_profiles/(supermuc|lrz)\.yaml:\d+"),
        ("tensorflow.jobs", "command", "--set tensorflow.jobs=4", ""),
        ("OMP_NUM_THREADS", "job", "layout of the site", ""),
        ("FI_PROVIDER", "site", "environment.FI_PROVIDER: psm2", r"site_profiles/\w+\.yaml:\d+"),
        ("I_MPI_ROOT", "block", "intel_mpi 2019.6.166 sets it", r"building_blocks/intel_mpi\.py:\d+"),
        ("libnuma1", "block", "psm2 12.0.1 asks for it to run", r"building_blocks/psm2\.py:\d+"),
        ("base", "release", "the image of ubuntu 22.04", r"building_blocks/ubuntu\.yaml:\d+"),
        ("/opt/psm2", "block", "psm2 12.0.1 keeps", r"building_blocks/psm2\.py:\d+"),
        ("/lrz/sys", "site", "mpi.binds.0.source", r"site_profiles/\w+\.yaml:\d+"),
        ("mpi.intel/2019", "site", "mpi.modules", r"site_profiles/\w+\.yaml:\d+"),
        ("nodes", "site", "layouts", r"site_profiles/\w+\.yaml:\d+"),
        ("queue", "site", "partitions.thin.queues", r"site_profiles/\w+\.yaml:\d+"),
        ("--ear", "site", "scheduler.directives", r"site_profiles/\w+\.yaml:\d+"),
        ("engine", "site", "containers.preferred: charliecloud", r"site_profiles/\w+\.yaml:\d+"),
        ("mpi.launcher", "site", "mpi.launcher: mpiexec", r"site_profiles/\w+\.yaml:\d+"),
        ("run.command", "stack", "tf-horovod: run.command", r"recipes/tf-horovod\.yaml:\d+"),
        ("psm2 12.0.1: install", "block", "psm2 12.0.1 does this", r"\w+/.*\.py:\d+"),
        ("io.hpcgen.content", "rule", "the plan hash", ""),
    ],
)
def test_a_thing_of_a_kit_is_traced(case: ExplainCase, word: str, kind: str, text: str, place: str) -> None:
    grounds = [ground for each in explain(case, word) for ground in each.grounds]
    fitting = [g for g in grounds if g.kind == kind and text in g.text]
    assert fitting, [str(each) for each in grounds]
    assert any(re.fullmatch(place, each.place) for each in fitting), [each.place for each in fitting]


def test_what_was_refused_is_told_with_the_reason(case: ExplainCase) -> None:
    (found,) = explain(case, "tensorflow")
    assert any(each.what == "tensorflow 2.16.1" and "tensorflow.install=pip" in each.why for each in found.refused)
    (engine,) = explain(case, "engine")
    assert any(each.what == "singularity" and "security policy" in each.why for each in engine.refused)


def test_a_fact_comes_with_its_source(case: ExplainCase) -> None:
    (found,) = explain(case, "partitions.thin.memory.usable_gb")
    assert found.grounds[0].source is not None and found.grounds[0].source.from_
    assert "(checked " in explanation_text(found)


def test_every_line_that_is_of_something_can_be_explained(case: ExplainCase) -> None:
    explained: list[Explanation] = []
    for name, text in case.files.items():
        for number in subjects_of(text):
            explained += explain(case, f"{name}:{number + 1}")
    silent = {(each.kind, each.name) for each in explained if not each.grounds}
    assert len(explained) > 200 and not silent


def test_an_unknown_word_names_the_nearest(case: ExplainCase) -> None:
    with pytest.raises(UnknownNameError, match="did you mean tensorflow"):
        explain(case, "tensorflwo")
    with pytest.raises(InputError, match="lines, not 9999"):
        explain(case, "job.slurm:9999")


def test_lines_of_a_kit_are_explained_without_site_and_stack(hpcgen: Command, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    hpcgen("render", "--site", "lumi-g", "--stack", "mpi-hello", "-o", str(kit))
    lines = (kit / "job.slurm").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "--nodes" in line)
    (found,) = json.loads(hpcgen("explain", f"{kit}/job.slurm:{number}", "--json").stdout)
    assert (found["kind"], found["name"], found["value"]) == ("job", "nodes", "1")
    (kit / "job.slurm").write_text("\n".join(["# mine", *lines]) + "\n")
    done = hpcgen("explain", f"{kit}/job.slurm:{number}")
    assert done.returncode == 3 and "differs from a fresh rendering of its plan" in done.stderr


@pytest.mark.parametrize(
    ("setting", "word", "texts"),
    [
        ("pytorch.version=2.0.0", "pytorch.install", ("install=wheel, the default, which gives way", "--set pytorch")),
        ("torchvision.version=0.23.0", "pytorch.install", ("as torchvision.install", "torchvision 0.23.0 cannot be")),
    ],
)
def test_a_default_that_gave_way_names_the_release_and_who_asks_for_it(
    setting: str, word: str, texts: tuple[str, ...]
) -> None:
    catalog = Catalog()
    site, stack = catalog.site("workstation"), catalog.stack("pytorch")
    added = ["torchvision"] if "torchvision" in setting else []
    plan = make_plan(catalog, site, stack, settings=[setting], added=added)
    (found,) = explain(ExplainCase(plan, catalog), word)
    told = [each.text for each in found.grounds]
    assert found.value == "pip" and all(any(text in each for each in told) for text in texts), told
