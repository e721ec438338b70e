"""Requests in hpcgen's own form."""

from __future__ import annotations

import json

import pytest
from packaging.specifiers import SpecifierSet

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.requests.reading import ReadRequest, request_from, version_range
from hpcgen.plugins.tuning.requests.records import Build, OptimiseRequest
from tests.conftest import Command

SHORT = "framework: pytorch\nkind: ai_training\nsite: supermuc\n"


def read(text: str) -> ReadRequest:
    return request_from(loads(text, "request.yaml"))


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value)


def test_three_lines_are_enough() -> None:
    got = read(SHORT)
    assert got.request == OptimiseRequest(kind="ai_training", framework="pytorch", site="supermuc")
    assert (got.dialect, got.findings) == ("hpcgen", [])
    assert got.where(("site",)).line == 3


def test_a_version_is_a_range_and_never_a_part_of_a_longer_one() -> None:
    assert read(f'{SHORT}version: "2.1"\n').request.version == "==2.1.*"
    fits = SpecifierSet(version_range("2.1"))
    assert [each for each in ("2.1.0", "2.1.4", "2.11", "2.10.1", "12.1") if each in fits] == ["2.1.0", "2.1.4"]
    assert version_range(">=2.1,<3") == ">=2.1,<3"
    assert version_range("") == ""
    assert [version_range(each) for each in ("2.1.*", "2.1rc1", "~=2.1")] == ["==2.1.*", "==2.1rc1", "~=2.1"]
    for wrong in ("2.1 or so", "9" * 5000, "2.1,3"):
        with pytest.raises(InputError, match="is not a version range"):
            version_range(wrong)


def test_json_is_read_too() -> None:
    got = read('{"kind": "ai_training",\n\t"framework": "pytorch", "limits": {"nodes": 4}, "site": "supermuc"}')
    assert (got.dialect, got.request.limits.nodes, got.where(("limits", "nodes")).line) == ("hpcgen", 4, 2)


def test_all_mistakes_are_told_at_once_each_at_its_place() -> None:
    said = refused(
        "kind: ai_trainig\nframework: pytoch\nsite: supermuc\ninstall: pip\n"
        "limits: {efficiency: 1.5, walltme: 1h}\njob: {name: a/b}\n"
    )
    for place in ("1:7", "2:12", "4:10", "5:22", "5:27", "6:13"):
        assert f"request.yaml:{place}: " in said
    assert "did you mean pytorch?" in said and "did you mean walltime?" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: ai_training\n", "1:1: the program is not named"),
        ("kind: hpc\n", "1:1: the program is not named"),
        (f"{SHORT}stack: pytorch\n", "4:8: both `framework` and `stack` are named"),
        (f"{SHORT}backend: jax\n", "4:10: only Keras has a `backend`"),
        (f"{SHORT}version: new\n", "4:10: 'new' is not a version range"),
        ("kind: hpc\nstack: gromacs\nversion: 1\n", "3:10: `version` is that of a framework"),
        (f"{SHORT}compilers: {{use: xla, without: [xla]}}\n", "4:18: xla is to be used and may not be chosen"),
        (f"{SHORT}compilers: {{use: xla, allow: []}}\n", "4:18: xla is to be used and may not be chosen"),
        (f"{SHORT}job: {{notify: [end]}}\n", "4:15: `notify` without the address"),
        (f"{SHORT}limits: {{walltime: 0h}}\n", "4:20: 0h is not a time for a job"),
        (f"{SHORT}limits: {{efficiency: 0}}\n", "4:22: `efficiency` must be a number more than 0"),
        (f'{SHORT}job: {{name: "a\\nb"}}\n', "4:13: `name` must be at most 64 letters"),
    ],
)
def test_what_does_not_go_together_is_refused(text: str, said: str) -> None:
    assert f"request.yaml:{said}" in refused(text)


def test_the_whole_efficiency_and_36_hours_are_kept() -> None:
    limits = read(f"{SHORT}limits: {{efficiency: 1, walltime: 36h}}\n").request.limits
    assert (limits.efficiency, limits.walltime) == (1.0, "36h")


def test_only_the_number_of_jobs_is_put_into_a_build_command() -> None:
    text = "make -j {{BUILD_PARALLELISM}} V={{ other }} {{ 7 * 7 }} {% if 1 %}"
    assert Build(src="https://example.org/a.tar.gz", build_command=text, parallelism=8).text == (
        "make -j 8 V={{ other }} {{ 7 * 7 }} {% if 1 %}"
    )


def test_editors_find_the_schema(hpcgen: Command) -> None:
    import jsonschema

    schema = json.loads(hpcgen("schema", "request").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"framework": "pytorch", "kind": "ai_training", "site": "supermuc"})
    assert not validator.is_valid({"framework": "pytorch", "kind": "ai_training", "limits": {"efficiency": 2}})
