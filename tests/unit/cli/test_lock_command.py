"""What the command line says of locks: what may stand beside one, and how its own command is read again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from hpcgen.cli import cli
from hpcgen.cli.lock_command import _as_asked_then
from hpcgen.cli.options import PlanOptions
from hpcgen.kit.folder import KitFolder
from hpcgen.kit.lockfile.lock import sealed_text
from hpcgen.recipe.assemble import assemble
from tests.conftest import Command
from tests.helpers import locks


def hpcgen(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "hpcgen.lock"
    path.write_text(locks.lock("mpi-hello").text)
    return path


def test_a_build_as_a_job_takes_its_plan_from_the_lock(lock: Path) -> None:
    """The workstation has no batch system, which is said only once there is a plan."""
    for words in (["--locked", str(lock)], ["--bundle", str(lock.parent)]):
        done = hpcgen("build", *words, "--submit", "--dry-run", "--time", "2h")
        assert "give one KIT" not in done.output
        assert "batch system" in str(done.output) + str(done.exception)


def test_engine_chooses_the_format_of_a_locked_kit(lock: Path) -> None:
    kit = lock.parent / "kit"
    hpcgen(
        "build", "--locked", str(lock), "--engine", "apptainer", "--allow-unsupported", "--kit", str(kit), "--dry-run"
    )
    assert (kit / "Singularity.def").is_file()


def test_what_a_lock_chose_is_held_against_its_node_when_a_kit_is_made(lock: Path) -> None:
    wheels = {"python_packages": [f"mpich==4.3.2 --hash=sha256:{'1' * 64}"]}
    stack = lock.parent / "mine.yaml"
    stack.write_text(
        "name: mine\ntitle: mine\nblocks: {mpi: {}, python_packages: {options: {packages: [app==1.0]}}}\n"
        "run: {command: [app]}\n"
    )
    lock.write_text(locks.lock(str(stack), "supermuc", pinned=locks.pins(wheels=wheels)).text)
    kit = str(lock.parent / "kit")
    refused = hpcgen("render", "--locked", str(lock), "-o", kit)
    assert "mpich 4.3.2 (chosen by the lock) brings MPICH" in str(refused.exception)
    allowed = hpcgen("render", "--locked", str(lock), "--allow-unsupported", "-o", kit)
    assert allowed.exit_code == 0, allowed.output
    assert "warning: mpich 4.3.2" in allowed.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", "--locked", "L", "kit"], "a kit or a command: a lock contains"),
        (["render", "--locked", "L", "--", "true"], "a command: a lock contains"),
        (["render", "--locked", "L", "--add", "hwloc"], "--add: a lock contains"),
        (["render", "--locked", "L", "--latest-base"], "--latest-base: a lock contains"),
        (["render", "--bundle", "B", "--mirror", "pip=https://mirror.example.org/simple"], "uses no mirror"),
        (["lock", "--site", "workstation", "--stack", "mpi-hello", "--json"], "--check or --update"),
    ],
)
def test_what_does_not_go_with_a_lock_is_named_as_it_is_typed(words: list[str], said: str) -> None:
    done = hpcgen(*words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_lock_that_could_not_be_written_is_told_before_anybody_is_asked(hpcgen: Command, tmp_path: Path) -> None:
    asked = ["--site", "workstation", "--stack", "mpi-hello"]
    done = hpcgen("lock", *asked, "-o", "nowhere/hpcgen.lock", env={"PATH": str(tmp_path)})
    assert (done.returncode, "base image" in done.stderr) == (7, False), done.stderr


def test_a_collection_may_be_called_lock() -> None:
    line = "hpcgen --collection lock lock --site workstation --stack mpi-hello --set mpi.provider=mpich"
    found = _as_asked_then(line, PlanOptions())
    assert found == PlanOptions(site="workstation", stack="mpi-hello", settings=("mpi.provider=mpich",))


def test_what_is_added_to_a_lock_comes_beside_what_was_added_before() -> None:
    line = "hpcgen lock --site workstation --stack mpi-hello --add hwloc --add ucx"
    assert _as_asked_then(line, PlanOptions(added=("cmake", "hwloc"))).added == ("hwloc", "ucx", "cmake")


def test_the_latest_base_is_asked_for_again_by_the_command_of_a_lock() -> None:
    line = "hpcgen lock --site workstation --stack mpi-hello --latest-base"
    assert _as_asked_then(line, PlanOptions()).latest_base
    assert _as_asked_then(line.removesuffix(" --latest-base"), PlanOptions(latest_base=True)).latest_base


def test_no_gpus_are_asked_for_instead_of_those_of_a_lock() -> None:
    assert _as_asked_then("hpcgen lock --site supermuc --stack mpi-hello --gpus 4", PlanOptions(gpus=0)).gpus == 0


def test_a_record_names_git_trees_and_files_for_bazel() -> None:
    tree, commit, sha256 = "https://git.example.org/a", "1" * 40, "2" * 64
    inputs = [{"tree": tree, "commit": commit}, {"bazel": "tensorflow-1", "files": {sha256: "six"}}]
    kit = KitFolder(Path("kit"), locks.lock("mpi-hello").plan, "", {"inputs": inputs})
    assert kit.inputs() == [f"{tree} commit:{commit}", f"bazel six sha256:{sha256}"]


def test_a_written_lock_says_what_its_packages_weigh(tmp_path: Path) -> None:
    """All is kept of a lock whose images and packages are those of the plan, so nothing is asked of the network."""
    path = tmp_path / "hpcgen.lock"
    path.write_text(locks.lock("mpi-hello", pinned=locks.pins(images=["debian:12"])).text)
    asked = ("--site", "workstation", "--stack", "mpi-hello", "--set", "base.provider=debian")
    done = hpcgen("lock", *asked, "--update", "rank_test", "-o", str(path))
    assert "1 base images, 5 packages (5 kB), plan hash" in done.output


def test_check_wants_the_profile_that_a_lock_names_where_it_is_not_here(tmp_path: Path, hpcgen: Command) -> None:
    written = locks.lock("mpi-hello")
    asked = "hpcgen lock --site mine.yaml --stack mpi-hello --set base.provider=debian"
    plan = msgspec.structs.replace(written.plan, command=asked)
    text = sealed_text(plan, assemble(plan, locks.CATALOG, written.pins), written.pins, written.collections)
    (tmp_path / "hpcgen.lock").write_text(text)
    done = hpcgen("lock", "--check")
    assert done.returncode == 3
    assert "the lock was made from the site profile mine.yaml, which is not in this folder" in done.stderr
    assert "say where it is: --site FILE" in done.stderr
