"""Compiled once: a block that one image compiled is unpacked into the next ones, by podman, ch-image and Apptainer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, ChImage, Run, Slurm, run
from loopback_registry import Registry
from test_build import record_in
from test_locking import registry
from test_rendered_kits import site_profile
from test_sources import sources

from hpcgen.api import default_catalog
from tests.helpers.file_server import FileServer, make_certificate, serving
from tests.helpers.ssh_keys import allowed, ssh_key

__all__ = ["registry"]

pytestmark = pytest.mark.slow
VERSION = "2.0.16"
STACK = {
    "name": "probe",
    "title": "The placement of processes",
    "blocks": {"numactl": {"version": VERSION}},
    "run": {"mpi": False, "command": ["/opt/numactl/bin/numactl", "--show"]},
}
RANKS = {
    "name": "ranks",
    "title": "mpi4py, compiled over the wheels of an MPI",
    "blocks": {
        "mpi4py": {"version": "4.1.2", "options": {"install": "source"}},
        "mpich": {"options": {"obtain": "wheels"}},
        "mpi": {"provider": "mpich"},
    },
    "run": {"command": ["python3", "/opt/mpi4py/share/ranks.py"], "gpus_per_node": 0},
}
TREE = """
import hashlib, os, sys
for top in sys.argv[1:]:
    for folder, _, names in os.walk(top):
        for path in sorted(os.path.join(folder, name) for name in names):
            data = os.readlink(path).encode() if os.path.islink(path) else open(path, "rb").read()
            # What Python made of a program has the date of its file in it.
            dateless = data[:8] + data[12:] if path.endswith(".pyc") else data
            print("file", path, *(hashlib.sha256(each).hexdigest() for each in (data, dateless)))
"""
OUTPUT = {"podman": "localhost/artifact-probe:1", "ch-image": "image", "apptainer": "image.sif"}
FLEET = {"members": [{"stack": name, "site": "here", "engine": "podman", "test": False} for name in ("probe", "other")]}
LOOK = "cd /opt && find numactl -type f -exec sha256sum {} + -o -type l -printf '%p -> %l\\n' | sort"
Start = Callable[[str, list[str]], Run]


@pytest.fixture
def mirror(machine_facts: dict[str, Any], tmp_path: Path) -> Iterator[FileServer]:
    """The archive of the block's release, as its table names it."""
    (tmp_path / "project").mkdir()
    with serving(make_certificate(tmp_path / "project")) as server:
        (held,) = sources(machine_facts["debian"]["mirror"], ["numactl"], tmp_path / "sources")
        url = default_catalog().releases("numactl")[VERSION].archives["source"].url
        server.files[url.rsplit("/", 1)[1]] = held
        yield server


@pytest.fixture
def start(
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    by_engine: Callable[..., Run],
    mirror: FileServer,
    tmp_path: Path,
) -> Start:
    """hpcgen where an engine is, in a folder with a profile of this machine, two stacks and a fleet."""
    folder = tmp_path / "project"
    site = site_profile(machine_facts, base_image)
    site["network"]["mirrors"]["files"] = mirror.url("").rstrip("/")
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(folder / "certificate.pem")]
    (folder / "site_profiles").mkdir()
    (folder / "recipes").mkdir()
    (folder / "site_profiles/here.yaml").write_text(json.dumps(site), "utf-8")
    for name in ("probe", "other"):
        (folder / f"recipes/{name}.yaml").write_text(json.dumps({**STACK, "name": name}), "utf-8")
    (folder / "recipes/ranks.yaml").write_text(json.dumps(RANKS), "utf-8")
    (folder / "fleet.yaml").write_text(json.dumps(FLEET), "utf-8")

    return lambda engine, words: by_engine(engine, folder, words)


@pytest.mark.parametrize("engine", OUTPUT)
def test_the_second_image_compiles_nothing_and_is_the_same(
    engine: str, start: Start, mirror: FileServer, tmp_path: Path
) -> None:
    took: list[str] = []

    def build(*words: str) -> dict[str, Any]:
        asked, began = (
            ["--site", "here", "--stack", "probe", "--engine", engine, "-o", OUTPUT[engine]],
            time.monotonic(),
        )
        record = record_in(start(engine, ["build", *asked, "--json", *words]))
        took.append(f"{time.monotonic() - began:.0f} s")
        return record

    def tree() -> str:
        name = f"podman:{OUTPUT[engine]}" if engine == "podman" else OUTPUT[engine]
        return start(engine, ["run", name, "--", "sh", "-c", LOOK]).stdout.split("\n", 1)[1]

    plain, without = build(), tree()
    first = build("--cache", "store")
    kept, fetched = tree(), len(mirror.requests)
    assert kept == without
    second = build("--cache", "store")
    assert len(mirror.requests) == fetched
    assert second["content"] == first["content"] == plain["content"]
    assert tree() == kept and "numactl/lib/libnuma.so.1" in kept
    assert second["artifacts"].keys() == {"numactl"} and "artifacts" not in plain
    assert "configure" not in {each["about"] for each in second["steps"]}
    REPORTS.append(f"artifacts by {engine}: without, with an empty and with a full store: {', '.join(took)}")


@pytest.mark.parametrize("engine", ["podman", "ch-image"])
def test_a_wheel_is_compiled_once_and_its_environment_is_the_same(engine: str, start: Start) -> None:
    took: list[str] = []

    def build(*words: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        asked = ["--site", "here", "--stack", "ranks", "--engine", engine, "-o", OUTPUT[engine]]
        began = time.monotonic()
        record = record_in(start(engine, ["build", *asked, "--json", *words]))
        took.append(f"{time.monotonic() - began:.0f} s")
        name = f"podman:{OUTPUT[engine]}" if engine == "podman" else OUTPUT[engine]
        listed = start(
            engine, ["run", name, "--", "python3", "-c", f"exec({TREE!r})", "/opt/python", "/opt/mpi4py"]
        ).stdout
        lines = (line.split() for line in listed.splitlines() if line.startswith("file /opt/"))
        return record, {path: hashes for _, path, *hashes in lines}

    plain, without = build()
    first, kept = build("--cache", "store")
    second, taken = build("--cache", "store")
    assert second["content"] == first["content"] == plain["content"]
    assert second["artifacts"].keys() == {"mpi4py"} and "artifacts" not in plain
    steps = [
        " ".join(each["about"] for each in record["steps"] if "mpi4py" in each["block"]) for record in (plain, second)
    ]
    assert "source" in steps[0] and "source" not in steps[1] and "unpack" in steps[1]
    assert any(path.endswith(".so") and "/mpi4py/" in path for path in taken)
    for tree in (kept, taken):
        differing = {path for path in without.keys() | tree.keys() if without.get(path) != tree.get(path)}
        dated = {path for path in differing if path in tree and without.get(path, [""])[-1] == tree[path][-1]}
        assert differing == dated, sorted(differing - dated)
        took.append(f"{len(differing)} of {len(tree)} files with another date in them")
    REPORTS.append(
        f"mpi4py as an artifact by {engine}: without, with an empty and with a full store: {', '.join(took)}"
    )


def test_a_fleet_compiles_what_its_members_share_once(start: Start, mirror: FileServer) -> None:
    said = start("podman", ["build", "--all", "--cache", "store"]).stdout
    assert said.count("is compiled once") == 1 and said.count("taken from") == 2, said
    assert len(mirror.requests) == 1
    again = start("podman", ["build", "--all", "--force", "--cache", "store"]).stdout
    assert "is compiled once" not in again and again.count("taken from") == 2, again


def test_an_array_compiles_before_it_builds(
    start: Start, ch_image: ChImage, slurm_cluster: Callable[..., Slurm], mirror: FileServer, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    batch = {"kind": "slurm", "default_time": "00:20:00"}
    profile = json.loads((folder / "site_profiles/here.yaml").read_text())
    profile["containers"]["build_on"], profile["scheduler"] = ["compute"], batch
    profile["containers"]["engines"]["charliecloud"] = {}
    profile["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    (folder / "site_profiles/here.yaml").write_text(json.dumps(profile), "utf-8")
    fleet = {"members": [{"stack": name, "site": "here", "test": False} for name in ("probe", "other")]}
    (folder / "fleet.yaml").write_text(json.dumps(fleet), "utf-8")
    jobs = start("slurm", ["build", "--all", "--array", "--cache", "store"]).stdout.splitlines()
    compiling, building = [line for line in jobs if line.isdigit()]
    for _ in range(600):
        if not slurm_cluster("general").run(["squeue", "-h", "-j", building], check=False).stdout.strip():
            break
        time.sleep(1)
    said = {path.name: path.read_text() for path in folder.glob("slurm-*.out")}
    assert f"slurm-{compiling}_0.out" in said, said
    assert sum("is compiled once" in text for text in said.values()) == 1, said
    assert "1 compiled, 0 failed" in said[f"slurm-{compiling}_0.out"]
    for number in range(2):
        text = said[f"slurm-{building}_{number}.out"]
        assert text.count("taken from") == 1 and "1 built, 0 failed" in text, text
    assert len(mirror.requests) == 1


@pytest.mark.parametrize("engine", ["podman", "ch-image"])
def test_a_build_from_a_bundle_unpacks_what_its_lock_compiled(
    engine: str, start: Start, mirror: FileServer, tmp_path: Path
) -> None:
    format = {"podman": "docker", "ch-image": "charliecloud"}[engine]
    start(engine, ["lock", "--site", "here", "--stack", "probe", "--format", format, "-o", "probe.lock"])
    words = ["build", "--engine", engine, "-o", OUTPUT[engine], "--cache", "store", "--json"]
    first = record_in(start(engine, [*words, "--locked", "probe.lock"]))
    start(engine, ["bundle", "create", "--lock", "probe.lock", "-o", "bundle"])
    fetched = len(mirror.requests)
    again = record_in(start(engine, [*words, "--bundle", "bundle"]))
    assert again["artifacts"] == first["artifacts"] and again["artifacts"].keys() == {"numactl"}
    assert len(mirror.requests) == fetched
    name = f"podman:{OUTPUT[engine]}" if engine == "podman" else OUTPUT[engine]
    assert "numactl/lib/libnuma.so.1" in start(engine, ["run", name, "--", "sh", "-c", LOOK]).stdout
    # The bundle with what was compiled in the place of its sources needs no store beside it.
    own = ["--artifacts", "--cache", "store", "--reuse", "bundle"]
    made = start(engine, ["bundle", "create", "--lock", "probe.lock", "-o", "compiled", *own]).stdout
    assert f"without the sources of numactl {VERSION}" in made
    assert not list((tmp_path / "project/compiled/files").glob("*/numactl*"))
    assert f"it has no sources of numactl {VERSION}" in start(engine, ["bundle", "verify", "compiled"]).stdout
    words = ["build", "--engine", engine, "-o", OUTPUT[engine], "--json", "--bundle", "compiled"]
    alone = record_in(start(engine, words))
    assert alone["artifacts"]["numactl"]["key"] == first["artifacts"]["numactl"]["key"]
    assert alone["content"] == first["content"] and len(mirror.requests) == fetched
    assert "numactl/lib/libnuma.so.1" in start(engine, ["run", name, "--", "sh", "-c", LOOK]).stdout
    start(engine, ["render", "--bundle", "compiled", "-o", "kit"])
    refused = subprocess.run(["bash", "kit/build.sh", "--bundle", "compiled"], cwd=tmp_path / "project", stderr=-1)
    assert refused.returncode == 65 and b"hpcgen build --bundle" in refused.stderr


@pytest.mark.parametrize("engine", ["podman", "apptainer"])
def test_a_registry_brings_what_another_machine_compiled_and_signed(
    engine: str, registry: Registry, start: Start, mirror: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first machine's store is pushed; the second has only the registry, and whom it trusts."""
    folder, address = tmp_path / "project", f"docker://{registry.host}/hpc/artifacts"
    ours, another = ssh_key(tmp_path / "ours"), ssh_key(tmp_path / "another")
    signers = allowed(tmp_path / "allowed", {"we@example.org": ours})
    took: list[str] = []

    def cache(*words: str, status: int = 0) -> str:
        began = time.monotonic()
        done = run([sys.executable, "-m", "hpcgen", "cache", *words], cwd=folder, check=False)
        took.append(f"{words[0]} {time.monotonic() - began:.1f} s")
        assert done.returncode == status, done.stdout
        return done.stdout

    def build(store: str) -> dict[str, Any]:
        words = ["--site", "here", "--stack", "probe", "--engine", engine, "-o", OUTPUT[engine], "--cache", store]
        began = time.monotonic()
        record = record_in(start(engine, ["build", *words, "--json"]))
        took.append(f"build {time.monotonic() - began:.0f} s")
        return record

    first = build("first")
    fetched = len(mirror.requests)
    cache("push", address, "--cache", "first")
    pull = ["pull", address, "--cache", "second", "--signer", str(signers)]
    assert "is not signed" in cache(*pull, status=1)
    cache("sign", "--key", str(another), "--cache", "first")
    cache("push", address, "--cache", "first")
    assert "none of the allowed signers" in cache(*pull, status=1)
    (key,) = (each.stem for each in (folder / "first").glob("??/*.json"))
    cache("sign", key, "--key", str(ours), "--cache", "first")
    cache("push", address, "--cache", "first", "--signer", str(signers))
    assert "copied 1 of 1 artifact" in cache(*pull)
    second = build("second")
    assert second["artifacts"]["numactl"]["key"] == first["artifacts"]["numactl"]["key"] == key
    assert second["content"] == first["content"] and len(mirror.requests) == fetched
    if engine == "podman":
        # The same in one step, where the config file names the registry.
        (folder / "config.yaml").write_text(json.dumps({"artifact_sources": [address], "signers": str(signers)}))
        monkeypatch.setenv("HPCGEN_CONFIG", str(folder / "config.yaml"))
        third = build("third")["artifacts"]["numactl"]
        assert (third["key"], third["place"]) == (key, address) and len(mirror.requests) == fetched
    REPORTS.append(f"artifacts through a registry by {engine}: {', '.join(took)}")
