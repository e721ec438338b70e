"""Spack environments in an image: from spack.yaml to the recipe, and what a file may not decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hpcgen.api import default_catalog, load_site, load_stack, plan
from hpcgen.backends.hardware.microarchitecture import compiled_for
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.spack import SpackPin, SpackSource
from hpcgen.recipe.artifact_recipes import keyed_blocks
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly, input_list
from tests.conftest import Command

HASH = "ab" * 32
SOURCE = SpackSource("bzip2@1.0.8", f"ab/{HASH}.tar.gz", HASH, "https://example.org/bzip2-1.0.8.tar.gz")
PIN = SpackPin('{"roots":[],"concrete_specs":{}}', [SOURCE])


def planned(folder: Path, text: str, site: str = "workstation", provider: str = "mpich", **options: Any) -> Plan:
    (folder / "spack.yaml").write_text(text)
    mpi = {"mpi": {"provider": provider}} if provider else {}
    stack = {
        "name": "mine",
        "title": "Mine",
        "blocks": {**mpi, "spack_packages": {"options": {"files": ["spack.yaml"], **options}}},
        "run": {"command": ["speak"], "mpi": bool(provider)},
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(stack, sort_keys=False))
    catalog = Catalog()
    made = load_stack(folder / "mine.yaml", catalog=catalog)
    return plan(load_site(site, catalog=catalog), made, catalog=catalog)


def settings(assembly: Assembly) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(assembly.files["files/spack/spack.yaml"].text)
    return found["spack"]


def commands(assembly: Assembly) -> str:
    return "\n".join(line for _, step in assembly.builder.steps for line in step.commands)


ENVIRONMENT = """\
spack:
  specs:
  - bzip2@1.0.8
  - hdf5+mpi ^mpich@4.0 ^zlib-ng target=x86_64_v3
  - openmpi@5
  view: /home/me/view
  config: {install_tree: {root: /home/me/spack}}
  concretizer: {unify: when_possible, reuse: true}
  packages:
    all: {target: [zen4], variants: +pic, require: "os=sles15"}
    hdf5: {require: ["@1.14:", +fortran]}
    mpich:
      externals: [{spec: mpich@3.3, prefix: /opt/cray/mpich}]
      buildable: false
    mpi: {require: [mpich@3], buildable: false}
    gcc: {version: [9], buildable: true}
"""


def test_the_image_s_own_mpi_and_cpu_take_the_place_of_the_host_s(tmp_path: Path) -> None:
    assembly = assemble(made := planned(tmp_path, ENVIRONMENT), default_catalog())
    said = settings(assembly)
    mpi = made.block("mpi")
    assert mpi is not None and made.spack is not None
    assert said["specs"] == ["bzip2@1.0.8", "hdf5+mpi ^zlib-ng"] and said["concretizer"]["unify"] == "when_possible"
    packages = said["packages"]
    assert packages["all"]["require"] == [f"target={made.spack.target}"] and packages["all"]["variants"] == ["+pic"]
    assert packages["gcc"] == {"buildable": False, "require": ["@13"]}
    assert packages["hdf5"] == {"require": ["@1.14:", "+fortran"]}
    own = {"spec": f"mpich@{mpi.version}", "prefix": "/opt/mpich"}
    assert packages["mpich"] == {"buildable": False, "externals": [own]}
    assert packages["mpi"] == {"buildable": False, "require": ["mpich"]}
    assert "/home/me" not in json.dumps(said) and "cray" not in json.dumps(said)
    left = [note.partition("` ")[0] for note in made.spack.notes]
    assert left == [f"spack.yaml:{place}" for place in LEFT_OUT], left
    assert "--require-hashes --target /opt/hpcgen/build/spack/clingo" in commands(assembly)
    assert "/opt/spack_packages" in assembly.final.copies


LEFT_OUT = (
    "4: `^mpich@4.0",
    "4: `target=x86_64_v3",
    "5: `openmpi@5",
    "6: `view",
    "7: `config",
    "8: `concretizer.reuse",
    "10: `os=sles15",
    "10: `target",
    "13: `externals",
    "14: `buildable",
    "15: `require",
    "16: `version",
)


def test_what_a_lock_has_chosen_is_compiled_and_nothing_is_chosen_again(tmp_path: Path) -> None:
    made = planned(tmp_path, ENVIRONMENT)
    assembly = assemble(made, default_catalog(), Pins(spack=PIN))
    told = commands(assembly)
    assert json.loads(assembly.files["files/spack/spack.lock"].text) == json.loads(PIN.lock)
    assert "concretize" not in told and "clingo" not in told.partition("/opt/hpcgen/build/spack/spack ")[2]
    assert settings(assembly)["mirrors:"]["sources"]["url"] == "https://mirror.spack.io"
    assert [each for each in assembly.notices if "until hpcgen lock" in each] == []
    assert "spack_packages" in {each.name for each in keyed_blocks(made, default_catalog(), Pins(spack=PIN))}
    assert "spack_packages" not in {each.name for each in keyed_blocks(made, default_catalog())}
    assert {each.name for each in input_list(assembly)} >= {"bzip2@1.0.8", "https://github.com/spack/spack"}


def test_a_bundle_is_spack_s_only_source(tmp_path: Path) -> None:
    bundled = msgspec.structs.replace(planned(tmp_path, ENVIRONMENT), supply="bundle")
    trees = {f"https://github.com/spack/{name}@{commit}": HASH for name, commit in COMMITS.items()}
    assembly = assemble(bundled, default_catalog(), Pins(spack=PIN, trees=trees))
    mirror = "/opt/hpcgen/build/spack/mirror"
    held = f"/opt/hpcgen/bundle/files/{HASH}/{HASH}.tar.gz"
    assert f"ln -sf {held} {mirror}/_source-cache/archive/ab/{HASH}.tar.gz" in commands(assembly)
    assert settings(assembly)["mirrors:"] == {"sources": {"url": f"file://{mirror}", "binary": False}}


COMMITS = {
    "spack": "0c2be44e4ece21eb091ad5de4c97716b7c6d4c87",
    "spack-packages": "119680aeee8ea802c6111b7167583bddef97e82f",
}


def test_a_cpu_that_gcc_does_not_know_yet_is_the_nearest_that_it_knows() -> None:
    """Spack refuses a target that the compiler lacks."""
    assert [compiled_for("zen5", "gcc", version) for version in ("13.3.0", "14.2.0")] == ["zen4", "zen5"]


def test_an_environment_may_do_without_mpi(tmp_path: Path) -> None:
    made = planned(tmp_path, "spack: {specs: [bzip2]}\n", provider="", mpi=False)
    packages = settings(assemble(made, default_catalog()))["packages"]
    assert made.block("mpi") is None and packages["mpi"] == {"buildable": False}


def test_the_image_s_cuda_is_taken_for_the_node_s_gpu(tmp_path: Path) -> None:
    made = planned(tmp_path, "spack: {specs: [bzip2]}\n", "leonardo", "openmpi", cuda=True)
    packages = settings(assemble(made, default_catalog()))["packages"]
    cuda = made.block("cuda")
    assert cuda is not None and packages["cuda"]["externals"] == [
        {"spec": f"cuda@{cuda.version}", "prefix": "/opt/cuda"}
    ]
    assert packages["all"]["variants"] == ["+cuda", "cuda_arch=80"]


@pytest.mark.parametrize(("spec", "said"), [("kokkos+rocm", "needs ROCm"), ("kokkos +cuda cuda_arch=80", "needs CUDA")])
def test_gpu_libraries_that_spack_would_build_are_refused_at_their_place(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(ConflictError) as error:
        planned(tmp_path, f"spack:\n  specs:\n  - bzip2\n  - '{spec}'\n")
    problem = error.value.problems[0]
    assert said in problem.message and str(problem.where).endswith("spack.yaml:4:5"), problem


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ("hdf5+mpi", "hdf5+mpi"),
        ("hdf5 ^openmpi@4 fabrics=ucx,auto +pmi ^zlib", "hdf5 ^zlib"),
        ("hdf5 ^[virtuals=mpi] intel-oneapi-mpi", "hdf5"),
        ("hdf5 ^mpi@3:", "hdf5 ^mpi@3:"),
        ('hdf5 cflags="-O3 -g" os=sles15 ^mpich', 'hdf5 cflags="-O3 -g"'),
        ("mpileaks", "mpileaks"),
        ("netcdf-c%gcc@8.5.0~dap arch=linux-sles15-zen3", "netcdf-c%gcc~dap"),
        ("kokkos std=17 cuda_arch=80,90 +hwloc", "kokkos std=17 +hwloc"),
    ],
)
def test_of_a_spec_that_counts_which_holds_for_every_machine(tmp_path: Path, spec: str, kept: str) -> None:
    made = planned(tmp_path, f"spack:\n  specs:\n  - bzip2\n  - '{spec}'\n").spack
    assert made is not None and made.specs == ["bzip2", kept]
    assert all(note.startswith("spack.yaml:4: `") for note in made.notes) and bool(made.notes) == (spec != kept)


def test_an_mpi_that_a_file_names_needs_one_in_the_image(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="it names openmpi, and the image has no MPI"):
        planned(tmp_path, "spack: {specs: [bzip2, openmpi]}\n", provider="", mpi=False)


LISTS = """\
spack:
  definitions:
  - compilers: [gcc, gcc@9]
  - mpis: [mpich, openmpi]
  - tools: [cmake, ninja@1.11]
  - tools: [gmake]
    when: platform == "darwin" or "cray" in platform
  - tools: [meson]
    when: not platform == "darwin"
  - _of_others: [2025.08]
  - solvers:
    - matrix:
      - [hypre, petsc ^zlib-ng]
      - [+shared, ~shared]
  specs:
  - $tools
  - $solvers
  - matrix:
    - [hdf5]
    - ["@1.12", "@1.14"]
    - [$^mpis, ^zlib]
    - [$%compilers]
  concretization: separately
"""


def test_lists_and_matrices_are_written_out(tmp_path: Path) -> None:
    made = planned(tmp_path, LISTS).spack
    assert made is not None and made.unify == "false"
    assert made.specs == [
        *("cmake", "ninja@1.11", "meson"),
        *("hypre +shared", "hypre ~shared", "petsc +shared ^zlib-ng", "petsc ~shared ^zlib-ng"),
        *("hdf5 @1.12 %gcc", "hdf5 @1.12 %gcc ^zlib", "hdf5 @1.14 %gcc", "hdf5 @1.14 %gcc ^zlib"),
    ]


def test_files_of_the_project_are_included(tmp_path: Path) -> None:
    (tmp_path / "settings/scope").mkdir(parents=True)
    (tmp_path / "settings/ours.yaml").write_text("packages: {hdf5: {require: [+fortran]}, all: {target: [zen4]}}\n")
    (tmp_path / "settings/scope/packages.yaml").write_text("packages: {hdf5: {require: ['@1.14']}}\n")
    include = "include: [settings/ours.yaml, {path: settings/scope}, {path: settings/none.yaml, optional: true}]"
    made = planned(tmp_path, f"spack: {{specs: [hdf5], {include}, packages: {{hdf5: {{require: ~shared}}}}}}\n").spack
    assert made is not None and made.packages["hdf5"].require == ["~shared", "+fortran", "@1.14"]
    assert sorted(made.files) == ["settings/ours.yaml", "settings/scope/packages.yaml", "spack.yaml"]
    assert any(note.startswith("settings/ours.yaml:1: `target` of all") for note in made.notes), made.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("specs: [bzip2]\n", "not a Spack environment"),
        ("spack: {}\n", "has no specs"),
        ("spack: {spec: [bzip2]}\n", "`spec` is not a key"),
        ("spack: {specs: [bzip2], include: [more.yaml]}\n", "'more.yaml' is not there"),
        ("spack: {specs: [bzip2], include: [../more.yaml]}\n", "'../more.yaml' is not there"),
        ("spack: {specs: [bzip2], include: ['https://example.org/a.yaml']}\n", "only files of the project"),
        ("spack: {specs: [bzip2], include: [{git: x, path: y}]}\n", "only files of the project"),
        ("spack: {specs: [bzip2], repos: [recipes, builtin]}\n", "`repos` has recipes"),
        ("spack: {specs: [bzip2], develop: {bzip2: {path: .}}}\n", "`develop` is not read"),
        ("spack: {specs: [$mine]}\n", "'$mine' names no list"),
        ("spack: {specs: [bzip2], definitions: [{mine: [$mine]}]}\n", "'$mine' names no list"),
        ("spack: {specs: [bzip2], definitions: [{mine: [a], when: 'hostname == 1'}]}\n", "more than the platform"),
        ("spack: {specs: [bzip2], definitions: [{a: [a], b: [b]}]}\n", "this defines no list"),
        ("spack: {specs: [{matrix: [[bzip2]], exclude: [bzip2]}]}\n", "`exclude` of a matrix is not read"),
        ("spack: {specs: [{matrix: bzip2}]}\n", "neither a spec nor a matrix"),
        ("spack: {specs: [bzip2, [7]]}\n", "a spec is not text"),
        (f"spack: {{specs: [{{matrix: {[['a', 'b']] * 30}}}]}}\n", "more than 1000 specs"),
        (f"spack: {{specs: [bzip2{'^a' * 20000}]}}\n", "a spec is too long"),
        ("spack: {specs: [bzip2 dev_path=/home/me]}\n", "from a folder of your own"),
        ("spack: {specs: ['bzip2%clang']}\n", "names the compiler clang"),
        ("spack: {specs: ['bzip2%c=oneapi']}\n", "names the compiler oneapi"),
        ("spack: {specs: ['hdf5 ^/abcdef1']}\n", "names an installation by its hash"),
        ("spack: {specs: [/abcdef1]}\n", "is not a spec"),
        ("spack: {specs: ['bzip2; rm -rf /']}\n", "is not a spec"),
        ("spack: {specs: ['bzip2@git.https://example.org/x=1']}\n", "is not a spec"),
        ("spack: {specs: [bzip2], packages: {all: {requires: +pic}}}\n", "`requires` is not a setting"),
        ("spack: {specs: [bzip2], packages: {all: {require: [{one_of: [+pic]}]}}}\n", "not part of a spec"),
        ("spack: {specs: [bzip2], packages: {hdf5: {require: '%intel'}}}\n", "names the compiler intel"),
        ("spack: {specs: [bzip2], concretizer: {unify: perhaps}}\n", "unify is 'perhaps'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HpcgenError) as error:
        planned(tmp_path, text)
    assert said in str(error.value), error.value
    assert all(problem.where is not None for problem in error.value.problems)


def test_a_missing_file_is_told_by_hpcgen_check_too(tmp_path: Path, hpcgen: Command) -> None:
    planned(tmp_path, ENVIRONMENT)
    (tmp_path / "spack.yaml").unlink()
    done = hpcgen("check", str(tmp_path / "mine.yaml"))
    assert done.returncode != 0 and "the file is not there" in done.stdout + done.stderr


def test_the_image_has_an_mpi_that_spack_can_compile_over(tmp_path: Path) -> None:
    made = planned(tmp_path, "spack: {specs: [hdf5]}", "supermuc", "")
    mpi = made.block("mpi")
    assert mpi is not None and mpi.name == "mpich"
    with pytest.raises(HpcgenError, match="needs mpich or openmpi or mvapich"):
        planned(tmp_path, "spack: {specs: [hdf5]}", "supermuc", "intel_mpi")
