"""A stack's own files in images of the real engines: as they are on this machine, with fixed modes, and no other."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, Run, Sid, SidHpcgen, Tool, run
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

from hpcgen.core.support.hashing import sha256_of

BINARY = bytes(range(256)) * 300 + b"\n\n"
FILES = {
    "weights.bin": (BINARY, 0o600),
    "run.sh": (b"#!/bin/sh\necho started\n", 0o700),
    "sub/a name with spaces.txt": (b"words\n", 0o640),
    "sub/empty": (b"", 0o644),
    "sub/left.log": (b"not in the image\n", 0o644),
    ".git/config": (b"nor this\n", 0o644),
}
STACK = {
    "name": "copier",
    "title": "what is copied",
    "blocks": {"debian": {}},
    "run": {"command": ["/opt/models/run.sh"], "mpi": False},
    "copy": [
        {"from": "models", "to": "/opt/models", "ignore": ["*.log"]},
        {"from": "one.txt", "to": "/data/some/two.txt"},
    ],
}
LISTED = "cd / && find opt/models data -printf '%M %u:%g %p\\n' && find opt/models data -type f -exec sha256sum {} +"
KEPT = "find /opt/hpcgen/kit -name 'weights*' && cat /opt/hpcgen/kit/copy.list && /opt/models/run.sh"


def sums() -> list[str]:
    """What sha256sum says of the files that are copied, by their paths in the image."""
    wanted = {f"opt/models/{name}": data for name, (data, _) in FILES.items() if not name.endswith(("log", "config"))}
    wanted["data/some/two.txt"] = b"one\n"
    return [f"{sha256_of(data)}  {name}" for name, data in sorted(wanted.items())]


MODES = [
    *("drwxr-xr-x data", "drwxr-xr-x data/some", "-rw-r--r-- data/some/two.txt"),
    *("drwxr-xr-x opt/models", "-rwxr-xr-x opt/models/run.sh", "drwxr-xr-x opt/models/sub"),
    *("-rw-r--r-- opt/models/sub/a name with spaces.txt", "-rw-r--r-- opt/models/sub/empty"),
    "-rw-r--r-- opt/models/weights.bin",
]


def write_stack(folder: Path, profile: dict[str, Any]) -> Path:
    """A collection with the stack and what it copies."""
    write_bare_base(folder)
    for name, data in (("recipes/copier", STACK), ("site_profiles/here", without_servers(profile))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data), "utf-8")
    (folder / "recipes" / "one.txt").write_bytes(b"one\n")
    for name, (data, mode) in FILES.items():
        path = folder / "recipes" / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
    return folder


@pytest.fixture
def collection(tmp_path: Path, machine_facts: dict[str, Any], base_image: BaseImage) -> Path:
    return write_stack(tmp_path / "ours", site_profile(machine_facts, base_image))


@pytest.fixture
def here(testbed_env: dict[str, str], tmp_path: Path) -> Tool:
    return Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"})


@pytest.fixture
def image(here: Tool) -> Iterator[str]:
    """The name of an image in a store, which is removed."""
    yield "localhost/copier:1"
    here.run(["buildah", "rmi", "localhost/copier:1"], check=False)


def hpcgen(here: Tool, collection: Path | str, *words: str | Path) -> Run:
    return here.run([sys.executable, "-m", "hpcgen", "--collection", str(collection), *map(str, words)])


NAMED = ("--site", "here", "--stack", "copier")


def check(said: str) -> None:
    """What ``LISTED`` printed in an image."""
    lines = said.splitlines()
    modes = [line.replace(" root:root", "", 1) for line in lines if line[:1] in "-d"]
    assert sorted(modes, key=lambda line: line[11:]) == MODES
    assert sorted((line for line in lines if line[:1] not in "-d"), key=lambda line: line[66:]) == sums()


def check_kit(said: str) -> None:
    """The kit in the image has their hashes, not the files again; the program among them starts."""
    *listed, last = said.splitlines()
    assert last == "started"
    assert [f"{line[:64]}  {line[69:]}" for line in listed] == sums()


@pytest.mark.parametrize("engine", [pytest.param("buildah", marks=pytest.mark.slow), "podman"])
def test_files_are_in_an_image_of_a_store(engine: str, collection: Path, here: Tool, image: str) -> None:
    hpcgen(here, collection, "build", *NAMED, "--format", "docker", "--engine", engine, "-o", image)
    check(Buildah(here.env).exec(image, ["sh", "-c", LISTED]).stdout)
    check_kit(Buildah(here.env).exec(image, ["sh", "-c", KEPT]).stdout)


def test_the_build_script_does_the_same(collection: Path, here: Tool, image: str, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    hpcgen(here, collection, "render", *NAMED, "--format", "docker", "-o", kit)
    buildah = Tool({**here.env, "HPCGEN_ENGINE": "buildah"})
    buildah.run(["bash", kit / "build.sh", image])
    check(Buildah(here.env).exec(image, ["sh", "-c", LISTED]).stdout)
    changed = kit / "copy/opt/models/weights.bin"
    changed.write_bytes(BINARY[:-1] + b"x")
    refused = buildah.run(["bash", kit / "build.sh", image], check=False)
    assert (refused.returncode, "weights.bin is not as copy.list says" in refused.stdout) == (65, True)


@pytest.mark.parametrize("how", ["build", "script"])
def test_files_are_in_an_image_of_charliecloud(how: str, collection: Path, here: Tool, tmp_path: Path) -> None:
    output, kit = tmp_path / "image", tmp_path / "kit"
    if how == "build":
        hpcgen(here, collection, "build", *NAMED, "--engine", "ch-image", "-o", output)
    else:
        hpcgen(here, collection, "render", *NAMED, "--format", "charliecloud", "-o", kit)
        here.run(["bash", kit / "build.sh", output])
    check(here.run(["sh", "-c", LISTED.replace("cd /", f"cd {output}")]).stdout)
    check_kit(here.run(["ch-run", output, "--", "sh", "-c", KEPT]).stdout)
    assert "/opt/models         4  " in hpcgen(here, collection, "inspect", output).stdout
    again = here.run([sys.executable, "-m", "hpcgen", "rebuild", str(output), "-o", str(tmp_path / "again")]).stdout
    assert "the files that copier copies to /opt/models are not here" in again
    again = hpcgen(here, collection, "rebuild", output, "-o", tmp_path / "whole").stdout
    assert "would write the same files" in again
    assert (tmp_path / "whole/copy/opt/models/weights.bin").read_bytes() == BINARY


@pytest.mark.parametrize("how", ["build", "script"])
def test_files_are_in_an_image_of_apptainer(
    how: str, sid: Sid, sid_hpcgen: SidHpcgen, machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path
) -> None:
    folder = tmp_path / "sid"
    folder.mkdir()
    collection = write_stack(folder / "ours", site_profile(machine_facts, base_image))
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    sid.folder(folder)
    words = ["--collection", f"/kit/{collection.name}"]
    if how == "build":
        words += ["build", *NAMED, "--engine", "apptainer", "-o", "image.sif", "--no-record"]
    else:
        words += ["render", *NAMED, "--format", "singularity", "-o", "kit"]
    sid_hpcgen.run(words, binds=binds, env={}, cwd="/kit")
    if how == "script":
        sid.run(["bash", "kit/build.sh", "image.sif"], binds=binds, env={}, cwd="/kit")
    for command, judged in ((LISTED, check), (KEPT, check_kit)):
        exec_ = ["apptainer", "exec", "--unsquash", "image.sif", "sh", "-c", command]
        said = sid.run(exec_, binds=binds, env={}, cwd="/kit").stdout
        # An ordinary user unpacks what is root's.
        judged(re.sub(r"(?m)^INFO.*\n", "", said).replace(" builder:builder ", " root:root "))


@pytest.fixture(scope="module")
def bundle(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A bundle for every format, without the collection that it was made with and its files."""
    folder = tmp_path_factory.mktemp("bundle")
    profile = site_profile(machine_facts, plain_base_image)
    collection = write_stack(folder / "ours", profile)
    site = without_servers(profile)
    del site["network"]["mirrors"]
    (collection / "site_profiles" / "here.yaml").write_text(yaml.safe_dump(site), "utf-8")
    command = [sys.executable, "-m", "hpcgen", "--collection", collection]
    image = f"debian:12=oci-archive:{plain_base_image.archive}"
    lock = folder / "hpcgen.lock"
    run([*command, "lock", *NAMED, "--format", "charliecloud", "--image", image, "-o", lock])
    run([*command, "bundle", "create", "--lock", lock, "--image", image, "-o", folder / "bundle"])
    shutil.rmtree(collection)
    return folder / "bundle"


@pytest.mark.parametrize("engine", [pytest.param("buildah", marks=pytest.mark.slow), "ch-image"])
def test_files_come_from_a_bundle(engine: str, bundle: Path, here: Tool, image: str, tmp_path: Path) -> None:
    output = image if engine == "buildah" else str(tmp_path / "image")
    words = ["--trust-collections", "build", "--bundle", bundle, "--engine", engine, "-o", output]
    here.run([sys.executable, "-m", "hpcgen", *words])
    if engine == "buildah":
        check(Buildah(here.env).exec(image, ["sh", "-c", LISTED]).stdout)
    else:
        check(here.run(["sh", "-c", LISTED.replace("cd /", f"cd {output}")]).stdout)


def test_a_definition_file_takes_them_from_a_bundle_too(
    bundle: Path, sid: Sid, sid_hpcgen: SidHpcgen, tmp_path: Path
) -> None:
    folder = tmp_path / "sid"
    folder.mkdir()
    binds = [(sid.folder(folder), "/kit"), (bundle, "/bundle")]
    words = ["build", "--bundle", "/bundle", "--engine", "apptainer", "-o", "image.sif", "--no-record"]
    sid_hpcgen.run(["--trust-collections", *words], binds=binds, env={}, cwd="/kit")
    said = sid.run(["apptainer", "exec", "--unsquash", "image.sif", "sh", "-c", LISTED], binds=binds, cwd="/kit").stdout
    check(re.sub(r"(?m)^INFO.*\n", "", said).replace(" builder:builder ", " root:root "))
