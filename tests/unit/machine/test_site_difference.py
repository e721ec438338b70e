"""Two profiles, fact by fact."""

from __future__ import annotations

import json
from pathlib import Path

from hpcgen.core.config.yamlfile import loads
from hpcgen.machine.site_difference import changes_text, site_changes
from tests.conftest import ROOT, Command


def test_each_fact_that_differs_has_both_places() -> None:
    old = loads("name: a\nmpi:\n  version: 4\n  root: /x\nsystem: {os: sles}\n", "a.yaml")
    new = loads("name: b\nmpi:\n  version: 5\nsystem: {os: sles, glibc: 2.31}\n", "b.yaml")
    text = changes_text(site_changes(old, new)).splitlines()
    assert text == [
        "mpi.root: - /x [a.yaml:4]",
        "mpi.version: 4 [a.yaml:3] → 5 [b.yaml:3]",
        "system.glibc: + 2.31 [b.yaml:4]",
    ]


def test_the_command_says_by_its_status_whether_anything_differs(hpcgen: Command, tmp_path: Path) -> None:
    text = (ROOT / "site_profiles" / "workstation.yaml").read_text("utf-8")
    (tmp_path / "mine.yaml").write_text(text.replace("default_partition: ", "default_partition: x"), "utf-8")
    same = hpcgen("diff", "workstation", "workstation")
    assert (same.returncode, same.stdout) == (0, "") and "nothing differs" in same.stderr
    done = hpcgen("diff", "workstation", str(tmp_path / "mine.yaml"), "--json")
    assert done.returncode == 1
    assert [each["path"] for each in json.loads(done.stdout)] == ["default_partition"]


def test_a_lock_is_not_compared_with_a_profile(hpcgen: Command) -> None:
    done = hpcgen("diff", "a.lock", "workstation")
    assert done.returncode == 2 and "compare a site profile with a site profile" in done.stderr
