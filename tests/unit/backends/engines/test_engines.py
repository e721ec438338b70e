"""Engines by name: what each can do, which is taken where, and one that a collection brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.backends.engines import ENGINES, builder_for, engine_for, runners
from hpcgen.backends.engines.building import Target
from hpcgen.builders.choosing import builders_reading
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, MissingToolError, UnknownNameError
from hpcgen.plugins.fleet.publish import credentials
from hpcgen.running.image_job import choose_engine
from hpcgen.running.submission import passed_on
from hpcgen.supply.pin.base_shell import BaseShell
from tests.conftest import Command

TOY = '''
from hpcgen.backends.engines import Engine
from hpcgen.backends.engines.base import bind_words, environment_words


class Toy(Engine):
    """Starts what Podman built and saved as an archive."""

    name = "toy"
    format = "docker"
    builds = False
    built_by = "podman"
    program = "toyrun"
    starts = ("oci-archive",)

    def image_names(self, stack, site):
        return [f"{stack}.toy"]

    def words(self, call):
        binds = bind_words("--bind", call.binds)
        return [["toyrun", "--here", call.folder], *binds, [call.image], *environment_words(call, call.unset)]

    def enter(self, root, chroot):
        return ["toyrun", "--root", root]

    def after_build(self, stack):
        return f'toypack "$tag" {stack}.toy\\n'
'''
CRATE = '''
from hpcgen.backends.engines.buildah import Buildah


class Crate(Buildah):
    """Builds as buildah does, into a store of its own."""

    name = "crate"
    storage_variables = ("CRATE_STORE",)

    def login(self, user, password, folder):
        return {"CRATE_TOKEN": f"{user}:{password}"}
'''
SITE = """\
name: toyland
title: A site with an engine of its own
extends: workstation
containers:
  preferred: toy
  engines: {toy: {version: "1.0"}}
"""


def test_every_engine_says_what_it_can_do() -> None:
    for name in ENGINES.names():
        engine = ENGINES.find(name)
        assert engine.name == name
        assert engine.runs or engine.builds
        assert bool(engine.starts) == engine.runs
        assert engine.builds != bool(engine.built_by)
        if engine.runs:
            assert engine_for(name).image_names("demo", "here")
    assert set(ENGINES.names()) - set(runners()) == {"buildah"}
    assert list(builders_reading("docker"))[-1] == "docker", "what needs a service is tried last"


def test_a_builder_is_known_by_its_program_and_by_its_engine() -> None:
    assert type(builder_for("ch-image")) is type(builder_for("charliecloud"))
    with pytest.raises(InputError, match=r"starts images but cannot build them(.|\n)*--engine podman"):
        builder_for("container-engine")
    with pytest.raises(InputError, match="did you mean buildah"):
        builder_for("bulidah")


@pytest.mark.parametrize(
    ("site", "kind", "engine"),
    [
        ("alps-eiger", "squashfs", "container-engine"),
        ("perlmutter", "podman", "podman-hpc"),
        ("supermuc", "squashfs", "charliecloud"),
        ("hlrs-testbed", "sif", "singularity"),
    ],
)
def test_a_job_is_started_by_the_engine_of_its_site(
    site: str, kind: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by one that happens to be installed where the script is written."""
    for name in ("ch-run", "podman", "apptainer"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_engine(Catalog().site(site), kind, "/images/demo", None, elsewhere=True) == engine  # type: ignore[arg-type]


def test_the_container_engine_can_be_asked_for(hpcgen: Command) -> None:
    words = ("job", "--site", "alps-eiger", "--stack", "mpi-hello", "--engine")
    done = hpcgen(*words, "container-engine")
    assert done.returncode == 0, done.stderr
    assert '--environment="$edf"' in done.stdout
    wrong = hpcgen(*words, "container-engin")
    assert (wrong.returncode, "did you mean container-engine?" in wrong.stderr) == (2, True)
    none = hpcgen(*words, "buildah")
    assert (none.returncode, "buildah builds images but cannot start them" in none.stderr) == (2, True)
    build = hpcgen("build", "--site", "alps-eiger", "--stack", "mpi-hello", "--engine", "container-engine")
    assert (build.returncode, "podman builds for it" in build.stderr) == (2, True)


@pytest.mark.parametrize("word", ["charliecloud", "ch-image", "ch-run"])
def test_an_engine_is_called_by_one_word_or_by_its_program_everywhere(word: str, hpcgen: Command) -> None:
    named = ("--site", "supermuc", "--stack", "mpi-hello", "--engine", word)
    job, build = hpcgen("job", *named), hpcgen("build", *named, "--dry-run")
    assert "ch-run" in job.stdout, job.stderr
    assert "ch-image build" in build.stdout, build.stderr
    typo = hpcgen("build", *named[:-1], "charliclod")
    assert (typo.returncode, "did you mean charliecloud?" in typo.stderr) == (2, True)


def test_the_batch_systems_program_is_no_engine(hpcgen: Command) -> None:
    done = hpcgen("job", "--site", "alps-eiger", "--stack", "mpi-hello", "--engine", "srun")
    assert (done.returncode, "'srun' is not an engine" in done.stderr) == (2, True)


def test_an_unknown_engine_of_a_profile_is_named_at_its_line(tmp_path: Path, hpcgen: Command) -> None:
    (tmp_path / "lab.yaml").write_text(SITE.replace("toyland", "lab").replace("toy", "apptaner"))
    done = hpcgen("plan", "--site", "lab.yaml", "--stack", "mpi-hello")
    assert done.returncode == 3
    assert "lab.yaml:6:13: no engine is called 'apptaner'" in done.stderr
    assert "did you mean apptainer?" in done.stderr
    (tmp_path / "lab.yaml").write_text(SITE.replace("toyland", "lab").replace("toy", "buildah"))
    done = hpcgen("plan", "--site", "lab.yaml", "--stack", "mpi-hello")
    assert "lab.yaml:5:14: buildah is preferred, but only builds images and cannot start them" in done.stderr


def test_an_unknown_engine_of_a_fleet_is_named_at_its_line(tmp_path: Path, hpcgen: Command) -> None:
    (tmp_path / "fleet.yaml").write_text("members:\n  - {stack: mpi-hello, site: supermuc, engine: bulidah}\n")
    done = hpcgen("fleet")
    assert done.returncode == 3
    assert "fleet.yaml:2:48: no engine is called 'bulidah'" in done.stderr
    assert "did you mean buildah?" in done.stderr


def test_a_collection_brings_an_engine_in_one_file(collection: Path, hpcgen: Command, tmp_path: Path) -> None:
    (collection / "engines").mkdir()
    (collection / "engines" / "toy.py").write_text(TOY)
    (collection / "site_profiles" / "toyland.yaml").write_text(SITE)
    words = ("--collection", str(collection))
    kit = tmp_path / "kit"
    done = hpcgen(*words, "render", "--site", "toyland", "--stack", "mpi-hello", "-o", str(kit))
    assert done.returncode == 0, done.stderr
    assert json.loads((kit / "plan.json").read_text())["engine"] == "toy"
    assert 'toypack "$tag" mpi-hello.toy' in (kit / "build.sh").read_text()
    assert "engine=${HPCGEN_ENGINE:-podman}" in (kit / "build.sh").read_text()
    job = hpcgen(*words, "job", "--site", "toyland", "--stack", "mpi-hello", "--engine", "toy")
    assert "toyrun --here" in job.stdout, job.stderr
    assert "toyland" in hpcgen(*words, "list", "sites").stdout
    assert "|toy]" in hpcgen(*words, "job", "--help").stdout.replace("\n", "").replace(" ", "")
    without = hpcgen("plan", "--site", str(collection / "site_profiles" / "toyland.yaml"), "--stack", "mpi-hello")
    assert (without.returncode, "no engine is called 'toy'" in without.stderr) == (3, True)


def test_an_engine_of_a_collection_enters_a_base_image(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (collection / "engines").mkdir()
    (collection / "engines" / "toy.py").write_text(TOY)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    Catalog([collection])
    with pytest.raises(MissingToolError, match=r"unshare, podman, .*, ch-run, apptainer, singularity, toyrun"):
        BaseShell(tmp_path, "debian:12", {})
    (programs / "toyrun").write_text('#!/bin/sh\n[ "$1" = --root ] && echo "in $2"\nshift 2\nexec "$@"\n')
    (programs / "toyrun").chmod(0o755)
    assert BaseShell(tmp_path, "debian:12", {"A": "b"}).run('echo "$A"') == (0, [f"in {tmp_path}", "b"])


def test_a_builder_of_a_collection_keeps_its_storage_in_jobs_and_logs_in(collection: Path, tmp_path: Path) -> None:
    (collection / "engines").mkdir()
    (collection / "engines" / "crate.py").write_text(CRATE)
    Catalog([collection])
    assert passed_on({"CRATE_STORE": "/s", "CONTAINERS_CONF": "/c", "PASSWORD": "x"}) == {
        "CONTAINERS_CONF": "/c",
        "CRATE_STORE": "/s",
    }
    given = {"HPCGEN_REGISTRY_USER": "me", "HPCGEN_REGISTRY_PASSWORD": "secret"}
    assert credentials(given, "registry.example.org/x:1", tmp_path)["CRATE_TOKEN"] == "me:secret"


def test_a_plan_of_an_engine_that_is_gone_says_so() -> None:
    with pytest.raises(UnknownNameError, match="no engine is called 'toy'"):
        engine_for("toy")


@pytest.mark.parametrize(
    ("name", "version", "kind", "says"),
    [
        ("buildah", "1.28.2", "podman", "buildah 1.28.2 writes the name of the container that built it anew"),
        ("buildah", "1.41.0", "podman", ""),
        ("podman", "5.5.2", "podman", "which is equal since 5.6"),
        ("podman", "5.6.0", "podman", ""),
        ("apptainer", "1.4.5", "sif", "which is equal since 1.5"),
        ("apptainer", "1.5.0", "sif", ""),
        ("apptainer", "1.4.5", "directory", ""),
        ("singularity", "3.11.4", "sif", "singularity 3.11.4 writes the file's id and its dates anew into every image"),
        ("apptainer", "", "sif", ""),
        ("docker", "28.2", "docker", ""),
    ],
)
def test_engines_say_what_differs_between_two_builds_of_a_lock(
    monkeypatch: pytest.MonkeyPatch, name: str, version: str, kind: Any, says: str
) -> None:
    engine = builder_for(name)
    monkeypatch.setattr(type(engine), "installed_version", lambda self: version)
    said = engine.differs(Target(kind, "image", "image"))
    assert says in said and bool(said) == bool(says)
    assert ("since" in said) == (bool(says) and name != "singularity")
