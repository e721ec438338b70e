"""The image is the one that was asked for: imports are told apart, and another base than the plan's makes no image.

The bases are the files of the real one that a shell needs, each with a mark of its own, so that an import takes a
second.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Run, Sid, Tool, need
from test_build import record_in
from test_rendered_kits import BASE_IN_SID, site_profile

NAME = "local-base:1"
STACK = "name: plain\ntitle: a base alone\nblocks: {}\nrun: {command: [cat, /mark], mpi: false}\n"
HPCGEN = [sys.executable, "-m", "hpcgen"]
LEFT_OUT = re.compile(r"(\./)?(usr/(share|include|sbin|lib/(.*/perl|locale|systemd))|var|boot|home|srv)(/|$)")


def write_base(base: BaseImage, target: Path, mark: str, os_release: str = "") -> Path:
    """The real base without what no shell needs, with a file ``mark``, and perhaps with another os-release."""
    more = {"./mark": f"{mark}\n", **({"./usr/lib/os-release": os_release} if os_release else {})}
    with tarfile.open(base.root_tar) as whole, tarfile.open(target, "w") as out:
        for member in whole:
            name = member.name.removeprefix("./")
            if LEFT_OUT.match(name) or member.ischr() or f"./{name}" in more:
                continue
            out.addfile(member, whole.extractfile(member) if member.isfile() else None)
        for name, text in more.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            out.addfile(member, io.BytesIO(text.encode()))
    return target


@pytest.fixture
def here(testbed_env: dict[str, str], tmp_path: Path) -> Iterator[Tool]:
    """The machine's tools with stores of their own."""
    need("ch-image", "buildah", "skopeo", path=testbed_env["PATH"])
    store = f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/s"\nrunroot = "{tmp_path}/r"\n'
    (tmp_path / "storage.conf").write_text(store)
    own = {"CONTAINERS_STORAGE_CONF": "storage.conf", "CH_IMAGE_STORAGE": "ch-image", "HPCGEN_RECORDS": "records"}
    more = {name: str(tmp_path / path) for name, path in own.items()}
    yield Tool({**testbed_env, **more, "BUILDAH_ISOLATION": "chroot"})


def collection(folder: Path, profile: dict[str, Any], archive: Path | None = None, **site: Any) -> Path:
    """A collection whose site takes the local image for Debian 12."""
    for name in ("site_profiles", "recipes"):
        (folder / name).mkdir(parents=True)
    write_bare_base(folder)
    (folder / "recipes" / "plain.yaml").write_text(STACK)
    images = {"docker": f"localhost/{NAME}", "charliecloud": NAME}
    if archive is not None:
        images |= {"singularity": f"{BASE_IN_SID}/{archive.name}", "bootstrap": "oci-archive"}
    profile["network"]["mirrors"]["images"] = {"debian:12": images}
    (folder / "site_profiles" / "here.yaml").write_text(json.dumps({**without_servers(profile), **site}))
    return folder


def bring(here: Tool, engine: str, tar: Path) -> None:
    """The base into an engine's store."""
    if engine == "ch-image":
        here.run(["ch-image", "import", tar, NAME])
    else:
        here.run(["podman", "import", "-q", tar, f"localhost/{NAME}"])


def build(here: Tool, ours: Path, engine: str, output: str, check: bool = True) -> Run:
    named = ["--site", "here", "--stack", "plain", "--engine", engine, "-o", output, "--json"]
    return here.run([*HPCGEN, "--collection", ours, "build", *named], check=check)


def rendered(here: Tool, ours: Path, format: str, kit: Path) -> Path:
    named = ["--site", "here", "--stack", "plain", "--format", format, "-o", kit]
    here.run([*HPCGEN, "--collection", ours, "render", *named])
    return kit


@pytest.mark.slow
def test_ch_image_does_not_mix_two_imports_of_one_name(
    here: Tool, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image))
    kit = rendered(here, ours, "charliecloud", tmp_path / "kit")
    image, by_hand = tmp_path / "image", tmp_path / "by-hand"
    results = []
    for mark in ("one", "two"):
        bring(here, "ch-image", write_base(base_image, tmp_path / f"{mark}.tar", mark))
        results.append(record_in(build(here, ours, "ch-image", str(image))))
        assert (image / "mark").read_text() == f"{mark}\n"
        here.run(["bash", kit / "build.sh", by_hand])
        assert (by_hand / "mark").read_text() == f"{mark}\n"
    # What nobody imported anew comes from the cache.
    again = record_in(build(here, ours, "ch-image", str(image)))
    assert [ran(each) for each in (*results, again)] == [True, True, False]


def ran(record: dict[str, Any]) -> bool:
    """Whether commands ran in a build, or all was in the cache."""
    steps = [step for step in record["steps"] if not step["about"].startswith(("base", "write"))]
    return any(step.get("result", "done") == "done" for step in steps)


OLDER = 'ID=debian\nVERSION_ID="11"\n'
SAID = "hpcgen: wrong base image: debian:12 should be amd64 debian 12 and is amd64 debian 11; "


@pytest.mark.parametrize("engine", ["ch-image", pytest.param("buildah", marks=pytest.mark.slow)])
def test_another_distribution_makes_no_image(
    engine: str, here: Tool, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image))
    bring(here, engine, write_base(base_image, tmp_path / "wrong.tar", "wrong", OLDER))
    output = str(tmp_path / "image") if engine == "ch-image" else "localhost/plain:1"
    failed = build(here, ours, engine, output, check=False)
    assert failed.returncode == 8 and f"\n  | {SAID}correct network.mirrors.images" in failed.stdout, failed.stdout
    assert "cause: the base image debian:12 should be amd64 debian 12, and the engine took one that is" in failed.stdout
    # The right one under the same name is taken, whatever the cache has of the other.
    bring(here, engine, write_base(base_image, tmp_path / "right.tar", "right"))
    build(here, ours, engine, output)


def test_apptainer_makes_no_image_of_another_distribution(
    here: Tool, sid: Sid, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    bases = tmp_path / "bases"
    bases.mkdir()
    archive = bases / "wrong.tar"
    here.run(["podman", "import", "-q", write_base(base_image, tmp_path / "root.tar", "wrong", OLDER), "localhost/w:1"])
    here.run(["skopeo", "copy", "-q", "containers-storage:localhost/w:1", f"oci-archive:{archive}:w:1"])
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image), archive)
    kit = rendered(here, ours, "singularity", tmp_path / "kit")
    sid.folder(kit)
    env = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
    binds = [(kit, "/kit"), (bases, BASE_IN_SID)]
    failed = sid.run(["bash", "build.sh", "image"], binds=binds, cwd="/kit", env=env, check=False)
    assert failed.returncode and f"\n{SAID}correct network.mirrors.images" in failed.stdout, failed.stdout
    assert not (kit / "image").exists()


@pytest.mark.slow
def test_a_lock_takes_no_other_base_and_its_command_says_where_it_is_from(
    here: Tool, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image))
    lock = [*HPCGEN, "--collection", ours, "lock", "--site", "here", "--stack", "plain", "-o", tmp_path / "l.lock"]
    older = write_base(base_image, tmp_path / "older.tar", "older", OLDER)
    here.run(["podman", "import", "-q", older, "localhost/older:1"])
    here.run(["skopeo", "copy", "-q", "containers-storage:localhost/older:1", f"oci-archive:{tmp_path}/older.oci:o:1"])
    wrong = here.run([*lock, "--image", f"debian:12=oci-archive:{tmp_path}/older.oci"], check=False)
    assert wrong.returncode == 11 and "older.oci is amd64 debian 11\n" in wrong.stdout, wrong.stdout
    assert "expected: amd64 debian 12, as the plan has it\n" in wrong.stdout
    assert not (tmp_path / "l.lock").exists()
    here.run([*lock, "--image", f"debian:12=oci-archive:{base_image.archive}"])
    text = " ".join((tmp_path / "l.lock").read_text().split())
    told = f"--image debian:12=oci-archive:{base_image.archive.name}"
    assert f"command: hpcgen --collection ours lock --site here --stack plain {told} " in text
    # What is asked of it later keeps that.
    here.run([*lock, "--update", "packages"], cwd=base_image.archive.parent)
    assert told in " ".join((tmp_path / "l.lock").read_text().split())


def test_no_image_for_one_architecture_is_built_of_another_ones_programs(
    here: Tool, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    """As where somebody asks for an emulator and the store has the machine's own base under the name."""
    profile = site_profile(machine_facts, base_image)
    profile["partitions"]["cpu"]["cpu"]["target"] = "aarch64"
    ours = collection(tmp_path / "ours", profile, system={**profile["system"], "architecture": "aarch64"})
    kit = rendered(here, ours, "charliecloud", tmp_path / "kit")
    bring(here, "ch-image", write_base(base_image, tmp_path / "amd64.tar", "amd64"))
    refused = here.run(["bash", kit / "build.sh", tmp_path / "image"], check=False)
    assert refused.returncode == 69 and "the image is for aarch64, and this machine is x86_64" in refused.stdout
    failed = here.run(["bash", kit / "build.sh", tmp_path / "image"], env={"HPCGEN_EMULATE": "1"}, check=False)
    said = "\nhpcgen: wrong base image: debian:12 should be arm64 debian 12 and is amd64 debian 12; correct "
    assert failed.returncode and said in failed.stdout, failed.stdout
    assert not (tmp_path / "image").exists()
