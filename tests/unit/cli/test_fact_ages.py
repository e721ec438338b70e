"""What plan, check, doctor and list say of the age of a profile's facts, and that no file has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpcgen.cli.check_command import check_dates
from hpcgen.core.config.yamlfile import load
from hpcgen.core.errors import InputError
from tests.conftest import Command

PROFILE = """\
name: mine
title: Ours
extends: slurm-nvidia
partitions:
  main:
    cpu: {{target: zen2, cores: 64}}
    gpu: {{model: A100, driver: "550.54.15"}}
    queues: [{{name: batch, max_time: "24:00:00"}}]
sources:
  partitions.main.cpu: {{from: a page, checked: 2026-11-27, as_of: 2019, verified: yes}}
  partitions.main.gpu.driver: {{from: a page, checked: 2026-11-27, as_of: {driver}, verified: yes}}
  partitions.main.queues: {{from: a page, checked: 2026-11-27, as_of: {queues}, verified: yes}}
"""
OLD = "note: may be out of date: "


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(PROFILE.format(driver="2026-01-01", queues="2026-02-01"))
    return path


def told(stderr: str) -> list[str]:
    return [line.partition(OLD)[2] for line in stderr.splitlines() if OLD in line]


def test_a_plan_tells_the_facts_that_it_rests_on_and_that_are_too_old(hpcgen: Command, profile: Path) -> None:
    words = ("plan", "--site", str(profile), "--stack", "pytorch")
    assert "note: 1 fact may be stale; " in hpcgen(*words).stderr
    words = (*words, "--notes")
    (line,) = told(hpcgen(*words).stderr)
    remedy = "run `hpcgen site doctor mine.yaml` there, or `hpcgen site refresh mine.yaml --network`".replace(
        "mine.yaml", str(profile)
    )
    assert line == f"partitions.main.gpu.driver (of 2026-01-01; drivers hold for 6 months); {remedy}"
    (line,) = told(hpcgen(*words, "--today", "2027-06-01").stderr)
    assert line.count("hold for") == 2
    assert "partitions.main.queues (of 2026-02-01; queues hold for 12 months)" in line
    # A stack that uses no GPU does not rest on its driver.
    assert told(hpcgen("plan", "--site", str(profile), "--stack", "mpi-hello").stderr) == []


def test_the_age_is_beside_a_plan_and_never_in_it(hpcgen: Command, profile: Path, tmp_path: Path) -> None:
    words = ("--site", str(profile), "--stack", "pytorch")
    days = [json.loads(hpcgen("plan", *words, "--json", "--today", day).stdout) for day in ("2026-02-01", "2027-06-01")]
    doubts = [each.pop("doubtful_facts") for each in days]
    assert days[0] == days[1]
    assert [len(each["old"]) for each in doubts] == [0, 2]
    assert doubts[1]["today"] == "2027-06-01"
    assert doubts[1]["old"][0] == {
        "path": "partitions.main.gpu.driver",
        "kind": "drivers",
        "as_of": "2026-01-01",
        "months": 6,
    }
    kits = []
    for name, day in (("young", "2026-02-01"), ("older", "2027-06-01")):
        assert hpcgen("render", *words, "-o", name, env={"HPCGEN_TODAY": day}).returncode == 0
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        kits.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert kits[0] == kits[1]


def test_what_is_from_memory_is_told_by_that_word(hpcgen: Command, profile: Path) -> None:
    text = profile.read_text()
    driver = "partitions.main.gpu.driver: {from: a page, checked: 2026-11-27, as_of: 2026-01-01, verified: yes}"
    assert driver in text
    known = "partitions.main.gpu.driver: {from: known from memory, checked: 2026-11-27, verified: no}"
    profile.write_text(text.replace(driver, known))
    said = hpcgen("plan", "--site", str(profile), "--stack", "pytorch").stderr
    assert re.search(
        r"note: from memory, not verified: partitions\.main\.gpu\.driver; \d+ facts of the profile unverified", said
    )
    assert "from memory" not in hpcgen("plan", "--site", str(profile), "--stack", "mpi-hello").stderr
    looked = f"hpcgen show site {profile} --origin --unverified"
    assert re.search(
        r"from memory, not verified: partitions\.main\.gpu\.driver; \d+ facts of the profile unverified "
        + re.escape(f"({looked})"),
        hpcgen("check", str(profile)).stderr,
    )


def test_a_plan_tells_the_releases_whose_row_nobody_verified(hpcgen: Command) -> None:
    words = ("plan", "--site", "lumi-g", "--stack", "pytorch-ddp")
    rows = json.loads(hpcgen(*words, "--json").stdout)["doubtful_facts"]["releases"]
    assert rows != []
    assert f"{len(rows)} release" in hpcgen(*words).stderr
    assert all(row in hpcgen(*words, "--notes").stderr for row in rows)


def test_check_doctor_and_list_tell_it_too(hpcgen: Command, profile: Path, tmp_path: Path) -> None:
    checked = hpcgen("check", str(profile), "--today", "2027-06-01")
    assert (checked.returncode, len(told(checked.stderr))) == (0, 1)
    assert told(hpcgen("check", str(profile), "--today", "2026-02-01").stderr) == []
    looked = hpcgen("site", "doctor", "--site", str(profile), "--today", "2027-06-01")
    assert "partitions.main.gpu.driver" in told(looked.stderr)[0]
    collection = tmp_path / "ours" / "site_profiles"
    collection.mkdir(parents=True)
    profile.rename(collection / "mine.yaml")
    words = ("--collection", str(tmp_path / "ours"), "list", "sites", "--today")
    of_day = {
        day: {entry["name"]: entry["old"] for entry in json.loads(hpcgen(*words, day, "--json").stdout)}
        for day in ("2026-02-01", "2027-06-01")
    }
    assert [each["mine"] for each in of_day.values()] == [0, 2]
    assert "facts may be out of date in the profiles of " in hpcgen(*words, "2027-06-01").stderr


def test_a_verified_fact_without_a_date_is_told_of_ones_own_profile(hpcgen: Command, profile: Path) -> None:
    profile.write_text(profile.read_text().replace("as_of: 2019, ", ""))
    checked = hpcgen("check", str(profile))
    assert checked.returncode == 0
    assert f"warning: {profile}:10:" in checked.stderr
    assert "verified, but of no date: partitions.main.cpu (add `as_of`" in checked.stderr


def test_a_day_that_is_none_is_refused(hpcgen: Command) -> None:
    done = hpcgen("list", "sites", "--today", "yesterday")
    assert done.returncode == 2
    assert "'yesterday' is not a day; write year, month and day: 2026-11-27" in done.stderr


def test_a_shipped_profile_without_a_date_is_refused(profile: Path) -> None:
    check_dates(load(profile), shipped=True)
    profile.write_text(profile.read_text().replace("as_of: 2019, ", ""))
    with pytest.raises(InputError, match=r"partitions\.main\.cpu is verified, but of no date") as error:
        check_dates(load(profile), shipped=True)
    assert "dated_by: reading" in error.value.problems[0].remedy
