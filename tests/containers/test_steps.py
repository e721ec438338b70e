"""Several commands in one job of a real Slurm: each on all ranks, none after the first that fails."""

from __future__ import annotations

import json
from pathlib import Path

from test_submit import Site

RANKS = "/opt/rank_test/bin/rank_test"


def test_two_steps_are_started_by_the_launch_line(site: Site, mpi_hello_image: Path) -> None:
    write = "write=sh -c 'echo written >> state; sleep 4'"
    done = site.run("submit", str(mpi_hello_image), "--step", write, "--step", f"ranks={RANKS}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site.work / "state").read_text() == "written\nwritten\n"
    assert "runs the step write (1 of 2)" in done.stderr
    said = done.stdout.splitlines()
    ranks = [number for number, line in enumerate(said) if line.startswith("rank ") and " of 2 on " in line]
    (begins,) = (number for number, line in enumerate(said) if line.endswith(" ranks (2 of 2) begins"))
    (ended,) = (number for number, line in enumerate(said) if " ranks (2 of 2) ended with status 0 after " in line)
    assert len(ranks) == 2 and begins < min(ranks) and max(ranks) < ended, done.stdout


def test_no_step_is_started_after_one_that_fails(site: Site, mpi_hello_image: Path) -> None:
    steps = ("--step", "broken=sh -c 'exit 5'", "--step", "after=touch started")
    done = site.run("submit", str(mpi_hello_image), "--json", *steps)
    assert done.returncode == 10
    assert [step["name"] for step in json.loads(done.stdout)["steps"]] == ["broken"]
    assert "in its step broken (1 of 2)" in done.stderr
    assert not (site.work / "started").exists()
