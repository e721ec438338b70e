"""A job is called after its stack, or as a person says, in every batch system's header."""

from __future__ import annotations

import pytest

from tests.conftest import Command

ACCOUNT = ("--account", "abc")


@pytest.mark.parametrize(
    ("site", "line"),
    [("supermuc", "#SBATCH -J own"), ("hlrs-testbed", "#PBS -N own")],
)
def test_name_of_a_job(hpcgen: Command, site: str, line: str) -> None:
    words = ["job", "--site", site, "--stack", "mpi-hello", *(ACCOUNT if site == "supermuc" else ())]
    named = hpcgen(*words, "--job-name", "own").stdout
    assert line in named.splitlines()
    assert "--job-name own" in named
    assert line.replace("own", "mpi-hello") in hpcgen(*words).stdout.splitlines()


@pytest.mark.parametrize("name", ["a/b", "a\nb", "-error=x", "a b", "$(id)"])
def test_name_that_a_header_cannot_have_is_refused(hpcgen: Command, name: str) -> None:
    done = hpcgen("job", "--site", "supermuc", "--stack", "mpi-hello", f"--job-name={name}")
    assert done.returncode == 2
    assert "--job-name" in done.stderr
