"""What an error says where no plan exists: each requirement on a line, and changes that were tried."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, UnknownNameError
from hpcgen.core.model.plan import Plan


def refused(site: str, stack: str, *, add: tuple[str, ...] = (), **settings: str) -> ConflictError:
    with pytest.raises(ConflictError) as failure:
        planned(site, stack, add=add, settings=settings)
    return failure.value


def planned(site: str, stack: str, *, settings: dict[str, str], add: tuple[str, ...] = ()) -> Plan:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return hpcgen.plan(site, stack, settings=named, add=add)


def remedies(error: ConflictError) -> list[str]:
    return [remedy.text.partition(" (plans")[0] for remedy in error.remedies]


def test_the_nearest_version_that_fits_is_named_and_what_it_plans() -> None:
    error = refused("archer2", "tf-horovod", ubuntu__version="24.04")
    assert error.remedies[0].settings == {"ubuntu.version": "22.04"}
    plan = planned("archer2", "tf-horovod", settings={"ubuntu.version": "22.04"})
    tensorflow = plan.block("tensorflow")
    assert tensorflow is not None
    assert f"remedy: --set ubuntu.version=22.04 instead of 24.04 (plans tensorflow {tensorflow.version}, " in str(error)


def test_each_requirement_stands_on_a_line_of_its_own_with_its_place() -> None:
    lines = str(refused("archer2", "tf-horovod", ubuntu__version="24.04")).splitlines()
    assert lines[0] == "these cannot be combined:"
    assert lines[1] == "  - --set ubuntu asks for ubuntu ==24.04"
    assert any(line.startswith("  - horovod 0.28.1 (") and line.endswith("needs python >=3.6,<3.12") for line in lines)


def test_a_range_that_may_be_meant_comes_first() -> None:
    error = refused("juwels-booster", "onnxruntime", onnxruntime__version="1.19")
    assert error.remedies[0].settings == {"onnxruntime.version": "1.19.*"}
    assert "--set 'onnxruntime.version=1.19.*' instead of 1.19" in str(error)


def test_an_option_that_was_set_is_left_out_where_that_helps() -> None:
    error = refused("hunter", "onnxruntime", onnxruntime__provider="cuda", onnxruntime__install="source")
    assert remedies(error) == ["without --set onnxruntime.provider=cuda"]
    assert "the node's GPU vendor amd" in str(error)


def test_another_option_is_named_where_it_has_the_version() -> None:
    error = refused("juwels-booster", "onnxruntime", cudnn__version="9.19.1.2", cudnn__obtain="wheels")
    assert "without --set cudnn.obtain=wheels" in remedies(error)


def test_another_provider_is_named() -> None:
    error = refused("supermuc", "mpi-hello", mpi__provider="openmpi")
    assert remedies(error) == ["--set mpi.provider=intel_mpi instead of openmpi"]


def test_a_block_that_was_added_is_left_out_with_what_is_set_of_it() -> None:
    error = refused("hunter", "pytorch-ddp", add=("cuda",), cuda__version="12.0.1")
    assert remedies(error) == ["without --add cuda and without --set cuda.version=12.0.1"]
    assert "  - --add asks for cuda" in str(error)


def test_two_changes_are_named_together_where_one_is_not_enough() -> None:
    error = refused("crpl-leia", "tf-horovod", tensorflow__version="1.15.0", ubuntu__version="24.04")
    (remedy,) = error.remedies
    assert set(remedy.settings) == {"tensorflow.version", "ubuntu.version"}
    settings = {name: value for name, value in remedy.settings.items() if value is not None}
    assert planned("crpl-leia", "tf-horovod", settings=settings).block("ubuntu") is not None


def a_stack(folder: Path, block: str) -> str:
    recipe = folder / "it.yaml"
    recipe.write_text(f"name: it\ntitle: t\nblocks:\n  {block}\nrun: {{command: [it], mpi: false}}\n", "utf-8")
    return str(recipe)


def test_another_kind_of_node_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as failure:
        hpcgen.plan("darwin", a_stack(tmp_path, "tensorrt: {}"), partition="gpu-mi50")
    (remedy,) = failure.value.remedies
    assert remedy.partition is not None
    assert remedy.text.startswith(f"--partition {remedy.partition} (plans tensorrt ")
    assert hpcgen.plan("darwin", a_stack(tmp_path, "tensorrt: {}"), partition=remedy.partition).block("tensorrt")


def test_the_stacks_own_range_is_named_with_its_place(tmp_path: Path) -> None:
    error = refused("workstation", a_stack(tmp_path, 'onnxruntime: {version: "==1.19"}'))
    assert error.remedies[0].stack == {"onnxruntime.version": "1.19.*"}
    assert f"version 1.19.* of onnxruntime instead of ==1.19 in {tmp_path}/it.yaml:4:3 of stack it" in str(error)


def test_a_block_beside_others_may_be_taken_out_with_what_the_list_says_of_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\ntorchaudio\n")
    lists = "python_packages: {options: {files: [requirements.txt]}}"
    stack = a_stack(tmp_path, f"pytorch: {{}}\n  torchaudio: {{}}\n  {lists}")
    error = refused("lumi-g", stack)
    (remedy,) = error.remedies
    assert remedy.stack == {"torchaudio": None} and remedy.settings == {"python_packages.without": "torchaudio"}
    assert f"take it out of {tmp_path}/it.yaml:5:3, with --set python_packages.without=torchaudio (plans " in str(error)


def test_where_nothing_helps_it_says_so(tmp_path: Path) -> None:
    error = refused("lumi-g", a_stack(tmp_path, "cuda: {}"))
    assert error.remedies == ()
    assert "remedy: no tried change resolves" in str(error)
    assert "or the profile would have to be wrong about the node" in str(error)


def test_what_is_known_of_the_block_is_listed_and_nothing_else() -> None:
    assert "expected: one of debian 12, debian 13, debian 11\n" in str(
        refused("workstation", "onnxruntime", debian__version="<10")
    )


@pytest.mark.parametrize("versions", ["==4.3.*", "==9.1,<10", ">=9,<9.1", "9.*"])
def test_a_range_that_nothing_meets_has_the_nearest_release_as_its_remedy(versions: str) -> None:
    error = refused("workstation", "mpi-hello", mpi__provider="openmpi", openmpi__version=versions)
    assert error.remedies[0].settings.keys() == {"openmpi.version"}
    assert str(error.remedies[0].settings["openmpi.version"])[0].isdigit()


def test_a_conflict_names_only_the_option_that_rules_versions_out() -> None:
    error = refused("slurm-amd", "onnxruntime", onnxruntime__version="<1.17.1")
    assert "only with onnxruntime.provider=" in str(error) and "here that is migraphx" in str(error)
    assert "onnxruntime.install=pip" not in str(error).replace("--set", "")


@pytest.mark.parametrize(
    "needs",
    [{"b0": "", "b1": 'need("b0", ">=2"),'}, {"b0": "", "b1": 'need("b2"),', "b2": 'need("b1"),'}],
    ids=["conflict", "circle"],
)
def test_a_setting_of_a_block_that_cannot_be_added_is_left_out(tmp_path: Path, needs: dict[str, str]) -> None:
    blocks = tmp_path / "building_blocks"
    blocks.mkdir()
    for name, wanted in needs.items():
        (blocks / f"{name}.yaml").write_text(f'block: {name}\nreleases: {{"1": {{}}}}\n')
        (blocks / f"{name}.py").write_text(
            '"""X."""\nfrom typing import Literal\nfrom hpcgen.blocks.base import Block, BlockOptions, need\n'
            f'class B(Block):\n    """X.  Source: x"""\n    name = "{name}"\n    needs = ({wanted})\n'
            '    class Options(BlockOptions, frozen=True):\n        """o."""\n        how: Literal["a", "c"] = "a"\n'
        )
    catalog = Catalog([tmp_path])
    with pytest.raises(UnknownNameError) as caught:
        hpcgen.plan("workstation", a_stack(tmp_path, "b0: {}"), settings=("b1.how=c",), catalog=catalog)
    assert len(caught.value.problems) == 1 and "without --add" not in str(caught.value)
    (remedy,) = caught.value.remedies
    assert (remedy.settings, remedy.added, remedy.without) == ({"b1.how": None}, (), ())
