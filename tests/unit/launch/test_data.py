"""Data of the host that a job sees: by --bind, by the stack and by the user's config file."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest

from hpcgen.core.support.quoting import expanded
from tests.conftest import Command

STACK = """\
name: reader
title: Reads data
blocks: {python: {}}
run:
  command: [python3, read.py]
  mpi: false
  binds: [data:/data, $HPCGEN_TEST_SCRATCH/images:/data/images]
"""


@pytest.fixture
def job(hpcgen: Command, tmp_path: Path) -> Command:
    (tmp_path / "data").mkdir()
    (tmp_path / "hpcgen.yaml").write_text(STACK)
    return partial(hpcgen, "job")


def bound(script: str) -> list[str]:
    return [line.strip() for line in script.splitlines() if line.strip().startswith(("-v ", "-b ", "-B "))]


def test_relative_paths_are_of_the_stack_and_of_the_present_folder(job: Command, tmp_path: Path) -> None:
    here = tmp_path / "work"
    (here / "more").mkdir(parents=True)
    site = ("--site", "workstation", "--stack", "../hpcgen.yaml")
    done = job(*site, "--bind", "more:/more:ro", cwd=here)
    assert done.returncode == 0, done.stderr
    assert f"-v {tmp_path}/data:/data" in bound(done.stdout)
    assert f"-v {here}/more:/more:ro" in bound(done.stdout)
    assert '-v "$HPCGEN_TEST_SCRATCH"/images:/data/images' in bound(done.stdout)


def test_what_is_named_last_has_the_place(job: Command, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    config = tmp_path / "config.yaml"
    config.write_text("binds: {workstation: [/tmp:/data, /var/tmp:/scratch]}\n")
    done = job("--site", "workstation", "--bind", "other:/data", env={"HPCGEN_CONFIG": str(config)})
    assert f"-v {tmp_path}/other:/data" in bound(done.stdout), done.stderr
    assert "-v /var/tmp:/scratch" in bound(done.stdout)
    assert not [line for line in bound(done.stdout) if line in ("-v /tmp:/data", f"-v {tmp_path}/data:/data")]


def test_what_is_not_here_is_an_error_before_the_queue(job: Command, tmp_path: Path) -> None:
    words = ("--site", "workstation", "--bind", "missing:/x")
    done = job(*words)
    assert done.returncode == 3
    assert f"--bind: {tmp_path}/missing:/x: there is no {tmp_path}/missing on this machine" in done.stderr
    assert "--no-bind-check" in done.stderr
    assert job(*words, "--no-bind-check").returncode == 0
    elsewhere = job("--site", "workstation", env={"HPCGEN_TEST_SCRATCH": "/no/such"})
    assert elsewhere.returncode == 3 and "there is no /no/such/images" in elsewhere.stderr


@pytest.mark.parametrize(
    ("bind", "said"),
    [
        ("data:/", "/app of the image"),
        ("data:/usr/share/mine", "/usr of the image, a folder of the system"),
        ("data:/opt", "/opt/"),
        ("data:/opt/python_packages/x", "/opt/python_packages of the image"),
        ("data:/app/x", "/app of the image, where the stack's own files are"),
        ("data:/mnt", "where the job's own folder is seen"),
        ("/etc/ssl", "/etc of the image"),
        ("data:/a/../usr", "/usr of the image"),
        ("data:relative", "is not a bind"),
        ("a,b:/data", "is not a bind"),
        ("data:/x:rx", "is not a bind"),
        ("$(id):/x", "cannot be expanded"),
        ("~root/x:/x", "cannot be expanded"),
    ],
)
def test_what_hides_the_image_or_cannot_be_read_is_refused(job: Command, tmp_path: Path, bind: str, said: str) -> None:
    text = STACK.replace("{python: {}}", "{python: {}, python_packages: {}}\ncopy: [{from: data, to: /app}]")
    (tmp_path / "hpcgen.yaml").write_text(text)
    (tmp_path / "data" / "file").write_text("x")
    done = job("--site", "workstation", "--bind", bind)
    assert done.returncode != 0 and "--bind" in done.stderr and said in done.stderr, done.stderr


def test_a_variable_has_the_value_of_the_node(tmp_path: Path) -> None:
    word = expanded("~/a b/$HPCGEN_TEST_SCRATCH/${HPCGEN_TEST_SCRATCH}2/'x'")
    env = {"HOME": "/home/me", "HPCGEN_TEST_SCRATCH": "s; rm *"}
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], env=env, capture_output=True, text=True)
    assert said.stdout == "/home/me/a b/s; rm */s; rm *2/'x'"


def test_the_job_ends_where_the_data_is_not(job: Command, tmp_path: Path) -> None:
    script = job("--site", "workstation").stdout
    begin = script.index("# Data of the host")
    part = f"set -u\n{script[begin : script.index('container=(')]}echo reached"
    run = partial(subprocess.run, ["bash", "-c", part], capture_output=True, text=True)
    assert "HPCGEN_TEST_SCRATCH has no value here" in (ended := run(env={})).stderr and ended.returncode == 66
    ended = run(env={"HPCGEN_TEST_SCRATCH": str(tmp_path)})
    assert f"{tmp_path}/images, which is to be bound, is not on" in ended.stderr and ended.returncode == 66
    (tmp_path / "images").mkdir()
    assert run(env={"HPCGEN_TEST_SCRATCH": str(tmp_path)}).stdout == "reached\n"


def test_charliecloud_binds_onto_folders_of_the_image(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "hpcgen.yaml").write_text(STACK.replace("data:/data, ", "data:/data, data:/more, "))
    site = ("--site", "supermuc", "--account", "x")
    rendered = hpcgen("render", *site, "-o", "kit", env={"HPCGEN_TEST_SCRATCH": str(tmp_path)})
    assert rendered.returncode == 0, rendered.stderr
    made = next(line for line in (tmp_path / "kit" / "build.sh").read_text().splitlines() if "mkdir -p /data" in line)
    assert {"/data", "/data/images", "/more"} <= {*made.split()}
    assert '-b "$folder"/data:/data' in (tmp_path / "kit" / "job.slurm").read_text()
    (tmp_path / "hpcgen.yaml").write_text(STACK[: STACK.index("  binds")])
    refused = hpcgen("job", *site, "--bind", "data:/data")
    assert refused.returncode == 3 and "--bind " in refused.stderr and ":/mnt/1, or name /data" in refused.stderr
    assert f"-b {tmp_path}/data:/mnt/1" in hpcgen("job", *site, "--bind", "data:/mnt/1").stdout
    assert "cannot bind a folder read-only" in hpcgen("job", *site, "--bind", "data:/mnt/1:ro").stderr


@pytest.mark.parametrize(
    ("engine", "site", "words"),
    [
        ("apptainer", "juwels-booster", '-B "$D"/x:/data:ro'),
        ("container-engine", "alps", "'  \"'\"$D\"/x:/data:ro'\",'"),
        ("podman-hpc", "perlmutter", '-v "$D"/x:/data:ro'),
        ("shifter", "perlmutter", '--volume="$D"/x:/srv:ro'),
        ("docker", "workstation", '-v "$D"/x:/data:ro'),
        ("pyxis", "slurm-cpu", '--container-mounts="$D"/x:/data:ro'),
    ],
)
def test_each_engine_is_told_in_its_way(hpcgen: Command, engine: str, site: str, words: str) -> None:
    site_of = ("--site", site, "--stack", "mpi-hello", "--account", "x", "--engine", engine)
    done = hpcgen("job", *site_of, "--bind", f"$D/x:{words.split(':')[1]}:ro", "--allow-unsupported")
    assert words in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("version", "by_engine"), [("1.4.5", True), ("1.0.3", False), (None, False)])
def test_apptainer_mounts_packed_data_since_it_can(
    job: Command, tmp_path: Path, version: str | None, by_engine: bool
) -> None:
    (tmp_path / "my data.sqfs").touch()
    (tmp_path / "site_profiles").mkdir()
    stated = f"version: '{version}'" if version else ""
    containers = f"containers: {{preferred: apptainer, engines: {{apptainer: {{{stated}}}}}}}"
    (tmp_path / "site_profiles" / "here.yaml").write_text(f"name: here\nextends: workstation\n{containers}\n")
    words = ("--site", "here", "--no-bind-check", "--bind", "my data.sqfs:/packed:ro", "--bind", "my data.sqfs:/x.sqfs")
    done = job(*words, env={"HPCGEN_COLLECTIONS": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    itself = f"-B '{tmp_path}/my data.sqfs:/packed':image-src=/,ro"
    assert (itself in bound(done.stdout)) is by_engine, done.stdout
    assert ("squashfuse" in done.stdout) is not by_engine
    assert f"-B '{tmp_path}/my data.sqfs:/x.sqfs'" in bound(done.stdout)


def test_a_shell_says_how_packed_data_is_mounted(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "data.sqfs").touch()
    done = hpcgen("shell", "--site", "workstation", "--stack", "mpi-hello", "--bind", "data.sqfs:/data", "podman:x")
    assert done.returncode != 0 and "only jobs mount packed data" in done.stderr, done.stderr
    assert "squashfuse FILE FOLDER" in done.stderr
