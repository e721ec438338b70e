"""One image as every kind there is: its kit comes out again on another machine, and its self-test still passes.

The other machine is the sid root: another user, another Python, other releases of the tools, and none of the files
that the image was built from.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from container_tools import Buildah, ChImage, Run, Sid, SidHpcgen, Tool
from leftovers import kept_while_used

SELFTEST = "/opt/hpcgen/selftest.sh"
NAME = "localhost/hpcgen-images-test"
IN_SID = "/images"


@pytest.fixture(scope="module")
def here(testbed_env: dict[str, str]) -> Tool:
    """This machine's tools and stores."""
    return Tool(testbed_env)


def hpcgen(here: Tool, *words: str | Path, check: bool = True) -> Run:
    return here.run([sys.executable, "-m", "hpcgen", *words], check=check)


@pytest.fixture(scope="module")
def stored_kit(mpi_hello_image: Path) -> dict[str, bytes]:
    """The kit that the image was built from."""
    return contents(mpi_hello_image.parent / "kit")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def squashfs(
    mpi_hello_image: Path, here: Tool, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    with kept_while_used(request, tmp_path_factory, "squashfs") as folder:
        hpcgen(here, "convert", mpi_hello_image, folder / "hello.sqfs")
        yield folder / "hello.sqfs"


@pytest.fixture(scope="module")
def podman_image(squashfs: Path, here: Tool) -> str:
    hpcgen(here, "convert", squashfs, f"podman:{NAME}", "--force")
    return NAME


@pytest.fixture(scope="module")
def far(
    squashfs: Path,
    podman_image: str,
    here: Tool,
    sid: Sid,
    sid_hpcgen: SidHpcgen,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """A folder of the other machine with the images copied to it, as squashfs, OCI archive and SIF."""
    with kept_while_used(request, tmp_path_factory, "far") as folder:
        shutil.copy(squashfs, folder / "hello.sqfs")
        hpcgen(here, "convert", f"podman:{podman_image}", folder / "hello.oci")
        sid.folder(folder)
        sid_hpcgen.run(["convert", f"{IN_SID}/hello.oci", f"{IN_SID}/hello.sif"], binds=[(folder, IN_SID)])
        yield folder


# A store is read on this machine below.
@pytest.mark.parametrize(
    "image", ["hello.sqfs", "hello.sif", "hello.oci", pytest.param(f"podman:{NAME}", marks=pytest.mark.slow)]
)
def test_the_kit_comes_out_again_on_another_machine(
    image: str, far: Path, sid_hpcgen: SidHpcgen, stored_kit: dict[str, bytes]
) -> None:
    if image == f"podman:{NAME}":
        sid_hpcgen.run(["convert", "hello.oci", image, "--force"], binds=[(far, IN_SID)], cwd=IN_SID)
    again = f"kit-{image.split('.')[-1].replace('/', '-')}"
    done = sid_hpcgen.run(["rebuild", image, "-o", again], binds=[(far, IN_SID)], cwd=IN_SID)
    assert contents(far / again) == stored_kit
    assert "would write the same files" in done.stdout
    shown = sid_hpcgen.run(["inspect", image, "--recipe"], binds=[(far, IN_SID)], cwd=IN_SID)
    assert shown.stdout == stored_kit["build.sh"].decode()


def test_converted_images_still_pass_their_self_test(
    squashfs: Path, podman_image: str, far: Path, here: Tool, ch_image: ChImage, buildah: Buildah, sid: Sid
) -> None:
    """A folder became squashfs, OCI, SIF and a folder again; each time the variables went along."""
    folder = squashfs.parent / "from-sif"
    hpcgen(here, "convert", far / "hello.sif", folder)
    printed = [
        ch_image.exec(squashfs, [SELFTEST]).stdout,
        ch_image.exec(folder, [SELFTEST]).stdout,
        buildah.exec(podman_image, [SELFTEST]).stdout,
        sid.run(["apptainer", "exec", f"{IN_SID}/hello.sif", SELFTEST], binds=[(far, IN_SID)]).stdout,
    ]
    assert ["4 passed, 0 failed, 0 skipped" in each for each in printed] == [True] * 4, printed


def test_a_stored_image_is_converted_by_each_of_its_names(here: Tool, tmp_path: Path) -> None:
    """Short as it was built, by its ID and its digest; what is made of it has a short name, too."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /etc/small\n")
    here.run(["podman", "build", "-q", "-t", "hpcgen-names:here", tmp_path])
    told = json.loads(here.run(["podman", "image", "inspect", "hpcgen-names:here"]).stdout)[0]
    names = ["podman:hpcgen-names:here", "hpcgen-names:here", f"podman:{told['Id'][:12]}", f"sha256:{told['Id']}"]
    try:
        for number, name in enumerate([*names, f"podman:localhost/hpcgen-names@{told['Digest']}"]):
            hpcgen(here, "convert", name, tmp_path / f"{number}.oci")
        hpcgen(here, "convert", tmp_path / "0.oci", "podman:hpcgen-names:moved")
        stored = here.run(["podman", "images", "--format", "{{.Repository}}:{{.Tag}}"]).stdout
        assert "localhost/hpcgen-names:moved" in stored
    finally:
        here.run(["podman", "rmi", "-f", told["Id"]])


def test_what_the_store_says_agrees_with_the_kit(podman_image: str, here: Tool, stored_kit: dict[str, bytes]) -> None:
    labels = json.loads(here.run(["buildah", "inspect", "--type", "image", podman_image]).stdout)["OCIv1"]["config"]
    assert labels["Labels"]["io.hpcgen.kit.plan.json"] + "\n" == stored_kit["plan.json"].decode()
    told = json.loads(hpcgen(here, "inspect", f"podman:{podman_image}", "--json").stdout)
    assert told["content"] == labels["Labels"]["io.hpcgen.content"]
    # No lock, and packages are read from files.
    (note,) = told["notes"]
    assert "cannot be listed where it is" in note


def test_an_interrupted_conversion_leaves_nothing(squashfs: Path, here: Tool, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hpcgen", "convert", str(squashfs), "podman:localhost/hpcgen-interrupted"]
    environment = {**here.env, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "unsquashfs" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert here.run(["podman", "image", "exists", "localhost/hpcgen-interrupted"], check=False).returncode == 1


def test_an_unsquashfs_without_cat_will_do(squashfs: Path, here: Tool, tmp_path: Path) -> None:
    """squashfs-tools before 4.5 have no -cat: the real program stands behind one that refuses it."""
    real = shutil.which("unsquashfs", path=here.env["PATH"])
    program = tmp_path / "bin" / "unsquashfs"
    program.parent.mkdir()
    refuse = 'for word; do [ "$word" = -cat ] && { echo "unsquashfs: invalid option" >&2; exit 1; }; done'
    program.write_text(f'#!/bin/bash\n{refuse}\nexec {real} "$@"\n')
    program.chmod(0o755)
    older = Tool({**here.env, "PATH": f"{program.parent}{os.pathsep}{here.env['PATH']}"})
    assert hpcgen(older, "inspect", squashfs, "--lock").stdout == hpcgen(here, "inspect", squashfs, "--lock").stdout
