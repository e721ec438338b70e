"""What a row of a release table may be called, and which ranges leave nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.block_checks import is_empty, key_problems
from tests.conftest import Command


def said(*keys: str, elsewhere: tuple[str, ...] = ()) -> dict[str, str]:
    return {key: f"{problem.message} → {problem.remedy}" for key, problem in key_problems(keys, elsewhere)}


@pytest.mark.parametrize(
    ("key", "message", "remedy"),
    [
        ("latest", "'latest' is not a version", "the number under which it was released"),
        ("v2.0", "'v2.0' is not a version", "the number under which it was released"),
        ("2.0 ", "'2.0 ' is not a version", "the number under which it was released"),
        ("2.0+cu126", "a build of 2.0", "call it 2.0; `accepts`, `on` and `only` say"),
        ("1!2.0", "has an epoch", "call it 2.0"),
        ("13.3.0.post1", "a post-release: ranges such as ==13.3.0", "call it 13.3.0"),
        ("2.18.3-1", "a post-release: ranges such as ==2.18.3", "call it 2.18.3"),
        ("1.1.1a", "the pre-release 1.1.1a0, which comes before 1.1.1", "call it 1.1.1a0 if that is meant"),
        ("1.1.1C", "the pre-release 1.1.1rc0", "a number, such as 1.1.1.1"),
    ],
)
def test_a_row_that_is_called_by_no_release_is_a_mistake(key: str, message: str, remedy: str) -> None:
    found = said("1.9", key)
    assert list(found) == [key]
    assert message in found[key]
    assert remedy in found[key].partition(" → ")[2]


def test_what_software_is_released_as_is_none() -> None:
    """Ubuntu's zeros, Intel MPI's build number, PMIx, release candidates of TensorFlow, MPICH, UCX and libfabric."""
    names = ("18.04", "2019.6.166", "7.6.5.32", "2.16.0rc0", "4.2.0b1", "1.15.0-rc4", "2.0.0alpha", "2.0.dev3", "1")
    assert said(*names) == {}


def test_one_version_has_one_spelling_in_all_tables_of_a_block() -> None:
    assert "'1.0.0' is the same version as '1.0'" in said("1.0", "1.0.0", elsewhere=("1.0", "1.0.0"))["1.0.0"]
    assert "call it '1.0.0'" in said("1.0", "2.0", elsewhere=("1.0.0", "2.0"))["1.0"]
    assert said("1.0", "2.0", elsewhere=("2.0", "3.0")) == {}


@pytest.mark.parametrize(
    "versions",
    [
        ">=3,<2",
        ">2,<2",
        ">=2,<2",
        "==2,==3",
        "==2,!=2",
        "==1.2.*,!=1.2.*",
        "==1.*,>=2",
        "~=1.4,<1.4",
        "<0",
        ">2rc1,<2rc1",
    ],
)
def test_a_range_in_which_no_version_lies(versions: str) -> None:
    assert is_empty(versions)


@pytest.mark.parametrize(
    "versions",
    [
        ">=2,<3", ">=2,<=2", "==2", "2.15.1", "==10.1.*", "!=2", ">2,<2.0.1", ">=1,!=1.*,<3", "!=0,<0.1", "<1", "<=0",
        "~=1.4.2", ">=2.0rc1,<2.0rc2", ">2.0rc1,<2.0rc3", "<2.0a1,==2.*", ">1.0.dev1,<1.0.post1", ">1!1",
        ">=1.0.post1,<1.0.post2", "===2.0", ">=18.04,<=20.04", ">=2,!=2,!=2.0.0.1",
    ],
)  # fmt: skip
def test_a_range_in_which_some_version_lies(versions: str) -> None:
    assert not is_empty(versions)


def test_check_tells_all_of_a_table_at_once_each_at_its_place(collection: Path, hpcgen: Command) -> None:
    table = collection / "building_blocks" / "gnu.yaml"
    table.parent.mkdir(exist_ok=True)
    rows = ("13.3.0.post1: {}", '"14.2.0+x": {}', '"15.1": {accepts: {python: ">=3,<2"}, on: {debian: ""}}')
    table.write_text("\n  ".join(["block: gnu\nreleases:", *rows]) + "\n")
    done = hpcgen("--collection", str(collection), "check", str(table))
    assert done.returncode == 3
    assert "gnu.yaml:3:3: '13.3.0.post1' is a post-release" in done.stderr
    assert "  expected: the number of a release, such as 2.15.1, or of a pre-release" in done.stderr
    assert "gnu.yaml:4:3: '14.2.0+x' is a build of 14.2.0" in done.stderr
    assert "gnu.yaml:5:30: no version matches '>=3,<2'\n  expected: a range such as" in done.stderr
