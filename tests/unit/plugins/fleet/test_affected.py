"""What is to be built again: by a fact, by what would be planned now, by advisories in OSV's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.component import Component
from hpcgen.kit.lockfile.lock import sealed_text
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.advisories import Advisory, hits
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.locking import collection_files
from tests.conftest import Command
from tests.helpers.locks import pins


def osv(name: str, ecosystem: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    affected = [{"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, **more}]
    return {"id": f"TEST-{name}", "summary": "a hole", "modified": "2026-11-01T00:00:00Z", "affected": affected}


def component(purl: str, version: str, url: str = "") -> Component:
    return Component("ref", "package", purl.rpartition("/")[2].partition("@")[0], version, purl=purl, url=url)


DEB = "pkg:deb/debian/libssl3@3.0.15-1~deb12u1?arch=amd64&distro=debian-12"
POOL = "https://deb.example.org/debian/pool/main/o/openssl/libssl3_3.0.15-1~deb12u1_amd64.deb"


@pytest.mark.parametrize(
    ("advisory", "found"),
    [
        (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.27"}), "1.27"),
        (osv("NumPy", "PyPI", {"introduced": "1.20"}, {"last_affected": "1.26.4"}), ""),
        (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.26"}), None),
        (osv("numpy", "PyPI", {"introduced": "1.27"}), None),
        (
            osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "1.26"}, {"fixed": "1.26.5"}),
            "1.26.5",
        ),
        (osv("numpy", "PyPI", versions=["1.26.4"]), ""),
        (osv("numpy", "npm", {"introduced": "0"}), None),
        (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "3.0.16-1~deb12u1"}), "3.0.16-1~deb12u1"),
        (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "3.0.9-1"}), None),
        (osv("openssl", "Debian:13", {"introduced": "0"}), None),
        (osv("openssl", "Ubuntu:24.04:LTS", {"introduced": "0"}), None),
    ],
)
def test_an_advisory_is_held_against_versions_in_their_own_order(advisory: dict[str, Any], found: str | None) -> None:
    import msgspec

    held = [component("pkg:pypi/numpy@1.26.4", "1.26.4"), component(DEB, "3.0.15-1~deb12u1", POOL)]
    assert [mended for _, mended in hits(msgspec.convert(advisory, Advisory), held)] == (
        [] if found is None else [found]
    )


@pytest.fixture
def kept(tmp_path: Path, hpcgen: Command) -> Path:
    """A lock with packages and a kit without any, of two sites."""
    catalog = Catalog()
    plan = make_plan(
        catalog, catalog.site("workstation"), catalog.stack("mpi-hello"), settings=["base.provider=debian"]
    )
    chosen = pins(wheels={})
    text = sealed_text(plan, assemble(plan, catalog, chosen), chosen, collection_files(plan, catalog))
    (tmp_path / "hello.lock").write_text(text)
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", "-q", "-o", str(tmp_path / "kit"))
    assert done.returncode == 0, done.stderr
    return tmp_path


def asked(hpcgen: Command, kept: Path, *words: str) -> dict[str, Any]:
    done = hpcgen("affected", "--in", str(kept), *words, "--json")
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if answer["affected"] else 0)
    return answer


def test_a_fact_concerns_what_rests_on_it(hpcgen: Command, kept: Path) -> None:
    answer = asked(hpcgen, kept, "--fact", "supermuc:mpi.version")
    assert [(each["site"], each["why"]) for each in answer["affected"]] == [("supermuc", ["it rests on mpi.version"])]
    assert answer["others"] == 1
    assert not asked(hpcgen, kept, "--fact", "supermuc:partitions.fat.memory.total_gb")["affected"]


def test_nothing_is_affected_where_nothing_has_changed(hpcgen: Command, kept: Path) -> None:
    assert asked(hpcgen, kept) == {"affected": [], "others": 2, "unknown": []}


def test_a_new_release_that_would_be_taken(hpcgen: Command, kept: Path) -> None:
    """A row of a collection's own: it is newer than what the lock has, and no block of the other plan."""
    table = kept / "ours" / "building_blocks" / "mpich.yaml"
    table.parent.mkdir(parents=True)
    row = f"{{url: 'https://example.org/mpich-9.1.tar.gz', sha256: '{'a' * 64}'}}"
    table.write_text(f'block: mpich\nreleases:\n  "9.1": {{archives: {{source: {row}}}}}\n')
    done = hpcgen("--collection", str(kept / "ours"), "affected", "--in", str(kept), "--release", "mpich")
    assert done.returncode == 1
    assert f"lock {kept}/hello.lock (mpi-hello for workstation)\n  mpich 4.3.2 → 9.1: " in done.stdout
    assert "kit" not in done.stdout and "1 affected, 1 not" in done.stderr


def test_advisories_of_a_folder_name_packages_and_what_is_not_known(hpcgen: Command, kept: Path) -> None:
    folder = kept / "advisories"
    folder.mkdir()
    said = [
        osv("zlib1g", "Debian:12", {"introduced": "0"}, {"fixed": "1:1.2.13.dfsg-2"}),
        osv("left-pad", "npm", {"introduced": "0"}),
    ]
    for each in said:
        (folder / f"{each['id']}.json").write_text(json.dumps(each))
    answer = asked(hpcgen, kept, "--advisory", str(folder))
    (lock,) = answer["affected"]
    assert lock["why"] == ["zlib1g 1:1.2.13.dfsg-1: TEST-zlib1g: a hole; mended in 1:1.2.13.dfsg-2"]
    assert answer["unknown"] == [
        "TEST-left-pad: locks pin no packages of npm",
        f"kit {kept}/kit: its OS packages are not pinned, so no advisory was checked against them",
    ]


def test_what_is_no_advisory_is_told_with_its_file(hpcgen: Command, kept: Path) -> None:
    (kept / "bad.json").write_text("{")
    done = hpcgen("affected", "--in", str(kept), "--advisory", str(kept / "bad.json"))
    assert done.returncode == 3 and "bad.json is no advisory in OSV's format" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fact", "supermucc:mpi.version"), "did you mean supermuc"),
        (("--fact", "mpi.version"), "names no fact"),
        (("--release", "mpch"), "no block is called 'mpch'"),
    ],
)
def test_names_that_do_not_exist(hpcgen: Command, kept: Path, words: tuple[str, ...], said: str) -> None:
    done = hpcgen("affected", "--in", str(kept), *words)
    assert done.returncode == 4 and said in done.stderr
