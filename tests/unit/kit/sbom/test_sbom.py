"""SBOMs: real validators take them, they name what the image will hold and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from packageurl import PackageURL

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.lock import Lock
from hpcgen.kit.sbom import cyclonedx, spdx
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly
from tests.helpers.locks import FINAL, PRESENT, lock, pins
from tests.sbom_comparison import dpkg_list, missing_from_image, missing_from_sbom, pip_list

CASES = [
    ("tf-horovod", "workstation", ("base.provider=debian",)),
    # Of a release of which no list of Bazel's downloads is there: the validator compares each component with each.
    ("tf-horovod", "supermuc", ("tensorflow.version=2.13.1",)),
    ("tf-horovod", "hlrs-testbed", ()),
    ("tf-horovod", "workstation", ("tensorflow.install=hub",)),
    ("mpi-hello", "workstation", ("base.provider=debian", "mpi.provider=intel_mpi")),
]
OS_PACKAGES = PRESENT | FINAL


@pytest.fixture(params=CASES, ids=lambda case: " ".join([*case[:2], *case[2]]), scope="module")
def locked(request: pytest.FixtureRequest) -> Lock:
    return lock(*request.param)


@pytest.fixture(scope="module")
def pip_lock() -> Lock:
    """TensorFlow from wheels, MPICH compiled, CMake in the builder only."""
    return lock()


def components(text: str) -> dict[str, dict[str, Any]]:
    return {component["name"]: component for component in json.loads(text)["components"]}


def item(sha256: str, licence: str, kind: str = "package") -> BundleItem:
    return BundleItem(
        kind=kind,  # type: ignore[arg-type]
        name="a file",
        origin="https://files.example.org/a",
        sha256=sha256,
        size=1,
        path=f"files/{sha256}/a",
        licence=licence,
    )


def cyclonedx_error(text: str) -> Any:
    """The validator is imported where it is used: that takes a third of what collecting all tests takes."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def spdx_errors(path: Path) -> list[Any]:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    return validate_full_spdx_document(parse_file(str(path)))


def test_cyclonedx_validator_takes_it(locked: Lock) -> None:
    assert cyclonedx_error(cyclonedx(locked, [])) is None


def test_spdx_validator_takes_it(locked: Lock, tmp_path: Path) -> None:
    path = tmp_path / "sbom.spdx.json"
    path.write_text(spdx(locked, []))
    assert spdx_errors(path) == []


def test_purls_are_canonical(locked: Lock) -> None:
    """The reference implementation reads each and would write the same."""
    data = json.loads(cyclonedx(locked, []))
    found = [c["purl"] for c in [*data["components"], *data["formulation"][0]["components"]] if "purl" in c]
    assert len(found) > 10
    assert [str(PackageURL.from_string(text)) for text in found] == found


def test_same_lock_same_bytes_and_another_lock_another_serial(pip_lock: Lock) -> None:
    other = lock(pinned=pins(final={**FINAL, "python3": "3.11.2-1+b2"}))
    for made in (cyclonedx, spdx):
        assert made(pip_lock, []) == made(lock(), [])
    first, second = (json.loads(cyclonedx(one, [])) for one in (pip_lock, other))
    assert first["serialNumber"] != second["serialNumber"]
    assert first["metadata"]["timestamp"] == "2025-10-09T08:53:20Z"
    names = {json.loads(spdx(one, []))["documentNamespace"] for one in (pip_lock, other)}
    assert len(names) == 2


@pytest.mark.parametrize("made", [cyclonedx, spdx])
def test_names_what_the_image_holds(pip_lock: Lock, made: Any) -> None:
    pip = {"tensorflow_cpu": "2.15.1", "horovod": "0.28.1", "pip": "26.3", "setuptools": "80.10.2"}
    text = made(pip_lock, [])
    assert missing_from_sbom(text, OS_PACKAGES, pip) == []
    assert missing_from_sbom(text, {**OS_PACKAGES, "git": "1:2.39.5-0+deb12u2"}, {**pip, "cmake": "3.31.10"}) == [
        "package git 1:2.39.5-0+deb12u2: not in the SBOM",
        "python cmake 3.31.10: not in the SBOM",
    ]
    assert missing_from_sbom(text, {"libc6": "2.36-9"}, {"pip": "1"}) == [
        "package libc6 2.36-9: the SBOM says 2.36-9+deb12u13",
        "python pip 1: the SBOM says 26.3",
    ]


@pytest.mark.parametrize("made", [cyclonedx, spdx])
def test_claims_nothing_that_the_image_does_not_hold(pip_lock: Lock, made: Any) -> None:
    text = made(pip_lock, [])
    listed = {
        name: c["version"] for name, c in components(cyclonedx(pip_lock, [])).items() if "pypi" in c.get("purl", "")
    }
    assert missing_from_image(text, OS_PACKAGES, listed) == []
    assert missing_from_image(text, {**OS_PACKAGES, "python3": "1"}, listed) == [
        "package python3 3.11.2-1+b1: not in the image"
    ]


def test_reads_what_dpkg_and_pip_print() -> None:
    assert dpkg_list("libc6 2.36-9 ii \nold-lib 1.0 rc \n") == {"libc6": "2.36-9"}
    assert pip_list('[{"name": "PyYAML", "version": "6.0.3"}]') == {"PyYAML": "6.0.3"}


def test_tensorflow_from_source_is_named_though_no_index_has_it() -> None:
    text = cyclonedx(lock("tf-horovod", "supermuc", ("tensorflow.install=source",)), [])
    assert missing_from_sbom(text, {}, {"tensorflow": "2.15.1"}) == []
    assert "tensorflow-cpu" not in components(text)
    assert "bazel" in {tool["name"] for tool in json.loads(text)["formulation"][0]["components"]}


def test_intel_mpi_wheels_are_in_their_own_folder() -> None:
    text = cyclonedx(lock("mpi-hello", "workstation", ("base.provider=debian", "mpi.provider=intel_mpi")), [])
    properties = {p["name"]: p["value"] for p in components(text)["impi-rt"]["properties"]}
    assert properties == {"hpcgen:block": "intel_mpi", "hpcgen:folder": "/opt/intel_mpi"}


def test_horovod_is_said_to_be_compiled(pip_lock: Lock) -> None:
    named = components(cyclonedx(pip_lock, []))
    assert named["horovod"]["description"].startswith("compiled from its source package")
    assert "description" not in named["numpy"]


def test_a_package_that_the_build_renews_is_named_once() -> None:
    text = cyclonedx(lock(pinned=pins(final={**FINAL, "zlib1g": "1:1.2.13.dfsg-2"})), [])
    assert [c["version"] for c in json.loads(text)["components"] if c["name"] == "zlib1g"] == ["1:1.2.13.dfsg-2"]


def test_a_list_installed_later_replaces_a_package(pip_lock: Lock, tmp_path: Path) -> None:
    """The stack's own packages come last, and pip leaves one version of each."""
    recipe = tmp_path / "own.yaml"
    recipe.write_text(
        "name: own\ntitle: TensorFlow and another h5py\n"
        "blocks:\n  tensorflow: {version: ==2.15.1}\n"
        "  python_packages: {options: {packages: [h5py==3.11.0]}}\n"
        "run: {command: [python3], mpi: false}\n"
    )
    own = json.loads(cyclonedx(lock(str(recipe)), []))
    assert [c["version"] for c in own["components"] if c["name"] == "h5py"] == ["3.11.0"]
    assert components(cyclonedx(pip_lock, []))["h5py"]["version"] == "3.16.0"


def test_wheel_lists_are_not_read_out_of_commands(pip_lock: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cyclonedx(pip_lock, [])

    def reworded(*arguments: Any) -> Assembly:
        assembly = assemble(*arguments)
        steps = [(label, replace(step, about="?", commands=("true",))) for label, step in assembly.builder.steps]
        return replace(assembly, builder=replace(assembly.builder, steps=steps))

    monkeypatch.setattr("hpcgen.kit.contents.assemble", reworded)
    assert cyclonedx(pip_lock, []) == before


def test_licences_come_from_bundle_and_tables_and_what_is_no_expression_is_left_out(
    pip_lock: Lock, tmp_path: Path
) -> None:
    added = pip_lock.pins.packages["final"].added
    items = [
        item(added["python3"].sha256, "PSF-2.0 and LicenseRef-Other"),
        item(added["libstdc++6"].sha256, "GPL, mostly"),
    ]
    named = components(cyclonedx(pip_lock, items))
    assert named["python3"]["licenses"] == [{"expression": "PSF-2.0 AND LicenseRef-Other"}]
    assert "licenses" not in named["libstdc++6"]
    assert named["horovod"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert named["rank_test"]["licenses"] == [{"expression": "Apache-2.0"}]
    path = tmp_path / "sbom.spdx.json"
    path.write_text(spdx(pip_lock, items))
    assert spdx_errors(path) == []
    data = json.loads(path.read_text())
    declared = {package["name"]: package["licenseDeclared"] for package in data["packages"]}
    assert declared["libstdc++6"] == "NOASSERTION"
    assert [other["licenseId"] for other in data["hasExtractedLicensingInfos"]] == ["LicenseRef-Other"]


def test_what_needs_what(pip_lock: Lock) -> None:
    edges = {edge["ref"]: edge["dependsOn"] for edge in json.loads(cyclonedx(pip_lock, []))["dependencies"]}
    mpich = next(ref for ref in edges if ref.startswith("software:mpich@"))
    assert [ref.split("@")[0] for ref in edges[mpich]] == ["software:libfabric"]
    assert edges["image:debian:12"] == sorted(f"package:{name}@{version}" for name, version in PRESENT.items())


def test_a_licence_in_a_table_must_be_an_expression(hpcgen: Any, collection: Path) -> None:
    table = collection / "building_blocks" / "mpich.yaml"
    table.write_text('block: mpich\nlicence: the usual\nreleases:\n  "9.9": {licence: BSD-ish}\n')
    run = hpcgen("check", str(table))
    assert run.returncode == 3
    assert "mpich.yaml:2:10" in run.stderr and "'the usual' is not an SPDX licence expression" in run.stderr
    assert "mpich.yaml:4:20" in run.stderr and "LicenseRef-NAME" in run.stderr


def test_each_git_tree_has_its_own_licence() -> None:
    catalog = Catalog()
    made = lock("onnxruntime", settings=["onnxruntime.install=source"], catalog=catalog)
    found = components(cyclonedx(made, [], catalog))
    licences = {name: found[name]["licenses"][0]["expression"] for name in ("eigen", "abseil-cpp", "mp11")}
    assert licences == {"eigen": "MPL-2.0", "abseil-cpp": "Apache-2.0", "mp11": "BSL-1.0"}
    trees = [each for each in found.values() if "git%2B" in each.get("purl", "")]
    assert len(trees) > 10
    assert all(tree["licenses"] for tree in trees)


def test_git_trees_are_held_and_files_for_bazel_are_not(collection: Path, tmp_path: Path) -> None:
    """Bazel alone knows which of its files end up in a program, so none is claimed."""
    (collection / "building_blocks" / "own.py").write_text(
        "from hpcgen.blocks.base import Block\n"
        "from hpcgen.blocks.steps import BazelFile, BazelFiles, GitTree, Runtime\n\n\n"
        "class Own(Block):\n"
        "    name = 'own'\n\n"
        "    def inputs(self, ctx):\n"
        f"        zlib = BazelFile(name='zlib', sha256='{'e' * 64}', urls=('https://a.example.org/zlib.tar.gz',))\n"
        f"        six = BazelFile(name='pypi_six', sha256='{'f' * 64}', file='six.whl', package='six==1.16.0')\n"
        f"        tree = GitTree('https://git.example.org/solver.git', '{'c' * 40}')\n"
        "        return [BazelFiles('own-1', (zlib, six)), tree]\n\n"
        "    def runtime(self, ctx):\n"
        "        return Runtime(copies=('/opt/own',))\n"
    )
    (collection / "building_blocks" / "own.yaml").write_text('block: own\nlicence: MIT\nreleases:\n  "1": {}\n')
    recipe = tmp_path / "own.yaml"
    recipe.write_text("name: own\ntitle: own\nblocks: {own: {}}\nrun: {command: [solver], mpi: false}\n")
    catalog = Catalog([collection])
    own = lock(str(recipe), catalog=catalog)
    text, other = cyclonedx(own, [], catalog), tmp_path / "sbom.spdx.json"
    other.write_text(spdx(own, [], catalog))
    assert cyclonedx_error(text) is None
    assert spdx_errors(other) == []
    solver = components(text)["solver"]
    assert solver["licenses"] == [{"expression": "MIT"}] and solver["version"] == "c" * 40
    assert "zlib" not in components(text)
    tools = {tool["name"]: tool for tool in json.loads(text)["formulation"][0]["components"]}
    assert tools["zlib"]["hashes"] == [{"alg": "SHA-256", "content": "e" * 64}]
    assert tools["six"]["purl"] == "pkg:pypi/six@1.16.0"
    kinds = {
        r["relationshipType"] for r in json.loads(other.read_text())["relationships"] if "zlib" in r["spdxElementId"]
    }
    assert kinds == {"BUILD_DEPENDENCY_OF"}
