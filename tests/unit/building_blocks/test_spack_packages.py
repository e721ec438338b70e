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
  - hdf5+mpi ^mpich
  view: /home/me/view
  config: {install_tree: {root: /home/me/spack}}
  concretizer: {unify: when_possible, reuse: true}
  packages:
    all: {target: [zen4], variants: +pic}
    hdf5: {require: ["@1.14:", +fortran]}
    mpich:
      externals: [{spec: mpich@3.3, prefix: /opt/cray/mpich}]
      buildable: false
"""


def test_the_image_s_own_mpi_and_cpu_take_the_place_of_the_host_s(tmp_path: Path) -> None:
    assembly = assemble(made := planned(tmp_path, ENVIRONMENT), default_catalog())
    said = settings(assembly)
    mpi = made.block("mpi")
    assert mpi is not None and made.spack is not None
    assert said["specs"] == ["bzip2@1.0.8", "hdf5+mpi ^mpich"] and said["concretizer"]["unify"] == "when_possible"
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
    "5: `view",
    "6: `config",
    "7: `concretizer.reuse",
    "9: `target",
    "12: `externals",
    "13: `buildable",
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


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("hdf5 ^openmpi", "'hdf5 ^openmpi' brings openmpi, and the image's MPI is mpich"),
        ("openmpi@5", "brings openmpi"),
        ("kokkos+rocm", "needs ROCm"),
        ("kokkos +cuda cuda_arch=80", "needs CUDA"),
        ("hdf5 ^[virtuals=mpi] intel-oneapi-mpi", "brings intel-oneapi-mpi"),
    ],
)
def test_what_spack_would_build_beside_the_image_s_own_is_refused_at_its_place(
    tmp_path: Path, spec: str, said: str
) -> None:
    with pytest.raises(ConflictError) as error:
        planned(tmp_path, f"spack:\n  specs:\n  - bzip2\n  - '{spec}'\n")
    problem = error.value.problems[0]
    assert said in problem.message and str(problem.where).endswith("spack.yaml:4:5"), problem


@pytest.mark.parametrize("spec", ["hdf5+mpi", "hdf5 ^mpich@4:", "mpileaks", "hdf5 ^mpi", "netcdf-c%gcc"])
def test_what_uses_the_image_s_mpi_passes(tmp_path: Path, spec: str) -> None:
    assert planned(tmp_path, f"spack:\n  specs: ['{spec}']\n").spack is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("specs: [bzip2]\n", "no environment of Spack"),
        ("spack: {}\n", "has no specs"),
        ("spack: {spec: [bzip2]}\n", "`spec` is not a key"),
        ("spack: {specs: [bzip2], include: [more.yaml]}\n", "`include` is not read"),
        ("spack: {specs: [$mine], definitions: [{mine: [bzip2]}]}\n", "`definitions` is not read"),
        ("spack: {specs: [{matrix: [[bzip2]]}]}\n", "a spec is no text"),
        ("spack: {specs: [bzip2 target=zen4]}\n", "what it is built for or from"),
        ("spack: {specs: [bzip2 dev_path=/home/me]}\n", "what it is built for or from"),
        ("spack: {specs: ['bzip2%clang']}\n", "names the compiler clang"),
        ("spack: {specs: ['bzip2%c=oneapi']}\n", "names the compiler oneapi"),
        ("spack: {specs: ['hdf5 ^/abcdef1']}\n", "names an installation by its hash"),
        ("spack: {specs: [/abcdef1]}\n", "is not a spec"),
        ("spack: {specs: ['bzip2; rm -rf /']}\n", "is not a spec"),
        ("spack: {specs: ['bzip2@git.https://example.org/x=1']}\n", "is not a spec"),
        ("spack: {specs: [bzip2], packages: {all: {requires: +pic}}}\n", "`requires` is not a setting"),
        ("spack: {specs: [bzip2], packages: {all: {require: [{one_of: [+pic]}]}}}\n", "no part of a spec"),
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


def test_an_mpi_that_spack_cannot_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="cannot be compiled over intel_mpi"):
        assemble(planned(tmp_path, "spack: {specs: [hdf5]}", "supermuc", "intel_mpi"), default_catalog())
