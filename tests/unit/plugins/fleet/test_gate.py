"""Advisories keep images back: how grave they are, what the fleet excepts, and what nobody knows."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.record import BuiltImage
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.advisories import Advisory
from hpcgen.plugins.fleet.gate import UnjudgedError, judge, read_gate
from hpcgen.plugins.fleet.severity import severity_of
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.locking import collection_files
from tests.conftest import Command
from tests.helpers.locks import pins
from tests.unit.plugins.fleet.test_affected import osv

V3 = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:{}/I:N/A:N"
REFUSED, UNKNOWN = 6, 13

SEVERITIES: list[tuple[dict[str, Any], str | None]] = [
    # The vectors' base scores are 7.5, 5.3, 0.0, 9.3 and 7.5.
    ({"severity": [{"type": "CVSS_V3", "score": V3.format("H")}]}, "high"),
    ({"severity": [{"type": "CVSS_V3", "score": V3.format("L")}]}, "medium"),
    ({"severity": [{"type": "CVSS_V3", "score": V3.format("N")}]}, "none"),
    (
        {"severity": [{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"}]},
        "critical",
    ),
    ({"severity": [{"type": "CVSS_V2", "score": "AV:N/AC:L/Au:N/C:P/I:P/A:P"}]}, "high"),
    ({"severity": [{"type": "CVSS_V3", "score": V3.format(each)} for each in "LH"]}, "high"),
    ({"affected": [{"severity": [{"type": "CVSS_V3", "score": V3.format("L")}]}]}, "medium"),
    # What the database says in words is its own judgement.
    (
        {"database_specific": {"severity": "MODERATE"}, "severity": [{"type": "CVSS_V3", "score": V3.format("H")}]},
        "medium",
    ),
    ({"severity": [{"type": "Ubuntu", "score": "negligible"}]}, "low"),
    ({"affected": [{"ecosystem_specific": {"urgency": "high"}}]}, "high"),
    # Nobody says it.
    ({}, None),
    ({"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"}]}, None),
    ({"severity": [{"type": "SCALE_9", "score": "9"}], "database_specific": {"severity": ["HIGH"]}}, None),
    ({"affected": [{"ecosystem_specific": {"urgency": "not yet assigned"}}]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "severity"), SEVERITIES)
def test_how_grave_an_advisory_is(fields: dict[str, Any], severity: str | None) -> None:
    assert severity_of(msgspec.convert({"id": "TEST-1", **fields}, Advisory)) == severity


def grave(severity: str | None, **more: Any) -> dict[str, Any]:
    """An advisory on the release of NumPy that the fleet has."""
    rated = {"database_specific": {"severity": severity}} if severity is not None else {}
    return {**osv("numpy", "PyPI", {"introduced": "0"}, {"fixed": "99"}), "aliases": ["CVE-2026-1"], **rated, **more}


@pytest.fixture
def fleet(tmp_path: Path, hpcgen: Command) -> Path:
    """A fleet of one image whose NumPy is named with its version."""
    stack = {
        "name": "counts",
        "title": "t",
        "blocks": {"python": {}, "python_packages": {"options": {"packages": ["numpy==1.26.4"]}}},
    }
    (tmp_path / "counts.yaml").write_text(yaml.safe_dump({**stack, "run": {"mpi": False}}))
    (tmp_path / "osv").mkdir()
    return tmp_path


def judged(hpcgen: Command, fleet: Path, advisory: dict[str, Any], *words: str, **more: Any) -> tuple[int, str]:
    (fleet / "osv/one.json").write_text(json.dumps(advisory))
    members = [{"stack": "./counts.yaml", "site": "workstation", "name": "counts"}]
    (fleet / "fleet.yaml").write_text(yaml.safe_dump({"members": members, **more}))
    done = hpcgen("fleet", "--advisories", "osv", *words)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("severity", "level", "code"),
    [("HIGH", "high", REFUSED), ("HIGH", "low", REFUSED), ("HIGH", "critical", 0), ("LOW", "medium", 0),
     ("CRITICAL", "high", REFUSED), (None, "critical", UNKNOWN)],
)  # fmt: skip
def test_the_severity_decides(hpcgen: Command, fleet: Path, severity: str | None, level: str, code: int) -> None:
    status, said = judged(hpcgen, fleet, grave(severity), "--fail-on", level)
    assert status == code, said
    if code == REFUSED:
        assert "counts has numpy 1.26.4: TEST-numpy (CVE-2026-1): a hole (severity " in said
        assert f"nothing of severity {level} or above" in said and "upgrade it to 99 or newer" in said
    assert ("its severity is unknown" in said) == (code == UNKNOWN)


def test_another_release_and_a_withdrawn_advisory_keep_nothing_back(hpcgen: Command, fleet: Path) -> None:
    other = osv("numpy", "PyPI", {"introduced": "2"}, {"fixed": "2.1"})
    assert judged(hpcgen, fleet, {**other, "database_specific": {"severity": "CRITICAL"}})[0] == 0
    assert judged(hpcgen, fleet, grave("CRITICAL", withdrawn="2026-11-02T00:00:00Z"))[0] == 0


def test_exceptions_have_a_reason_and_may_end(hpcgen: Command, fleet: Path) -> None:
    def excepted(**more: str) -> tuple[int, str]:
        exception = {"id": "CVE-2026-1", "reason": "no file of strangers is read", **more}
        return judged(hpcgen, fleet, grave("HIGH"), advisory_exceptions=[exception])

    status, said = excepted()
    assert status == 0 and "accepted: no file of strangers is read" in said
    assert excepted(until="2999-01-01")[0] == 0
    status, said = excepted(until="2020-01-01")
    assert status == REFUSED and "its exception ended on 2020-01-01" in said
    assert excepted(id="CVE-2026-2")[0] == REFUSED
    assert excepted(reason="")[0] == 3
    # An unknown severity can be judged by people too.
    exception = {"id": "TEST-numpy", "reason": "read, harmless"}
    assert judged(hpcgen, fleet, grave(None), advisory_exceptions=[exception])[0] == 0


def test_what_no_lock_pins_is_not_known(hpcgen: Command, fleet: Path) -> None:
    deb = {**osv("openssl", "Debian:12", {"introduced": "0"}), "database_specific": {"severity": "HIGH"}}
    status, said = judged(
        hpcgen, fleet, {**deb, "affected": [{**deb["affected"][0], "package": {"ecosystem": "npm", "name": "x"}}]}
    )
    assert status == UNKNOWN and "locks pin no packages of npm" in said


def test_a_build_is_refused_before_it_begins(hpcgen: Command, fleet: Path) -> None:
    """Alone or in a fleet; nothing here builds."""
    judged(hpcgen, fleet, grave("HIGH"))
    gate = ("--advisories", "osv", "--fail-on", "high", "--no-record")
    done = hpcgen("build", "--all", *gate)
    assert done.returncode == REFUSED and "severity high" in done.stderr and "0 built, 1 failed" in done.stderr
    done = hpcgen("build", "--stack", "./counts.yaml", "--site", "workstation", *gate)
    assert done.returncode == REFUSED and "severity high" in done.stderr, done.stderr
    done = hpcgen("build", "--stack", "./counts.yaml", "--site", "workstation", "--fail-on", "high")
    assert done.returncode == 2 and "--fail-on requires --advisories" in done.stderr
    (fleet / "Dockerfile").write_text("FROM debian:12\n")
    done = hpcgen("build", "--dockerfile", "Dockerfile", "--site", "workstation", *gate)
    assert done.returncode == 2 and "--advisories checks planned images" in done.stderr


def test_a_lock_says_more_than_its_plan(hpcgen: Command, fleet: Path) -> None:
    catalog = Catalog()
    plan = make_plan(
        catalog, catalog.site("workstation"), catalog.stack("mpi-hello"), settings=["base.provider=debian"]
    )
    chosen = pins(wheels={})
    text = sealed_text(plan, assemble(plan, catalog, chosen), chosen, collection_files(plan, catalog))
    (fleet / "hello.lock").write_text(text)
    name, pin = next((name, pin) for name, pin in _pinned(text))
    advisory = osv(name, "Debian:12", {"introduced": "0"})
    (fleet / "osv/one.json").write_text(json.dumps({**advisory, "database_specific": {"severity": "HIGH"}}))
    done = hpcgen("build", "--locked", "hello.lock", "--advisories", "osv", "--no-record")
    assert done.returncode == REFUSED and f"{name} {pin}: TEST-{name}" in done.stderr, done.stderr


def _pinned(text: str) -> list[tuple[str, str]]:
    added = yaml.safe_load(text)["pinned_packages"]["final"]["added"]
    return [(name, each["version"]) for name, each in added.items()]


def test_an_image_is_judged_by_what_it_has(fleet: Path) -> None:
    """A package that no plan names, as one that another package brings; before the build nobody knows of it."""
    with tarfile.open(fleet / "built.tar", "w") as archive:
        archive.add(__file__, "opt/venv/lib/python3.11/site-packages/numpy-1.26.4.dist-info/METADATA")
    catalog, image = Catalog(), BuiltImage(kind="tar", name=str(fleet / "built.tar"))
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("mpi-hello"))

    def judged_image(advisory: dict[str, Any], built: BuiltImage | None) -> None:
        (fleet / "osv/one.json").write_text(json.dumps(advisory))
        judge(read_gate(fleet / "osv", "high"), "hello", plan, catalog, print, image=built)

    judged_image(grave("HIGH"), None)
    with pytest.raises(PolicyError, match=r"hello has numpy 1\.26\.4"):
        judged_image(grave("HIGH"), image)
    with pytest.raises(UnjudgedError, match="its severity is unknown"):
        judged_image(grave(None), image)
    judged_image(grave("LOW"), image)
    judged_image({**osv("numpy", "PyPI", {"introduced": "2"}), **{"database_specific": {"severity": "HIGH"}}}, image)
    # An image that cannot be read is not one without packages.
    with pytest.raises(UnjudgedError, match="not known"):
        judged_image(grave("HIGH"), BuiltImage(kind="tar", name=str(fleet / "gone.tar")))


def test_advisories_on_source_packages_are_judged_by_the_image_s_own_records(fleet: Path) -> None:
    """Debian's name the source; what is built from it may have another name, and another version."""
    status = "Package: libssl3\nStatus: install ok installed\nSource: openssl (3.0.11-1)\nVersion: 1:9-2\n"
    (fleet / "status").write_text(status)
    with tarfile.open(fleet / "built.tar", "w") as archive:
        archive.add(fleet / "status", "var/lib/dpkg/status")
    catalog, image = Catalog(), BuiltImage(kind="tar", name=str(fleet / "built.tar"))
    debian = ["base.provider=debian", "debian.version=12"]
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("mpi-hello"), settings=debian)

    def judged_image(name: str, fixed: str) -> None:
        advisory = osv(name, "Debian:12", {"introduced": "0"}, {"fixed": fixed})
        (fleet / "osv/one.json").write_text(json.dumps({**advisory, "database_specific": {"severity": "HIGH"}}))
        judge(read_gate(fleet / "osv", "high"), "hello", plan, catalog, print, image=image)

    with pytest.raises(PolicyError, match=r"(?s)hello has libssl3 .*upgrade it to 3\.0\.13-1 or newer"):
        judged_image("openssl", "3.0.13-1")
    judged_image("openssl", "3.0.10-1")
    judged_image("curl", "99")


def test_a_locked_image_is_judged_by_its_records_which_name_the_sources(fleet: Path) -> None:
    """The lock lists zlib1g of the base image, and not that it is built from zlib."""
    catalog = Catalog()
    plan = make_plan(
        catalog, catalog.site("workstation"), catalog.stack("mpi-hello"), settings=["base.provider=debian"]
    )
    chosen = pins(wheels={})
    text = sealed_text(plan, assemble(plan, catalog, chosen), chosen, collection_files(plan, catalog))
    lock = parse_lock(text, "the lock")
    status = "Package: zlib1g\nStatus: install ok installed\nSource: zlib\nVersion: 1:1.2.13.dfsg-1\n"
    (fleet / "status").write_text(status)
    with tarfile.open(fleet / "built.tar", "w") as archive:
        archive.add(fleet / "status", "var/lib/dpkg/status")
    image = BuiltImage(kind="tar", name=str(fleet / "built.tar"))

    def judged_image(name: str, fixed: str, built: BuiltImage | None = image) -> None:
        advisory = osv(name, "Debian:12", {"introduced": "0"}, {"fixed": fixed})
        (fleet / "osv/one.json").write_text(json.dumps({**advisory, "database_specific": {"severity": "HIGH"}}))
        judge(read_gate(fleet / "osv", "high"), "hello", plan, catalog, print, image=built, lock=lock, final=True)

    with pytest.raises(UnjudgedError, match="without their source packages: zlib"):
        judged_image("zlib", "1:1.2.13.dfsg-1", None)
    judged_image("zlib", "1:1.2.13.dfsg-1")
    with pytest.raises(PolicyError, match=r"(?s)hello has zlib1g .*upgrade it to 1:1\.3 or newer"):
        judged_image("zlib", "1:1.3")
