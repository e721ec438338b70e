"""The ``mksquashfs`` that engines find while a finished image is added to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines.building import Target, Work
from hpcgen.builders.taken_over import TakenOver
from hpcgen.builders.watching import Watcher
from hpcgen.core.model.plan import ExtendedImage, Plan
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.model.site import SquashfsCompressor
from hpcgen.kit.kit import read_plan
from tests.conftest import GOLDEN
from tests.unit.images.test_repacking import check, packed

REAL = '#!/bin/sh\nif [ "$1" = -version ]; then echo mksquashfs version 4.5.1; else echo whole >"$2"; fi\n'


class Notes(Watcher):
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    for number in range(20):
        (made / str(number)).write_bytes(os.urandom(3000))
    return made


@pytest.fixture(autouse=True)
def mksquashfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "mksquashfs"
    program.parent.mkdir()
    program.write_text(REAL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def work_for(tmp_path: Path, image: str, kind: ImageKindName = "squashfs") -> Work:
    text = (GOLDEN / "workstation" / "mpi-hello" / "plan.json").read_bytes()
    plan = read_plan(msgspec.json.decode(text), "plan.json")
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    base = ExtendedImage(image=image, file=image, content="0" * 64, blocks=[], copied=[])
    changed = msgspec.structs.replace(plan, extends=base)
    target = Target(kind, "new.sqfs", ".new.sqfs")
    return Work(changed, tmp_path, tmp_path / "recipe", tmp_path, "1", scratch, target, [])


def written(taken: TakenOver, *words: str) -> None:
    subprocess.run(["mksquashfs", *words], env=taken.environment({}), check=True, capture_output=True)


def told(taken: TakenOver) -> list[str]:
    notes = Notes()
    taken.tell(notes)
    return notes.said


def test_an_engine_writes_only_what_is_new(folder: Path, tmp_path: Path) -> None:
    packed(folder, tmp_path / "old.sqfs")
    (folder / "more").write_bytes(os.urandom(5000))
    taken = TakenOver(work_for(tmp_path, "old.sqfs"))
    taken.prepare()
    written(taken, str(folder), str(tmp_path / "new.sqfs"), "-noappend", "-all-root")
    check(tmp_path / "new.sqfs", folder)
    assert told(taken) == ["0.1 MB of the finished image were taken over, 0.0 MB are new"]


def test_the_real_one_writes_the_whole_and_it_is_said_why(folder: Path, tmp_path: Path) -> None:
    packed(folder, tmp_path / "old.sqfs")
    taken = TakenOver(work_for(tmp_path, "old.sqfs"))
    taken.prepare()
    written(taken, str(folder), str(tmp_path / "new.sqfs"), "-noappend", "-comp", "zstd")
    assert (tmp_path / "new.sqfs").read_text() == "whole\n"
    assert told(taken) == ["the file was written whole: it is to be compressed by zstd"]


def test_an_engine_that_uses_another_is_said(folder: Path, tmp_path: Path) -> None:
    packed(folder, tmp_path / "old.sqfs")
    taken = TakenOver(work_for(tmp_path, "old.sqfs"))
    taken.prepare()
    assert told(taken) == ["new.sqfs was written whole: the engine uses a mksquashfs of its own"]


CONVERTER = """#!/bin/sh
# As ch-convert of Charliecloud 0.31 and 0.45 begins.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/charliecloud/base.sh"
PATH=$here:$PATH
exec mksquashfs "$@"
"""


def test_a_converter_that_looks_beside_itself_first_finds_it_too(folder: Path, tmp_path: Path) -> None:
    converter = tmp_path / "bin" / "ch-convert"
    converter.write_text(CONVERTER)
    converter.chmod(0o755)
    (tmp_path / "lib" / "charliecloud").mkdir(parents=True)
    (tmp_path / "lib" / "charliecloud" / "base.sh").touch()
    packed(folder, tmp_path / "old.sqfs")
    taken = TakenOver(work_for(tmp_path, "old.sqfs"), "ch-convert")
    taken.prepare()
    words = ["ch-convert", str(folder), str(tmp_path / "new.sqfs"), "-noappend"]
    subprocess.run(words, env=taken.environment({}), check=True, capture_output=True)
    check(tmp_path / "new.sqfs", folder)
    assert "were taken over" in told(taken)[0]


@pytest.mark.parametrize("kind", ["directory", "ch-image", "tar"])
def test_nothing_else_is_touched(kind: ImageKindName, folder: Path, tmp_path: Path) -> None:
    packed(folder, tmp_path / "old.sqfs")
    taken = TakenOver(work_for(tmp_path, "old.sqfs", kind))
    taken.prepare()
    assert taken.environment({})["PATH"] == os.environ["PATH"] and told(taken) == []


def level_asked(tmp_path: Path, plan: Plan, refused: str) -> str:
    """The words before those of ch-convert, by a mksquashfs that does not know one compressor."""
    text = (
        '#!/bin/sh\n[ "$1" != -version ] || exec echo version 4.5.1\n'
        f'for word; do [ "$word" != {refused} ] || exit 1; done\necho "$@" >"$2"\n'
    )
    for name in ("mksquashfs", "ch-convert"):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    work = msgspec.structs.replace(work_for(tmp_path, "unused"), plan=plan)
    taken = TakenOver(work, "ch-convert")
    taken.prepare()
    new = tmp_path / "new.sqfs"
    written(taken, "folder", str(new), "-noappend")
    assert told(taken) == []
    return new.read_text().partition(str(new))[2].partition("-noappend")[0].strip()


@pytest.mark.parametrize(
    ("site", "refused", "words"),
    [
        (None, "none", "-comp gzip -Xcompression-level 6"),
        ("gzip", "none", "-comp gzip -Xcompression-level 6"),
        ("zstd", "none", "-comp zstd -Xcompression-level 3"),
        ("zstd", "zstd", ""),
    ],
)
def test_a_new_file_is_compressed_as_the_site_reads_it(
    site: SquashfsCompressor | None, refused: str, words: str, tmp_path: Path
) -> None:
    plan = read_plan(msgspec.json.decode((GOLDEN / "supermuc/mpi-hello/plan.json").read_bytes()), "plan.json")
    engines = {
        name: msgspec.structs.replace(each, squashfs=site) for name, each in plan.site.containers.engines.items()
    }
    containers = msgspec.structs.replace(plan.site.containers, engines=engines)
    changed = msgspec.structs.replace(plan, site=msgspec.structs.replace(plan.site, containers=containers))
    assert level_asked(tmp_path, changed, refused) == words
