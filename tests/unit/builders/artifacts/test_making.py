"""Kits with artifacts: from the store, from others, by two builds at once, from a bundle. The engine is a stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hpcgen.builders import BuildOptions, Watcher
from hpcgen.builders.artifacts.making import with_artifacts
from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.recipe.artifact_recipes import keyed_blocks
from tests.helpers import locks
from tests.unit.builders.artifacts.test_store import artifact

CH_CONVERT = """\
#!/bin/sh
for word; do :; done
case $word in
*/*)
    mkdir -p "$word/ch"
    for name in libfabric mpich; do mkdir -p "$word/opt/$name"; echo "$name" > "$word/opt/$name/file"; done ;;
*) echo 0.31 ;;
esac
"""
CH_IMAGE = """\
#!/bin/sh
echo 0.31
[ "$1" != build ] || { echo build >> "$CALLS"; sleep 1; }
"""
ASKED = ("build", "--site", "workstation", "--stack", "mpi-hello", "--engine", "ch-image", "--allow-unsupported")


class Builds:
    """Builds in a folder, by programs that make files in the place of ch-image and ch-convert."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name, text in (("ch-image", CH_IMAGE), ("ch-convert", CH_CONVERT)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)

    def start(self, name: str, *words: str) -> subprocess.Popen[str]:
        own = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "CALLS": str(self.folder / "calls")}
        own |= {"HPCGEN_CONFIG": str(self.folder / "config.yaml"), "HPCGEN_RECORDS": str(self.folder / "records")}
        argv = [sys.executable, "-m", "hpcgen", *ASKED, "--notest", *words, "-o", f"./{name}"]
        env = {**os.environ, **own}
        return subprocess.Popen(argv, cwd=self.folder, env=env, stdout=-1, stderr=subprocess.PIPE, text=True)

    def said(self, build: subprocess.Popen[str]) -> str:
        text = build.communicate(timeout=120)[1]
        assert build.returncode == 0, text
        return text

    @property
    def built(self) -> int:
        """How often the engine was called to build, since this was last asked."""
        calls = self.folder / "calls"
        found = len(calls.read_text().split()) if calls.exists() else 0
        calls.write_text("")
        return found


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


def test_two_builds_at_once_compile_what_both_want_once(builds: Builds) -> None:
    both = [builds.start(f"image{number}", "--cache", "store") for number in range(2)]
    said = [builds.said(each) for each in both]
    # libfabric, mpich, and the two images.
    assert builds.built == 4, said
    assert sum(text.count("is compiled once") for text in said) == 2
    assert sum(text.count("taken from") for text in said) == 2
    assert len(list(ArtifactStore(builds.folder / "store").records())) == 2
    assert list(builds.folder.glob("store/*/*.busy")) == []


def test_what_the_sources_of_the_config_file_have_is_not_compiled(builds: Builds) -> None:
    builds.said(builds.start("image", "--cache", "theirs"))
    assert builds.built == 3
    theirs = ArtifactStore(builds.folder / "theirs")
    theirs.remove(theirs.of("mpich"))
    (builds.folder / "config.yaml").write_text(f"artifact_sources: [/nowhere, {theirs.folder}]\n")
    dry = builds.said(builds.start("image", "--cache", "own", "--dry-run"))
    assert "theirs" not in dry and not (builds.folder / "own").exists() and builds.built == 0
    said = builds.said(builds.start("image", "--cache", "own"))
    assert builds.built == 2, said
    assert said.count("/nowhere does not have it") == 2 and "mpich 4.3.2 is compiled once" in said
    assert said.count("no signature was required") == 1
    assert {each.record.block for each in ArtifactStore(builds.folder / "own").records()} == {"libfabric", "mpich"}
    assert "signature" not in builds.said(builds.start("image", "--cache", "own"))


def _keys(plan: Plan, pins: Pins) -> dict[str, str]:
    return {each.name: each.key for each in keyed_blocks(plan, locks.CATALOG, pins)}


def test_a_build_from_a_bundle_takes_what_the_same_lock_compiled_and_compiles_the_rest(tmp_path: Path) -> None:
    lock = locks.lock("mpi-hello")
    bundled = msgspec.structs.replace(lock.plan, supply="bundle")
    keys = _keys(lock.plan, lock.pins)
    assert keys.keys() == {"libfabric", "mpich"} and _keys(bundled, lock.pins) == keys
    store = ArtifactStore(tmp_path / "store")
    record, archive = artifact(tmp_path, key=keys["libfabric"])
    store.put(msgspec.structs.replace(record, block="libfabric", folders=["/opt/libfabric"]), archive)
    # No engine is here, and nowhere is asked: whatever would be compiled alone, or fetched, would be an error.
    options = BuildOptions(artifacts=store.folder, artifact_sources=("https://example.org/artifacts",))
    said: list[str] = []
    watcher = Watcher()
    watcher.note = said.append  # type: ignore[method-assign]
    quick = with_artifacts(bundled, locks.CATALOG, lock, lock.content, options, watcher).quick
    assert quick is not None and len(said) == 1 and "taken from" in said[0]
    assert any("unpack what was compiled before" in step.about for steps in quick.facts.steps for step in steps)
    assert quick.recipe.count("./configure") == 1 and record.sha256 in quick.recipe
    assert make_kit(bundled, locks.CATALOG, lock).recipe.count("./configure") == 2
    assert with_artifacts(bundled, locks.CATALOG, lock, lock.content, BuildOptions(), watcher).quick is None
