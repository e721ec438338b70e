"""The tests of an image as ReFrame checks: the file is Python, names every test, and starts by the site's line."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.running.verify.reframe import names_of_tests, systems_of
from tests.conftest import GOLDEN, Command

KIT = GOLDEN / "supermuc" / "mpi-hello"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """What is read of an image: its kit."""
    shutil.copytree(KIT, tmp_path / "image" / "opt" / "hpcgen" / "kit")
    return tmp_path / "image"


def value(text: str, name: str) -> object:
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(name)


def test_every_self_test_is_a_check_of_its_own() -> None:
    assert names_of_tests((KIT / "selftest.sh").read_text("utf-8")) == [
        "psm2 12.0.1: library",
        "psm2 12.0.1: device",
        "intel_mpi 2019.6.166: library",
        "intel_mpi 2019.6.166: launcher",
        "rank_test 1: libraries",
        "intel_mpi 2019.6.166: symbols",
    ]


def test_tests_of_devices_have_their_names_and_commands_may_have_several_lines() -> None:
    text = (
        """check_with /dev/nvidiactl 'a 1: device' '' 'nvidia-smi\nls'\ncheck 'b 2: it'"'"'s' x 'one\n# check\ntwo'\n"""
    )
    assert names_of_tests(text) == ["a 1: device", "b 2: it's"]


def test_the_file_names_tests_and_systems(hpcgen: Command, image: Path) -> None:
    done = hpcgen("ci", "reframe", str(image), "--system", "ng:thin", "--environ", "intel")
    assert done.returncode == 0, done.stderr
    assert value(done.stdout, "TESTS") == names_of_tests((KIT / "selftest.sh").read_text("utf-8"))
    assert value(done.stdout, "SYSTEMS") == ["ng:thin"]
    assert value(done.stdout, "ENVIRONMENTS") == ["intel"]
    assert "'module load mpi.intel/2019'," in done.stdout
    assert "ranks find each other" in done.stdout


def test_the_tests_of_several_nodes_are_there_with_several_nodes(hpcgen: Command, image: Path) -> None:
    kit = image / "opt" / "hpcgen" / "kit" / "recipe.json"
    facts = json.loads(kit.read_text("utf-8"))
    test = {"block": "osu", "name": 'latency "x"', "command": "osu_latency", "ranks": "two", "expect": "OSU's"}
    kit.write_text(json.dumps({**facts, "rank_tests": [test]}), "utf-8")
    one = hpcgen("ci", "reframe", str(image))
    several = hpcgen("ci", "reframe", str(image), "--nodes", "2")
    assert "osu_latency" not in one.stdout
    assert several.returncode == 0, several.stderr
    assert "'osu: latency \"x\"': {" in several.stdout
    ast.parse(several.stdout)


def test_figures_of_the_profile_are_references(hpcgen: Command, image: Path, tmp_path: Path) -> None:
    kit = image / "opt" / "hpcgen" / "kit" / "recipe.json"
    facts = json.loads(kit.read_text("utf-8"))
    test = {"block": "osu", "command": "x", "ranks": "two", "figures": "osu"}
    tests = [{**test, "name": name, "measure": name} for name in ("latency", "bandwidth")]
    kit.write_text(json.dumps({**facts, "rank_tests": tests}), "utf-8")
    latency = "latency: {value: 1.8, unit: us, nodes: 2, ranks_per_node: 1, tolerance: 0.2}"
    bandwidth = "bandwidth: {value: 24, unit: GB/s, at: 4096, nodes: 2, ranks_per_node: 1}"
    text = "name: mine\nextends: supermuc\npartitions:\n  thin:\n    performance:\n"
    (tmp_path / "mine.yaml").write_text(f"{text}      {latency}\n      {bandwidth}\n")
    done = hpcgen("ci", "reframe", str(image), "--nodes", "2", "--site", str(tmp_path / "mine.yaml"))
    assert done.returncode == 0, done.stderr
    (starts,) = (
        statement.value
        for statement in ast.parse(done.stdout).body
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "STARTS"
    )
    assert isinstance(starts, ast.Dict)
    figures = {}
    for name, start in zip(starts.keys, starts.values, strict=True):
        assert isinstance(start, ast.Dict) and name is not None
        fields = {ast.literal_eval(key): field for key, field in zip(start.keys, start.values, strict=True) if key}
        figures[ast.literal_eval(name)] = ast.literal_eval(fields["figure"])
    assert figures["ranks find each other"] is None
    assert figures["osu: latency"]["reference"] == (1.8, None, 0.2, "us")
    assert figures["osu: bandwidth"]["reference"] == (24000.0, -0.2, None, "MB/s")
    printed = "# OSU MPI Test\n# Size    Latency (us)\n1     1.61\n4096  7.25\n8192  9.5\n"
    found = {name: re.search(figure["pattern"], printed) for name, figure in figures.items() if figure}
    assert {name: match and match[1] for name, match in found.items()} == {
        "osu: latency": "1.61",
        "osu: bandwidth": "7.25",
    }


def test_as_json_and_to_a_file(hpcgen: Command, image: Path, tmp_path: Path) -> None:
    done = hpcgen("ci", "reframe", str(image), "--json", "-o", str(tmp_path / "checks.py"))
    data = json.loads(done.stdout)
    assert data["systems"] == ["*"]
    assert (tmp_path / "checks.py").read_text("utf-8") == data["text"]


def test_a_system_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="not a ReFrame system"):
        systems_of(["a b"])
