"""No message about a wrong value has a regular expression, or msgspec's own words, in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect as shapes

from hpcgen.catalog.catalog import Catalog, Virtuals
from hpcgen.core.config.diagnostics import wrong_value
from hpcgen.core.model.bazel import BazelList
from hpcgen.core.model.bundle import Manifest
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import RecipeFacts
from hpcgen.core.model.record import BuildRecord
from hpcgen.core.model.release import ReleaseTable
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.model.user_config import UserConfig
from hpcgen.plugins.fleet.records import Fleet, FleetLock
from hpcgen.supply.bundle.documents import Increment
from tests.conftest import Command

FILES = [Site, Stack, ReleaseTable, Fleet, FleetLock, UserConfig, Virtuals, BazelList, Manifest, Increment, RecipeFacts]
FILES += [Plan, Lock, BuildRecord]
WRONG: list[Any] = [
    None,
    "",
    " ",
    "a b\n",
    "é",
    "/",
    "a" * 300,
    "-1",
    0,
    -1,
    1.5,
    True,
    [],
    [" "],
    [None],
    {},
    {" ": 1},
]
RAW = re.compile(r"matching regex|Expected `|`null`|Object |got `|\(\?!|\[A-Z|\[a-z|\[0-9|\\d|\^|Invalid value")


def records(kind: type) -> Iterator[type]:
    """The record and all that are in it."""
    found, left = set(), [shapes.type_info(kind)]
    while left:
        each: Any = left.pop()
        if isinstance(each, shapes.StructType):
            if each.cls in found:
                continue
            found.add(each.cls)
            yield each.cls
            left += [field.type for field in each.fields]
        inner = [getattr(each, name, None) for name in ("type", "item_type", "key_type", "value_type")]
        left += [one for one in inner if one is not None] + list(getattr(each, "types", ()))


def every_record() -> list[type]:
    catalog = Catalog()
    options = [catalog.block(name).Options for name in catalog.names("block")]
    return sorted({each for kind in [*FILES, *options] for each in records(kind)}, key=lambda each: each.__qualname__)


@pytest.mark.parametrize("record", every_record(), ids=lambda each: each.__qualname__)
def test_every_wrong_value_is_told_in_plain_words(record: type) -> None:
    for field in msgspec.structs.fields(record):
        for value in WRONG:
            try:
                msgspec.convert(value, field.type, strict=False)
                fits = True
            except msgspec.ValidationError:
                fits = False
            said = [str(problem) for problem in wrong_value(value, field.type, field.encode_name)]
            assert bool(said) != fits, (field.encode_name, value, said)
            assert not [text for text in said if RAW.search(text)], (field.encode_name, value, said)


def constrained(kind: Any) -> Iterator[Any]:
    """Every kind of text with a pattern in a type, with the description around it."""
    plain = kind.type if isinstance(kind, shapes.Metadata) else kind
    if isinstance(plain, shapes.StrType) and plain.pattern is not None:
        yield kind
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(plain, name):
            yield from constrained(getattr(plain, name))
    for member in getattr(plain, "types", ()):
        yield from constrained(member)


def test_every_pattern_has_words_and_an_example_that_fits() -> None:
    seen = 0
    for record in every_record():
        for field in msgspec.structs.fields(record):
            for kind in constrained(shapes.type_info(field.type)):
                extra = kind.extra_json_schema
                assert extra["description"] and re.search(kind.type.pattern, extra["examples"][0]), (record, field)
                seen += 1
    assert seen > 100


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "python_packages.packages=h5py",
            "--set: `python_packages.packages[0]` must be a package with its exact version, not 'h5py'\n"
            "  expected: such as h5py==3.11.0\n",
        ),
        ("mpich.fortran=yes", "--set: `mpich.fortran` must be true or false, not 'yes'\n  remedy: write true\n"),
        ("mpich.version=>= 4 !", "--set mpich.version: '>= 4 !' is not a version range"),
        (f"mpich.version={'9' * 5000}", f"--set mpich.version: '{'9' * 40}'… is not a version range"),
    ],
)
def test_a_setting_is_told_what_it_takes(hpcgen: Command, setting: str, said: str) -> None:
    done = hpcgen("plan", "--site", "workstation", "--stack", "mpi-hello", "--add", "python_packages", "--set", setting)
    assert said in done.stderr and not RAW.search(done.stderr), done.stderr


def test_a_kit_with_a_wrong_field_names_it(hpcgen: Command, tmp_path: Path) -> None:
    hpcgen("render", "--site", "workstation", "--stack", "mpi-hello", "-o", "kit")
    path = tmp_path / "kit" / "plan.json"
    plan = json.loads(path.read_text())
    plan["site"]["partitions"]["main"]["cpu"]["cores"] = "eight"
    del plan["stack"]["run"]
    path.write_text(json.dumps(plan))
    done = hpcgen("build", "kit", "--dry-run")
    assert done.returncode == 3
    assert "site.partitions.main.cpu.cores: `cores` must be a whole number of at least 1, not 'eight'" in done.stderr
    assert "stack: `run` is missing in `stack`" in done.stderr
    plan["site"].update(title=3, name="A b", status="shut")
    path.write_text(json.dumps(plan))
    assert "; 2 more mistakes\n" in hpcgen("build", "kit", "--dry-run").stderr


def test_one_is_not_many(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("members: []\n")
    assert "`members` must have at least 1 entry, not 0\n" in hpcgen("fleet").stderr
