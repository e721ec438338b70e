"""What is to be built again: by a fact, by what would be planned now, by advisories in OSV's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.component import Component, Kind
from hpcgen.kit.lockfile.lock import sealed_text
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.advisories import Advisory, judged
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.locking import collection_files
from tests.conftest import Command
from tests.helpers.locks import pins


def osv(name: str, ecosystem: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    affected = [{"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, **more}]
    return {"id": f"TEST-{name}", "summary": "a hole", "modified": "2026-11-01T00:00:00Z", "affected": affected}


AFFECTED, NOT, UNKNOWN = 1, 0, 13


def component(purl: str, version: str, url: str = "", kind: Kind | None = None) -> Component:
    name = purl.rpartition("/")[2].partition("@")[0]
    return Component("ref", kind or ("python" if "pypi" in purl else "package"), name, version, purl=purl, url=url)


DEB = "pkg:deb/debian/libssl3@3.0.15-1~deb12u1?arch=amd64&distro=debian-12"
POOL = "https://deb.example.org/debian/pool/main/o/openssl/libssl3_3.0.15-1~deb12u1_amd64.deb"


RANGES: list[tuple[dict[str, Any], str | None]] = [
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.27"}), "affected 1.27"),
    (osv("NumPy", "PyPI", {"introduced": "1.20"}, {"last_affected": "1.26.4"}), "affected"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"last_affected": "1.26.3"}), "not affected"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.26"}), "not affected"),
    (osv("numpy", "PyPI", {"introduced": "1.27"}), "not affected"),
    # In whatever order the events stand.
    (
        osv("numpy", "PyPI", {"fixed": "1.26.5"}, {"introduced": "1.26"}, {"fixed": "1.2"}, {"introduced": "0"}),
        "affected 1.26.5",
    ),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"limit": "1.26.4"}), "not affected"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"limit": "1.26.5"}, {"limit": "1.0"}), "affected"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "2"}, {"limit": "*"}), "affected 2"),
    (osv("numpy", "PyPI", versions=["1.26.4"]), "affected"),
    (osv("numpy", "PyPI", versions=["1.26.4.0", "no version"]), "affected"),
    (osv("numpy", "PyPI", versions=["1.26.3"]), "not affected"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.2"}, versions=["1.26.4"]), "affected"),
    # What nobody can say is not "not affected".
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "not a version"}), "unknown"),
    (osv("numpy", "PyPI", {"fixed": "1.27"}), "unknown"),
    (osv("numpy", "PyPI"), "unknown"),
    (osv("numpy", "PyPI", ranges=[{"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "a" * 40}]}]), "unknown"),
    (osv("numpy", "PyPI", ranges=[{"type": "NEW", "events": [{"introduced": "0"}, {"fixed": "1"}]}]), "unknown"),
    (osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "?"}, versions=["1.26.4"]), "affected"),
    (osv("numpy", "npm", {"introduced": "0"}), None),
    (osv("torch", "PyPI", {"introduced": "0"}, {"last_affected": "2.3.0"}), "affected"),
    (osv("scipy", "PyPI", {"introduced": "0"}, {"fixed": "1.14"}), "unknown"),
    (osv("scipy", "PyPI", {"introduced": "0"}, {"fixed": "1.13"}), "not affected"),
    (osv("horovod", "PyPI", {"introduced": "0"}), "unknown"),
    (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "3.0.16-1~deb12u1"}), "affected 3.0.16-1~deb12u1"),
    (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "3.0.9-1"}), "not affected"),
    (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "0"}), "not affected"),
    (osv("openssl", "Debian:13", {"introduced": "0"}), None),
    (osv("openssl", "Debian:12", {"introduced": "0"}, {"fixed": "bad version"}), "unknown"),
    (osv("openssl", "Ubuntu:24.04:LTS", {"introduced": "0"}), None),
    (osv("xz-utils", "Ubuntu:22.04:LTS", {"introduced": "0"}), None),
    (
        osv(
            "xz-utils",
            "Ubuntu:22.04:LTS",
            {"introduced": "0"},
            ecosystem_specific={"binaries": [{"binary_name": "liblzma5"}]},
        ),
        "affected",
    ),
    (
        osv(
            "xz-utils",
            "Ubuntu:Pro:22.04:LTS",
            {"introduced": "0"},
            ecosystem_specific={"binaries": [{"binary_name": "liblzma5"}]},
        ),
        "affected",
    ),
    (
        osv(
            "xz-utils",
            "Ubuntu:Pro:FIPS:22.04:LTS",
            {"introduced": "0"},
            ecosystem_specific={"binaries": [{"binary_name": "liblzma5"}]},
        ),
        None,
    ),
    # Rocky Linux names source packages, with their epochs.
    (osv("perl", "Rocky Linux:9", {"introduced": "0"}, {"fixed": "4:5.32.1-482.el9"}), "affected 4:5.32.1-482.el9"),
    (osv("perl", "Rocky Linux:9", {"introduced": "0"}, {"fixed": "4:5.32.1-481.el9"}), "not affected"),
    (osv("perl", "Rocky Linux:8", {"introduced": "0"}, {"fixed": "4:5.40-1.el8"}), None),
    (osv("perl", "Rocky Linux", {"introduced": "0"}), "affected"),
    (osv("perl", "AlmaLinux:9", {"introduced": "0"}), None),
    # What a module has is no later edition of what is outside of it.
    (osv("perl", "Rocky Linux:9", {"introduced": "0"}, {"fixed": "4:5.40-1.module+el9.8.0+9"}), "not affected"),
    (osv("nodejs", "Rocky Linux:9", {"introduced": "0"}, {"fixed": "1:20.1-1.module+el9.8.0+9"}), "unknown"),
    (osv("nodejs", "Rocky Linux:9", {"introduced": "0"}, {"fixed": "1:18.1-1.module+el9.8.0+9"}), "not affected"),
    (
        osv(
            "openssl-3",
            "openSUSE:Leap 15.6",
            {"introduced": "0"},
            {"fixed": "3.1.4-150600.5.42.1"},
            ecosystem_specific={"binaries": [{"libopenssl3": "3.1.4-150600.5.42.1", "openssl-3": "3.1.4-1"}]},
        ),
        "affected 3.1.4-150600.5.42.1",
    ),
    (osv("openssl-3", "openSUSE:Leap 15.6", {"introduced": "0"}, {"fixed": "3.1.4-150600.5.42.1"}), None),
    (osv("libopenssl3", "openSUSE:Leap 16.0", {"introduced": "0"}), None),
]


@pytest.mark.parametrize(("advisory", "found"), RANGES)
def test_an_advisory_is_held_against_versions_in_their_own_order(advisory: dict[str, Any], found: str | None) -> None:
    import msgspec

    held = [
        component("pkg:pypi/numpy@1.26.4", "1.26.4"),
        component("pkg:pypi/torch@2.3.0%2Bcpu", "2.3.0+cpu"),
        component("pkg:conda/scipy@1.13.1", "1.13.1", kind="conda"),
        Component("block:horovod", "software", "horovod", "0.28.1"),
        component(DEB, "3.0.15-1~deb12u1", POOL),
        component("pkg:deb/ubuntu/liblzma5@5.2.5-2?distro=ubuntu-22.04", "5.2.5-2"),
        Component(
            "ref",
            "package",
            "perl-Errno",
            "1.30-481.el9",
            purl="pkg:rpm/rocky/perl-Errno@1.30-481.el9?distro=rocky-9",
            source="perl",
            source_version="4:5.32.1-481.el9",
        ),
        component("pkg:rpm/rocky/nodejs@18.2-1.module%2Bel9?distro=rocky-9", "1:18.2-1.module+el9"),
        component("pkg:rpm/opensuse-leap/libopenssl3@3.1.4?distro=opensuse-leap-15.6", "3.1.4-150600.5.7.1"),
    ]
    said = [each for _, each in judged(msgspec.convert(advisory, Advisory), held)]
    assert [f"{each.verdict} {each.mended}".strip() for each in said] == ([] if found is None else [found])


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
    assert done.returncode == (AFFECTED if answer["affected"] else UNKNOWN if answer["unknown"] else NOT)
    return answer


def test_a_fact_concerns_what_rests_on_it(hpcgen: Command, kept: Path) -> None:
    answer = asked(hpcgen, kept, "--fact", "supermuc:mpi.version")
    assert [(each["site"], each["why"]) for each in answer["affected"]] == [("supermuc", ["it depends on mpi.version"])]
    assert answer["others"] == 1
    of_parent = asked(hpcgen, kept, "--fact", "lrz:mpi.version")
    assert [each["site"] for each in of_parent["affected"]] == ["supermuc"]


@pytest.mark.parametrize(
    "path",
    [
        "title",
        "links",
        "scheduler.account",
        "layouts",
        "partitions.thin.queues",
        "partitions.thin.cpu.cores",
        "partitions.fat.cpu.target",
        "containers.engines.apptainer.version",
    ],
)
def test_a_fact_that_changes_no_image_affects_none(hpcgen: Command, kept: Path, path: str) -> None:
    assert asked(hpcgen, kept, "--fact", f"supermuc:{path}") == {"affected": [], "others": 2, "unknown": []}


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
        osv("zlib", "Ubuntu:24.04:LTS", {"introduced": "0"}, {"fixed": "2"}),
    ]
    for each in said:
        (folder / f"{each['id']}.json").write_text(json.dumps(each))
    answer = asked(hpcgen, kept, "--advisory", str(folder))
    (lock,) = answer["affected"]
    assert lock["why"] == ["zlib1g 1:1.2.13.dfsg-1: TEST-zlib1g: a hole; fixed in 1:1.2.13.dfsg-2"]
    assert answer["unknown"] == [
        "TEST-left-pad: locks pin no packages of npm",
        f"kit {kept}/kit: its OS packages are not pinned: zlib of TEST-zlib",
    ]


def test_an_advisory_of_another_distribution_or_language_says_nothing_of_a_kit(hpcgen: Command, kept: Path) -> None:
    """False alarms: the kit is on Ubuntu 24.04, the lock on Debian 12, and one without Python packages none of PyPI."""
    for name, ecosystem in (("openssl", "Ubuntu:22.04:LTS"), ("numpy", "PyPI"), ("openssl", "Debian:11")):
        file = kept / "other.json"
        file.write_text(json.dumps(osv(name, ecosystem, {"introduced": "0"}, {"fixed": "99"})))
        assert asked(hpcgen, kept, "--advisory", str(file)) == {"affected": [], "others": 2, "unknown": []}


def test_a_source_package_of_the_base_image_is_not_known(hpcgen: Command, kept: Path) -> None:
    """The lock lists libc6 of the base image, and not that it is built from glibc."""
    (kept / "kit").rename(kept / ".kit")
    file = kept / "glibc.json"
    file.write_text(json.dumps(osv("glibc", "Debian:12", {"introduced": "0"}, {"fixed": "2.37"})))
    reason = "packages of the base image are listed without their source packages"
    assert asked(hpcgen, kept, "--advisory", str(file))["unknown"] == [
        f"lock {kept}/hello.lock: {reason}: glibc of TEST-glibc"
    ]


def test_of_an_image_without_pins_its_own_records_are_asked(hpcgen: Command, kept: Path) -> None:
    root = kept / "image"
    (root / "opt/hpcgen").mkdir(parents=True)
    (kept / "kit").rename(root / "opt/hpcgen/kit")
    (root / "opt/lib/numpy-1.26.4.dist-info").mkdir(parents=True)
    (root / "opt/lib/numpy-1.26.4.dist-info/METADATA").touch()
    (root / "var/lib/dpkg").mkdir(parents=True)
    status = "Package: zlib1g\nStatus: install ok installed\nVersion: 1:1.3\n"
    (root / "var/lib/dpkg/status").write_text(status)
    for number, advisory in enumerate(
        [
            osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "1.27"}),
            osv("zlib1g", "Ubuntu:24.04:LTS", {"introduced": "0"}, {"fixed": "1:1.4"}),
            osv("scipy", "PyPI", {"introduced": "0"}, {"fixed": "99"}),
        ]
    ):
        (kept / f"{number}.json").write_text(json.dumps(advisory))
    words = [word for number in range(3) for word in ("--advisory", str(kept / f"{number}.json"))]
    (answer,) = asked(hpcgen, kept, str(root), *words)["affected"]
    assert answer["what"] == f"image {root}"
    assert answer["why"] == [
        "numpy 1.26.4: TEST-numpy: a hole; fixed in 1.27",
        "zlib1g 1:1.3: TEST-zlib1g: a hole; fixed in 1:1.4",
    ]


def test_a_withdrawn_advisory_is_named_and_asks_nothing_else(hpcgen: Command, kept: Path) -> None:
    file = kept / "gone.json"
    file.write_text(json.dumps(osv("zlib1g", "Debian:12", {"introduced": "0"}) | {"withdrawn": "2026-01-02T00:00:00Z"}))
    done = hpcgen("affected", "--in", str(kept), "--advisory", str(file))
    assert done.returncode == NOT
    assert "withdrawn, so it affects nothing: TEST-zlib1g: a hole" in done.stderr


def test_what_an_advisory_says_steers_no_terminal(hpcgen: Command, kept: Path) -> None:
    said = "X\x1b[2J\nhpcgen: 0 affected\u202e"
    said_in = osv("zlib1g", "Debian:12", {"introduced": "0"}, {"fixed": f"9{said}"}, versions=["1:1.2.13.dfsg-1"])
    entries = [*said_in["affected"], *osv("x", f"npm{said}")["affected"]]
    data = said_in | {"id": said, "summary": said, "aliases": [said], "affected": entries}
    (kept / "x.json").write_text(json.dumps(data))
    (kept / "y.json").write_text(json.dumps(data | {"withdrawn": "2026-01-02T00:00:00Z"}))
    done = hpcgen("affected", "--in", str(kept), "--advisory", str(kept / "x.json"), "--advisory", str(kept / "y.json"))
    assert done.returncode == AFFECTED and "X?[2J?hpcgen: 0 affected?" in done.stdout
    assert all(line.isprintable() for line in (done.stdout + done.stderr).splitlines())
    assert sum(line.startswith("hpcgen: 0 affected") for line in done.stderr.splitlines()) == 0


def test_nothing_to_look_at_is_not_the_same_as_nothing_affected(hpcgen: Command, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = hpcgen("affected", "--in", str(tmp_path / "empty"))
    assert done.returncode == UNKNOWN and "there is no kit or lock below" in done.stderr
    done = hpcgen("affected", "--in", str(tmp_path / "nosuch"))
    assert done.returncode == 3 and "no such folder" in done.stderr
    (kept / "kit" / "plan.json").write_text("{")
    done = hpcgen("affected", "--in", str(kept))
    assert done.returncode == UNKNOWN and "not the plan of a kit" in done.stderr


def test_what_is_no_advisory_is_told_with_its_file(hpcgen: Command, kept: Path) -> None:
    (kept / "bad.json").write_text("{")
    done = hpcgen("affected", "--in", str(kept), "--advisory", str(kept / "bad.json"))
    assert done.returncode == 3 and "bad.json is not an advisory in OSV's format" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fact", "supermucc:mpi.version"), "did you mean supermuc"),
        (("--fact", "mpi.version"), "does not name a fact"),
        (("--fact", "supermuc:nosuch"), "the profile has no 'nosuch'"),
        (("--fact", "supermuc:mpi.verson"), "did you mean version?"),
        (("--fact", "supermuc:partitions.thn.cpu"), "did you mean thin?"),
        (("--fact", "supermuc:mpi.version.major"), "mpi.version has no 'major'"),
        (("--release", "mpch"), "no block is called 'mpch'"),
    ],
)
def test_names_that_do_not_exist(hpcgen: Command, kept: Path, words: tuple[str, ...], said: str) -> None:
    done = hpcgen("affected", "--in", str(kept), *words)
    assert done.returncode == 4 and said in done.stderr


def test_the_members_of_a_fleet_are_asked_as_they_are_planned(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "members:\n  - {stack: mpi-hello, site: supermuc}\n  - {stack: tf-horovod, site: workstation}\n"
        "  - {stack: mpi-hello, site: workstation, name: lost, partition: nowhere}\n"
    )
    done = hpcgen("affected", "--fleet", "fleet.yaml", "--fact", "supermuc:mpi.version", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, [each["what"] for each in answer["affected"]]) == (1, ["member mpi-hello-supermuc"])
    assert any("lost" in each and "nowhere" in each for each in answer["unknown"])
    (tmp_path / "osv").mkdir()
    (tmp_path / "osv/one.json").write_text(json.dumps(osv("tensorflow", "PyPI", {"introduced": "0"})))
    done = hpcgen("affected", "--fleet", "fleet.yaml", "--advisory", "osv")
    assert done.returncode == UNKNOWN and "member tf-horovod-workstation" in done.stderr
