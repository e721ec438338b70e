"""The build scripts of kits for a bundle, run with engines that only write down what they are told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.builders.bundles import open_bundle
from hpcgen.core.errors import InputError
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.writing import write_kit
from hpcgen.kit.folder import read_kit
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import for_build
from tests.helpers import locks

SITES = {"docker": "workstation", "singularity": "hlrs-testbed", "charliecloud": "supermuc"}
ENGINE = """#!/bin/bash
printf '%s\\n' "$(basename "$0"): $*" "date ${SOURCE_DATE_EPOCH:-none}" >> "$TOLD"
case $(basename "$0") in
    ch-image) [ "$1" = list ] && { printf '%s\\n' "$PRESENT" && printf 'other%s\\n' {1..50000} || exit 1; } ;;
    ch-convert) touch "${@: -1}" ;;
    buildah) [ "$1" != rmi ] || exit 1 ;;
    *) [ "$1" = build ] && [ "${*: -1}" = Singularity.def ] && touch "${*: -2:1}" ;;
esac
exit 0
"""


def a_lock(format: str) -> Lock:
    return locks.lock("mpi-hello", SITES[format], settings=("base.provider=debian",))


class Machine:
    """A folder with a kit, a bundle and engines."""

    def __init__(self, folder: Path, format: str, bundle: str) -> None:
        lock = a_lock(format)
        self.folder, self.bundle, self.told = folder, folder / bundle, folder / "told"
        write_kit(folder / "kit", make_kit(for_build(lock, bundled=True), locks.CATALOG, lock).files)
        self.bundle.mkdir(parents=True)
        (self.bundle / "hpcgen.lock").write_text(lock.text)
        sums = subprocess.run(["sha256sum", "hpcgen.lock"], cwd=self.bundle, capture_output=True, check=True)
        (self.bundle / "SHA256SUMS").write_bytes(sums.stdout)
        (folder / "bin").mkdir()
        for name in ("buildah", "apptainer", "ch-image", "ch-convert"):
            program = folder / "bin" / name
            program.write_text(ENGINE)
            program.chmod(0o755)

    def build(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run build.sh; what the engines were told is in ``told``."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        engine = {"docker": "buildah", "singularity": "apptainer"}.get(self.format(), "ch-image")
        own = {"PATH": path, "TOLD": str(self.told), "HPCGEN_ENGINE": engine, "PRESENT": "none"}
        script = str(self.folder / "kit" / "build.sh")
        return subprocess.run(
            ["bash", script, *words],
            cwd=cwd or self.folder,
            env={**os.environ, **own, **env},
            capture_output=True,
            text=True,
        )

    def format(self) -> str:
        """That of the kit."""
        return read_kit(self.folder / "kit").plan.format


@pytest.mark.parametrize("format", SITES)
@pytest.mark.parametrize("name", ["a bundle", "-x", "-", "b$(touch x)'\""])
def test_a_bundle_is_found_wherever_it_is_and_whatever_it_is_called(tmp_path: Path, format: str, name: str) -> None:
    machine = Machine(tmp_path, format, f"media/{name}")
    (tmp_path / "elsewhere" / name).mkdir(parents=True)
    output = str(tmp_path / "out put.sif")
    done = machine.build("--bundle", name, output, cwd=tmp_path / "media", CDPATH=str(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/media/{name}" in machine.told.read_text()
    assert machine.build(output, HPCGEN_BUNDLE=str(machine.bundle)).returncode == 0


def test_a_base_is_known_by_its_own_name_alone_whatever_a_pull_calls_it(tmp_path: Path) -> None:
    """buildah before 1.43 calls it by the path, later ones as the layout does: one of the names is not there."""
    machine = Machine(tmp_path, "docker", "bundle")
    assert machine.build("--bundle", "bundle").returncode == 0
    told = machine.told.read_text()
    assert "buildah: rmi localhost/images\ndate none\nbuildah: rmi docker.io/library/debian-12\n" in told


@pytest.mark.parametrize("format", ["singularity", "charliecloud"])
def test_image_files_of_a_lock_have_its_date(tmp_path: Path, format: str) -> None:
    machine = Machine(tmp_path, format, "bundle")
    assert machine.build("--bundle", "bundle").returncode == 0
    assert f"date {a_lock(format).pins.epoch}\n" in machine.told.read_text()


def test_what_is_no_bundle_or_another_one_is_refused(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "docker", "bundle")
    for words in ([], ["--bundle"], ["--bundle", ""], ["--bundle", "nowhere"]):
        done = machine.build(*words, cwd=machine.bundle)
        assert (done.returncode, "build.sh --bundle DIR" in done.stderr) == (66, True)
    (machine.bundle / "hpcgen.lock").write_text(a_lock("singularity").text)
    assert "is not the bundle" in machine.build("--bundle", "bundle").stderr
    (machine.bundle / "hpcgen.lock").unlink()
    assert machine.build("--bundle", "bundle").returncode == 65
    assert not machine.told.exists()


@pytest.mark.parametrize("name", ["usb:1", "a,b"])
def test_a_path_that_engines_would_divide_is_refused_and_a_link_to_it_is_not(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, "singularity", name)
    done = machine.build("--bundle", name)
    assert (done.returncode, "name a link to it" in done.stderr) == (66, True)
    with pytest.raises(InputError, match="name a link to it"):
        open_bundle(read_kit(tmp_path / "kit"), machine.bundle)
    (tmp_path / "link").symlink_to(machine.bundle)
    assert machine.build("--bundle", "link").returncode == 0


def test_chimage_imports_the_base_anew_because_a_stopped_import_leaves_half_of_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "charliecloud", "bundle")
    line = next(each for each in read_kit(tmp_path / "kit").recipe.splitlines() if each.startswith("FROM "))
    assert machine.build("--bundle", "bundle", PRESENT=line.split()[1]).returncode == 0
    assert "import" in machine.told.read_text()


def test_chimage_builds_and_converts_an_image_of_the_stacks_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "charliecloud", "bundle")
    assert machine.build("--bundle", "bundle").returncode == 0
    told = machine.told.read_text()
    assert " -t mpi-hello-supermuc -f Dockerfile ." in told
    assert "ch-convert: -i ch-image -o squash mpi-hello-supermuc mpi-hello.sqfs.partial" in told


def test_chimage_does_not_take_the_steps_of_another_base() -> None:
    lock = a_lock("charliecloud")
    other = msgspec.structs.replace(
        lock.pins,
        images={
            name: msgspec.structs.replace(pin, digest=f"sha256:{'9' * 64}") for name, pin in lock.pins.images.items()
        },
    )
    texts = [
        make_kit(for_build(each, bundled=True), locks.CATALOG, each).recipe
        for each in (lock, locks.lock("mpi-hello", "supermuc", settings=("base.provider=debian",), pinned=other))
    ]
    after = [[line for line in text.splitlines() if line.startswith(("ARG ", "RUN "))] for text in texts]
    assert after[0][0] != after[1][0], "ch-image's cache knows an import by nothing, and a step by its text"
