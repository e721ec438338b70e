"""Keys of what blocks compile, and recipes in which it is unpacked."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.artifact_recipes import KeyedBlock, artifact_assembly, artifact_plan, keyed_blocks
from hpcgen.recipe.artifacts import StoredArtifact
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from hpcgen.recipe.parts import parts_of

CATALOG = Catalog()


def planned(site: str, stack: str, *settings: str, format: str | None = None) -> Plan:
    catalog = CATALOG
    return make_plan(
        catalog, catalog.site(site), catalog.stack(stack), settings=settings, format=format, allow_unsupported=True
    )


def keys(plan: Plan) -> dict[str, str]:
    return {each.name: each.key for each in keyed_blocks(plan, CATALOG)}


def stored(plan: Plan, *names: str) -> dict[str, StoredArtifact]:
    """Those blocks of a plan, as a store has them."""
    return {each.name: _artifact(each) for each in keyed_blocks(plan, CATALOG) if each.name in names}


def _artifact(keyed: KeyedBlock) -> StoredArtifact:
    record = Artifact(
        artifact=1,
        key=keyed.key,
        block=keyed.name,
        version="1",
        folders=list(keyed.folders),
        sha256="ab" * 32,
        bytes=1,
        base=keyed.base,
        architecture="x86_64",
        target="zen3",
    )
    return StoredArtifact(record, Path("/store/files/x.tar.gz"))


def test_stacks_of_one_site_share_what_they_compile() -> None:
    one, other = keys(planned("workstation", "mpi-hello")), keys(planned("workstation", "gromacs"))
    assert one.keys() == {"libfabric", "mpich"} and other.items() > one.items()


@pytest.mark.parametrize("setting", ["mpich.version=4.2.3", "mpich.fortran=true", "gnu.fortran=true"])
def test_what_decides_the_content_changes_the_key(setting: str) -> None:
    settings = [setting, "gnu.fortran=true"] if "mpich.fortran" in setting else [setting]
    plain, changed = keys(planned("workstation", "mpi-hello")), keys(planned("workstation", "mpi-hello", *settings))
    assert plain["mpich"] != changed["mpich"]


@pytest.mark.parametrize(
    ("stack", "settings", "names"),
    [
        ("mpi-python", ["mpi4py.install=source"], {"mpi4py"}),
        ("mpi-python", ["mpi4py.install=wheel"], set()),
        ("tf-horovod", ["tensorflow.install=pip"], {"horovod"}),
        ("tf-horovod", ["tensorflow.install=source"], {"horovod", "tensorflow"}),
        ("onnxruntime", ["onnxruntime.install=source"], {"onnxruntime"}),
        ("pytorch", ["pytorch.install=source"], {"pytorch"}),
    ],
)
def test_wheels_that_are_compiled_are_kept(stack: str, settings: list[str], names: set[str]) -> None:
    assert keys(planned("workstation", stack, *settings)).keys() - {"libfabric", "mpich", "ucx"} == names


@pytest.mark.parametrize(
    "setting", ["mpich.version=4.2.3", "mpi.provider=openmpi", "mpi4py.version=4.1.1", "python.obtain=standalone"]
)
def test_what_a_wheel_is_compiled_with_is_in_its_key(setting: str) -> None:
    plain, changed = (
        keys(planned("workstation", "mpi-python", "mpi4py.install=source", *each)) for each in ([], [setting])
    )
    assert plain["mpi4py"] != changed["mpi4py"]


@pytest.mark.parametrize("format", ["docker", "charliecloud", "singularity"])
def test_a_stored_wheel_is_installed_beside_all_else_that_the_environment_gets(format: str) -> None:
    plan = planned("workstation", "tf-horovod", "tensorflow.install=pip", format=format)
    plain, quick = assemble(plan, CATALOG), assemble(plan, CATALOG, content="", stored=stored(plan, "horovod"))
    before, after = (
        [step for label, step in each.builder.steps if label.startswith("horovod")] for each in (plain, quick)
    )
    assert [step.about for step in before] == ["what it needs", "source", "compile", "install", "training step"]
    assert [step.about.partition(" (")[0] for step in after] == [
        "unpack what was compiled before",
        "what it needs",
        "install",
    ]
    assert after[1:] == [before[0], before[3]]
    labels = {label.partition(" ")[0] for label, _ in quick.builder.steps}
    assert "cmake" not in labels and "tensorflow" in labels


def test_an_artifact_is_compiled_beside_the_versions_on_which_the_whole_stack_agrees() -> None:
    wanted = {"python_packages.packages": ["numpy==1.26.4"]}
    plan = hpcgen.plan("workstation", "pytorch-horovod", add=["python_packages"], settings=wanted)
    keyed = next(each for each in keyed_blocks(plan, CATALOG) if each.name == "horovod")
    assert keyed.key != keys(planned("workstation", "pytorch-horovod"))["horovod"]
    alone = artifact_assembly(artifact_plan(plan, keyed), plan, CATALOG, None, {})
    files = (file.text for _, step in alone.final.steps for file in step.files)
    numpys = [line for text in files for line in text.splitlines() if line.startswith("numpy==")]
    assert [line.partition(" ")[0] for line in numpys] == ["numpy==1.26.4"]


def test_a_block_has_another_key_where_one_below_it_has() -> None:
    plain = keys(planned("workstation", "gromacs"))
    changed = keys(planned("workstation", "gromacs", "libfabric.version=1.22.0"))
    assert all(plain[name] != changed[name] for name in ("libfabric", "mpich", "gromacs"))


def test_mirrors_certificates_and_dates_do_not_change_a_key() -> None:
    plan = planned("workstation", "mpi-hello")
    network = msgspec.structs.replace(plan.site.network, ca_certificates=["/etc/own.crt"])
    other = msgspec.structs.replace(plan, site=msgspec.structs.replace(plan.site, network=network))
    assert keys(plan) == keys(other)


def test_what_is_installed_as_packages_or_wheels_is_no_artifact() -> None:
    assert keys(planned("supermuc", "mpi-hello", "psm2.install=package")) == {}
    assert "mpich" not in keys(planned("workstation", "mpi-hello", "mpi.provider=mpich", "mpich.obtain=wheels"))


def test_an_image_whose_base_nothing_pins_keeps_nothing() -> None:
    plan = planned("workstation", "mpi-hello")
    assert keys(msgspec.structs.replace(plan, latest_base=True)) == {}


@pytest.mark.parametrize("format", ["docker", "charliecloud", "singularity"])
def test_a_recipe_unpacks_what_is_stored_in_the_place_of_the_steps(format: str) -> None:
    plan = planned("workstation", "mpi-hello", format=format)
    held = stored(plan, "mpich", "libfabric")
    plain, quick = assemble(plan, CATALOG), assemble(plan, CATALOG, content="ab", stored=held)
    written = [str(format_for(plan.format).recipe(plan, each).text) for each in (plain, quick)]
    assert "./configure" in written[0] and "./configure" not in written[1]
    for each in held.values():
        assert f"{each.record.sha256}  /opt/hpcgen/build/{each.path.partition('/')[2]}" in written[1]
    assert {each.path for each in quick.archives} == {each.path for each in held.values()}
    assert plain.packages == quick.packages and plain.inputs == quick.inputs
    assert {name: text for name, text in quick.labels.items() if "artifacts" not in name} == {
        **plain.labels,
        "io.hpcgen.content": "ab",
    }


def test_tools_that_nothing_else_needs_are_left_out_of_the_builder() -> None:
    plan = planned("workstation", "gromacs")
    builder = assemble(plan, CATALOG, content="", stored=stored(plan, *keys(plan))).builder
    labels = {label.partition(" ")[0] for label, _ in builder.steps}
    # The program by which ranks are counted is still compiled.
    assert "gnu" in labels and "cmake" not in labels
    some = assemble(plan, CATALOG, content="", stored=stored(plan, "libfabric", "mpich")).builder
    assert {"gnu", "cmake"} <= {label.partition(" ")[0] for label, _ in some.steps}


def test_an_artifact_is_compiled_with_what_it_needs_alone() -> None:
    plan = planned("workstation", "gromacs")
    keyed = next(each for each in keyed_blocks(plan, CATALOG) if each.name == "mpich")
    alone = artifact_plan(plan, keyed)
    assert {"gromacs", "cmake"}.isdisjoint(each.name for each in alone.blocks)
    assembly = artifact_assembly(alone, plan, CATALOG, None, stored(plan, "libfabric"))
    (stage,) = assembly.stages
    abouts = [step.about for label, step in stage.steps if label.startswith("libfabric")]
    assert len(abouts) == 1 and abouts[0].startswith("unpack")


@pytest.mark.parametrize("site", ["workstation", "lumi-c", "juwels-booster", "supermuc"])
@pytest.mark.parametrize("stack", ["gromacs", "lammps", "net-test", "mpi-python", "tf-horovod"])
def test_the_steps_of_an_artifact_leave_files_in_its_folders_alone(site: str, stack: str) -> None:
    """What else their commands name is read: what the block needs, and programs of the distribution."""
    for part in parts_of(planned(site, stack), CATALOG).parts:
        needed = [f"/opt/{name}" for name in part.planned.needs.values()]
        known = (*part.block.artifact(part.ctx), SCRATCH, *needed, "/usr/bin/", "/lib")
        for step in part.block.build(part.ctx) if part.block.artifact(part.ctx) else ():
            named = re.findall(r"(?<![\w./-])/(?:opt|usr|etc|lib|root|var)[\w./+-]*", " ".join(step.commands))
            assert [path for path in named if not path.startswith(known)] == [], part.label
