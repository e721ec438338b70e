"""What a recipe does with the RPM packages of a lock."""

from __future__ import annotations

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.lock import ImagePin, KeyPin, PackagePin, Pins, StagePackages
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble

CATALOG = Catalog()
URL = "https://mirror.example.org/hello-2.0^git5-1.el9.x86_64.rpm"
HELLO = PackagePin(version="1:2.0^git5-1.el9", architecture="x86_64", sha256="d" * 64, size=10, url=URL)
KEY = KeyPin(
    fingerprint="A" * 40,
    keyring="file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9",
    index="https://mirror.example.org/ baseos",
    date="2026-11-14T09:15:00Z",
)


def planned(provider: str = "rockylinux") -> Plan:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("mpi-hello")
    return make_plan(CATALOG, site, stack, settings=[f"base.provider={provider}"])


def pins(rpm: str = "4.18.0-1") -> Pins:
    held = StagePackages(present={"rpm": rpm}, added={"hello": HELLO})
    names = ("rockylinux/rockylinux:9", "opensuse/leap:16.0")
    images = {name: ImagePin(digest="sha256:" + "a" * 64, origin=f"docker://{name}") for name in names}
    return Pins(images=images, packages={"builder": held, "final": held}, keys=[KEY], epoch=1794647700)


def steps(plan: Plan) -> tuple[str, str]:
    """The list of the final stage, and the commands that go with it."""
    found = next(step for label, step in assemble(plan, CATALOG, pins()).final.steps if label == "distribution")
    return found.files[0].text, "\n".join(found.commands)


def test_exactly_the_pinned_files_are_fetched_checked_and_then_installed() -> None:
    listed, commands = steps(planned())
    assert listed == f"{'d' * 64}  hello-2.0^git5-1.el9.x86_64.rpm\n"
    order = [
        "--downloadonly",
        "'hello-1:2.0^git5-1.el9.x86_64'",
        "sha256sum -c",
        "--import /etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9",
        "--checksig",
        "rpm -U",
    ]
    places = [commands.index(word) for word in order]
    assert places == sorted(places)


def test_zypper_fetches_them_and_rpm_checks_them_by_the_keys_of_its_own_database() -> None:
    listed, commands = steps(planned("opensuse_leap"))
    assert listed == f"{'d' * 64}  hello-2.0^git5-1.el9.x86_64.rpm\n"
    order = ["download", "'hello.x86_64=1:2.0^git5-1.el9'", "sha256sum -c", "rpmkeys --checksig", "rpm -U"]
    places = [commands.index(word) for word in order]
    assert places == sorted(places)
    assert "--import" not in commands
    assert "--no-gpg-checks" not in commands
    assert "/var/lib/zypp/AnonymousUniqueId" in commands[places[-1] :]


@pytest.mark.parametrize("provider", ["rockylinux", "opensuse_leap"])
def test_a_bundle_has_the_files_and_no_package_manager_is_asked(provider: str) -> None:
    listed, commands = steps(msgspec.structs.replace(planned(provider), supply="bundle"))
    assert "dnf" not in commands
    assert "download" not in commands
    assert listed.startswith(f"{'d' * 64}  /opt/hpcgen/bundle/")
    assert commands.index("sha256sum -c") < commands.index("--checksig") < commands.index("rpm -U")


@pytest.mark.parametrize(
    ("rpm", "differs"),
    [("4.14.3-31.el8", True), ("4.16.1.3-29.el9", True), ("4.18.0-1", False), ("4.19.1.1-9.el10", False), ("", False)],
)
def test_an_rpm_that_writes_the_time_is_named(rpm: str, differs: bool) -> None:
    notices = assemble(planned(), CATALOG, pins(rpm)).notices
    assert any(f"rpm {rpm} of the base writes the time" in line for line in notices) == differs


@pytest.mark.parametrize("provider", ["rockylinux", "opensuse_leap"])
def test_a_base_that_no_digest_pins_is_said_with_what_pins_it(provider: str) -> None:
    (note,) = assemble(planned(provider), CATALOG).base_notes
    assert "hpcgen lock pins it" in note
