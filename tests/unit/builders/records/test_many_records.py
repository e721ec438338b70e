"""Many records: listed one after the other, chosen by what they are of, removed."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hpcgen.builders.records.store import load_all, save
from tests.conftest import Command
from tests.unit.builders.records.test_records import record


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A records folder of the test's own."""
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    return tmp_path / "records"


def days_ago(days: float) -> str:
    return (datetime.now(timezone.utc) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


def four() -> None:
    save(record("a1-x", days_ago(400)))
    save(record("b2-x", days_ago(40), result="failed"))
    save(record("c3-x", days_ago(4)))
    save(record("d4-x", days_ago(0.1), result="failed"))


def listed(hpcgen: Command, folder: Path, *words: str) -> list[str]:
    done = hpcgen("records", "--json", *words, env={"HPCGEN_RECORDS": str(folder)})
    assert done.returncode == 0, done.stderr
    return [each["id"] for each in json.loads(done.stdout)]


def test_records_are_chosen_by_site_stack_result_and_age(hpcgen: Command, folder: Path) -> None:
    four()
    assert listed(hpcgen, folder) == ["d4-x", "c3-x", "b2-x", "a1-x"]
    assert listed(hpcgen, folder, "--result", "failed") == ["d4-x", "b2-x"]
    assert listed(hpcgen, folder, "--result", "built") == ["c3-x", "a1-x"]
    assert listed(hpcgen, folder, "--result", "failed", "--limit", "1") == ["d4-x"]
    assert listed(hpcgen, folder, "--older-than", "30") == ["b2-x", "a1-x"]
    assert listed(hpcgen, folder, "--older-than", "30", "--newer-than", "300") == ["b2-x"]
    assert listed(hpcgen, folder, "--newer-than", "0.5", "--site", "here", "--stack", "hello") == ["d4-x"]
    assert listed(hpcgen, folder, "--site", "elsewhere") == listed(hpcgen, folder, "--stack", "other") == []
    none = hpcgen("records", "--site", "elsewhere", env={"HPCGEN_RECORDS": str(folder)})
    assert "no record in " in none.stderr
    far = hpcgen("records", "--older-than", "1e9", env={"HPCGEN_RECORDS": str(folder)})
    assert (far.returncode, "days are too many" in far.stderr) == (3, True)


def test_prune_removes_what_is_chosen_with_its_log_and_says_it(hpcgen: Command, folder: Path) -> None:
    four()
    for name in ("a1-x.log", "c3-x.log"):
        (folder / name).write_text("output of the build\n")
    (folder / "later.json").write_text(json.dumps({"record": 9}))
    env = {"HPCGEN_RECORDS": str(folder)}
    before = sorted(path.name for path in folder.iterdir())
    dry = hpcgen("records", "prune", "--older-than", "30", "--dry-run", env=env)
    assert [line.split()[0] for line in dry.stdout.splitlines()] == ["b2-x", "a1-x"]
    assert "2 records would be removed" in dry.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    done = hpcgen("records", "prune", "--older-than", "30", env=env)
    assert (done.stdout, "2 records removed" in done.stderr) == (dry.stdout, True)
    left = ["c3-x.json", "c3-x.log", "d4-x.json", "later.json"]
    assert sorted(path.name for path in folder.iterdir()) == left
    assert "no records to remove" in hpcgen("records", "prune", "--older-than", "30", env=env).stderr


def test_prune_keeps_the_newest_of_what_is_chosen(hpcgen: Command, folder: Path) -> None:
    four()
    env = {"HPCGEN_RECORDS": str(folder)}
    assert hpcgen("records", "prune", "--result", "failed", "--keep", "1", env=env).stdout.split()[0] == "b2-x"
    assert hpcgen("records", "prune", "--keep", "2", env=env).stdout.split()[0] == "a1-x"
    assert [each.id for each in load_all()] == ["d4-x", "c3-x"]
    refused = hpcgen("records", "prune", env=env)
    assert refused.returncode == 2
    assert "this would remove all records" in refused.stderr
    assert len(list(load_all())) == 2


LISTED = """
import re, sys
from hpcgen.cli import main
try:
    main()
except SystemExit:
    print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how much memory a process had")
@pytest.mark.parametrize("words", [["records"], ["records", "--json"], ["records", "--limit", "2"]], ids=" ".join)
def test_a_long_list_is_never_whole_in_memory(folder: Path, words: list[str]) -> None:
    """Records of 3 MB each: a dozen of them take no more memory than two."""

    def memory_kb() -> int:
        done = subprocess.run([sys.executable, "-c", LISTED, *words], capture_output=True, text=True, check=True)
        assert "a0-x" in done.stdout or words[-1] == "2"
        return int(done.stderr)

    inputs = [f"{each} {'x' * 80}" for each in range(30_000)]
    save(record("a0-x", inputs=inputs))
    save(record("a1-x", inputs=inputs))
    two = memory_kb()
    text = (folder / "a1-x.json").read_text()
    for number in range(2, 12):
        (folder / f"a{number}-x.json").write_text(text.replace("a1-x", f"a{number}-x"))
    assert memory_kb() - two < 20_000
