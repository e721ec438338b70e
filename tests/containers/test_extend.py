"""``hpcgen extend`` with the real engines: seconds and bytes against a whole build, and images that say what they are.

The quick test adds files to an image of nothing but the base, by buildah. The slow ones build a stack of Python
packages whole and add to it, by buildah, ch-image and Apptainer, and print the figures.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import REPORTS, BaseImage, Buildah, Run, Sid, SidHpcgen, Tool
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

from hpcgen.kit.lockfile.lock import read_lock

STACK: dict[str, Any] = {
    "name": "small",
    "title": "what is there first",
    "blocks": {"debian": {}},
    "run": {"command": ["cat", "/opt/data/numbers"], "mpi": False},
    "copy": [{"from": "numbers", "to": "/opt/first/numbers"}],
}
PYTHON: dict[str, Any] = {
    "name": "science",
    "title": "Python with some packages",
    "blocks": {"python_packages": {"options": {"packages": ["numpy==2.1.3", "scipy==1.14.1", "pandas==2.2.3"]}}},
    "run": {"command": ["python3", "-c", "import numpy"], "mpi": False},
}
HDF5 = "import h5py, numpy; print(h5py.__version__, numpy.__version__)"


def collection(folder: Path, profile: dict[str, Any], *stacks: dict[str, Any]) -> Path:
    for stack in stacks:
        for name, data in ((f"recipes/{stack['name']}", stack), ("site_profiles/here", profile)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.yaml").write_text(json.dumps(data))
    (folder / "recipes" / "numbers").write_text("1 2 3\n")
    return folder


def test_files_are_added_to_an_image_of_a_store(
    machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", without_servers(site_profile(machine_facts, base_image)), STACK)
    write_bare_base(ours)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers").write_text("4 5 6\n")
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"})
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(ours)]
    image, more = "localhost/small:1", "localhost/small:2"
    try:
        here.run([*hpcgen, "build", "--site", "here", "--stack", "small", "--engine", "buildah", "-o", image])
        words = [*hpcgen, "extend", f"podman:{image}", "--add", "copy:data=/opt/data", "-o", more]
        done = here.run([*words, "--json", "--lock", "more.lock", "--sbom", "more.json"], cwd=tmp_path)
        # What it says for people comes on the same stream.
        record = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        assert record["image"]["name"] == more
        seen = "cat /opt/first/numbers /opt/data/numbers; ls /opt/hpcgen/extended/*/plan.json"
        said = Buildah(here.env).exec(more, ["sh", "-c", seen]).stdout.split("\n")
        old, new = (json.loads(here.run([*hpcgen, "inspect", name, "--json"]).stdout) for name in (image, more))
        assert said[:2] == ["1 2 3", "4 5 6"] and old["content"][:12] in said[2]
        assert new["content"] != old["content"] == new["extends"]["content"]
        assert [each["to"] for each in new["copied"]] == ["/opt/first/numbers", "/opt/data"]
        lock = read_lock(tmp_path / "more.lock")
        assert lock.content == new["content"] and not lock.pins.packages
        assert '"/opt/data"' in (tmp_path / "more.json").read_text()
        again = here.run([*words[:-1], "localhost/small:3", "--dry-run"], cwd=tmp_path).stdout
        assert "podman build" in again
        here.run([*hpcgen, "rebuild", more, "-o", str(tmp_path / "kit")])
        recipe = (tmp_path / "kit" / "Dockerfile").read_text()
        assert f"\nFROM {image}\n" in recipe and "apt-get" not in recipe
    finally:
        here.run(["buildah", "rmi", image, more], check=False)


NAMED = ["--site", "here", "--stack", "science"]
ADDED = ["--add", "pip:h5py==3.11.0", "--add", "apt:bc"]


class Measured:
    """How long a build took by the clock, and what its record says of the image."""

    def __init__(self, start: float, done: Run) -> None:
        self.seconds = time.monotonic() - start
        found = re.search(r"^built .*?: (\d+) MB|hpcgen: built .*?: (\d+) MB", done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        self.megabytes = int(found[1] or found[2])


def compared(engine: str, whole: Measured, more: Measured) -> None:
    told = f"whole {whole.seconds:.0f} s, {whole.megabytes} MB; extended {more.seconds:.0f} s, {more.megabytes} MB"
    REPORTS.append(f"hpcgen extend by {engine}: {told}")
    print(REPORTS[-1], flush=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["podman:localhost/science:1", "ch-image:science", "science.sqfs", "science"])
def test_seconds_and_bytes_against_a_whole_build(
    target: str, machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image), PYTHON)
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"})
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(ours)]
    engine = "buildah" if target.startswith("podman:") else "ch-image"
    new = f"{target}-new" if ":" in target else f"new-{target}"
    try:
        start = time.monotonic()
        words = [*hpcgen, "build", *NAMED, "--engine", engine, "--no-cache", "-o", target]
        whole = Measured(start, here.run(words, cwd=tmp_path))
        start = time.monotonic()
        told = ["--lock", "more.lock", "--sbom", "more.json"]
        more = Measured(start, here.run([*hpcgen, "extend", target, *ADDED, "-o", new, *told], cwd=tmp_path))
        lock = read_lock(tmp_path / "more.lock")
        assert "bc" in lock.pins.packages["final"].added
        assert [line.split()[0] for line in lock.pins.wheels["python_packages"]] == ["h5py==3.11.0"]
        assert '"name": "bc"' in (tmp_path / "more.json").read_text()
        compared(f"{engine} ({target})", whole, more)
        if engine == "buildah":
            said = Buildah(here.env).exec(new.partition(":")[2], ["python3", "-c", HDF5]).stdout
        else:
            name = new.removeprefix("ch-image:")
            path = here.run(["ch-image", "list", name], check=False).stdout if name != new else ""
            assert name == new or "in storage: yes" in path or path, path
            said = here.run([*hpcgen, "run", new, "--", "python3", "-c", HDF5], cwd=tmp_path).stdout
        assert "3.11.0 2.1.3" in said, said
        clash = here.run([*hpcgen, "extend", new, "--add", "pip:numpy==1.26.4"], cwd=tmp_path, check=False)
        assert clash.returncode == 5 and "the image has numpy==2.1.3" in clash.stdout
    finally:
        for name in (target, new):
            words = {"podman": ["buildah", "rmi"], "ch-image": ["ch-image", "delete"]}.get(name.partition(":")[0])
            if words:
                here.run([*words, name.partition(":")[2]], check=False)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["science.sif", "science"])
def test_seconds_and_bytes_by_apptainer(
    target: str,
    sid: Sid,
    sid_hpcgen: SidHpcgen,
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "sid"
    collection(folder / "ours", site_profile(machine_facts, base_image), PYTHON)
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    sid.folder(folder)
    start = time.monotonic()
    words = ["--collection", "/kit/ours", "build", *NAMED, "--engine", "apptainer", "-o", target, "--no-record"]
    whole = Measured(start, sid_hpcgen.run(words, binds=binds, cwd="/kit"))
    start = time.monotonic()
    words = ["--collection", "/kit/ours", "extend", target, *ADDED, "-o", f"new-{target}", "--no-record"]
    more = Measured(start, sid_hpcgen.run(words, binds=binds, cwd="/kit"))
    compared(f"apptainer ({target})", whole, more)
    words = ["apptainer", "exec", *(["--unsquash"] if target.endswith(".sif") else []), f"new-{target}"]
    said = sid.run([*words, "python3", "-c", HDF5], binds=binds, cwd="/kit").stdout
    assert "3.11.0 2.1.3" in said, said
