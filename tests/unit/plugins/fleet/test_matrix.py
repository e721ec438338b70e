"""``hpcgen matrix``: what becomes of every combination is told, whatever goes wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Problem
from hpcgen.plugins.fleet.matrix import (
    Combination,
    columns_that_fit,
    combinations,
    concrete_sites,
    counts,
    grid,
    markdown,
    outcome,
    outcomes,
    remembered,
)
from tests.conftest import Command

SAMPLE = ("workstation", "supermuc", "hlrs-testbed", "lumi-g", "jupiter")
BROKEN = """
from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Packages


class Broken(Block):
    \"\"\"One with a mistake.\"\"\"

    name = "broken"

    def packages(self, ctx: Context) -> Packages:
        return Packages(build={"apt": [{}["mpii"]]})
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hpcgen" / "matrix"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.mark.parametrize("stack", Catalog().names("stack"))
def test_every_stack_renders_somewhere(catalog: Catalog, stack: str) -> None:
    every = combinations(catalog, stacks=[stack])
    assert any(found.result in ("renders", "cpu") for found in outcomes(catalog, every))


@pytest.mark.parametrize("site", SAMPLE)
def test_nothing_but_plans_and_refusals_comes_of_a_sample(catalog: Catalog, site: str) -> None:
    found = list(outcomes(catalog, combinations(catalog, [site])))
    assert [each for each in found if each.result == "bug"] == []
    silent = [each for each in found if (each.result == "renders") != (each.why == "")]
    assert silent == []
    assert all("\n" not in each.why and len(each.why) > 10 for each in found if each.result != "renders")


def test_all_concrete_partitions_take_part(catalog: Catalog) -> None:
    sites = concrete_sites(catalog)
    assert "supermuc" in sites and "lrz" not in sites
    every = combinations(catalog, stacks=["mpi-hello"])
    partitions = [(site, partition) for site in sites for partition in catalog.site(site).partitions]
    assert [(each.site, each.partition) for each in every] == partitions


def test_a_stack_is_tried_in_every_way_of_its_first_block(catalog: Catalog) -> None:
    ways = combinations(catalog, ["supermuc"], ["tf-horovod"])
    of_one = [each for each in ways if each.partition == ways[0].partition]
    assert [each.way for each in of_one] == ["source", "pip", "intel", "hub"]
    assert [each.way for each in of_one if each.usual] == ["pip"]
    assert of_one[0].settings == ["tensorflow.install=source"]
    assert {each.way for each in combinations(catalog, ["supermuc"], way="pip")} == {"pip"}


def test_a_gpu_that_is_left_alone_is_told_with_the_reason(catalog: Catalog) -> None:
    found = outcome(catalog, Combination("jupiter", "booster", "mpi-hello"))
    assert found.result == "cpu" and "none of the node's 4 GPUs" in found.why and "stack mpi-hello" in found.why
    assert outcome(catalog, Combination("supermuc", "thin", "mpi-hello")).result == "renders"


def test_a_refusal_has_all_problems_and_one_line(catalog: Catalog) -> None:
    found = outcome(catalog, Combination("darwin", "gpu-mi50", "tf-horovod"))
    assert found.result == "refused" and "no package of it for GPUs of amd is listed here" in found.why
    assert found.problems[0]["where"].startswith("site_profiles/darwin.yaml:")


def test_one_line_joins_what_stands_below_each_other() -> None:
    assert Problem("nothing fits:\n  - a\n  - b", remedy="take c\nor d").on_one_line == "nothing fits: a; b → take c"


def test_several_processes_say_the_same_in_the_same_order(catalog: Catalog) -> None:
    every = combinations(catalog, ["darwin", "workstation"], ["mpi-hello", "onnxruntime"])
    assert list(outcomes(catalog, every, 2)) == list(outcomes(catalog, every))


@pytest.fixture
def broken(collection: Path) -> Path:
    """A collection with a block whose code fails, and a stack with it."""
    (collection / "building_blocks" / "broken.py").write_text(BROKEN)
    (collection / "building_blocks" / "broken.yaml").write_text('block: broken\nreleases: {"1": {}}\n')
    (collection / "recipes" / "broken.yaml").write_text(
        "name: broken\ntitle: t\nblocks: {broken: {}}\nrun: {command: [x], mpi: false}\n"
    )
    return collection


def test_a_mistake_in_a_block_is_a_bug_and_no_refusal(broken: Path, hpcgen: Command) -> None:
    done = hpcgen("--collection", str(broken), "matrix", "--site", "workstation", "--stack", "broken", "--json")
    assert done.returncode == 70
    told = json.loads(done.stdout)
    assert told["stacks"]["broken"]["bug"] == len(told["combinations"]) == 1
    assert "KeyError: 'mpii'" in told["combinations"][0]["why"]
    assert "error: broken for workstation" in done.stderr


def test_an_exception_of_hpcgen_itself_is_a_bug(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **more: object) -> None:
        raise RuntimeError("of all things\nand more")

    monkeypatch.setattr("hpcgen.plugins.fleet.matrix.make_plan", fails)
    found = outcome(catalog, Combination("workstation", "main", "mpi-hello"))
    assert (found.result, found.why) == ("bug", "RuntimeError: of all things")


def test_the_grid_has_the_usual_way_and_says_where_others_differ(catalog: Catalog) -> None:
    found = list(outcomes(catalog, combinations(catalog, ["jupiter"], ["mpi-hello", "onnxruntime"])))
    stacks, rows = grid(found)
    assert stacks == ["mpi-hello", "onnxruntime"] and rows[0] == ["jupiter:booster", "cpu", "yes*"]
    assert counts(found)["onnxruntime"] == {"renders": 1, "cpu": 0, "refused": 1, "bug": 0}
    page = markdown(found)
    assert "| jupiter:booster | cpu | yes* |" in page and "| all | 1 | 1 | 1 | 0 |" in page
    assert "| jupiter:booster (source) |" in page


def test_columns_go_on_below_where_the_line_is_full() -> None:
    assert columns_that_fit(["one", "two", "three"], 10, 24) == [[0, 1], [2]]
    assert columns_that_fit(["a-very-long-name"], 10, 12) == [[0]]


def test_the_command_lists_reasons_where_little_is_asked(hpcgen: Command, tmp_path: Path) -> None:
    stacks = ("--stack", "onnxruntime", "--stack", "tf-horovod")
    listed = hpcgen("matrix", "--site", "darwin", *stacks, "--only", "refused", "--processes", "1")
    assert listed.returncode == 0 and "renders" not in listed.stdout
    assert re.search("^darwin:gpu-mi50 +onnxruntime ", listed.stdout, re.MULTILINE)
    shown = hpcgen(
        "matrix", "--site", "darwin", "--site", "workstation", *stacks, "--processes", "1", "--html", "m.html"
    )
    page = (tmp_path / "m.html").read_text()
    assert re.search('class="no" title="[^"]+"><a href="#tf-horovod">', page) and 'class="yes"' in page
    assert 'id="tf-horovod"' in page and "<script" not in page
    assert "does not use the node's GPUs" in shown.stdout and "darwin:gpu-mi50" in shown.stdout
    assert hpcgen("matrix", "--json", "--markdown").returncode == 2
    assert hpcgen("matrix", "--site", "nowhere").returncode == 4
    assert hpcgen("matrix", "--site", "lrz").returncode == 3


# what was worked out before


def told(catalog: Catalog) -> list[str]:
    """What becomes of the smallest stack on one site, and how often something was planned for that."""
    chosen = combinations(catalog, ["workstation"], ["mpi-hello"])
    return [f"{each.result} {each.software}" for each in remembered(catalog, chosen, 1)]


def test_what_was_worked_out_is_read_the_next_time(
    catalog: Catalog, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = told(catalog)
    monkeypatch.setattr("hpcgen.plugins.fleet.matrix.make_plan", None)
    assert told(catalog) == first == ["renders rank_test 1"]
    (stored,) = cache.iterdir()
    stored.write_text("[{")
    assert told(catalog) == ["bug "]


@pytest.mark.parametrize("name", ["site_profiles/mine.yaml", "recipes/mine.yaml", "building_blocks/wheels/mine.txt"])
def test_nothing_is_taken_once_a_file_has_changed(
    collection: Path, cache: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog([collection])
    told(catalog)
    path = collection / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("# something\n")
    monkeypatch.setattr("hpcgen.plugins.fleet.matrix.make_plan", None)
    assert told(catalog) == ["bug "]
    path.unlink()
    assert told(catalog) == ["renders rank_test 1"]


def test_a_bug_is_not_remembered(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("hpcgen.plugins.fleet.matrix.make_plan", None)
        assert told(catalog) == ["bug "]
    assert told(catalog) == ["renders rank_test 1"]


def test_a_cache_that_cannot_be_written_is_done_without(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert told(catalog) == ["renders rank_test 1"]


def test_only_the_last_few_states_are_kept(collection: Path, cache: Path) -> None:
    catalog = Catalog([collection])
    for number in range(6):
        (collection / "recipes" / "mine.yaml").write_text(f"# {number}\n")
        told(catalog)
    assert len(list(cache.iterdir())) == 4
