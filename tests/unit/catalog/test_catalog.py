"""Collections: which one wins, what adds up, and how profiles are laid over their parents."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.inheritance import merge
from hpcgen.core.errors import UnknownNameError
from tests.conftest import ROOT, Command


def profile(collection: Path, name: str, text: str) -> None:
    (collection / "site_profiles" / f"{name}.yaml").write_text(f"name: {name}\n{text}")


def test_merge_rules() -> None:
    parent = {"a": {"x": 1, "y": [1, 2], "z": 3}, "b": "old", "c": [1]}
    child = {"a": {"y": [9], "z": None}, "b": "new", "d": 4}
    assert merge(parent, child) == {"a": {"x": 1, "y": [9]}, "b": "new", "c": [1], "d": 4}
    assert parent["a"] == {"x": 1, "y": [1, 2], "z": 3}


def test_a_child_changes_one_fact_and_keeps_the_others(collection: Path) -> None:
    profile(collection, "mine", "extends: supermuc\nmpi: {version: 2019.5.281}\npartitions: {fat: null}\n")
    site, parent = Catalog([collection]).site("mine"), Catalog().site("supermuc")
    assert site.mpi is not None
    assert parent.mpi is not None
    assert (site.mpi.version, site.mpi.root) == ("2019.5.281", parent.mpi.root)
    assert list(site.partitions) == ["thin"]
    assert not site.abstract


def test_a_fact_is_found_where_it_is_written(collection: Path) -> None:
    profile(collection, "mine", "extends: supermuc\nmpi:\n  version: 2019.5.281\n")
    document = Catalog([collection]).site_document("mine")
    assert document.position(["mpi", "version"]).file.endswith("mine.yaml")
    assert document.position(["mpi", "version"]).line == 4
    assert document.position(["mpi", "root"]).file == "site_profiles/supermuc.yaml"
    assert document.position(["scheduler", "kind"]).file == "site_profiles/lrz.yaml"


def test_first_collection_wins_and_the_built_in_one_is_last(collection: Path, hpcgen: Command) -> None:
    profile(collection, "workstation", "title: ours\n")
    asked = ["list", "sites", "--json"]
    for words, env in ((["--collection", str(collection)], {}), ([], {"HPCGEN_COLLECTIONS": str(collection)})):
        done = hpcgen(*words, *asked, env=env)
        assert '"title": "ours"' in done.stdout
    assert '"title": "ours"' not in hpcgen(*asked).stdout


def test_an_installed_package_may_bring_a_collection(tmp_path: Path, hpcgen_process: Command) -> None:
    package = tmp_path / "site-packages" / "labsites"
    (package / "site_profiles").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('a collection is data and is not run')\n")
    (package / "site_profiles" / "lab.yaml").write_text("name: lab\nextends: workstation\ntitle: our lab\n")
    about = tmp_path / "site-packages" / "labsites-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[hpcgen.collections]\nlab = labsites\n")
    env = {"PYTHONPATH": f"{tmp_path / 'site-packages'}:{ROOT}", "HPCGEN_ENTRY_POINTS": "1"}
    done = hpcgen_process("list", "sites", env=env)
    assert done.returncode == 0, done.stderr
    assert "our lab" in done.stdout


def test_release_rows_and_providers_of_collections_add_up(collection: Path) -> None:
    blocks = collection / "building_blocks"
    (blocks / "mpich.yaml").write_text(
        'block: mpich\nreleases:\n  "4.2.1": {archives: {source: {url: "https://example.org/m.tar.gz", sha256: '
        + "a" * 64
        + "}}}\n"
    )
    (blocks / "virtuals.yaml").write_text("virtuals: {mpi: [ourmpi]}\n")
    catalog = Catalog([collection])
    assert {"4.2.1", "4.3.2"} <= set(catalog.releases("mpich"))
    assert catalog.virtuals["mpi"][0] == "ourmpi"
    assert {"mpich", "intel_mpi"} <= set(catalog.virtuals["mpi"])


def test_every_provider_says_what_it_provides() -> None:
    catalog = Catalog()
    for virtual, providers in catalog.virtuals.items():
        for name in providers:
            assert virtual in catalog.block(name).provides


def test_every_release_has_a_source() -> None:
    catalog = Catalog()
    for name in catalog.names("block"):
        for version, release in catalog.releases(name).items():
            assert release.source is not None, f"{name} {version}"


@pytest.mark.parametrize("name", ["../supermuc", "super muc", "", "SUPERMUC", "a/b"])
def test_a_name_never_becomes_a_path(name: str) -> None:
    with pytest.raises(UnknownNameError):
        Catalog().site(name)
