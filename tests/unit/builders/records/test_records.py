"""Records of builds: kept whole, found by the beginning of an id, listed and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.builders.records.store import add_test_run, find, load_all, new_id, of_image, records_folder, save
from hpcgen.core.errors import UnknownNameError
from hpcgen.core.model.record import BuildRecord, BuiltImage, BuiltStep, TestResult, TestRun
from hpcgen.images.reference import ImageReference
from tests.conftest import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A records folder of the test's own."""
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    return tmp_path / "records"


def record(id: str = "0a1b2c3d-x", started: str = "2026-11-20T10:00:00Z", **more: object) -> BuildRecord:
    given: dict[str, object] = {
        "image": BuiltImage(kind="sif", name="/images/hello.sif", bytes=120_000_000),
        "blocks": {"debian": "12", "gnu": "12.2.0"},
        "inputs": ["one==1"],
        "steps": [
            BuiltStep(block="debian 12", about="packages", seconds=10),
            BuiltStep(block="gnu 12.2.0", about="packages", seconds=20),
        ],
        "seconds": 90.0,
        **more,
    }
    return BuildRecord(
        id=id,
        hpcgen="0.2.0",
        started=started,
        site="here",
        stack="hello",
        partition="cpu",
        format="singularity",
        content="ab" * 32,
        engine="apptainer",
        engine_version="1.4.5",
        **given,  # type: ignore[arg-type]
    )


def run_of(*results: str, group: str = "gnu") -> TestRun:
    """Records of hpcgen 0.1.0 have a block's version in the group."""
    listed = [TestResult(group=group, name=f"test {n}", result=result) for n, result in enumerate(results)]  # type: ignore[arg-type]
    return TestRun(started="2026-11-20T11:00:00Z", site="here", engine="apptainer", results=listed)


def test_a_record_is_read_as_it_was_saved(folder: Path) -> None:
    one = record()
    assert save(one) == folder / "0a1b2c3d-x.json"
    assert find("0a1b") == one
    assert list(load_all()) == [one]


def test_ids_are_new_and_say_what_they_are_of() -> None:
    ids = {new_id("2026-11-20T10:00:00Z", "here", "hello") for _ in range(50)}
    assert len(ids) == 50
    assert all(each.endswith("-hello-here-20261120") for each in ids)


def test_a_prefix_that_fits_two_or_none_is_an_unknown_name() -> None:
    save(record("aa11-x"))
    save(record("aa22-x"))
    assert find("aa1").id == "aa11-x"
    for wrong in ("aa", "b", "", "../aa11-x", "aa11-y"):
        with pytest.raises(UnknownNameError):
            find(wrong)


def test_the_newest_build_of_an_image_is_found(folder: Path) -> None:
    save(record("a1-x"))
    save(record("b2-x", "2026-11-20T12:00:00Z"))
    save(record("c3-x", "2026-11-20T13:00:00Z", result="failed"))
    save(record("d4-x", image=BuiltImage(kind="podman", name="localhost/hello:latest")))
    found = of_image(ImageReference("sif", "/images/hello.sif"))
    assert found is not None and found.id == "b2-x"
    stored = of_image(ImageReference("podman", "hello"))
    assert stored is not None and stored.id == "d4-x"
    assert of_image(ImageReference("docker", "hello")) is None


def test_test_runs_add_up_also_from_an_older_copy() -> None:
    one = record()
    save(one)
    add_test_run(one, run_of("passed"))
    assert [len(run.results) for run in add_test_run(one, run_of("passed", "failed")).tests] == [1, 2]


def test_a_broken_record_hides_no_other(folder: Path, hpcgen: Command) -> None:
    save(record())
    (folder / "broken.json").write_text("{")
    (folder / "later.json").write_text(json.dumps({"record": 9}))
    done = hpcgen("records", env={"HPCGEN_RECORDS": str(folder)})
    assert done.returncode == 0
    assert "0a1b2c3d-x" in done.stdout
    assert "broken.json" in done.stderr and "later.json" in done.stderr


def test_a_record_of_a_later_release_is_read_as_far_as_it_is_known(folder: Path) -> None:
    path = save(record())
    path.write_text(json.dumps({**json.loads(path.read_text()), "energy_j": 5}))
    assert find("0a").stack == "hello"


def test_list_show_and_compare(folder: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_RECORDS": str(folder)}
    assert "no builds recorded in" in hpcgen("records", env=env).stderr
    save(record("aa11-x", tests=[run_of("passed", "skipped", group="gnu 12.2.0")]))
    later = [
        BuiltStep(block="debian 12", about="packages", result="cached"),
        BuiltStep(block="gnu 13.3.0", about="packages", seconds=30),
    ]
    newer = record(
        "bb22-x",
        "2026-11-21T10:00:00Z",
        blocks={"debian": "12", "gnu": "13.3.0"},
        inputs=["one==2"],
        steps=later,
        seconds=200.0,
        tests=[run_of("passed", "failed")],
    )
    save(newer)
    listed = hpcgen("records", env=env).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["id", "bb22-x", "aa11-x"]
    assert "3 min 20 s" in listed[1] and "1/2" in listed[1] and "120.0 MB" in listed[1]
    assert [each["id"] for each in json.loads(hpcgen("records", "--json", "--limit", "1", env=env).stdout)] == [
        "bb22-x"
    ]
    assert "gnu 13.3.0" in hpcgen("records", "show", "bb", env=env).stdout
    compared = hpcgen("records", "compare", "aa", "bb", env=env).stdout
    for words in (
        "block gnu   12.2.0  13.3.0",
        "90 s",
        "one==2",
        "cached",
        "1/1",
        "test gnu: test 1  skipped  failed",
    ):
        assert " ".join(words.split()) in " ".join(compared.split()), words
    told = json.loads(hpcgen("records", "compare", "aa", "bb", "--json", env=env).stdout)
    assert told["blocks"] == {"gnu": ["12.2.0", "13.3.0"]}
    assert told["seconds"] == [90.0, 200.0]
    assert [step["seconds"] for step in told["steps"]] == [[10.0, 0.0], [20.0, 30.0]]
    unknown = hpcgen("records", "show", "zz", env=env)
    assert (unknown.returncode, unknown.stdout) == (4, "")


def test_where_records_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HPCGEN_RECORDS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert records_folder() == tmp_path / "hpcgen" / "records"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert records_folder() == tmp_path / ".local" / "state" / "hpcgen" / "records"
