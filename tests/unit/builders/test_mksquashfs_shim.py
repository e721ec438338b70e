"""The ``mksquashfs`` that converters find, which compresses as the site reads it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines.building import Target, Work
from hpcgen.builders.mksquashfs_shim import MksquashfsShim
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.model.site import SquashfsCompressor
from hpcgen.kit.kit import read_plan
from tests.conftest import GOLDEN

# Says how it was called, and does not know one compressor.
MKSQUASHFS = """#!/bin/sh
[ "$1" != -version ] || exec echo mksquashfs version 4.5.1
for word; do [ "$word" != "${REFUSED:-none}" ] || exit 1; done
echo "$@" >"$2"
"""
# As ch-convert of Charliecloud 0.31 and 0.45 begins.
CONVERTER = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/charliecloud/base.sh"
PATH=$here:$PATH
exec mksquashfs "$@"
"""


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for name, text in {"mksquashfs": MKSQUASHFS, "ch-convert": CONVERTER}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "lib" / "charliecloud").mkdir(parents=True)
    (tmp_path / "lib" / "charliecloud" / "base.sh").touch()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


def work_for(tmp_path: Path, site: SquashfsCompressor | None, kind: ImageKindName = "squashfs") -> Work:
    text = (GOLDEN / "supermuc" / "mpi-hello" / "plan.json").read_bytes()
    plan = read_plan(msgspec.json.decode(text), "plan.json")
    engines = {
        name: msgspec.structs.replace(each, squashfs=site) for name, each in plan.site.containers.engines.items()
    }
    containers = msgspec.structs.replace(plan.site.containers, engines=engines)
    changed = msgspec.structs.replace(plan, site=msgspec.structs.replace(plan.site, containers=containers))
    (tmp_path / "scratch").mkdir()
    target = Target(kind, "new.sqfs", ".new.sqfs")
    return Work(changed, tmp_path, tmp_path / "recipe", tmp_path, "1", tmp_path / "scratch", target, [])


def prepared(work: Work, converter: str = "ch-convert") -> MksquashfsShim:
    shim = MksquashfsShim(work, converter)
    shim.prepare()
    return shim


@pytest.mark.parametrize(
    ("site", "refused", "words"),
    [
        (None, "none", "-comp gzip -Xcompression-level 6 -noappend"),
        ("gzip", "none", "-comp gzip -Xcompression-level 6 -noappend"),
        ("zstd", "none", "-comp zstd -Xcompression-level 3 -noappend"),
        ("zstd", "zstd", "-noappend"),
    ],
)
def test_a_new_file_is_compressed_as_the_site_reads_it(
    site: SquashfsCompressor | None, refused: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFUSED", refused)
    shim = prepared(work_for(tmp_path, site))
    new = tmp_path / "new.sqfs"
    # The converter looks beside itself first.
    subprocess.run(["ch-convert", "folder", str(new), "-noappend"], env=shim.environment({}), check=True)
    assert new.read_text() == f"folder {new} {words}\n"


@pytest.mark.parametrize("kind", ["directory", "ch-image", "tar", "sif"])
def test_what_writes_no_squashfs_is_left_alone(kind: ImageKindName, tmp_path: Path) -> None:
    assert prepared(work_for(tmp_path, "zstd", kind)).environment({}) == os.environ


def test_an_engine_without_a_converter_is_left_alone(tmp_path: Path) -> None:
    assert prepared(work_for(tmp_path, "zstd"), "").environment({}) == os.environ
