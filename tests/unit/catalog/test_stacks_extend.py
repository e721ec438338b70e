"""``extends`` of stack recipes."""

from __future__ import annotations

from pathlib import Path

import hpcgen
from hpcgen.catalog.catalog import Catalog
from tests.conftest import Command


def stack(collection: Path, name: str, text: str) -> None:
    (collection / "recipes" / f"{name}.yaml").write_text(f"name: {name}\n{text}")


def test_a_stack_changes_versions_and_options_and_adds_and_removes_blocks(collection: Path) -> None:
    stack(
        collection,
        "ours",
        "extends: tf-horovod\nblocks: {tensorflow: {version: '==2.15.1', options: {install: pip}}, horovod: null, "
        "cmake: {}}\nrun: {command: [python3, train.py], mpi: false}\n",
    )
    found, parent = Catalog([collection]).stack("ours"), Catalog().stack("tf-horovod")
    assert list(found.blocks) == ["tensorflow", "mpi", "cmake"]
    assert found.blocks["tensorflow"].version == "==2.15.1"
    assert found.run.command == ["python3", "train.py"]
    assert found.title == parent.title
    assert next(iter(parent.blocks)) == "tensorflow"


def test_a_stack_made_in_python_extends_one_of_the_catalog() -> None:
    found = hpcgen.load_stack({"name": "mine", "extends": "mpi-hello", "blocks": {"cmake": {}}})
    assert list(found.blocks) == ["rank_test", "mpi", "cmake"]


def test_mistakes_are_told_where_they_are_written(collection: Path, hpcgen: Command) -> None:
    stack(collection, "base", "extends: mpi-hello\nblocks: {mpi: {version: '>=x'}}\n")
    stack(collection, "child", "extends: base\ntitle: A child\n")
    answer = hpcgen("--collection", str(collection), "plan", "--site", "workstation", "--stack", "child")
    assert answer.returncode == 3
    assert "base.yaml:3:25: " in answer.stderr


def test_a_circle_and_an_unknown_parent_are_named(collection: Path, hpcgen: Command) -> None:
    stack(collection, "a", "extends: b\n")
    stack(collection, "b", "extends: a\n")
    stack(collection, "c", "extends: mpi-helo\n")
    answer = hpcgen("--collection", str(collection), "plan", "--site", "workstation", "--stack", "a")
    assert "b.yaml:2:10: the stack recipe extends itself: a → b → a" in answer.stderr
    answer = hpcgen("--collection", str(collection), "check", str(collection / "recipes" / "c.yaml"))
    assert answer.returncode == 3
    assert "extends names 'mpi-helo', which is no stack recipe" in answer.stderr
    assert "did you mean mpi-hello" in answer.stderr


def test_a_recipe_that_says_only_what_differs_is_checked_and_fits_the_schema(
    collection: Path, tmp_path: Path, hpcgen: Command
) -> None:
    import json

    import jsonschema

    path = tmp_path / "ours.yaml"
    path.write_text("name: ours\nextends: mpi-hello\nrun: {gpus_per_node: null}\n")
    assert hpcgen("check", str(path)).returncode == 0
    schema = json.loads(hpcgen("schema", "stack").stdout)
    jsonschema.validate({"name": "ours", "extends": "mpi-hello", "run": {"gpus_per_node": None}}, schema)
    alone = jsonschema.Draft202012Validator(schema)
    assert not alone.is_valid({"name": "ours", "run": {"gpus_per_node": None}})
