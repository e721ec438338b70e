"""A batch system is one class and one file: those of hpcgen, and one that a collection brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.backends.schedulers import SCHEDULERS
from tests.conftest import Command

BATCH = '''"""A batch system for tests, with a launcher of its own."""

from hpcgen.backends.schedulers.base import JobState, Scheduler


class Toy(Scheduler):
    name = "toy"
    title = "Toy"
    file_name = "job.toy"
    mark = "#TOY"
    programs = ("toysub",)
    interactive = "toysub -I"
    launcher = "toyrun"
    launcher_variables = ("TOY_HOSTS",)

    def directives(self, header):
        return [f"nodes={header.job.nodes}"]

    def launch(self, job, pmi):
        return ["toyrun", str(job.ranks)]

    def submit(self, script):
        return ["toysub", str(script)]

    def job_id(self, output):
        return output.strip()

    def ask(self, job_id):
        return [["toysub", "-s", job_id]]

    def read(self, status, output, errors):
        return JobState("ended", "DONE", good=True, exit_status=0)

    def default_files(self, name, job_id, facts):
        return "out", ""
'''
PROFILE = "name: here\nextends: {parent}\nscheduler: {{kind: {kind}}}\nmpi: {{launcher: {launcher}}}\n"


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A collection with the class of a batch system and a profile that names it."""
    folder = tmp_path / "ours"
    for name in ("schedulers", "site_profiles"):
        (folder / name).mkdir(parents=True)
    (folder / "schedulers" / "toy.py").write_text(BATCH)
    write_profile(folder, "toy", "toyrun")
    return folder


def write_profile(folder: Path, kind: str, launcher: str) -> None:
    profile = PROFILE.format(parent="supermuc", kind=kind, launcher=launcher)
    (folder / "site_profiles" / "here.yaml").write_text(profile)


def test_a_collection_brings_a_batch_system_in_one_file(hpcgen: Command, collection: Path, tmp_path: Path) -> None:
    words = ("--collection", str(collection))
    done = hpcgen(*words, "render", "--site", "here", "--stack", "mpi-hello", "--nodes", "2", "-o", "kit")
    assert done.returncode == 0, done.stderr
    script = (tmp_path / "kit" / "job.toy").read_text()
    assert "\n#TOY nodes=2\n" in script
    assert script.rstrip().splitlines()[-1].startswith("toyrun 8 ")
    assert "job.toy" in (tmp_path / "kit" / "build.sh").read_text()
    assert '"toyrun"' in hpcgen(*words, "schema", "site").stdout
    done = hpcgen(*words, "render", "--site", "supermuc", "--stack", "mpi-hello", "-o", "kit")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "kit" / "job.toy").exists()


def test_an_images_own_launcher_does_not_see_its_jobs(hpcgen: Command, collection: Path) -> None:
    words = ("job", "--site", "workstation", "--stack", "mpi-hello", "--engine", "apptainer")
    assert "-u TOY_HOSTS " in hpcgen("--collection", str(collection), *words).stdout
    assert "TOY_HOSTS" not in hpcgen(*words).stdout


@pytest.mark.usefixtures("quick_queue")
def test_a_job_is_submitted_to_it_and_followed(hpcgen: Command, collection: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "toysub"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 7\n")
    program.chmod(0o755)
    (tmp_path / "out").write_text("from the job\n")
    path = f"{program.parent}:/usr/bin:/bin"
    words = ("submit", "--site", "here", "--stack", "mpi-hello", "--account", "abc")
    done = hpcgen("--collection", str(collection), *words, env={"PATH": path})
    assert (done.returncode, done.stdout) == (0, "from the job\n"), done.stderr
    assert "job 7 succeeded" in done.stderr


@pytest.mark.parametrize(
    ("kind", "launcher", "message"),
    [
        ("slrum", "mpiexec", "no batch system is called 'slrum'\n  remedy: did you mean slurm?"),
        ("slurm", "srnu", "no launcher is called 'srnu'\n  remedy: did you mean srun"),
    ],
)
def test_a_name_that_is_not_known_leads_to_the_nearest(
    hpcgen: Command, collection: Path, kind: str, launcher: str, message: str
) -> None:
    write_profile(collection, kind, launcher)
    done = hpcgen("--collection", str(collection), "check", str(collection / "site_profiles" / "here.yaml"))
    assert done.returncode == 3
    assert message in done.stderr + done.stdout
    assert "here.yaml:" in done.stderr + done.stdout


@pytest.mark.parametrize("name", SCHEDULERS.built_in)
def test_a_class_is_called_as_the_registry_calls_it(name: str) -> None:
    assert SCHEDULERS.find(name).name == name
