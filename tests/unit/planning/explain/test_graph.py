"""A plan drawn: every block once, every line from what needs to what is needed, in four forms."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan
from hpcgen.planning.explain.graph import PlanGraph, dot, graph_of, mermaid, tree
from hpcgen.planning.explain.graph_svg import layered, svg
from hpcgen.planning.planner import make_plan
from tests.conftest import Command

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def plan() -> Plan:
    catalog = Catalog()
    return make_plan(catalog, catalog.site("hlrs-testbed"), catalog.stack("tf-horovod"))


@pytest.fixture(scope="module")
def graph(plan: Plan) -> PlanGraph:
    return graph_of(plan)


def test_every_block_and_need_of_the_plan_is_there(plan: Plan, graph: PlanGraph) -> None:
    assert sorted(node.name for node in graph.nodes) == sorted(block.name for block in plan.blocks)
    asked = {(block.name, chosen) for block in plan.blocks for chosen in block.needs.values()}
    assert asked <= {(edge.source, edge.target) for edge in graph.edges}
    assert [node.name for node in graph.nodes if node.named] == ["tensorflow", "horovod", "mpich"]
    assert [node.name for node in graph.nodes if node.stage == "build"] == ["cmake"]


def test_what_others_imply_is_not_drawn_and_nothing_is_lost(graph: PlanGraph) -> None:
    """The lines that are drawn lead to all that the plan's needs lead to."""

    def reached(edges: set[tuple[str, str]], start: str) -> set[str]:
        below = {target for source, target in edges if source == start}
        return below.union(*(reached(edges, each) for each in below))

    every = {(edge.source, edge.target) for edge in graph.edges}
    drawn = {(edge.source, edge.target) for edge in graph.drawn()}
    assert ("horovod", "ubuntu") not in drawn and len(drawn) < len(every)
    for node in graph.nodes:
        assert reached(drawn, node.name) == reached(every, node.name)


def test_a_tree_says_each_block_in_full_once(graph: PlanGraph) -> None:
    lines = tree(graph).splitlines()
    assert lines[:2] == ["tf-horovod for hlrs-testbed, partition gpu", "├─ tensorflow 2.3.4"]
    assert any(line.endswith("cmake 3.31.10  (only builds)") for line in lines)
    for node in graph.nodes:
        said = [line for line in lines if re.search(rf"─ {node.name} ", line)]
        assert said and len([line for line in said if not line.endswith(" …")]) >= 1


def test_a_picture_has_boxes_that_do_not_overlap_and_lines_that_go_down(graph: PlanGraph) -> None:
    root = ElementTree.fromstring(svg(graph))
    boxes = [
        [float(box.get(side, "")) for side in ("x", "y", "width", "height")]
        for box in root.iterfind(f".//{SVG}g/{SVG}g/{SVG}rect")
    ]
    assert len(boxes) == len(graph.nodes)
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(boxes, 2):
        assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
    drawing = root.find(f"{SVG}g")
    assert drawing is not None
    paths = [path.get("d", "") for path in drawing.iterfind(f"{SVG}path")]
    assert len(paths) == len(graph.drawn())
    for path in paths:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
        assert numbers[1] < numbers[-1]
    assert svg(graph) == svg(graph)


def test_a_name_in_markup_is_text() -> None:
    odd = PlanGraph(title='<script>"&', nodes=[], edges=[])
    assert "&lt;script&gt;&quot;&amp;" in svg(odd) and "<script>" not in svg(odd)
    assert dot(odd).startswith('digraph "<script>\\"&" {')


def test_long_lines_go_past_what_lies_between() -> None:
    layout = layered(
        {"top": 60, "middle": 60, "base": 60}, [("top", "middle"), ("middle", "base"), ("top", "base")], 40, 10, 30
    )
    points = layout.lines["top", "base"]
    assert len(points) == 3
    assert abs(points[1][0] - layout.centres["middle"][0]) >= 30 + 10


def test_the_command_writes_what_the_file_is_called(hpcgen: Command, tmp_path: Path) -> None:
    asked = ("graph", "--site", "workstation", "--stack", "pytorch", "-q")
    for name, begin in (("g.svg", "<svg "), ("g.dot", "digraph "), ("g.mmd", "flowchart TB"), ("g.txt", "pytorch for")):
        assert hpcgen(*asked, "-o", str(tmp_path / name)).returncode == 0
        assert (tmp_path / name).read_text("utf-8").startswith(begin)
    refused = hpcgen(*asked, "-o", str(tmp_path / "g.png"))
    assert refused.returncode == 3 and "g.png has no known extension" in refused.stderr
    with_inputs = json.loads(hpcgen(*asked, "--inputs", "--json").stdout)
    assert any(node["kind"] == "input" and node["name"].startswith("pytorch: torch-") for node in with_inputs["nodes"])


def test_a_kit_is_drawn_from_its_plan(hpcgen: Command, tmp_path: Path) -> None:
    kit = str(tmp_path / "kit")
    assert hpcgen("render", "--site", "workstation", "--stack", "mpi-hello", "-q", "-o", kit).returncode == 0
    drawn = hpcgen("graph", "--from", kit)
    assert drawn.stdout == hpcgen("graph", "--site", "workstation", "--stack", "mpi-hello", "-q").stdout
    assert "mpich 4.3.2  (mpi)" in drawn.stdout
    assert hpcgen("graph", "--from", kit, "--site", "supermuc").returncode == 2


def test_mermaid_has_no_word_that_it_would_read(graph: PlanGraph) -> None:
    lines = mermaid(graph).splitlines()
    assert all(
        re.fullmatch(r'flowchart TB|  n\d+\["[^"]*"\]:::\w+|  n\d+ -->(\|\w+\|)? n\d+|  classDef .*', line)
        for line in lines
    )
