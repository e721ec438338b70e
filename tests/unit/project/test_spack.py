"""``hpcgen init`` in projects with a Spack environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.core.model.stack import Stack
from hpcgen.project.draft import Draft, stack_text
from hpcgen.project.making import draft_of

ENVIRONMENT = """\
spack:
  specs:
  - hdf5@1.14+mpi+fortran ^openmpi@4
  - netcdf-c
  - eigen
  - openblas
  view: /home/me/view
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(flow CXX)
find_package(MPI REQUIRED)
find_package(HDF5 REQUIRED)
find_package(NetCDF REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(LAPACK REQUIRED)
find_package(GSL REQUIRED)
add_executable(flow flow.cpp)
"""


def drafted(top: Path, **files: str) -> Draft:
    for name, text in files.items():
        path = top / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    draft = draft_of(top, Catalog())
    assert convert(loads(stack_text(draft), "hpcgen.yaml"), Stack).name == draft.data["name"]
    return draft


def remarks(draft: Draft) -> str:
    return "\n".join(f"{each.where.file}:{each.where.line}: {each.text}" for each in draft.remarks if each.where)


def test_an_environment_of_spack_is_the_block_s_and_brings_what_the_build_looks_for(tmp_path: Path) -> None:
    files = {"spack_yaml": ENVIRONMENT, "spack_lock": "{}", "CMakeLists_txt": CMAKE, "flow_cpp": "int main() {}\n"}
    draft = drafted(tmp_path, **files)
    assert draft.blocks["spack_packages"] == {"options": {"files": ["spack.yaml"]}}
    assert draft.blocks["mpi"] == draft.blocks["gnu"] == {"options": {"fortran": True}}
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libgsl-dev"] and "hdf5" not in draft.blocks
    text = stack_text(draft)
    assert "4 specs of spack.yaml" in text and "find_package(Eigen3 REQUIRED) finds it there" in text
    said = remarks(draft)
    assert "spack.yaml:3: `^openmpi@4` is left out: the image's own MPI is taken" in said
    assert "spack.yaml:7: `view` is left out" in said and "spack.lock:1: its versions are for another machine" in said


def test_packages_for_gpus_and_packages_without_mpi(tmp_path: Path) -> None:
    draft = drafted(tmp_path / "a", spack_yaml="spack: {specs: [kokkos+cuda cuda_arch=70, hdf5~mpi, py-numpy]}\n")
    assert draft.blocks["spack_packages"]["options"] == {"files": ["spack.yaml"], "mpi": False, "cuda": True}
    assert "mpi" not in draft.blocks and "py-numpy of spack.yaml are for Spack's own Python" in remarks(draft)
    draft = drafted(tmp_path / "b", env__spack_yaml="spack: {specs: [hdf5~mpi, fftw+mpi]}\n")
    assert draft.blocks["spack_packages"]["options"] == {"files": ["env/spack.yaml"]} and "mpi" in draft.blocks


def test_an_environment_that_cannot_be_taken_is_told_with_each_reason(tmp_path: Path) -> None:
    text = "spack:\n  specs: [ours]\n  repos: [recipes]\n  develop: {ours: {path: .}}\n"
    draft = drafted(tmp_path / "a", spack_yaml=text, main_py="import sys\nprint(sys.argv)\n")
    assert "spack_packages" not in draft.blocks and not draft.problems
    said = remarks(draft)
    assert "spack.yaml:4: spack.yaml was skipped: `develop` is not read; bring your own code" in said
    assert "spack.yaml:3: `repos` has recipes" in said
    with pytest.raises(InputError, match="`repos` has recipes"):
        drafted(tmp_path / "b", spack_yaml=text)


def test_an_environment_for_the_pages_is_not_the_program_s(tmp_path: Path) -> None:
    draft = drafted(tmp_path, Docs__spack_yaml="spack: {specs: [doxygen]}\n", main_py="import sys\nprint(sys.argv)\n")
    assert "spack_packages" not in draft.blocks


def test_of_several_environments_below_none_is_taken(tmp_path: Path) -> None:
    text = "spack: {specs: [hdf5]}\n"
    draft = drafted(tmp_path, a__spack_yaml=text, b__spack_yaml=text, main_py="import sys\nprint(sys.argv)\n")
    told = [each.text for each in draft.remarks]
    assert "spack_packages" not in draft.blocks and any("a/spack.yaml, b/spack.yaml" in each for each in told), told
