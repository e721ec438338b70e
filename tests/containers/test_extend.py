"""``hpcgen extend`` with the real engines: seconds and bytes against a whole build, and images that say what they are.

The quick test adds files and a Debian package to an image of nothing but the base, by buildah. The slow ones build a
stack of Python packages whole and add to it, by buildah, ch-image and Apptainer, and print the figures.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bare import write_bare_base
from container_tools import BaseImage, Buildah, Tool
from test_rendered_kits import site_profile

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


def test_buildah_adds_files_and_a_package_to_an_image(
    machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    ours = collection(tmp_path / "ours", site_profile(machine_facts, base_image), STACK)
    write_bare_base(ours)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers").write_text("4 5 6\n")
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"})
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(ours)]
    image, more = "localhost/small:1", "localhost/small:2"
    try:
        here.run([*hpcgen, "build", "--site", "here", "--stack", "small", "--engine", "buildah", "-o", image])
        words = [*hpcgen, "extend", f"podman:{image}", "--add", "apt:bc", "--add", "copy:data=/opt/data", "-o", more]
        done = here.run([*words, "--json"], cwd=tmp_path)
        # What it says for people comes on the same stream.
        record = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        assert record["result"] == "built" and record["blocks"]["os_packages"] == "1"
        seen = "cat /opt/first/numbers /opt/data/numbers; echo 6*7 | bc; ls /opt/hpcgen/extended/*/plan.json"
        said = Buildah(here.env).exec(more, ["sh", "-c", seen]).stdout.split("\n")
        old, new = (json.loads(here.run([*hpcgen, "inspect", name, "--json"]).stdout) for name in (image, more))
        assert said[:3] == ["1 2 3", "4 5 6", "42"] and old["content"][:12] in said[3]
        assert new["content"] != old["content"] == new["extends"]["content"]
        assert [each["to"] for each in new["copied"]] == ["/opt/first/numbers", "/opt/data"]
        again = here.run([*words[:-1], "localhost/small:3", "--dry-run"], cwd=tmp_path).stdout
        assert "buildah build" in again
        here.run([*hpcgen, "rebuild", more, "-o", str(tmp_path / "kit")])
        recipe = (tmp_path / "kit" / "Dockerfile").read_text()
        assert f"\nFROM {image}\n" in recipe and "install -y --no-install-recommends bc " in recipe
    finally:
        here.run(["buildah", "rmi", image, more], check=False)
