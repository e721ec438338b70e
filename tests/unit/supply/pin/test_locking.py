"""What of an older lock stays, and what is asked again; the answers of registries and package indexes are made up."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from hpcgen.backends.hardware.mirrors import with_mirrors
from hpcgen.blocks.steps import image
from hpcgen.catalog.catalog import Catalog
from hpcgen.cli import cli
from hpcgen.core.errors import FetchError, PolicyError
from hpcgen.core.model.lock import ImagePin, Lock, PackagePin, StagePackages
from hpcgen.core.model.network import ImageMirror, Mirrors
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import StackBlock
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import read_lock
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin import base_images as images
from hpcgen.supply.pin import os_packages, wheels
from hpcgen.supply.pin.locking import make_lock
from hpcgen.supply.pin.uv_resolver import Resolved

CATALOG = Catalog()
ALL = ("images", "packages", "wheels")
BASE = image(CATALOG.releases("debian")["12"].images["default"])
DATED = BASE.pulled
PIN = PackagePin(version="1.0-1", architecture="amd64", sha256="b" * 64, size=10, url="https://deb.example.org/p.deb")


class Network:
    """Answers everything, and notes what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.sources: list[str] = []
        self.digest = ""
        self.held: list[str] = []
        self.brought: tuple[str, str] | None = None
        monkeypatch.setattr(images, "pin_image", self.image)
        monkeypatch.setattr(images, "fetch_image", lambda *words: None)
        monkeypatch.setattr("hpcgen.supply.pin.base_system.check_base", lambda *words: None)
        monkeypatch.setattr(os_packages, "resolve_packages", self.packages)
        monkeypatch.setattr(wheels, "lock_packages", self.wheels)

    def image(self, name: str, sources: Sequence[str], architecture: str, digest: str) -> ImagePin:
        self.asked.append("images")
        self.sources, self.digest = list(sources), digest
        return ImagePin(digest=digest or "sha256:" + "a" * 64, origin=sources[0])

    def packages(self, layout: object, asked: Sequence[tuple[object, Sequence[str]]], *more: object) -> object:
        self.asked.append("packages")
        found = [StagePackages(present={}, added=dict.fromkeys(names, PIN)) for _, names in asked]
        return [os_packages.PackageAnswer(each, [], 1763000000) for each in found]

    def wheels(
        self,
        requirements: Sequence[str],
        python: str,
        *more: str,
        constraints: Sequence[str],
        provided: Mapping[str, object],
        sources: str,
    ) -> list[Resolved]:
        self.asked.append(f"wheels {python}")
        self.held += constraints
        pins = [each.lower().split("==") for each in requirements if "==" in each]
        there = {each.partition("==")[0] for each in (*constraints, *provided)}
        pins += [list(self.brought)] if self.brought is not None and self.brought[0] not in there else []
        return [Resolved(name, version, f"{name}.whl", "c" * 64) for name, version in pins]

    def again(self, plan: Plan, old: Lock) -> list[str]:
        """What is asked for a new lock that keeps all that it can."""
        self.asked = []
        make_lock(plan, CATALOG, old=old, keep=ALL)
        return sorted(set(self.asked))


def plan(*settings: str, mirrors: Sequence[str] = (), latest_base: bool = False) -> Plan:
    site = with_mirrors(CATALOG.site("workstation"), mirrors)
    stack = CATALOG.stack("tf-horovod")
    more = {"python_packages": StackBlock(options={"packages": ["Foo.Bar==1.0"]})}
    with_packages = msgspec.structs.replace(stack, blocks={**stack.blocks, **more})
    asked = settings or ["base.provider=debian"]
    return make_plan(CATALOG, site, with_packages, settings=asked, latest_base=latest_base)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


def test_nothing_is_asked_again_while_the_same_is_wanted(network: Network) -> None:
    old = make_lock(plan(), CATALOG)
    assert "packages" in network.asked and old.pins.wheels
    assert network.again(plan(), old) == []


def test_a_lock_says_which_packages_are_the_projects_own(network: Network) -> None:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("mpi-hello")
    own = {"os_packages": StackBlock(options={"packages": ["libnuma-dev", "curl"]})}
    stack = msgspec.structs.replace(stack, blocks={**stack.blocks, **own})
    lock = make_lock(make_plan(CATALOG, site, stack, settings=["base.provider=debian"]), CATALOG)
    builder = lock.pins.packages["builder"]
    # curl is there before, as other blocks fetch their sources with it.
    assert "curl" in builder.added and builder.late == ["libnuma-dev"]
    steps = [
        step.commands
        for label, step in assemble(lock.plan, CATALOG, lock.pins).builder.steps
        if label == "distribution"
    ]
    early, late = (next(each for each in commands if " install " in each) for commands in steps)
    assert "libnuma-dev=" not in early and "curl=" in early and "libnuma-dev=" in late and "curl=" not in late


def test_a_framework_of_which_only_the_index_knows_that_it_is_required_comes_by_its_block(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network.brought = ("torch", "2.15.0")
    blocks = "{debian: {}, python_packages: {options: {requirements: [new-layers==1.0]}}}"
    (tmp_path / "mine.yaml").write_text(f"name: s\ntitle: t\nblocks: {blocks}\nrun: {{command: [python3, app.py]}}\n")
    done = CliRunner().invoke(cli, ["lock", "--site", "workstation", "--stack", "mine.yaml"])
    assert done.exit_code == 0, done
    assert "one of your packages requires torch 2.15.0" in done.output
    lock = read_lock(tmp_path / "hpcgen.lock")
    assert lock.plan.block("pytorch") is not None and lock.plan.command.endswith("--add pytorch")
    assert not any("not solved yet" in each.message for each in lock.plan.findings)
    assert not any(line.startswith("torch==") for line in lock.pins.wheels["python_packages"])


def test_another_python_takes_other_files_of_the_same_versions(network: Network) -> None:
    old = make_lock(plan("base.provider=ubuntu", "base.version=22.04"), CATALOG)
    assert any(each.startswith("wheels 3.10") for each in network.asked)
    python = next(block.version for block in plan().blocks if block.name == "python")
    assert f"wheels {python}" in network.again(plan(), old)


def test_a_list_that_clashes_with_those_of_the_collections_is_asked_again(network: Network) -> None:
    old = make_lock(plan(), CATALOG)
    lines = {name: [*held, f"absl-py==0.1 --hash=sha256:{'d' * 64}"] for name, held in old.pins.wheels.items()}
    other = msgspec.structs.replace(old, pins=msgspec.structs.replace(old.pins, wheels=lines))
    assert any(each.startswith("wheels") for each in network.again(plan(), other))


def test_what_bazels_rules_install_for_themselves_holds_back_nothing_of_the_image(network: Network) -> None:
    source = ["tensorflow.version=2.14.1", "tensorflow.install=source", "base.provider=ubuntu", "base.version=22.04"]
    make_lock(plan(*source), CATALOG)
    # The rules of that TensorFlow have setuptools 67, its own needs another.
    versions = {line.split(" ")[0] for line in network.held if line.startswith("setuptools==")}
    assert len(versions) == 1 and "setuptools==67.6.1" not in versions


def test_a_mirror_that_is_new_is_asked_and_a_reference_given_by_hand_stays(network: Network) -> None:
    old = make_lock(plan(), CATALOG)
    mirrored = plan(mirrors=["images=registry.example.org/proxy"])
    make_lock(mirrored, CATALOG, old=old)
    assert network.sources == [f"docker://registry.example.org/proxy/library/{DATED}"]
    by_hand = make_lock(plan(), CATALOG, images={"debian:12": "oci-archive:base.tar"})
    make_lock(mirrored, CATALOG, old=by_hand)
    assert network.sources == ["oci-archive:base.tar"]


def test_a_lock_has_the_name_of_an_image_file_and_not_its_folder(network: Network) -> None:
    given = {"debian:12": "oci-archive:/home/somebody/base.tar"}
    made = make_lock(plan(), CATALOG, images=given)
    assert made.pins.images["debian:12"].origin == "oci-archive:base.tar"
    assert "/home/somebody" not in made.text
    store = make_lock(plan(), CATALOG, images={"debian:12": "containers-storage:[vfs@/home/somebody/s+/run]debian:12"})
    assert store.pins.images["debian:12"].origin == "containers-storage:debian:12"
    network.asked = []
    assert make_lock(plan(), CATALOG, images=given, old=made, keep=ALL).text == made.text
    assert network.asked == ["images"]


def test_a_lock_of_blocks_that_are_gone_can_be_updated(network: Network) -> None:
    old = make_lock(plan(), CATALOG)
    blocks = [msgspec.structs.replace(b, version="0.0.1") if b.name == "mpich" else b for b in old.plan.blocks]
    gone = msgspec.structs.replace(old, plan=msgspec.structs.replace(old.plan, blocks=blocks))
    assert network.again(plan(), gone) == ["packages"]


def test_the_digest_of_the_release_table_is_pinned_and_the_tags_own_with_latest_base(network: Network) -> None:
    lock = make_lock(plan(), CATALOG)
    assert (network.sources, network.digest) == ([f"docker://docker.io/library/{DATED}"], BASE.platforms["amd64"])
    assert DATED != "debian:12" and lock.pins.images["debian:12"].dated == BASE.dated
    assert f"FROM docker.io/library/{DATED}@{network.digest} AS builder" in make_kit(lock.plan, CATALOG, lock).recipe
    latest = make_lock(plan(latest_base=True), CATALOG)
    assert (network.sources, network.digest) == (["docker://docker.io/library/debian:12"], "")
    assert latest.pins.images["debian:12"].dated is None
    assert f"FROM docker.io/library/debian:12@sha256:{'a' * 64} AS" in make_kit(latest.plan, CATALOG, latest).recipe


def test_a_dated_image_of_an_older_table_is_not_one_given_by_hand(network: Network) -> None:
    lock = make_lock(plan(), CATALOG)
    pin = ImagePin(
        digest="sha256:" + "b" * 64, origin="docker://docker.io/library/debian:x-20250101", dated="x-20250101"
    )
    old = msgspec.structs.replace(lock, pins=msgspec.structs.replace(lock.pins, images={"debian:12": pin}))
    make_lock(plan(), CATALOG, old=old)
    assert (network.sources, network.digest) == ([f"docker://docker.io/library/{DATED}"], BASE.platforms["amd64"])


def test_what_is_given_by_hand_or_by_a_mirror_that_names_the_image_has_a_digest_of_its_own(network: Network) -> None:
    make_lock(plan(), CATALOG, images={"debian:12": "oci-archive:base.tar"})
    assert (network.sources, network.digest) == (["oci-archive:base.tar"], "")
    asked = plan()
    mirrors = Mirrors(images={"debian:12": ImageMirror(docker="localhost/debian:12")})
    site = msgspec.structs.replace(asked.site, network=msgspec.structs.replace(asked.site.network, mirrors=mirrors))
    lock = make_lock(msgspec.structs.replace(asked, site=site), CATALOG)
    assert (network.sources, network.digest) == (["containers-storage:localhost/debian:12"], "")
    assert lock.pins.images["debian:12"].dated is None


def test_what_was_chosen_is_held_against_the_node_before_anything_is_fetched(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = plan().stack
    blocks = {**asked.blocks, "python_packages": StackBlock(options={"packages": ["some-tables==1.0"]})}
    site = CATALOG.site("workstation")
    cpu = msgspec.structs.replace(site.partitions["main"].cpu, target="x86_64")
    old = msgspec.structs.replace(site.partitions["main"], cpu=cpu)
    site = msgspec.structs.replace(site, partitions={"main": old})
    stack = msgspec.structs.replace(asked, blocks=blocks)
    polars = Resolved("polars", "1.30.0", "polars.whl", "c" * 64)
    monkeypatch.setattr(wheels, "lock_packages", lambda *words, **more: [polars])
    made = make_plan(CATALOG, site, stack, settings=["base.provider=debian"])
    with pytest.raises(PolicyError, match=r"polars 1.30.0 \(chosen by the lock\) needs avx"):
        make_lock(made, CATALOG)
    said: list[str] = []
    allowed = msgspec.structs.replace(made, command=f"{made.command} --allow-unsupported")
    assert make_lock(allowed, CATALOG, say=said.append).pins.wheels["python_packages"]
    assert any(line.startswith("warning: polars 1.30.0") for line in said)


def test_apt_of_another_architecture_is_not_asked_where_nothing_starts_it(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before a base is fetched."""
    asked, here = plan(), os.uname().machine
    other = "aarch64" if here == "x86_64" else "x86_64"
    monkeypatch.setattr("hpcgen.backends.hardware.emulation.emulator_of", lambda architecture: "")
    system = msgspec.structs.replace(asked.site.system, architecture=other)
    site = msgspec.structs.replace(asked.site, system=system)
    with pytest.raises(
        FetchError, match=f"this machine is {here}, and the package manager must run in an image for {other}"
    ):
        make_lock(msgspec.structs.replace(asked, site=site), CATALOG)
    assert "packages" not in network.asked
