"""Locks: written, read back, noticed when they were edited, and rendered to the same bytes everywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.lock import ImagePin, Lock, PackagePin, Pins, StagePackages
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import for_build, parse_lock, read_lock
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from hpcgen.supply.pin.locking import lock_of
from hpcgen.supply.pin.wanted import check_lock

CATALOG = Catalog()
COMMAND = [sys.executable, "-m", "hpcgen"]
FORMATS = {"docker": "workstation", "singularity": "hlrs-testbed", "charliecloud": "supermuc"}


def lock(site: str = "workstation", stack: str = "mpi-hello") -> Lock:
    """A lock as the network could have given it."""
    plan = make_plan(CATALOG, CATALOG.site(site), CATALOG.stack(stack))
    asked = assemble(plan, CATALOG)
    pin = PackagePin(version="1:2.3-4", architecture="amd64", sha256="b" * 64, size=10, url="https://example.org/p.deb")
    pins = Pins(
        images={asked.builder.image.name: ImagePin(digest="sha256:" + "a" * 64, origin="docker://example.org/base")},
        packages={
            "builder": StagePackages(present={"libc6": "2.36"}, added=dict.fromkeys(asked.packages["builder"], pin)),
            "final": StagePackages(present={"libc6": "2.36"}, added=dict.fromkeys(asked.packages["final"], pin)),
        },
        wheels={name: [f"{name}==1 --hash=sha256:{'c' * 64}"] for name in asked.loose},
        epoch=1763000000,
    )
    return lock_of(plan, CATALOG, pins)


def test_what_is_pinned_stands_in_the_recipe() -> None:
    found = lock()
    text = format_for(found.plan.format).recipe(found.plan, assemble(found.plan, CATALOG, found.pins)).text
    assert f"FROM docker.io/library/ubuntu:24.04@sha256:{'a' * 64}" in text
    assert "curl=1:2.3-4" in text
    assert "ARG SOURCE_DATE_EPOCH=1763000000" in text


def test_a_lock_reads_back_as_it_was_written(tmp_path: Path) -> None:
    found = lock("supermuc", "tf-horovod")
    place = tmp_path / "hpcgen.lock"
    place.write_text(found.text, "utf-8")
    assert read_lock(place) == found
    lines = found.text.splitlines()
    assert sum(line.strip().startswith("curl: {") for line in lines) == 1, "a package is one line of a diff"


@pytest.mark.parametrize(
    ("old", "new"),
    [("1:2.3-4", "1:2.3-5"), ("partition: main", "partition: gpu"), ("\nseal: sha256:", "\nseal: sha256:0")],
)
def test_an_edited_lock_is_noticed(old: str, new: str) -> None:
    text = lock().text.replace(old, new, 1)
    with pytest.raises(InputError, match="is not as hpcgen lock wrote it"):
        parse_lock(text, "hpcgen.lock")


def test_a_lock_that_was_cut_off_is_no_lock() -> None:
    text = lock().text
    with pytest.raises(InputError, match="it has no seal"):
        parse_lock(text[: len(text) // 2], "hpcgen.lock")


def test_the_lock_of_a_kit_pins_nothing() -> None:
    plan = make_plan(CATALOG, CATALOG.site("workstation"), CATALOG.stack("mpi-hello"))
    text = make_kit(plan, CATALOG).files["hpcgen.lock"].text
    with pytest.raises(InputError, match="pins nothing") as raised:
        parse_lock(text, "kit/hpcgen.lock")
    assert "remedy: hpcgen lock -o hpcgen.lock --site workstation --stack mpi-hello" in str(raised.value)


def test_other_collections_are_named(tmp_path: Path) -> None:
    found = lock()
    blocks = tmp_path / "building_blocks"
    blocks.mkdir()
    source = (CATALOG.find("block", "mpich")).read_text("utf-8")
    (blocks / "mpich.py").write_text(source.replace("--disable-static", "--enable-static"), "utf-8")
    with pytest.raises(InputError) as raised:
        check_lock(found, Catalog([tmp_path]))
    assert "mpich.py" in str(raised.value)
    check_lock(found, CATALOG)


@pytest.mark.parametrize("format", FORMATS)
def test_every_input_of_a_bundled_recipe_comes_from_the_bundle(format: str) -> None:
    found = lock(FORMATS[format], "tf-horovod" if format == "singularity" else "mpi-hello")
    plan = for_build(found, bundled=True)
    kit = make_kit(plan, CATALOG, found)
    steps = [line for line in kit.recipe.splitlines() if not line.lstrip().startswith("#")]
    fetching = [line for line in steps if "curl -" in line or "https://" in line or "http://" in line]
    # build.sh names where the licences that it accepts can be read.
    assert [line for line in fetching if "License Agreement" not in line] == []
    pip = [line for line in steps if " -m pip install" in line]
    assert all("--no-index" in line for line in pip)
    assert kit.files["files/site/apt-sources.list"].text == "deb [trusted=yes] file:/opt/hpcgen/bundle ./\n"
    assert "# syntax=" not in kit.recipe, "BuildKit would ask a registry for it"
    assert kit.files["hpcgen.lock"].text == found.text


def test_network_and_bundle_make_the_same_image_by_its_plan_hash() -> None:
    found = lock()
    bundled = for_build(found, bundled=True)
    network = for_build(found, bundled=False)
    kits = [make_kit(plan, CATALOG, found) for plan in (bundled, network)]
    assert kits[0].recipe != kits[1].recipe
    labels = [[line for line in kit.recipe.splitlines() if "io.hpcgen.content" in line] for kit in kits]
    assert labels[0] == labels[1] and found.content in labels[0][0]


@pytest.mark.parametrize("words", [["--locked", "hpcgen.lock"], ["--bundle", "."]])
def test_render_gives_the_same_bytes_in_another_place_and_environment(tmp_path: Path, words: list[str]) -> None:
    text = lock("hlrs-testbed", "tf-horovod").text
    seen = []
    for number, zone in enumerate(("UTC", "Asia/Tokyo")):
        folder = tmp_path / f"machine{number}"
        folder.mkdir()
        (folder / "hpcgen.lock").write_text(text, "utf-8")
        env = {**os.environ, "TZ": zone, "PYTHONHASHSEED": str(number), "HOME": str(folder)}
        done = subprocess.run(
            [*COMMAND, "render", *words, "-o", "kit"], cwd=folder, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        kit = folder / "kit"
        seen.append({str(path.relative_to(kit)): path.read_bytes() for path in kit.rglob("*") if path.is_file()})
    assert seen[0] == seen[1]
    assert seen[0]["hpcgen.lock"].decode() == text


@pytest.mark.parametrize("words", [["--site", "workstation"], ["--set", "mpich.fortran=true"], ["--nodes", "3"]])
def test_a_lock_leaves_nothing_to_be_chosen(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "hpcgen.lock").write_text(lock().text, "utf-8")
    done = subprocess.run(
        [*COMMAND, "render", "--locked", "hpcgen.lock", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "a lock contains the whole plan" in done.stderr
    assert done.stdout == ""


def test_a_lock_of_another_release_says_which(tmp_path: Path) -> None:
    found = lock()
    text = found.text.replace("pinned_epoch: 1763000000", "pinned_epoch: -1")
    for release, told in (("0.1.9", "is not understood"), ("9.9.9", "was written by hpcgen 9.9.9")):
        other = text.replace(f"hpcgen: {found.hpcgen}\n", f"hpcgen: {release}\n", 1)
        with pytest.raises(InputError, match=told) as raised:
            parse_lock(sealed(other), "hpcgen.lock")
        remedy = raised.value.problems[0].remedy or ""
        assert remedy.startswith("use a newer hpcgen here: >= 9.9.9" if release == "9.9.9" else "use hpcgen 0.1.9, or")


def sealed(text: str) -> str:
    """A text with a seal that fits."""
    body = text.rpartition("seal: sha256:")[0] or text
    return f"{body}seal: sha256:{hashlib.sha256(body.encode()).hexdigest()}\n"


LAUGHS = "".join(f"m{n}: &m{n} {{<<: [{', '.join(f'*m{n - 1}' for _ in range(9))}]}}\n" for n in range(1, 30))


@pytest.mark.parametrize(
    "epoch",
    [
        "2026-13-45",
        "9" * 5000,
        "&a [1]\nmore: *a",
        f"1\nm0: &m0 {{a: 1}}\n{LAUGHS}",
        "[" * 200_000,
        "- " * 200_000,
        ":".join(["1"] * 50_000),
        "{a: 1}: 2",
        "!!python/x 1",
    ],
)
def test_no_yaml_of_a_stranger_ends_in_a_traceback(epoch: str) -> None:
    text = lock().text.replace("pinned_epoch: 1763000000", f"pinned_epoch: {epoch}")
    with pytest.raises(InputError, match="is not understood"):
        parse_lock(sealed(text), "hpcgen.lock")


def test_an_origin_that_skopeo_would_take_for_an_option_is_refused() -> None:
    text = lock().text.replace("docker://example.org/base", "--policy=/tmp/mine:x")
    with pytest.raises(InputError, match=r"images.*origin"):
        parse_lock(sealed(text), "hpcgen.lock")


def test_a_lock_is_read_byte_for_byte_and_no_further_than_a_lock_goes(tmp_path: Path) -> None:
    (tmp_path / "hpcgen.lock").write_bytes(lock().text.replace("\n", "\r\n").encode())
    with pytest.raises(InputError):
        read_lock(tmp_path / "hpcgen.lock")
    (tmp_path / "large.lock").touch()
    os.truncate(tmp_path / "large.lock", 1 << 40)
    with pytest.raises(InputError, match="larger than any lock"):
        read_lock(tmp_path / "large.lock")


@pytest.mark.parametrize("sign", ["\x1b[2J", "\n", "\x9b2J", "\u2028"])
def test_no_text_of_a_lock_moves_the_terminal_or_leaves_its_comment(sign: str) -> None:
    data = msgspec.to_builtins(lock().plan)
    data["findings"] = [{"name": "x", "severity": "note", "message": f"look: {sign}"}]
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(data, Plan)
    plan = msgspec.structs.replace(lock().plan, command=f"hpcgen render{sign}touch /tmp/x")
    with pytest.raises(InputError):
        make_kit(plan, CATALOG)


def test_a_plan_of_other_collections_is_no_bug() -> None:
    found = lock()
    text = found.text.replace("version: 2.6.0", "version: 77.1.0").replace("fortran: false", "fortran: often")
    with pytest.raises(
        InputError, match=r"does not match the collections here: .*libfabric has no version 77\.1\.0"
    ) as raised:
        check_lock(parse_lock(sealed(text), "hpcgen.lock"), CATALOG)
    assert "gnu takes other options" in str(raised.value) and "--collection" in str(raised.value)


def test_kept_versions_hold_while_one_block_moves() -> None:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("mpi-hello")
    newest = make_plan(CATALOG, site, stack)
    versions = {block.name: block.version for block in newest.blocks}
    assert versions["mpich"] != "4.2.3"
    held = make_plan(CATALOG, site, stack, kept={"mpich": "4.2.3", "libfabric": "1.22.0"})
    assert {b.name: b.version for b in held.blocks} == versions | {"mpich": "4.2.3", "libfabric": "1.22.0"}
    moved = make_plan(CATALOG, site, stack, kept={"libfabric": "1.22.0"})
    assert {b.name: b.version for b in moved.blocks} == versions | {"libfabric": "1.22.0"}
    libfabric = held.block("libfabric")
    assert libfabric is not None and str(libfabric.reasons[-1]).endswith("the lock has this one")


def test_pins_are_data_that_reaches_no_shell() -> None:
    found = lock()
    bad = msgspec.to_builtins(found.pins)
    bad["packages"]["final"]["added"]["libstdc++6"]["version"] = "1; touch /tmp/x"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, Pins)


def test_fakeroot_is_there_before_ch_image_would_fetch_it() -> None:
    found = lock(FORMATS["charliecloud"], "mpi-hello")
    recipe = make_kit(for_build(found, bundled=True), CATALOG, found).recipe
    for stage in recipe.split("\nFROM ")[1:]:
        assert 0 < stage.index(" fakeroot") < stage.index("# distribution: packages")
