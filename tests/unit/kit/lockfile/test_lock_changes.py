"""What `hpcgen lock --check` says: every difference, each with its reason, causes before effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.lock import ImagePin, Lock, PackagePin, StagePackages
from hpcgen.kit.lockfile.changes import Change, changes, changes_text
from tests.helpers.locks import BUILDER, CATALOG, FINAL, PRESENT, lock, pins

replace = msgspec.structs.replace
PIP = ("base.provider=debian", "tensorflow.install=pip")


@pytest.fixture(scope="module")
def supermuc() -> Lock:
    return lock(site="supermuc", settings=PIP)


@pytest.fixture(scope="module")
def hello() -> Lock:
    return lock("mpi-hello")


def with_pins(old: Lock, **other: Any) -> Lock:
    """The same lock with other pins."""
    return lock(
        old.plan.stack.name,
        old.plan.site.name,
        settings=PIP if old.plan.stack.name == "tf-horovod" else ("base.provider=debian",),
        pinned=replace(old.pins, **other),
    )


def found(old: Lock, new: Lock) -> dict[tuple[str, str], Change]:
    return {(change.what, change.name): change for change in changes(old, new)}


def test_the_same_lock_has_no_changes(supermuc: Lock) -> None:
    assert changes(supermuc, lock(site="supermuc", settings=PIP)) == []


def test_a_profile_that_changed_is_the_cause(supermuc: Lock) -> None:
    site = CATALOG.site("supermuc")
    assert site.mpi is not None
    renewed = replace(site, mpi=replace(site.mpi, version="2021.4.0"))
    new = lock(site="supermuc", settings=PIP, profile=renewed)
    listed = changes(supermuc, new)
    assert listed[0] == Change(
        what="site", name="mpi.version", old="2019.6.154", new="2021.4.0", why="the profile supermuc changed"
    )
    named = found(supermuc, new)
    assert named["block", "intel_mpi"].why.startswith("because the host's Intel MPI 2021.4.0")
    assert named["archive", "intel_mpi"].new == ""
    assert named["wheel", "impi-rt (intel_mpi)"].new == "2021.4.0"
    assert named["result", "plan hash"].why == "the image will differ"
    back = found(new, supermuc)
    assert back["block", "intel_mpi"].old == "2021.4.0"


def test_a_setting_moves_a_block_and_what_it_takes(supermuc: Lock) -> None:
    older = lock(site="supermuc", settings=(*PIP, "tensorflow.version=<2.15"))
    named = found(older, supermuc)
    assert named["command", "--set tensorflow.version"].old == "<2.15"
    assert named["block", "tensorflow"].why == "no longer so: --set tensorflow asks for tensorflow <2.15"
    assert named["wheel", "tensorflow-cpu (tensorflow)"].why == "the list of tensorflow 2.15.1"
    down = found(supermuc, older)
    assert down["block", "tensorflow"].why == "--set tensorflow asks for tensorflow <2.15"


def test_rewording_reasons_changes_no_difference(supermuc: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    from hpcgen.core.model import reasons

    older = lock(site="supermuc", settings=(*PIP, "tensorflow.version=<2.15"))
    before = found(supermuc, older)
    for words in (reasons._THERE, reasons._BOUND, reasons._NOT_NEWER, reasons._JOB_RULES):
        for rule in words:
            monkeypatch.setitem(words, rule, f"({rule} {{who}})" if words is not reasons._JOB_RULES else f"({rule})")
    after = found(supermuc, older)
    assert list(after) == list(before)
    assert after["block", "tensorflow"].why == "(asked --set tensorflow)"
    assert {name for name in before if before[name].why} == {name for name in after if after[name].why}


def test_a_plan_of_0_1_0_tells_no_cause_of_its_own(supermuc: Lock) -> None:
    """Its reasons are sentences: none of today's counts as new because of that."""
    blocks = [replace(block, reasons=[str(each) for each in block.reasons]) for block in supermuc.plan.blocks]
    old = replace(supermuc, plan=replace(supermuc.plan, number=1, blocks=blocks))
    older = lock(site="supermuc", settings=(*PIP, "tensorflow.version=<2.15"))
    assert changes(old, supermuc) == []
    assert found(old, older)["block", "tensorflow"].why.startswith("not 2.15.0: refused by --set tensorflow")


def test_blocks_that_come_and_go_say_who_wanted_them() -> None:
    pip = lock(site="supermuc", settings=PIP)
    source = lock(site="supermuc", settings=(PIP[0], "tensorflow.install=source"))
    come = found(pip, source)
    assert come["block", "bazel"].why == "tensorflow 2.15.1 asks for bazel ==6.1.0"
    assert come["option", "tensorflow.install"].why == "--set tensorflow.install=source"
    assert come["archive", "tensorflow"].new.endswith(
        "f36416d831f06fe866e149c7cd752da410a11178b01ff5620e9f265511ed57cf"
    )
    gone = found(source, pip)
    assert gone["block", "bazel"] == Change(
        what="block", name="bazel", old="6.1.0", new="", why="nothing requires it any more"
    )
    assert gone["option", "tensorflow.install"].why == "--set tensorflow.install=pip"


def test_another_provider_takes_the_place(hello: Lock) -> None:
    named = found(hello, lock("mpi-hello", settings=("base.provider=debian", "mpi.provider=intel_mpi")))
    assert named["block", "mpich"].why == "intel_mpi is the mpi now"


def test_a_newer_row_in_a_collection(hello: Lock, collection: Path) -> None:
    table = collection / "building_blocks" / "mpich.yaml"
    row = "archives: {source: {url: 'https://a.example.org/mpich-9.1.tar.gz', sha256: '%s'}}" % ("a" * 64)
    table.write_text(f'block: mpich\nreleases:\n  "9.1": {{{row}}}\n')
    new = lock("mpi-hello", catalog=Catalog([collection]))
    named = found(hello, new)
    assert (named["block", "mpich"].old, named["block", "mpich"].new) == ("4.3.2", "9.1")
    assert named["block", "mpich"].why.startswith("no longer so: not 5.0.1: not a default")
    assert named["archive", "mpich"].why == "mpich 4.3.2 → mpich 9.1"


def test_a_table_that_changed_a_hash_is_named(hello: Lock, collection: Path) -> None:
    """The same version with another hash is what nobody expects, so it must not hide."""
    address = CATALOG.releases("mpich")["4.3.2"].archives["source"].url
    row = f"archives: {{source: {{url: '{address}', sha256: '{'b' * 64}'}}}}"
    (collection / "building_blocks" / "mpich.yaml").write_text(f'block: mpich\nreleases:\n  "4.3.2": {{{row}}}\n')
    named = found(hello, lock("mpi-hello", catalog=Catalog([collection])))
    assert named["archive", "mpich"].why == "the release table has a different hash for the same address"


def test_packages_are_told_per_stage_with_who_has_them_now(supermuc: Lock) -> None:
    new = with_pins(
        supermuc,
        packages=pins(
            builder={**BUILDER, "git": "1:2.39.5-0+deb12u3", "g++-12": "12.2.0-13", "gdb": "13.1-3"},
            final={"python3": FINAL["python3"]},
            present={**PRESENT, "libc6": "2.36-9+deb12u14"},
        ).packages,
    )
    named = {name: (c.old, c.new, c.why) for (what, name), c in found(supermuc, new).items() if what == "package"}
    newer, older = ("the distribution's archive has " + word for word in ("a newer version", "only an older version"))
    assert named == {
        "git (builder)": ("1:2.39.5-0+deb12u2", "1:2.39.5-0+deb12u3", newer),
        "g++-12 (builder)": ("12.2.0-14+deb12u1", "12.2.0-13", older),
        "gdb (builder)": ("", "13.1-3", "another package needs it"),
        "libc6 (builder, final)": ("2.36-9+deb12u13", "2.36-9+deb12u14", "it comes with the base image"),
        "libstdc++6 (final)": ("12.2.0-14+deb12u1", "", "nothing needs it any more"),
    }


def test_rpm_packages_are_compared_by_rpms_rules(hello: Lock) -> None:
    """By Debian's, 1.0^git1 would be newer than 1.0.1."""
    pin = PackagePin(
        version="1.0^git1-1.el9", architecture="noarch", sha256="a" * 64, size=1, url="https://mirror.example.org/a.rpm"
    )
    old, new = (
        with_pins(hello, packages={"final": StagePackages(present={}, added={"hello": each})})
        for each in (pin, replace(pin, version="1.0.1-1.el9"))
    )
    assert found(old, new)["package", "hello (final)"].why == "the distribution's archive has a newer version"


def test_a_package_file_that_changed_under_its_version_is_named(hello: Lock) -> None:
    final = hello.pins.packages["final"]
    other = {**final.added, "python3": replace(final.added["python3"], sha256="c" * 64)}
    new = with_pins(hello, packages={**hello.pins.packages, "final": replace(final, added=other)})
    change = found(hello, new)["package", f"python3 {FINAL['python3']}"]
    assert change.why == "a different file under the same version" and change.new == "sha256:" + "c" * 64


def test_a_mirror_that_moved_is_one_line(hello: Lock) -> None:
    moved = {
        stage: replace(
            packages,
            added={
                n: replace(p, url=p.url.replace("deb.example.org", "mirror.example.org"))
                for n, p in packages.added.items()
            },
        )
        for stage, packages in hello.pins.packages.items()
    }
    listed = changes(hello, with_pins(hello, packages=moved))
    assert [(c.old, c.new) for c in listed] == [("http://deb.example.org", "http://mirror.example.org")]


def test_images_keys_and_indexes(hello: Lock) -> None:
    image = ImagePin(digest="sha256:" + "d" * 64, origin="docker://debian:12")
    key = replace(hello.pins.keys[0], fingerprint="A" * 40, date="Sat, 01 Nov 2025 09:00:00 UTC")
    named = found(hello, with_pins(hello, images={"debian:12": image}, keys=[key], epoch=1770000000))
    assert named["image", "debian:12"].why == "a different image has this name now"
    assert named["image", "ubuntu:22.04"].why == "no stage starts from it any more"
    assert named["index", key.index].new == key.date
    given = ImagePin(digest=image.digest, origin="oci-archive:debian.tar")
    elsewhere = found(hello, with_pins(hello, images={**hello.pins.images, "debian:12": given}))
    assert elsewhere["image", "debian:12"].why == "it is taken from oci-archive:debian.tar"
    signers = {(change.old, change.new, change.why) for change in changes(hello, with_pins(hello, keys=[key]))}
    assert (hello.pins.keys[0].fingerprint, "", "no longer signs it") in signers
    assert ("", key.fingerprint, "signs it now") in signers
    assert named["result", "SOURCE_DATE_EPOCH"].new == "2026-02-02 02:40:00 UTC"


def test_a_list_from_the_index_and_one_of_a_collection(tmp_path: Path) -> None:
    recipe = tmp_path / "own.yaml"
    recipe.write_text(
        "name: own\ntitle: two packages\nblocks:\n"
        "  python_packages: {options: {packages: [h5py==3.11.0]}}\nrun: {command: [python3], mpi: false}\n"
    )
    old = lock(str(recipe))
    lines = [
        old.pins.wheels["python_packages"][0].replace("1" * 64, "4" * 64),
        f"numpy==2.0.0 --hash=sha256:{'5' * 64}",
    ]
    new = lock(str(recipe), pinned=pins(wheels={"python_packages": lines}))
    named = found(old, new)
    assert named["wheel", "numpy (python_packages)"].why == "the package index has a different version that fits"
    assert named["wheel", "h5py (python_packages)"].why == "the package index has different files for this version"


def test_a_source_package_in_the_place_of_a_wheel_is_told_as_such(tmp_path: Path) -> None:
    recipe = tmp_path / "own.yaml"
    recipe.write_text(
        "name: own\ntitle: a package\nblocks:\n"
        "  python_packages: {options: {packages: [h5py==3.11.0]}}\nrun: {command: [python3], mpi: false}\n"
    )
    line = f"h5py==3.11.0 --hash=sha256:{'4' * 64}"
    wheel = lock(str(recipe), pinned=pins(wheels={"python_packages": [line]}))
    lists = {"python_packages": [], "python_packages-source-1": [line]}
    lists |= {"python_packages-tools-1": [f"numpy==2.0.0 --hash=sha256:{'5' * 64}"]}
    source = lock(str(recipe), pinned=pins(wheels=lists))
    named = found(wheel, source)
    there = named["wheel", "h5py (python_packages)"]
    assert (there.new, there.why) == ("3.11.0 as source", "no wheel fits, so its source package is built")
    assert ("wheel", "numpy, for builds (python_packages)") in named
    assert found(source, wheel)["wheel", "h5py (python_packages)"].why == "a wheel fits now"


def test_the_job_says_where_its_numbers_are_from(supermuc: Lock) -> None:
    named = found(supermuc, lock(site="supermuc", settings=PIP, job=JobRequest(nodes=20)))
    assert (named["job", "nodes"].old, named["job", "nodes"].new) == ("1", "20")
    assert named["job", "queue"].why == "the first that takes 20 nodes for 01:00:00 (17 to 768 nodes, up to 48:00:00)"
    assert ("result", "plan hash") not in named


def test_another_site_is_one_line_not_all_its_facts(supermuc: Lock) -> None:
    listed = changes(supermuc, lock(settings=PIP))
    assert [c.name for c in listed if c.what == "site"] == ["name"]


def test_a_difference_without_a_line_of_its_own_is_still_told(hello: Lock) -> None:
    noted = replace(hello.plan, findings=[])
    other = replace(hello, plan=noted, text=hello.text + "\n")
    assert [c.name for c in changes(hello, other)] == ["text"]


def test_text_is_grouped_and_aligned_and_json_has_whole_values(supermuc: Lock) -> None:
    new = with_pins(supermuc, images={"debian:12": ImagePin(digest="sha256:" + "d" * 64, origin="docker://debian:12")})
    listed = changes(supermuc, new)
    text = changes_text(listed)
    assert "base images (2)\n  debian:12     sha256:000000000000 → sha256:dddddddddddd  a different image has" in text
    assert "outcome (1)\n  plan hash  " in text
    read = msgspec.json.decode(msgspec.json.encode(listed), type=list[Change])
    assert read == listed and any(change.new == "sha256:" + "d" * 64 for change in read)


def test_a_reason_of_a_whole_group_stands_in_its_title(supermuc: Lock) -> None:
    renewed = {name: f"{version}+b9" for name, version in PRESENT.items()}
    text = changes_text(changes(supermuc, with_pins(supermuc, packages=pins(present=renewed).packages)))
    assert "OS packages (4): it comes with the base image\n  base-files (builder, final)  12.4+deb12u12 → " in text


def test_pins_alone_decide(hello: Lock) -> None:
    """No pin can change without a line."""
    for other in (
        {"images": {}},
        {"packages": {}},
        {"keys": []},
        {"epoch": 1},
        {"packages": pins(final={}).packages},
    ):
        assert changes(hello, with_pins(hello, **other)), other
