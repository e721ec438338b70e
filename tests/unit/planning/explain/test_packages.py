"""Single packages of a project, each with the line that asks for it, the block, the version, the site's fact."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import UnknownNameError
from hpcgen.planning.explain.answers import explain
from hpcgen.planning.explain.case import ExplainCase, Explanation
from tests.conftest import Command
from tests.helpers import locks

LISTED = """torch>=2.4
nvidia-cublas-cu12
tqdm==4.67.1
cupy-cuda12x>=13
colorama; sys_platform == "win32"
-c held.txt
"""
PIXI = """version: 6
environments:
  default:
    channels:
    - url: https://example.org/conda-forge/
    packages:
      linux-64:
      - conda: https://example.org/conda-forge/linux-64/numpy-2.4.1-py312_0.conda
      - conda: https://example.org/conda-forge/linux-64/xarray-2026.1.0-py312_0.conda
      linux-aarch64:
      - conda: https://example.org/conda-forge/linux-aarch64/numpy-2.4.0-py312_1.conda
packages:
- conda: https://example.org/conda-forge/linux-64/numpy-2.4.1-py312_0.conda
  sha256: {0}1
  depends:
  - __glibc >=2.17
- conda: https://example.org/conda-forge/linux-64/xarray-2026.1.0-py312_0.conda
  sha256: {0}2
  depends:
  - numpy >=2
- conda: https://example.org/conda-forge/linux-aarch64/numpy-2.4.0-py312_1.conda
  sha256: {0}3
""".format("0" * 63)
GROUPED = """version = 1

[[package]]
name = "demo"
version = "1"
source = { virtual = "." }
[package.optional-dependencies]
plot = [{ name = "plotter" }]

[[package]]
name = "plotter"
version = "3.1"
source = { registry = "https://index.example.org/simple" }
"""


def project(folder: Path, blocks: str, texts: dict[str, str]) -> str:
    """The stack of a project with these files, in its folder."""
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    stack = folder / "hpcgen.yaml"
    stack.write_text(f"name: mine\ntitle: my project\nblocks:\n{blocks}run: {{mpi: false, command: [python3]}}\n")
    return str(stack)


def files_of(block: str, *names: str) -> str:
    return f"  {block}: {{options: {{files: [{', '.join(names)}]}}}}\n"


def case_of(stack: str, site: str = "workstation", **more: object) -> ExplainCase:
    catalog = Catalog()
    plan = hpcgen.plan(site, stack, catalog=catalog, account="a", **more)  # type: ignore[arg-type]
    return ExplainCase(plan, catalog, stack=stack)


def asked(case: ExplainCase, word: str, kind: str) -> Explanation:
    return next(each for each in explain(case, word) if each.kind == kind)


def said(found: Explanation, kind: str) -> str:
    return "; ".join(f"{each.text} [{Path(each.place).name}]" for each in found.grounds if each.kind == kind)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> ExplainCase:
    folder = tmp_path_factory.mktemp("listed")
    texts = {"requirements.txt": LISTED, "held.txt": "cupy-cuda12x<14\n", "apt.txt": "# tools\ngit\n"}
    blocks = files_of("python_packages", "requirements.txt") + "  os_packages: {options: {packages: [git]}}\n"
    return case_of(project(folder, blocks, texts), "leonardo")


def test_a_framework_is_told_with_its_line_its_block_and_the_facts_that_chose_its_version(listed: ExplainCase) -> None:
    found = asked(listed, "torch", "Python package")
    torch = listed.plan.block("pytorch")
    assert torch is not None and found.value == torch.version
    assert "torch>=2.4 [requirements.txt:1]" in said(found, "file")
    assert "brings it, in the build for this site; python_packages leaves it out" in said(found, "block")
    assert "partitions.booster.gpu.capability: 8.0" in said(found, "site")
    assert found.refused[0].what == "torch of the package index" and found.see == ["pytorch"]
    companion = asked(listed, "nvidia-cublas-cu12", "Python package")
    assert "pytorch" in said(companion, "block") and "brings its own" in said(companion, "block")


def test_a_package_of_a_list_is_told_with_its_range_and_what_holds_it(listed: ExplainCase) -> None:
    found = asked(listed, "CuPy_cuda12x[all]>=1", "Python package")
    assert found.value == ">=13,<14"
    assert "[requirements.txt:4]" in said(found, "file")
    assert "held to cupy-cuda12x<14 [held.txt:1]" in said(found, "file")
    assert "`hpcgen lock` pins one" in said(found, "rule")
    assert "built for NVIDIA GPUs" in said(found, "site")
    assert asked(listed, "tqdm", "Python package").value == "4.67.1"


def test_what_a_list_has_for_others_is_not_installed(listed: ExplainCase) -> None:
    found = asked(listed, "colorama", "Python package")
    assert found.value == "not installed"
    assert '; sys_platform == "win32" [requirements.txt:5]' in said(found, "file")
    assert "its marker does not hold for CPython 3." in said(found, "rule")


def test_what_only_comes_with_others_is_told_before_and_after_a_lock(listed: ExplainCase) -> None:
    with pytest.raises(UnknownNameError, match="a lock lists the packages' own dependencies: `hpcgen lock`"):
        explain(listed, "fastrlock")
    stack = str(listed.stack_document.file) if listed.stack_document is not None else ""
    catalog = Catalog()
    lines = [
        f"{name} --hash=sha256:{digit * 64}"
        for name, digit in (("cupy-cuda12x==13.6.0", "1"), ("fastrlock==0.8.3", "2"))
    ]
    wheels = {"python_packages": [*lines, f"tqdm==4.67.1 --hash=sha256:{'3' * 64}"]}
    pinned = locks.pins(wheels=wheels, builder={"git": "1:2.43.0-1", "less": "590-2"}, images=("ubuntu:24.04",))
    lock = locks.lock(stack, "leonardo", (), pinned, catalog)
    case = ExplainCase(lock.plan, catalog, lock, stack=stack)
    found = asked(case, "cupy-cuda12x", "Python package")
    assert found.value == "13.6.0" and "chosen by `hpcgen lock` within cupy-cuda12x>=13,<14" in said(found, "lock")
    assert "pinned by 1 sha256" in said(asked(case, "fastrlock", "Python package"), "lock")
    git, less = asked(case, "git", "package of the distribution"), asked(case, "less", "package of the distribution")
    assert (git.value, less.value) == ("1:2.43.0-1", "590-2")
    assert "requested packages need it" in said(less, "rule")
    assert "has it already" in said(asked(case, "base-files", "package of the distribution"), "rule")


def test_a_package_of_the_distribution_is_told_with_both_lines(listed: ExplainCase) -> None:
    found = asked(listed, "git", "package of the distribution")
    assert "apt.txt names it [apt.txt:2]" in said(found, "file")
    assert "[hpcgen.yaml:5]" in said(found, "stack")
    assert "`hpcgen lock` pins it" in said(found, "rule")


def test_a_lock_s_package_is_told_with_its_wheel_and_with_what_it_has_for_others(tmp_path: Path) -> None:
    files = Path(__file__).parents[2] / "readers" / "files"
    shutil.copy(files / "uv.lock", tmp_path)
    case = case_of(project(tmp_path, files_of("python_packages", "uv.lock"), {}))
    found = asked(case, "numpy", "Python package")
    assert found.value == "2.5.5"
    assert "the project asks for numpy>=2.4" in said(found, "file")
    assert "1 hash, as the wheel numpy-2.5.5-cp312-cp312-manylinux" in said(found, "file")
    assert [(each.what, Path(each.place).name) for each in found.refused] == [("numpy 2.4.6", "uv.lock:67")]
    (tmp_path / "uv.lock").write_text("changed", "utf-8")
    again = ExplainCase(case.plan, Catalog(), stack=str(tmp_path / "hpcgen.yaml"))
    assert "uv.lock:" in said(asked(again, "numpy", "Python package"), "file")


def test_a_group_that_nobody_asks_for_is_named(tmp_path: Path) -> None:
    case = case_of(project(tmp_path, files_of("python_packages", "uv.lock"), {"uv.lock": GROUPED}))
    assert "the group plot has it" in said(asked(case, "plotter", "Python package"), "rule")


def test_a_package_of_conda_is_told_with_its_build_and_what_needs_it(tmp_path: Path) -> None:
    case = case_of(project(tmp_path, files_of("conda_packages", "pixi.lock"), {"pixi.lock": PIXI}))
    found = asked(case, "numpy=2.4", "conda package")
    assert found.value == "2.4.1 py312_0"
    assert "numpy-2.4.1-py312_0.conda [pixi.lock]" in said(found, "file")
    assert "needed by xarray" in said(found, "rule") and "it needs __glibc >=2.17, and there is" in said(found, "rule")
    assert [each.what for each in found.refused] == ["numpy=2.4.0=py312_1"]


def test_what_is_asked_of_conda_is_told_with_the_line_and_with_what_holds_it(tmp_path: Path) -> None:
    text = "channels: [conda-forge]\ndependencies:\n- python=3.12\n- mpich\n"
    blocks = "  mpi: {}\n" + files_of("conda_packages", "environment.yml")
    case = case_of(project(tmp_path, blocks, {"environment.yml": text}), settings=["mpi.provider=mpich"])
    found = next(each for each in explain(case, "mpich") if each.kind == "conda package")
    assert "mpich [environment.yml:4]" in said(found, "file") and "held to mpich=*=external_*" in said(found, "rule")
    assert "the packages are for linux-64" in said(found, "site")


def test_what_the_command_line_adds_is_told_so(tmp_path: Path) -> None:
    stack = project(tmp_path, "  python: {}\n", {})
    case = case_of(stack, add=["pip:h5py==3.11.0", "apt:git"])
    assert "--add pip:h5py==3.11.0" in said(asked(case, "h5py", "Python package"), "command")
    assert "--add apt:git" in said(asked(case, "git", "package of the distribution"), "command")


def test_in_the_folder_of_a_project_a_word_is_enough(hpcgen: Command, tmp_path: Path) -> None:
    stack = project(tmp_path, files_of("python_packages", "requirements.txt"), {"requirements.txt": "tqdm==4.67.1\n"})
    (found,) = json.loads(hpcgen("explain", "tqdm", "--site", "workstation", "--json", cwd=tmp_path).stdout)
    assert (found["kind"], found["value"], found["grounds"][0]["place"]) == (
        "Python package",
        "4.67.1",
        "requirements.txt:1",
    )
    line = f"tqdm==4.67.1 --hash=sha256:{'3' * 64}"
    lock = locks.lock(stack, pinned=locks.pins(wheels={"python_packages": [line]}))
    (tmp_path / "hpcgen.lock").write_text(lock.text, "utf-8")
    done = hpcgen("explain", "tqdm", cwd=tmp_path)
    assert "answers come from hpcgen.lock in this folder" in done.stderr
    assert "chosen by `hpcgen lock`" in done.stdout
