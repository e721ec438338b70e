"""A fleet of six of which one changed: that one is built, tested and noted, here and as a task of a Slurm array."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, Buildah, ChImage, Run, Slurm
from leftovers import kept_while_used
from loopback_registry import Registry
from msgspec.structs import replace
from test_rendered_kits import site_profile

from hpcgen.builders.choosing import builders_reading
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.records import LockedImage, read_lock, update_lock

MEMBER = "mpi-hello-here"
SETTINGS = ["mpi.provider=intel_mpi", "intel_mpi.version=2021.17.2"]
OTHERS = [("mpi-hello", "supermuc"), ("mpi-hello", "hlrs-testbed"), ("mpi-hello", "workstation")]
OTHERS += [("tf-horovod", "supermuc"), ("tiny", "here")]
TINY = "name: tiny\ntitle: nothing but the base\nblocks: {}\nrun: {command: [ls], mpi: false}\n"

Hpcgen = Callable[..., Run]


@pytest.fixture(scope="module")
def fleet(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """fleet.yaml with this machine among its sites, and a lock that says of every member that it is built."""
    with kept_while_used(request, tmp_path_factory, "fleet") as folder:
        yield write_fleet(folder, machine_facts, plain_base_image)


def write_fleet(folder: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage) -> Path:
    """Its folder, with what it reads."""
    (folder / "site_profiles").mkdir()
    profile = site_profile(machine_facts, plain_base_image)
    profile["containers"]["build_on"] = ["compute"]
    # Without its version no squashfs is sure to be mounted: a folder, which is written faster.
    profile["containers"]["engines"]["charliecloud"] = {}
    profile["scheduler"] = {"kind": "slurm", "default_time": "00:20:00"}
    profile["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    (folder / "site_profiles" / "here.yaml").write_text(json.dumps(profile, indent=1))
    (folder / "recipes").mkdir()
    (folder / "recipes" / "tiny.yaml").write_text(TINY)
    members: list[dict[str, Any]] = [{"stack": "mpi-hello", "site": "here", "settings": SETTINGS}]
    members += [{"stack": stack, "site": site} for stack, site in OTHERS]
    file = folder / "fleet.yaml"
    file.write_text(json.dumps({"collections": ["."], "build_on": "here", "members": members}, indent=1))
    loaded = load_fleet(file)
    locked = {}
    for state in member_states(loaded, {}):
        assert state.plan is not None
        engine = next(iter(builders_reading(state.plan.format)))
        locked[state.member.name] = LockedImage(
            content=state.content, format=state.plan.format, engine=engine, tested=True
        )
    assert len(locked) == 6
    update_lock(loaded.lock_path, locked)
    return file


def change(file: Path, setting: str) -> None:
    """Another setting of the one member that this machine builds."""
    data = json.loads(file.read_text())
    data["members"][0]["settings"] = [*SETTINGS, setting]
    file.write_text(json.dumps(data, indent=1))


@pytest.fixture(scope="module")
def cluster(slurm_cluster: Callable[..., Slurm]) -> Slurm:
    return slurm_cluster("general")


@pytest.fixture(scope="module")
def hpcgen(fleet: Path, cluster: Slurm, ch_image: ChImage) -> Hpcgen:
    """``hpcgen WORDS`` in the fleet's folder, with ch-image and a Slurm at hand."""

    def call(*words: str, check: bool = True) -> Run:
        own = {"HPCGEN_RECORDS": str(fleet.parent / "records")}
        command = [sys.executable, "-m", "hpcgen", *words]
        return cluster.run(command, env=own, cwd=fleet.parent, check=check)

    return call


def changed(hpcgen: Hpcgen) -> list[str]:
    return [row["name"] for row in json.loads(hpcgen("fleet", "--changed", "--json").stdout)]


@pytest.mark.slow
def test_the_one_that_changed_is_built_and_tested(hpcgen: Hpcgen, fleet: Path) -> None:
    change(fleet, "gnu.fortran=true")
    assert changed(hpcgen) == [MEMBER]
    before = read_lock(fleet.with_suffix(".lock"))
    started = time.monotonic()
    done = hpcgen("build", "--all", "--reports", "reports")
    REPORTS.append(f"fleet, one of six: built and tested in {time.monotonic() - started:.0f} s")
    assert "5 of 6 did not change" in done.stdout
    assert "1 built, 0 failed" in done.stdout
    now = read_lock(fleet.with_suffix(".lock"))
    assert {name for name in now if now[name] != before[name]} == {MEMBER}
    assert (now[MEMBER].tested, now[MEMBER].engine) == (True, "ch-image")
    assert (fleet.parent / MEMBER / "opt/hpcgen/kit/plan.json").is_file()
    assert now[MEMBER].image == f"directory:{fleet.parent / MEMBER}"
    assert (fleet.parent / "reports" / f"{MEMBER}.xml").read_text().count("<testcase ") >= 5
    assert changed(hpcgen) == []


@pytest.mark.slow
def test_a_slurm_array_has_one_task_for_the_one_that_changed(hpcgen: Hpcgen, cluster: Slurm, fleet: Path) -> None:
    """The image with nothing in it: what the job does with it is the same."""
    lock = fleet.with_suffix(".lock")
    old = read_lock(lock)["tiny-here"]
    update_lock(lock, {"tiny-here": replace(old, content="0" * 64)})
    assert changed(hpcgen) == ["tiny-here"]
    script = hpcgen("build", "--all", "--array", "--dry-run").stdout
    assert "#SBATCH --array=0-0\n" in script
    job = hpcgen("build", "--all", "--array", "--limit", "2").stdout.split()[-1]
    for _ in range(600):
        if not cluster.run(["squeue", "-h", "-j", job], check=False).stdout.strip():
            break
        time.sleep(1)
    output = "\n".join(path.read_text() for path in fleet.parent.glob("slurm-*.out"))
    assert "tiny-here, 1 of 1: the plan was" in output, output
    assert "1 built, 0 failed" in output, output
    assert changed(hpcgen) == []


def test_a_single_build_is_a_job_that_is_followed_to_its_end(hpcgen: Hpcgen, fleet: Path) -> None:
    words = ["--collection", ".", "build", "--submit", "--site", "here", "--stack", "tiny", "-o", "single"]
    done = hpcgen(*words, "--time", "15m")
    assert "hpcgen: built " in done.stdout
    assert "succeeded" in done.stdout
    assert (fleet.parent / "single/opt/hpcgen/kit/plan.json").is_file()
    script = next(fleet.parent.glob(".hpcgen/jobs/build-tiny-*/build.*")).read_text()
    assert "#SBATCH --time=00:15:00" in script


def test_a_single_build_that_fails_in_its_job_is_told_with_its_end(hpcgen: Hpcgen) -> None:
    words = ["--collection", ".", "build", "--submit", "--site", "here", "--stack", "tiny", "-o", "no/where"]
    done = hpcgen(*words, check=False)
    assert done.returncode == 10, done.stdout
    assert "does not exist" in done.stdout


@pytest.mark.parametrize("engine", ["buildah", pytest.param("podman", marks=pytest.mark.slow)])
def test_an_image_is_pushed_to_a_registry_that_wants_a_password(buildah: Buildah, tmp_path: Path, engine: str) -> None:
    """An image with one file, in a store of its own; the registry is on loopback."""
    registry = Registry("me", "secret")
    (tmp_path / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/s"\nrunroot = "{tmp_path}/r"\n'
    )
    (tmp_path / "registries.conf").write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    env = {
        "CONTAINERS_STORAGE_CONF": str(tmp_path / "storage.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf"),
        "HPCGEN_REGISTRY_USER": "me",
    }
    container = buildah.run(["buildah", "from", "scratch"], env=env).stdout.split()[-1]
    (tmp_path / "file").write_text("content")
    buildah.run(["buildah", "copy", container, tmp_path / "file", "/file"], env=env)
    buildah.run(["buildah", "commit", container, "localhost/one:latest"], env=env)
    fleet = {
        "registry": f"{registry.host}/hpc",
        "members": [{"stack": "mpi-hello", "site": "workstation", "name": "one"}],
    }
    (tmp_path / "fleet.yaml").write_text(json.dumps(fleet))
    image = LockedImage(content="a" * 64, format="docker", engine=engine, image="podman:one:latest")  # type: ignore[arg-type]
    lock = tmp_path / "fleet.lock"
    update_lock(lock, {"one": image})
    command = [sys.executable, "-m", "hpcgen", "fleet", "publish"]
    wrong = buildah.run(command, env={**env, "HPCGEN_REGISTRY_PASSWORD": "guess"}, cwd=tmp_path, check=False)
    assert (wrong.returncode, registry.manifests) == (7, {}), wrong.stdout
    buildah.run(command, env={**env, "HPCGEN_REGISTRY_PASSWORD": "secret"}, cwd=tmp_path)
    registry.shutdown()
    pushed = read_lock(lock)["one"]
    assert registry.manifests == {"hpc/one:aaaaaaaaaaaa": pushed.digest}
    assert pushed.published == f"{registry.host}/hpc/one:aaaaaaaaaaaa"
