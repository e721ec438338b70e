"""Conda packages in an image: from the files of a project to the recipe, and what of them does not suit a site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hpcgen.api import default_catalog, load_site, load_stack, plan
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, InputError
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.plan import Plan
from hpcgen.kit.lockfile.changes import changes
from hpcgen.kit.sbom import cyclonedx
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly, input_list
from hpcgen.supply.pin.locking import lock_of
from tests.conftest import Command

URL = "https://conda.example.org/forge"
HASH = "ab" * 32


def package(name: str, version: str = "1.0", build: str = "0", subdir: str = "linux-64", *needs: str) -> CondaPackage:
    url = f"{URL}/{subdir}/{name}-{version}-{build}.conda"
    words = {"name": name, "version": version, "build": build, "subdir": subdir, "url": url, "sha256": HASH}
    return CondaPackage(**words, size=1000, licence="MIT", depends=list(needs))


def pixi(folder: Path, *packages: CondaPackage, platform: str = "linux-64") -> None:
    lock = {
        "version": 6,
        "environments": {
            "default": {
                "channels": [{"url": f"{URL}/"}],
                "packages": {platform: [{"conda": each.url} for each in packages]},
            }
        },
        "packages": [
            {"conda": each.url, "sha256": each.sha256, "depends": each.depends, "license": "MIT", "size": 1000}
            for each in packages
        ],
    }
    (folder / "pixi.lock").write_text(yaml.safe_dump(lock, sort_keys=False))


def planned(folder: Path, site: str = "workstation", mpi: bool = False, **options: Any) -> Plan:
    blocks: dict[str, Any] = {"conda_packages": {"options": options}, **({"mpi": {}} if mpi else {})}
    run = {"command": ["speak"], "mpi": mpi}
    stack = {"name": "mine", "title": "Mine", "blocks": blocks, "run": run}
    (folder / "mine.yaml").write_text(yaml.safe_dump(stack, sort_keys=False))
    return planned_from(folder / "mine.yaml", site)


def planned_from(stack: Path, site: str = "workstation", **asked: Any) -> Plan:
    """By a catalog of its own: a folder of another test may have had this one's name, and its files are kept."""
    catalog = Catalog()
    return plan(load_site(site, catalog=catalog), load_stack(stack, catalog=catalog), catalog=catalog, **asked)


def commands(assembly: Assembly) -> str:
    return "\n".join(line for _, step in assembly.builder.steps for line in step.commands)


def test_an_environment_is_chosen_while_building_until_a_lock_says_it(tmp_path: Path) -> None:
    text = "channels: [conda-forge, defaults, nodefaults]\ndependencies: [numpy>=1.26]\nvariables: {A: b}\n"
    (tmp_path / "environment.yml").write_text(text)
    made = planned(tmp_path, files=["environment.yml"], packages=["zlib"])
    assert made.conda is not None and made.conda.needs == ["numpy>=1.26", "zlib"]
    assert made.conda.channels == [
        "https://conda.anaconda.org/conda-forge",
        "https://repo.anaconda.com/pkgs/main",
        "https://repo.anaconda.com/pkgs/r",
    ]
    assert made.conda.virtual["__glibc"] == "2.39" and made.conda.subdir == "linux-64"
    assembly = assemble(made, default_catalog())
    request = json.loads(assembly.files["files/conda/request.json"].text)
    assert request["packages"] == [] and request["needs"] == ["numpy>=1.26", "zlib"]
    assert "curl" not in commands(assembly).partition("py-rattler")[2]
    assert [each for each in assembly.notices if "chosen while the image is built" in each]
    assert assembly.final.environment["A"] == "b" and assembly.final.environment["PATH"].startswith("/opt/conda/bin:")
    locked = assemble(made, default_catalog(), Pins(conda=[package("numpy", "2.1.0"), package("zlib")]))
    assert f'url = "{URL}/linux-64/numpy-2.1.0-0.conda"' in locked.files["files/conda/urls"].text
    assert not [each for each in locked.notices if "conda" in each]


def test_a_lock_is_installed_as_it_is(tmp_path: Path) -> None:
    pixi(tmp_path, package("speak"), package("python", "3.12.4", "h1_0_cpython"), package("words", subdir="noarch"))
    made = planned(tmp_path, files=["pixi.lock"])
    assembly = assemble(made, default_catalog())
    assert made.conda is not None and list(made.conda.files) == ["pixi.lock"] and not made.conda.needs
    sums = assembly.files["files/conda/SHA256SUMS"].text
    assert f"{HASH}  /opt/hpcgen/build/conda/words-1.0-0.conda\n" in sums and len(sums.splitlines()) == 3
    told = commands(assembly)
    assert "curl -fsSL --fail-early --proto =https --retry 3 -K /opt/hpcgen/build/conda/urls" in told
    assert told.index("sha256sum -c --quiet /opt/hpcgen/build/conda/SHA256SUMS") < told.index("program.py install")
    assert assembly.final.copies == ["/opt/conda"]
    assert "/opt/conda/conda-meta/speak-1.0-0.json" in assembly.selftest and "3.12.4" in assembly.selftest


def test_packages_of_repositories_are_built_into_the_environment(tmp_path: Path) -> None:
    text = """\
dependencies:
  - python=3.8
  - pytorch=1.11
  - pip:
      - numpy
      - git+https://example.org/a/clip.git@main
      - -e git+https://example.org/a/odd.git#egg=odd
"""
    (tmp_path / "environment.yml").write_text(text)
    made = planned(tmp_path, files=["environment.yml"])
    assert made.conda is not None and made.conda.pip == ["numpy"]
    assert [(each.name, each.at, each.origin) for each in made.conda.from_git] == [
        ("clip", "main", "environment.yml:6"),
        ("odd", "HEAD", "environment.yml:7"),
    ]
    assembly = assemble(made, default_catalog())
    told = commands(assembly)
    pip = "/opt/conda/bin/python -m pip install --no-build-isolation"
    assert f"{pip} /opt/hpcgen/build/git/clip" in told and "rm -rf /opt/hpcgen/build/git/clip" in told
    assert f"{pip} -e /opt/conda/src/odd" in told and "rm -rf /opt/conda/src/odd\n" not in told
    assert {each.name for each in input_list(assembly)} >= {"https://example.org/a/clip.git"}
    # Its PyTorch is told the places of ranks.
    assert "/opt/conda_packages" in assembly.final.copies
    assert "torch_ranks.py" in assembly.files["files/tests/torch_ranks.py"].text


def test_what_activation_of_known_packages_would_set_is_set(tmp_path: Path) -> None:
    pixi(tmp_path, package("proj", "9.5.1"))
    found = assemble(planned(tmp_path, files=["pixi.lock"]), default_catalog()).final.environment
    assert found["PROJ_LIB"] == "/opt/conda/share/proj" and "GDAL_DATA" not in found


def gpu_planned(folder: Path, **options: Any) -> Plan:
    (folder / "mine.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "mine",
                "title": "Mine",
                "blocks": {"conda_packages": {"options": options}},
                "run": {"command": ["speak"], "mpi": False},
            }
        )
    )
    return planned_from(folder / "mine.yaml", "perlmutter", partition="gpu")


@pytest.mark.parametrize(
    ("asked", "refused"),
    [("pytorch>=2", False), ("pytorch=*=cpu_*", True), ("numpy", True), ("cuda-version=12.4", False)],
)
def test_packages_with_cuda_use_the_node_s_gpus(tmp_path: Path, asked: str, refused: bool) -> None:
    if not refused:
        assert gpu_planned(tmp_path, packages=[asked]).conda is not None
        return
    with pytest.raises(HpcgenError, match="the image cannot use them"):
        gpu_planned(tmp_path, packages=[asked])


@pytest.mark.parametrize(
    ("wheel", "licences"),
    [("torch==2.2.1", 2), ("jax[cuda12]", 2), ("torch==2.2.1+cpu", 0), ("tqdm", 0)],
)
def test_wheels_with_cuda_in_an_environment_use_the_node_s_gpus(tmp_path: Path, wheel: str, licences: int) -> None:
    (tmp_path / "environment.yml").write_text(f"dependencies: [python=3.12, pip, pip: ['{wheel}']]\n")
    if licences:
        assert len(gpu_planned(tmp_path, files=["environment.yml"]).licences) == licences
        assert not planned_from(tmp_path / "mine.yaml", "supermuc").licences
        return
    with pytest.raises(HpcgenError, match="the image cannot use them"):
        gpu_planned(tmp_path, files=["environment.yml"])


def test_a_lock_with_cuda_uses_the_node_s_gpus(tmp_path: Path) -> None:
    pixi(tmp_path, package("cuda-version", "12.4", "h1_3", "noarch"), package("pytorch", "2.5.1", "cuda126_py312h1_0"))
    assert gpu_planned(tmp_path, files=["pixi.lock"]).conda is not None


def test_a_bundle_has_the_files_and_nothing_is_fetched(tmp_path: Path) -> None:
    pixi(tmp_path, package("speak"))
    bundled = msgspec.structs.replace(planned(tmp_path, files=["pixi.lock"]), supply="bundle")
    assembly = assemble(bundled, default_catalog(), Pins())
    place = f"/opt/hpcgen/bundle/files/{HASH}/speak-1.0-0.conda"
    assert assembly.files["files/conda/SHA256SUMS"].text == f"{HASH}  {place}\n"
    request = json.loads(assembly.files["files/conda/request.json"].text)
    assert request["packages"] == [{"path": place, "sha256": HASH, "url": f"{URL}/linux-64/speak-1.0-0.conda"}]
    assert "files/conda/urls" not in assembly.files and "https:" not in commands(assembly)


def test_a_plan_of_a_kit_needs_the_files_no_more(tmp_path: Path) -> None:
    pixi(tmp_path, package("speak"))
    made = planned(tmp_path, files=["pixi.lock"])
    (tmp_path / "pixi.lock").unlink()
    again = msgspec.json.decode(msgspec.json.encode(made), type=Plan)
    assert assemble(again, default_catalog()).labels == assemble(made, default_catalog()).labels


def test_environments_and_categories_of_locks_are_chosen_by_name(tmp_path: Path) -> None:
    pixi(tmp_path, package("speak"))
    with pytest.raises(InputError, match="has no environment 'gpu'") as error:
        planned(tmp_path, files=["pixi.lock"], environment="gpu")
    assert error.value.problems[0].expected == "one of default"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"files": ["pixi.lock", "environment.yml"]}, "which alone decides"),
        ({"files": ["pixi.lock"], "packages": ["zlib"]}, "which alone decides"),
        ({"files": ["gone.yml"]}, "is not there"),
        ({"files": ["../environment.yml"]}, "leads out of the folder"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    pixi(tmp_path, package("speak"))
    (tmp_path / "environment.yml").write_text("dependencies: [zlib]\n")
    with pytest.raises(HpcgenError, match=said):
        planned(tmp_path, **options)


def test_what_a_file_asks_of_pip_is_installed_into_the_environment(tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies: [python=3.12, pip: ['h5py==3.11.0', tqdm]]\n")
    made = planned(tmp_path, files=["environment.yml"])
    assert made.conda is not None and made.conda.needs == ["python=3.12", "pip"]
    assert made.conda.pip == ["h5py==3.11.0", "tqdm"]
    install = "/opt/conda/bin/python -m pip install "
    assembly = assemble(made, default_catalog())
    assert assembly.loose == {"conda-pip": ("h5py==3.11.0", "tqdm")}
    assert commands(assembly).index("program.py install") < commands(assembly).index(install)
    pinned = [f"h5py==3.11.0 --hash=sha256:{HASH}"]
    pins = Pins(conda=[package("python", "3.12.4")], wheels={"conda-pip": pinned})
    assert f"{install}--no-deps --require-hashes" in commands(assemble(made, default_catalog(), pins))
    # All of it may be among the conda packages already.
    pins = Pins(conda=[package("python", "3.12.4")], wheels={"conda-pip": []})
    assert install not in commands(assemble(made, default_catalog(), pins))


@pytest.mark.parametrize("said", ["", "not pip, which installs", "with a sha256"])
def test_packages_of_an_index_in_a_lock_need_pip_and_a_hash(tmp_path: Path, said: str) -> None:
    pixi(tmp_path, package("python", "3.12.4"), package("zlib" if "not pip" in said else "pip", "25.0"))
    lock = yaml.safe_load((tmp_path / "pixi.lock").read_text())
    url = "https://files.example.org/h5py-3.11.0-cp312-cp312-manylinux_2_17_x86_64.whl"
    lock["environments"]["default"]["packages"]["linux-64"].append({"pypi": url})
    hashed = {} if "sha256" in said else {"sha256": HASH}
    lock["packages"].append({"pypi": url, "name": "h5py", "version": "3.11.0", **hashed})
    (tmp_path / "pixi.lock").write_text(yaml.safe_dump(lock, sort_keys=False))
    if said:
        with pytest.raises(ConflictError, match=said):
            planned(tmp_path, files=["pixi.lock"])
        return
    assembly = assemble(planned(tmp_path, files=["pixi.lock"]), default_catalog())
    assert assembly.files["files/requirements/conda-pip.txt"].text == f"h5py==3.11.0 --hash=sha256:{HASH}\n"
    assert not assembly.loose and "/opt/conda/bin/python -m pip install --no-deps" in commands(assembly)


def test_a_lock_for_other_nodes_is_refused(tmp_path: Path) -> None:
    pixi(tmp_path, package("speak", subdir="linux-aarch64"), platform="linux-aarch64")
    with pytest.raises(ConflictError, match="nothing for linux-64"):
        planned(tmp_path, files=["pixi.lock"])


def test_what_a_lock_needs_is_held_against_base_and_node(tmp_path: Path) -> None:
    pixi(
        tmp_path,
        package("new", "1.0", "0", "linux-64", "__glibc >=2.50,<3.0.a0"),
        package("fast", "1.0", "0", "linux-64", "__cuda >=12"),
    )
    with pytest.raises(HpcgenError) as error:
        planned(tmp_path, files=["pixi.lock"])
    told = [each.message for each in error.value.problems]
    assert told[0] == "new=1.0=0 of the lock need glibc 2.50, and the base has 2.39"
    assert told[1].startswith("fast=1.0=0 of the lock need an NVIDIA GPU")


@pytest.mark.parametrize(
    ("name", "build", "said"),
    [
        ("mpich", "h1_0", "is a second MPI beside"),
        ("openmpi", "external_0", "made for openmpi"),
        ("mpich", "external_0", ""),
    ],
)
def test_a_second_mpi_is_refused_and_the_one_for_the_image_is_taken(
    tmp_path: Path, name: str, build: str, said: str
) -> None:
    pixi(tmp_path, package(name, "4.2.3", build))
    if said:
        with pytest.raises(HpcgenError, match=said):
            planned(tmp_path, "supermuc", mpi=True, files=["pixi.lock"])
    else:
        assert planned(tmp_path, "supermuc", mpi=True, files=["pixi.lock"]).conda is not None


def test_what_is_chosen_is_held_to_the_image_s_mpi(tmp_path: Path) -> None:
    made = planned(tmp_path, "supermuc", mpi=True, packages=["hdf5=1.14.*=mpi_mpich_*"])
    assert made.conda is not None and made.conda.held == ["mpi=*=mpich", "mpich=*=external_*"]
    assert not [each for each in made.findings if each.name == "conda packages"]


def test_a_package_that_a_block_brings_too_is_said(tmp_path: Path) -> None:
    stack = {
        "name": "both",
        "title": "Both",
        "blocks": {"pytorch": {}, "conda_packages": {"options": {"packages": ["python=3.12", "pytorch"]}}},
        "run": {"command": ["python"], "mpi": False},
    }
    made = planned_from(stack)
    found = [each.message for each in made.findings if each.name == "conda packages"]
    assert found == ["pytorch is both a conda package and the block pytorch: the one in /opt/conda is used"]


def test_check_reads_the_files_that_a_stack_names(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies: [zlib, npm: [left-pad]]\n")
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ntitle: x\nblocks:\n  conda_packages: {options: {files: [environment.yml, gone.yml]}}\n"
        "run: {command: [speak], mpi: false}\n"
    )
    done = hpcgen("check", str(tmp_path / "mine.yaml"))
    assert done.returncode == 3
    assert f"{tmp_path}/environment.yml:1:22: 'npm' is not a list that conda knows" in done.stderr
    assert "gone.yml: the file is not there" in done.stderr


def test_a_lock_diff_names_the_packages(tmp_path: Path) -> None:
    made = planned(tmp_path, packages=["zlib"])
    found = []
    for version in ("1.2", "1.3"):
        pins = Pins(conda=[package("zlib", version), package("same")])
        found.append(lock_of(made, default_catalog(), pins))
    (change,) = [each for each in changes(*found) if each.what == "input"]
    assert (change.name, change.old) == ("conda_packages", f"conda zlib-1.2-0.conda sha256:{HASH}")
    assert change.new == f"conda zlib-1.3-0.conda sha256:{HASH}"
    rows = {(row.kind, row.name, row.origin) for row in input_list(assemble(made, default_catalog(), found[0].pins))}
    assert ("conda", "zlib=1.2=0", URL) in rows
    component = next(
        each for each in json.loads(cyclonedx(found[0], [], default_catalog()))["components"] if each["name"] == "zlib"
    )
    assert component["purl"].startswith("pkg:conda/zlib@1.2?build=0&channel=") and component["licenses"]


def test_without_a_driver_in_the_profile_the_assumed_one_s_cuda_is_taken(tmp_path: Path) -> None:
    plan = planned(tmp_path, "leonardo", packages=["pytorch>=2.4", "numpy"])
    assert plan.conda is not None and plan.conda.virtual["__cuda"].startswith("12.")
    assert any("planned for 535" in each.message for each in plan.findings)


def test_the_selftest_imports_what_is_asked_for_by_name(tmp_path: Path) -> None:
    script = assemble(planned(tmp_path, packages=["python=3.12", "numpy>=1.26", "hdf5"]), Catalog()).selftest
    assert "import of numpy" in script and "imports.py hdf5 /opt/conda/conda-meta" in script
    assert "import of python" not in script
    assert "import of" not in assemble(planned(tmp_path, packages=["hdf5"]), Catalog()).selftest
