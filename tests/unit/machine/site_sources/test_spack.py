"""Spack's and Stackinator's files → what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_source
from tests.conftest import ROOT

AURELIA = ROOT / "tests" / "sites" / "aurelia"


def read(path: Path, kind: str = "spack") -> Seen:
    return read_source(kind, path, SourceSettings("aurelia"))


def written(folder: Path, text: str) -> Path:
    (folder / "packages.yaml").write_text(text, "utf-8")
    return folder / "packages.yaml"


def test_the_mpi_is_the_provider_that_spack_takes() -> None:
    seen = read(AURELIA / "spack")
    mpi = {path: fact.value for path, fact in seen.facts.items() if path.startswith("mpi.")}
    assert mpi == {
        "mpi.flavour": "openmpi",
        "mpi.version": "4.1.6",
        "mpi.abi": "openmpi",
        "mpi.root": "/opt/mpi/openmpi/4.1.6",
        "mpi.modules": ["openmpi/4.1.6"],
    }
    assert seen.facts["mpi.version"].how.endswith("spack/packages.yaml:9")
    assert "mpi.launcher" in seen.unseen


def test_several_mpis_without_a_provider_stay_open(tmp_path: Path) -> None:
    externals = "    externals:\n    - {spec: %s, prefix: /opt/%s}\n"
    text = (
        "packages:\n  openmpi:\n" + externals % ("openmpi@5.0.3", "a") + "  mpich:\n" + externals % ("mpich@4.2", "b")
    )
    seen = read(written(tmp_path, text))
    assert "mpi.version" not in seen.facts
    assert "openmpi 5.0.3" in seen.unseen["mpi"]
    assert "packages.yaml:7" in seen.unseen["mpi"]


def test_what_else_is_installed() -> None:
    seen = read(AURELIA / "spack")
    for path, value in {
        "system.os": "rocky",
        "system.os_version": "9",
        "system.architecture": "x86_64",
        "node.cpu.target": "zen3",
        "containers.preferred": "apptainer",
        "containers.engines.apptainer.version": "1.3.4",
        "fabric.kind": "infiniband",
        "scheduler.kind": "slurm",
    }.items():
        assert seen.value(path) == value, path
    assert any("cuda 12.4.1 in /opt/nvidia/cuda-12.4" in note for note in seen.notes)
    assert any("upstream installations were not followed: central" in note for note in seen.notes)


def test_an_environment_and_overriding_keys(tmp_path: Path) -> None:
    text = (
        "spack:\n  include: [other.yaml]\n  packages::\n    mpich:\n      externals::\n"
        "      - spec: mpich@4.2.1\n        prefix: /opt/m\n"
    )
    seen = read(written(tmp_path, text))
    assert seen.value("mpi.version") == "4.2.1"
    assert any("packages.yaml:2: other files are included" in note for note in seen.notes)


def test_the_os_of_a_spec(tmp_path: Path) -> None:
    text = "packages:\n  mpich:\n    externals:\n    - {spec: mpich@4.2.1 os=sles15 target=zen2, prefix: /opt/m}\n"
    assert read(written(tmp_path, text)).value("system.os") == "sles"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("packages:\n  mpich:\n    externals:\n    - {prefix: /opt}\n", "'' is not a spec"),
        ("something: else\n", "not a Spack configuration"),
        ("packages: [\n", "packages.yaml:"),
        ("packages: &a {b: *a}\n", "packages.yaml:1"),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert said in str(caught.value)


def test_a_folder_without_files_of_spack(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Spack file"):
        read(tmp_path)


def test_a_cluster_of_stackinator() -> None:
    seen = read(AURELIA / "cluster", "stackinator")
    assert seen.value("fabric.kind") == "slingshot"
    assert seen.value("fabric.provider") == "cxi"
    assert seen.value("node.gpu.capability") == "9.0"
    assert any("network.yaml:1: software stacks are built with cray-mpich, openmpi" in note for note in seen.notes)


def test_files_of_a_cluster_may_be_links_beside_it_and_no_further(tmp_path: Path) -> None:
    cluster, shared = tmp_path / "repo" / "daint", tmp_path / "repo" / "site"
    cluster.mkdir(parents=True)
    shared.mkdir()
    (shared / "network.yaml").write_text((AURELIA / "cluster" / "network.yaml").read_text("utf-8"), "utf-8")
    (cluster / "packages.yaml").write_text((AURELIA / "cluster" / "packages.yaml").read_text("utf-8"), "utf-8")
    (cluster / "network.yaml").symlink_to("../site/network.yaml")
    assert read(cluster, "stackinator").value("fabric.kind") == "slingshot"
    (cluster / "network.yaml").unlink()
    (tmp_path / "outside.yaml").write_text("packages: {}\n", "utf-8")
    (cluster / "network.yaml").symlink_to("../../outside.yaml")
    assert read(cluster, "stackinator").value("fabric.kind") is None


def test_a_folder_that_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a Stackinator cluster"):
        read(tmp_path, "stackinator")


def test_externals_in_the_form_before_spack_0_16(tmp_path: Path) -> None:
    (tmp_path / "packages.yaml").write_text(
        "packages:\n  mpich:\n    modules:\n      mpich@7.7.14: cray-mpich/7.7.14\n    buildable: False\n"
        "  cuda:\n    paths:\n      cuda@10.2 arch=linux-rhel7-x86_64: /usr/local/cuda/\n      buildable: False\n"
        "  all:\n    providers: {mpi: [mpich]}\n"
    )
    seen = read(tmp_path / "packages.yaml")
    assert (seen.value("mpi.flavour"), seen.value("mpi.version")) == ("cray-mpich", "7.7.14")
    assert seen.value("mpi.modules") == ["cray-mpich/7.7.14"]
    assert seen.facts["mpi.version"].how.endswith("packages.yaml:4")
    notes = " ".join(seen.notes)
    assert "packages.yaml:3: modules of mpich is the form before Spack 0.16" in notes
    assert "cuda 10.2 in /usr/local/cuda" in notes
