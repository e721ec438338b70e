"""A built image laid out for a site: the job, the engine, and the script that starts it here or as a job."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError, UnknownNameError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.model.site import SiteEngine
from hpcgen.images.reference import parse_image
from hpcgen.running.host_side import laid_out
from hpcgen.running.image_job import ImageJob, batch_script, checks, choose_engine, direct_script, plan_for_image
from hpcgen.running.verify.node import engine_script
from tests.conftest import GOLDEN
from tests.unit.launch.test_launch import IMAGE, make_plan, site

replace = msgspec.structs.replace


def asked(**fields: Any) -> JobRequest:
    return JobRequest(**fields)


@pytest.fixture
def recorded() -> Plan:
    """Built for SuperMUC-NG, four nodes for two hours."""
    return make_plan("supermuc", nodes=4, walltime="2h", account="pn12ab")


def test_without_a_wish_the_job_is_the_recorded_one(recorded: Plan) -> None:
    assert laid_out(recorded, None, None, asked()) == recorded
    other = laid_out(recorded, None, None, asked(walltime="10m", command=["hostname"])).job
    assert (other.nodes, other.walltime_s, other.command, other.account) == (4, 600, ["hostname"], "pn12ab")
    assert [reason for reason in other.why() if reason.startswith("time ")] == ["time 00:10:00: requested"]


def test_no_record_has_commands_run_on_the_host(recorded: Plan) -> None:
    job = msgspec.structs.replace(recorded.job, before=["touch", "here"], afterwards=["touch", "there"])
    hostile = msgspec.structs.replace(recorded, job=job)
    assert laid_out(hostile, None, None, asked()) == recorded
    assert laid_out(hostile, None, None, asked(before=["mine"])).job.before == ["mine"]


def test_another_layout_keeps_what_was_not_asked_for(recorded: Plan) -> None:
    job = laid_out(recorded, None, None, asked(nodes=20)).job
    assert (job.nodes, job.ranks_per_node, job.queue, job.walltime_s, job.account) == (20, 4, "general", 7200, "pn12ab")
    assert job.command == recorded.job.command


def test_another_site_lays_it_out_anew(recorded: Plan) -> None:
    plan = laid_out(recorded, site("workstation"), None, asked())
    assert (plan.site.name, plan.partition, plan.job.nodes, plan.job.account) == ("workstation", "main", 1, "")
    assert plan.blocks == recorded.blocks


@pytest.mark.parametrize("built_with_them", [False, True])
def test_an_image_from_before_the_site_bound_its_file_systems_starts_as_it_did(
    tmp_path: Path, built_with_them: bool
) -> None:
    """Charliecloud cannot bind onto a folder that the image does not have."""
    kit = shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", tmp_path / "mpi-hello" / "opt/hpcgen/kit")
    (tmp_path / "mpi-hello" / "ch").mkdir()
    stored = json.loads((kit / "plan.json").read_text())
    for system in stored["site"]["file_systems"].values():
        if not built_with_them:
            system.pop("bind", None)
    (kit / "plan.json").write_text(json.dumps(stored))
    image = parse_image(str(tmp_path / "mpi-hello"))
    job = plan_for_image(image, Catalog(), site=site("supermuc"), elsewhere=True)
    script = batch_script(job, "")[1]
    assert ("/hppfs/work" in script) == built_with_them and "/lrz/sys" in script


def test_an_unknown_partition_is_named(recorded: Plan) -> None:
    with pytest.raises(UnknownNameError, match="no partition 'thick'"):
        laid_out(recorded, None, "thick", asked())
    assert laid_out(recorded, None, "fat", asked()).job.queue == "fat"


@pytest.mark.parametrize(
    ("name", "kind", "engine"),
    [
        ("supermuc", "directory", "charliecloud"),
        ("supermuc", "squashfs", "charliecloud"),
        ("hlrs-testbed", "sif", "singularity"),
        ("workstation", "docker", "docker"),
        ("workstation", "podman", "podman"),
    ],
)
def test_the_engine_follows_the_kind_of_image(name: str, kind: ImageKindName, engine: str, no_programs: None) -> None:
    assert choose_engine(site(name), kind, "/images/demo", None) == engine


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it, and where programs can be put."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_of_two_engines_the_one_at_hand_is_taken(no_programs: Path) -> None:
    put(no_programs, "apptainer")
    assert choose_engine(site("hlrs-testbed"), "sif", "/images/demo.sif", None) == "apptainer"
    put(no_programs, "singularity")
    assert choose_engine(site("hlrs-testbed"), "sif", "/images/demo.sif", None) == "singularity"


def test_a_sandbox_is_told_from_charlieclouds_folder(tmp_path: Path, no_programs: Path) -> None:
    (tmp_path / "image" / ".singularity.d").mkdir(parents=True)
    put(no_programs, "apptainer")
    profile = site("hlrs-testbed")
    assert choose_engine(profile, "directory", str(tmp_path / "image"), None) == "apptainer"
    assert choose_engine(profile, "directory", str(tmp_path), None) == "charliecloud"


@pytest.mark.parametrize(
    ("kind", "engine", "says"),
    [
        ("oci-archive", None, "hpcgen convert"),
        ("sif", None, "supermuc does not allow apptainer or singularity"),
        ("directory", "docker", "docker does not start an image of the kind directory"),
        ("sif", "shifter", r"shifter does not start(.|\n)*push it to a registry, run shifterimg pull"),
        ("squashfs", "sarus-suite", r"sarus-suite does not start(.|\n)*run sarusctl migrate NAME; or push it"),
    ],
)
def test_what_cannot_be_started_is_explained(kind: ImageKindName, engine: Any, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        choose_engine(site("supermuc"), kind, "/images/demo", engine)


def test_the_job_script_has_the_image_written_in(recorded: Plan) -> None:
    name, text = batch_script(ImageJob(recorded, IMAGE, "/images/my demo", "directory"), "demo.preflight.sh")
    assert name == "job.slurm"
    assert "image='/images/my demo'" in text.splitlines()
    assert "HPCGEN_IMAGE" not in text
    assert "#SBATCH --nodes=4" in text.splitlines()


def start_here(plan: Plan, folder: Path, kind: ImageKindName, image: str, **variables: str) -> str:
    """Run the direct script with programs that print how they are called."""
    for name in ("ch-run", "mpiexec", "docker"):
        put(folder, name)
        (folder / name).write_text(f'#!/bin/sh\necho {name} "$@"\necho bootstrap "$I_MPI_HYDRA_BOOTSTRAP"\n')
    text = direct_script(ImageJob(plan, IMAGE, image, kind))
    assert "#SBATCH" not in text
    # The machines of these profiles are elsewhere.
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "0", **variables}
    done = subprocess.run(["bash", "-c", text, "run.sh"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_here_the_launcher_asks_no_batch_system_without_an_allocation(tmp_path: Path) -> None:
    plan = make_plan("supermuc")
    plan = replace(plan, site=replace(plan.site, scheduler=replace(plan.site.scheduler, modules=[])))
    plan = replace(plan, site=replace(plan.site, mpi=replace(plan.site.mpi, modules=[])))
    engines = {**plan.site.containers.engines, "charliecloud": SiteEngine(version="0.31")}
    plan = replace(plan, site=replace(plan.site, containers=replace(plan.site.containers, engines=engines)))
    (tmp_path / "image").mkdir()
    output = start_here(plan, tmp_path, "directory", str(tmp_path / "image"))
    assert "mpiexec -n 4 -ppn 4 /bin/sh -c" in output and "folder-first ch-run" in output
    assert "bootstrap fork" in output
    inside = start_here(plan, tmp_path, "directory", str(tmp_path / "image"), SLURM_JOB_ID="7")
    assert "bootstrap slurm" in inside


def test_ch_run_is_told_the_user_where_nothing_sets_one(tmp_path: Path) -> None:
    plan = make_plan("workstation", engine="charliecloud")
    put(tmp_path, "ch-run")
    (tmp_path / "ch-run").write_text('#!/bin/sh\necho "$USER"\n')
    text = direct_script(ImageJob(plan, IMAGE, "demo:1", "ch-image"))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "0"}
    done = subprocess.run(["bash", "-c", text, "run.sh"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.strip() == getpass.getuser(), done.stderr
    # The contract asks the program for its version alone.
    for more, wanted in (({}, getpass.getuser()), ({"USER": "ada"}, "ada")):
        words = ["bash", "-c", engine_script(plan, {})]
        told = subprocess.run(words, env={**env, **more}, capture_output=True, text=True)
        assert told.stdout.splitlines()[-1] == wanted, told.stderr


def test_a_name_in_a_store_is_not_looked_for_as_a_file(tmp_path: Path) -> None:
    plan = make_plan("workstation", engine="charliecloud")
    assert " demo:1 -- " in start_here(plan, tmp_path, "ch-image", "demo:1")


def test_the_engine_is_asked_once_whether_it_has_the_image(tmp_path: Path) -> None:
    """Each question takes some 0.08 s; hpcgen has asked before it writes a script for a start right here."""
    job = ImageJob(make_plan("workstation"), IMAGE, "demo:1", "docker")
    (tmp_path / "docker").write_text('#!/bin/sh\necho "$@" >> calls\n')
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "preflight.sh").write_text(checks(job))
    # The machine of this profile is elsewhere.
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "warn"}

    def asked(script: str, *words: str) -> int:
        (tmp_path / "calls").write_text("")
        subprocess.run(["bash", script, *words], cwd=tmp_path, env=env, capture_output=True)
        return (tmp_path / "calls").read_text().count("image inspect demo:1")

    (tmp_path / "here.sh").write_text(direct_script(job, "preflight.sh"))
    assert asked("here.sh") == 0 and "run " in (tmp_path / "calls").read_text()
    name, text = batch_script(job, "preflight.sh")
    (tmp_path / name).write_text(text)
    assert asked(name) == 1
    assert asked("preflight.sh", "demo:1") == 1
