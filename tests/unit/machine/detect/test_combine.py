"""Facts from several places are one record, and what contradicts is told with both places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgen.core.config.yamlfile import loads
from hpcgen.machine.detect.detection import combine, kinds_of
from hpcgen.machine.detect.profile import profile_of
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_sources
from tests.conftest import ROOT

AURELIA = ROOT / "tests" / "sites" / "aurelia"


def seen(how: str, **facts: Any) -> Seen:
    found = Seen()
    for path, value in facts.items():
        found.add(path.replace("__", "."), value, how)
    return found


def of_aurelia(*kinds: str) -> Seen:
    paths = {"stackinator": "cluster"}
    wanted: list[tuple[str, Path]] = [(kind, AURELIA / paths.get(kind, kind)) for kind in kinds]
    return combine(read_sources(wanted, SourceSettings("aurelia")))


def test_kinds_with_a_queue_in_common_are_the_same() -> None:
    whole = of_aurelia("slurm", "reframe")
    assert kinds_of(whole) == ["batch", "gpu", "fat"]
    assert whole.value("partitions.batch.cpu.target") == "zen3"
    assert whole.value("partitions.batch.memory.total_gb") == 251.0
    assert whole.value("partitions.batch.directives") == ["--exclusive"]


def test_contradictions_have_both_places_and_the_first_counts() -> None:
    whole = of_aurelia("slurm", "reframe")
    assert [each.path for each in whole.contradictions] == [
        "partitions.gpu.cpu.threads_per_core",
        "partitions.gpu.cpu.sockets",
    ]
    assert whole.value("partitions.gpu.cpu.sockets") == 2
    said = str(whole.contradictions[1])
    assert "nodes.conf:5), but 1 (" in said and "settings.py:38): the first was written" in said
    other = of_aurelia("reframe", "slurm")
    assert other.value("partitions.gpu-a100.cpu.sockets") == 1


def test_what_is_said_of_all_nodes_is_taken_where_nothing_else_is_known() -> None:
    whole = of_aurelia("slurm", "spack")
    assert {whole.value(f"partitions.{kind}.cpu.target") for kind in ("batch", "gpu", "fat")} == {"zen3"}
    assert kinds_of(whole) == ["batch", "gpu", "fat"]


def test_the_detected_node_is_the_kind_that_it_fits() -> None:
    node = seen("the node", node__cpu__cores=64, node__memory__total_gb=503.1, node__gpu__vendor="nvidia")
    node.add("node.gpu.driver", "550.54", "/proc")
    whole = combine([of_aurelia("slurm"), node])
    assert whole.value("partitions.gpu.gpu.driver") == "550.54"
    assert whole.contradictions == []
    assert combine([node, of_aurelia("slurm")]).value("partitions.gpu.gpu.driver") == "550.54"


def test_a_node_that_fits_no_kind_is_one_more() -> None:
    whole = combine([of_aurelia("slurm"), seen("the node", node__cpu__cores=7)])
    assert whole.value("node.cpu.cores") == 7


def test_versions_agree_as_far_as_both_go() -> None:
    assert combine([seen("a", mpi__version="4.1"), seen("b", mpi__version="4.1.6")]).contradictions == []
    assert combine([seen("a", mpi__version="4.1.5"), seen("b", mpi__version="4.1.6")]).contradictions


def test_the_profile_has_each_fact_with_its_origin() -> None:
    whole = of_aurelia("slurm", "reframe", "spack")
    profile = profile_of(whole, "aurelia", "2026-11-25", "files", "--from slurm slurm.conf")
    data = loads(profile.text, "aurelia.yaml").data
    assert list(data["partitions"]) == ["batch", "gpu", "fat"]
    assert profile.complete
    assert data["default_partition"] == "batch"
    assert data["sources"]["mpi.launcher"]["from"].endswith(", MpiDefault: srun starts ranks by pmix")
    assert data["sources"]["partitions.gpu.cpu.target"]["from"].endswith("settings.py:38")
    assert "# contradiction: partitions.gpu.cpu.sockets is 2" in profile.text
    assert set(whole.facts) <= set(data["sources"])


def test_what_nobody_says_stays_open() -> None:
    profile = profile_of(of_aurelia("slurm"), "aurelia", "2026-11-25", "files", "--from slurm slurm.conf")
    assert profile.open["system.os"] == "not found in the files that were read"
    assert "# open: system.os: not found in the files that were read" in profile.text
    assert not profile.complete
