"""How much of an image's file is written: as a program says, or as its file grows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hpcgen.backends.engines import builder_for
from hpcgen.backends.engines.building import Target, Work
from hpcgen.backends.engines.steps import Event, Step
from hpcgen.builders.display import BuildProgress, PlainDisplay, WriteProgress
from hpcgen.core.support.processes import stream
from hpcgen.kit.folder import read_kit

KIT = Path(__file__).parents[2] / "golden" / "hlrs-testbed" / "mpi-hello"
# As mksquashfs 4.5.1 and 4.7.5 write it where nobody is at a terminal.
BARS = r"\r[===/      ] 1200/8078  14%\r[======-   ] 4300/8078  53%"


def writing() -> BuildProgress:
    progress = BuildProgress([Step("hpcgen", "the kit"), Step("hpcgen", "write the squashfs file", 2, "WRITE")], True)
    progress.take(Event("begin", 0))
    return progress


def test_a_program_that_tells_how_far_it_is_is_heard(tmp_path: Path) -> None:
    progress, lines = writing(), list[str]()
    written = WriteProgress(progress, [])
    written.update("[====/      ] 1200/8078  14%")
    assert progress.written == "", "an earlier step may say the same"
    progress.take(Event("begin", 1))
    script = f"echo Creating; printf %b '{BARS}'; read -r go < '{tmp_path}/heard'; echo; echo end"
    os.mkfifo(tmp_path / "heard")

    def heard(text: str) -> None:
        written.update(text)
        if "53%" in text:
            (tmp_path / "heard").write_text("go\n")

    assert stream(["sh", "-c", script], lines.append, on_update=heard) == 0
    assert progress.now(1) == "[2/2] hpcgen: write the squashfs file … 0 s, 53 %"
    assert (lines[0], lines[-1], len(lines)) == ("Creating", "end", 3)


@pytest.mark.parametrize("name", ["squashfs-1", "older"])
def test_else_the_size_of_the_file_is_told(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"x" * 12_400_000)
    changed = time.time() + (-100 if name == "older" else 100)
    os.utime(file, (changed, changed))
    progress = writing()
    written = WriteProgress(progress, [(tmp_path / "not-there", "*"), (tmp_path, f"{name}*")])
    written.look()
    assert progress.written == ""
    progress.take(Event("begin", 1))
    written.look()
    assert progress.written == ("" if name == "older" else "12.4 MB")


def test_the_size_goes_on_where_a_program_stands_at_its_share(tmp_path: Path) -> None:
    """mksquashfs stays at 1 % for a minute of a large image on a busy machine."""
    progress = writing()
    progress.take(Event("begin", 1))
    written = WriteProgress(progress, [(tmp_path, "*")])
    written.update("[=         ] 100/8078   1%")
    (tmp_path / "image").write_bytes(b"x" * 12_400_000)
    written.look()
    assert progress.written == "1 %, 12.4 MB"
    written.update("[=         ] 101/8078   1%")
    assert progress.written == "1 %, 12.4 MB"


def test_in_a_log_it_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    display = PlainDisplay(said.append)
    display.progress = progress = writing()
    progress.take(Event("begin", 1))
    progress.written = "12.4 MB"
    display.tick()
    assert said == []
    monkeypatch.setattr("hpcgen.builders.display.LINE_S", -1)
    display.tick()
    assert said == ["[2/2] hpcgen: write the squashfs file … 0 s, 12.4 MB"]
    display.tick()
    assert len(said) == 2
    progress.close(failed=False)
    display.tick()
    assert len(said) == 2


def test_engines_know_which_files_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path))

    def growing(engine: str, kind: str) -> list[tuple[Path, str]]:
        target = Target(kind, "/x/[a]", "/x/.hpcgen-0-[a]")  # type: ignore[arg-type]
        work = Work(read_kit(KIT).plan, KIT, KIT / "Singularity.def", KIT, "0", tmp_path, target, [])
        return builder_for(engine).growing(work)

    image = (Path("/x"), ".hpcgen-0-[[]a]")
    assert growing("apptainer", "sif") == [(tmp_path, "bundle-temp-*/squashfs-*"), image]
    assert growing("ch-image", "squashfs") == growing("ch-image", "tar") == [image]
    assert growing("apptainer", "directory") == growing("ch-image", "directory") == growing("buildah", "podman") == []
