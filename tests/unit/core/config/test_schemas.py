"""The schema of profiles that ships as a file, and how editors find it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcgen.core.config.schemas import editor_comment
from tests.conftest import ROOT, Command

SHIPPED = ROOT / "hpcgen" / "core" / "config" / "schemas" / "site.json"
PROFILES = sorted((ROOT / "site_profiles").glob("*.yaml"))


class EditorsYaml(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """YAML 1.2, as editors read it: dates and words such as yes stay text."""

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in rows
            if tag.rpartition(":")[2] in ("null", "int", "float") or (tag.endswith(":bool") and first in "tTfF")
        ]
        for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def complaints(text: str) -> list[str]:
    import jsonschema

    schema = json.loads(SHIPPED.read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(yaml.load(text, Loader=EditorsYaml))]


def test_the_shipped_schema_is_that_of_the_types(hpcgen: Command, request: pytest.FixtureRequest) -> None:
    import jsonschema

    printed = hpcgen("site", "schema").stdout
    if request.config.getoption("--update-golden"):
        SHIPPED.write_text(printed, "utf-8")
    assert printed == SHIPPED.read_text("utf-8"), "run this test with --update-golden"
    assert printed == hpcgen("schema", "site").stdout
    jsonschema.Draft202012Validator.check_schema(json.loads(printed))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_file_as_it_stands_in_an_editor_is_fine(path: Path) -> None:
    assert complaints(path.read_text("utf-8")) == []


@pytest.mark.parametrize("name", ["workstation", "supermuc", "lrz"])
def test_a_wrong_word_is_marked_in_every_kind_of_profile(name: str) -> None:
    text = (ROOT / "site_profiles" / f"{name}.yaml").read_text("utf-8")
    assert complaints(text.replace("containers:", "contaners:", 1).replace("fabric:", "fabrik:", 1)) != []


def test_a_profile_without_a_parent_must_be_whole() -> None:
    assert any("'system' is a required property" in each for each in complaints("name: alone\ntitle: Alone\n"))
    assert complaints("name: child\ntitle: A child\nextends: supermuc\nmpi: null\n") == []
    assert complaints("extends: supermuc\n") != []


def test_a_new_profile_says_where_the_schema_is(hpcgen: Command) -> None:
    first: Any = hpcgen("site", "new", "mine").stdout.splitlines()[0]
    key, _, named = first.partition("=")
    assert f"{key}=" == "# yaml-language-server: $schema="
    # The command may be installed elsewhere than this checkout: what counts is that the file is there and the same.
    assert Path(named).is_absolute()
    assert Path(named).read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_begins_with_the_place_of_the_schema(path: Path) -> None:
    assert path.read_text("utf-8").startswith(editor_comment(path))


def test_beside_the_package_the_path_is_relative() -> None:
    path = ROOT / "site_profiles" / "any.yaml"
    assert editor_comment(path) == "# yaml-language-server: $schema=../hpcgen/core/config/schemas/site.json\n"
    assert (path.parent / "../hpcgen/core/config/schemas/site.json").resolve() == SHIPPED
