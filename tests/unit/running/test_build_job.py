"""Builds as jobs: which sites let them, and the scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.support.processes import own_module
from hpcgen.core.support.quoting import line
from hpcgen.running.build_job import BuildJob, build_script, check_site
from hpcgen.running.submission import without_options
from tests.conftest import Command

OWN = line(own_module("hpcgen"))
SITE = "name: mine\nextends: supermuc\ntitle: mine\n"
BUILDING_SITE = f"{SITE}containers: {{build_on: [compute]}}\nnetwork: {{internet: {{compute: true, login: true}}}}\n"


def test_a_single_build_as_a_job_prints_its_script(hpcgen: Command, tmp_path: Path, collection: Path) -> None:
    (collection / "site_profiles" / "mine.yaml").write_text(BUILDING_SITE)
    words = ("--collection", "collection", "build", "--site", "mine", "--stack", "mpi-hello", "--submit")
    asked = ("--time", "3h", "--account", "abc", "--engine", "ch-image", "--set", "gnu.fortran=true")
    done = hpcgen(*words, *asked, "--dry-run")
    assert "#SBATCH --time=03:00:00\n" in done.stdout, done.stderr
    assert f"cd {tmp_path}\n" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        f"exec {OWN} --collection collection build --site mine --stack mpi-hello "
        "--engine ch-image --set gnu.fortran=true"
    )
    refused = hpcgen("build", "--site", "supermuc", "--stack", "mpi-hello", "--submit")
    assert (refused.returncode, "containers.build_on" in refused.stderr) == (6, True)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (SITE, "does not say whether images may be built on compute nodes"),
        (f"{SITE}containers: {{build_on: [login]}}\n", "only on its login nodes"),
        (
            f"{SITE}containers: {{build_on: [compute]}}\nnetwork: {{internet: {{compute: false, login: true}}}}\n",
            "cannot reach the internet",
        ),
        ("name: mine\nextends: workstation\ntitle: mine\n", "has no batch system"),
    ],
)
def test_a_site_that_does_not_let_compute_nodes_build_is_not_asked_to(
    collection: Path, profile: str, told: str
) -> None:
    from hpcgen.catalog.catalog import Catalog

    (collection / "site_profiles" / "mine.yaml").write_text(profile)
    catalog = Catalog([collection])
    with pytest.raises(PolicyError, match=told):
        check_site(catalog.site("mine"), catalog.site_document("mine"))


def build_job(collection: Path, extra: str = "", **fields: object) -> BuildJob:
    from hpcgen.catalog.catalog import Catalog

    (collection / "site_profiles" / "mine.yaml").write_text(f"{BUILDING_SITE}{extra}")
    site = Catalog([collection]).site("mine")
    check_site(site)
    given = {"name": "build", "words": ["build", "kit"], "folder": Path("/home/it's me"), **fields}
    return BuildJob(site=site, partition=site.default_partition, **given)  # type: ignore[arg-type]


def test_the_script_of_a_build_takes_a_whole_node_and_calls_this_hpcgen(collection: Path) -> None:
    request = JobRequest(walltime="20m", account="abc", queue="test")
    name, text = build_script(build_job(collection, request=request, environment={"HPCGEN_RECORDS": "/r r"}))
    assert name == "build.slurm"
    cores = 48
    for written in (
        "#SBATCH --time=00:20:00",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --cpus-per-task={cores}",
        "#SBATCH --partition=test",
        "#SBATCH --account=abc",
        "cd '/home/it'\"'\"'s me'",
        "export HPCGEN_RECORDS='/r r'",
        f"exec {OWN} build kit",
    ):
        assert f"\n{written}\n" in text, text
    assert "--array" not in text


def test_an_array_names_its_members_by_their_index(collection: Path) -> None:
    words = ["build", "--fleet", "fleet.yaml"]
    job = build_job(
        collection, request=JobRequest(account="abc"), words=words, tasks={"member": ["a", "b", "c"]}, limit=2
    )
    _, text = build_script(job)
    assert "\n#SBATCH --array=0-2%2\n" in text
    assert "members=(\n    a\n    b\n    c\n)\n" in text
    assert OWN + ' build --fleet fleet.yaml --member "${members[$SLURM_ARRAY_TASK_ID]}"' in text


def test_a_build_job_loads_modules_by_the_sites_own_tool(collection: Path) -> None:
    request = JobRequest(account="abc")
    _, text = build_script(build_job(collection, "system: {modules: valet}\n", request=request))
    assert text.startswith("#!/bin/bash -l\n") and "\nvpkg_require charliecloud\n" in text and "module load" not in text
    _, text = build_script(build_job(collection, request=request))
    assert text.startswith("#!/bin/bash\n") and "\nmodule load charliecloud\n" in text


def test_an_account_that_the_site_wants_is_asked_for(collection: Path) -> None:
    with pytest.raises(PolicyError, match="requires an account"):
        build_script(build_job(collection))


def test_arrays_are_slurms(collection: Path) -> None:
    job = build_job(
        collection, "scheduler: {kind: pbs}\n", request=JobRequest(account="abc", queue="test"), tasks={"member": ["a"]}
    )
    with pytest.raises(PolicyError, match="cannot submit arrays to PBS"):
        build_script(job)


def test_the_job_repeats_the_command_line_without_what_is_for_the_job() -> None:
    words = ["--collection", "c", "build", "--submit", "--time", "2h", "--queue=q", "kit", "--", "--time", "x"]
    options = {"--submit": 0, "--time": 1, "--queue": 1}
    assert without_options(words, options) == ["--collection", "c", "build", "kit", "--", "--time", "x"]
