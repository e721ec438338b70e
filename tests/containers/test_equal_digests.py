"""Two builds from one bundle: equal digests where the engine can, and else what differs is said.

On the bare base, in the sid root: buildah 1.43 and Apptainer 1.4.5; and by this machine's buildah 1.28.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, Run, SidHpcgen, run
from test_rendered_kits import site_profile

BLOCK = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Runtime, run


class Tried(Block):
    """A block that makes files and folders."""

    name = "tried"

    def build(self, ctx):
        yield run("make files", "mkdir -p /opt/tried/folder", "date > /dev/null", "echo content > /opt/tried/file")

    def runtime(self, ctx):
        return Runtime(copies=("/opt/tried",))
'''
STACK = "name: tried\ntitle: files\nblocks: {tried: {}}\nrun: {command: [sh], mpi: false}\n"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@pytest.fixture(scope="module")
def bundle(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A bundle, which has its collection with it."""
    folder = tmp_path_factory.mktemp("equal")
    collection = folder / "collection"
    for name in ("site_profiles", "recipes", "building_blocks"):
        (collection / name).mkdir(parents=True)
    write_bare_base(collection)
    (collection / "building_blocks" / "tried.py").write_text(BLOCK)
    (collection / "building_blocks" / "tried.yaml").write_text('block: tried\nreleases: {"1": {}}\n')
    (collection / "recipes" / "tried.yaml").write_text(STACK)
    site = without_servers(site_profile(machine_facts, plain_base_image))
    del site["network"]["mirrors"]
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", collection]
    image = f"debian:12=oci-archive:{plain_base_image.archive}"
    lock = folder / "hpcgen.lock"
    run([*hpcgen, "lock", "--site", "here", "--stack", "tried", "--image", image, "-o", lock])
    run([*hpcgen, "bundle", "create", "--lock", lock, "--image", image, "-o", folder / "bundle"])
    return folder / "bundle"


FAR = {"HOME": "/far", "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs", "HPCGEN_RECORDS": "/far/records"}


def built(sid_hpcgen: SidHpcgen, bundle: Path, home: Path, *words: str) -> Run:
    """``hpcgen build`` from the bundle, in the sid root, without its cache."""
    sid_hpcgen.sid.folder(home)
    return sid_hpcgen.run(
        ["--trust-collections", "build", "--bundle", "/bundle", "--no-cache", *words],
        binds=[(bundle, "/bundle"), (home, "/far")],
        env=FAR,
        cwd="/far",
    )


@pytest.mark.slow
def test_buildah_makes_one_digest_of_one_bundle(sid_hpcgen: SidHpcgen, bundle: Path, tmp_path: Path) -> None:
    words = ("--format", "docker", "--engine", "buildah", "-o", "localhost/equal:here")
    first, second = (built(sid_hpcgen, bundle, tmp_path / name, *words).stdout for name in ("one", "two"))
    assert "another digest" not in first
    assert DIGEST.findall(first) == DIGEST.findall(second) != []
    words_of_images = ["buildah", "images", "--format", "{{.Name}}"]
    names = sid_hpcgen.sid.run(words_of_images, binds=[(tmp_path / "one", "/far")], env=FAR).stdout.split()
    assert sorted(names) == ["localhost/equal", "localhost/hpcgen-base/debian-12"]


@pytest.mark.slow
def test_an_older_buildah_says_why_digests_differ(bundle: Path, buildah: Buildah, tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "hpcgen",
        "--trust-collections",
        "build",
        "--bundle",
        bundle,
        "--format",
        "docker",
        "--engine",
        "buildah",
        "--no-cache",
    ]
    env = {"BUILDAH_ISOLATION": "chroot", "HPCGEN_RECORDS": str(tmp_path)}
    said = buildah.run([*build, "-o", "localhost/equal:here"], env=env).stdout
    differs = "writes the name of the container that built it anew into every image, which is equal since 1.41"
    assert re.search(rf"another build of this lock will have another digest: buildah 1\.28\S* {differs}", said), said


@pytest.mark.slow
def test_apptainer_before_1_5_makes_the_same_files_and_says_what_differs(
    sid_hpcgen: SidHpcgen, bundle: Path, tmp_path: Path
) -> None:
    """The label with the date of the build may be a digit longer, so that the files themselves cannot be compared."""
    words = ["--format", "singularity", "--engine-option=--mksquashfs-args", "--engine-option=-noI -noD -noF -noX"]
    said = built(sid_hpcgen, bundle, tmp_path / "far", *words, "-o", "one.sif").stdout
    assert "apptainer 1.4.5 writes the file's id and its dates anew into every image, which is equal since 1.5" in said
    built(sid_hpcgen, bundle, tmp_path / "far", *words, "-o", "two.sif")
    trees = [unpacked(tmp_path / "far" / name) for name in ("one.sif", "two.sif")]
    labels = ".singularity.d/labels.json"
    differing = run(["diff", "-rq", "--no-dereference", *trees], check=False).stdout
    assert differing == f"Files {trees[0]}/{labels} and {trees[1]}/{labels} differ\n"
    one, two = (json.loads((tree / labels).read_text()) for tree in trees)
    assert [name for name in one if one[name] != two[name]] == ["org.label-schema.build-date"]
    first, second = (dated(tree, leaving=labels) for tree in trees)
    assert first == second != []


def dated(tree: Path, *, leaving: str) -> list[str]:
    """Each path with its kind, mode, owner, date and target; how large a folder is depends on the disk it is on."""
    told = run(["find", ".", "-printf", r"%P\t%y %m %U:%G %T@ %l\n"], cwd=tree).stdout.splitlines()
    return sorted(line for line in told if not line.startswith(f"{leaving}\t"))


def unpacked(image: Path) -> Path:
    """The tree of a SIF's file system, with its dates."""
    begins = image.read_bytes().index(b"hsqs")
    folder = image.with_suffix("")
    run(["unsquashfs", "-q", "-n", "-o", str(begins), "-d", folder, image], check=False)
    return folder
