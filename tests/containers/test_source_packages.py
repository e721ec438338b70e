"""Packages that an index has as source alone: locked, bundled, and built by ch-image with no network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, run
from test_offline import alone, quiet
from test_project import remote_index
from test_rendered_kits import site_profile

from hpcgen.supply.net.package_index import PackageIndex

pytestmark = pytest.mark.slow

HPCGEN = [sys.executable, "-m", "hpcgen"]
REQUIREMENTS = """hydra-core==1.3.2
docopt==0.6.2
pathtools==0.1.2
# Its build requires setuptools-scm.
gpustat==1.1.1
# Cython, numpy and a compiler; numpy also where it runs.
numpy<3
pesq==0.0.4
"""
STACK: dict[str, Any] = {
    "name": "old",
    "title": "a project with old packages",
    "blocks": {
        "debian": {"version": "12"},
        "gnu": {},
        "python_packages": {"options": {"files": ["requirements.txt"]}},
    },
    "run": {"command": ["python3", "-c", "import hydra"], "mpi": False},
}
SHOWN = "import antlr4, docopt, gpustat, hydra, pathtools, pesq; print(hydra.__version__, docopt.__version__)"


def pylock(folder: Path) -> None:
    """A lock of the project's own that names nothing but source packages."""
    index = PackageIndex((remote_index(),))
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    for name, version in {"docopt": "0.6.2", "pathtools": "0.1.2", "gpustat": "1.1.1"}.items():
        (file,) = [each for each in index.files(name, version) if each.file.endswith(".tar.gz")]
        sdist = f'sdist = {{name = "{file.file}", hashes = {{sha256 = "{file.sha256}"}}}}'
        text += f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{sdist}\n'
    (folder / "pylock.toml").write_text(text)


def test_source_packages_of_a_projects_own_lock_are_built_with_no_network(
    tmp_path: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage
) -> None:
    """gpustat is built by setuptools-scm, and requires what comes as wheels beside the lock."""
    profile = site_profile(machine_facts, plain_base_image)
    del profile["network"]["mirrors"]["images"]
    (tmp_path / "here.yaml").write_text(json.dumps(profile))
    more = {"files": ["pylock.toml"], "packages": ["nvidia-ml-py==12.575.51", "psutil==7.0.0", "blessed==1.21.0"]}
    blocks = {"debian": {"version": "12"}, "python_packages": {"options": more}}
    (tmp_path / "hpcgen.yaml").write_text(json.dumps({**STACK, "blocks": blocks}))
    pylock(tmp_path)
    env = {**ch_image.env, "PIP_INDEX_URL": remote_index()}
    image = ["--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    run([*HPCGEN, "lock", "--site", "here.yaml", *image, "-o", "hpcgen.lock"], env=env, cwd=tmp_path)
    run([*HPCGEN, "bundle", "create", "--lock", "hpcgen.lock", *image, "-o", "bundle"], env=env, cwd=tmp_path)
    quiet(alone([*HPCGEN, "build", "--bundle", tmp_path / "bundle", "-o", tmp_path / "image"], ch_image.env))
    program = "import docopt, gpustat, pathtools; print(gpustat.__version__, docopt.__version__)"
    shown = ch_image.run(["ch-run", tmp_path / "image", "--", "/opt/python/bin/python", "-c", program]).stdout
    assert shown.split()[-2:] == ["1.1.1", "0.6.2"]


def test_source_packages_are_locked_and_built_with_no_network(
    tmp_path: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage
) -> None:
    profile = site_profile(machine_facts, plain_base_image)
    del profile["network"]["mirrors"]["images"]
    (tmp_path / "here.yaml").write_text(json.dumps(profile))
    (tmp_path / "hpcgen.yaml").write_text(json.dumps(STACK))
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    env = {**ch_image.env, "PIP_INDEX_URL": remote_index()}
    image = ["--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    said = run([*HPCGEN, "lock", "--site", "here.yaml", *image, "-o", "hpcgen.lock"], env=env, cwd=tmp_path).stdout
    assert "built from their source packages, since no wheel fits: antlr4-python3-runtime 4.9.3, docopt 0.6.2" in said
    run([*HPCGEN, "bundle", "create", "--lock", "hpcgen.lock", *image, "-o", "bundle"], env=env, cwd=tmp_path)
    built = alone([*HPCGEN, "build", "--bundle", tmp_path / "bundle", "-o", tmp_path / "image"], ch_image.env)
    quiet(built)
    shown = ch_image.run(["ch-run", tmp_path / "image", "--", "/opt/python/bin/python", "-c", SHOWN]).stdout
    assert shown.split()[-2:] == ["1.3.2", "0.6.2"]
    there = tmp_path / "image/opt/hpcgen/build"
    assert not there.exists(), "nothing of the builds stays"
    bill = json.loads((tmp_path / "bundle/sbom.cdx.json").read_text())
    named = {each["name"]: json.dumps(each) for each in bill["components"]}
    assert "compiled from its source package" in named["antlr4-python3-runtime"]
    assert "compiled from its source package" not in named["hydra-core"]
