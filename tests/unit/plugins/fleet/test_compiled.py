"""What members of a fleet compile: once, before the images, in the order of their needs. The engine is a stand-in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.builders.records.store import save
from hpcgen.core.errors import BuildFailedError, PolicyError
from hpcgen.core.model.record import BuildRecord, BuiltStep
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.compiled import FleetWork, fleet_work, in_levels
from hpcgen.plugins.fleet.file import load_fleet
from tests.conftest import ROOT, Command
from tests.unit.builders.artifacts.test_making import CH_CONVERT, CH_IMAGE
from tests.unit.builders.artifacts.test_store import artifact
from tests.unit.plugins.fleet.test_affected import osv
from tests.unit.plugins.fleet.test_large_pipelines import SBATCH
from tests.unit.running.test_build_job import BUILDING_SITE

HEAD = "defaults: {site: workstation, engine: charliecloud, test: false}\nmembers:\n"
MEMBERS = HEAD + "".join(
    f"  - {{stack: {stack}, name: {name}, allow_unsupported: true}}\n"
    for stack, name in (("mpi-hello", "hello"), ("gromacs", "md"), ("gromacs", "md-too"))
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A fleet of three members with five different builds, and programs in the place of Charliecloud's."""
    (tmp_path / "fleet.yaml").write_text(MEMBERS)
    programs = tmp_path / "bin"
    programs.mkdir()
    convert = CH_CONVERT.replace("libfabric mpich", "libfabric mpich gromacs")
    for name, text in (("ch-image", CH_IMAGE.replace("; sleep 1", "")), ("ch-convert", convert)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/bin:/bin",
        "CALLS": str(tmp_path / "calls"),
        "HPCGEN_RECORDS": str(tmp_path / "records"),
        "HPCGEN_NOTEST": "1",
    }


def work_of(folder: Path, able: bool = True) -> FleetWork:
    loaded = load_fleet(folder / "fleet.yaml")
    return fleet_work(loaded, member_states(loaded, {}), folder / "store", lambda state: able)


def test_each_block_is_compiled_once_before_the_images_and_what_is_kept_is_not(
    hpcgen: Command, tmp_path: Path, env: dict[str, str]
) -> None:
    done = hpcgen("build", "--all", "--cache", "store", "--json", env=env)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"hpcgen: (\S+ \S+) is compiled once", done.stderr)
    assert [each.partition(" ")[0] for each in said] == ["libfabric", "mpich", "gromacs"]
    assert "8 blocks of 3 images are 3 different ones: 3 to compile, 0 in" in done.stderr
    # Three blocks and three images.
    assert len((tmp_path / "calls").read_text().split()) == 6
    assert [row["result"] for row in json.loads(done.stdout)] == ["built"] * 3
    again = hpcgen("build", "--all", "--force", "--cache", "store", "--artifacts-only", env=env)
    assert (again.returncode, "nothing to compile" in again.stderr) == (0, True), again.stderr
    assert len((tmp_path / "calls").read_text().split()) == 6


def test_a_block_that_fails_is_tried_once_and_keeps_no_other_image_back(
    hpcgen: Command, tmp_path: Path, env: dict[str, str]
) -> None:
    convert = tmp_path / "bin" / "ch-convert"
    convert.write_text(convert.read_text().replace("mpich gromacs", "mpich"))
    done = hpcgen("build", "--all", "--cache", "store", "--json", env=env)
    results = {row["name"]: (row["result"], row["message"]) for row in json.loads(done.stdout)}
    assert results["hello"] == ("built", "")
    for name in ("md", "md-too"):
        assert results[name][0] == "failed" and "gromacs" in results[name][1]
    assert done.returncode == BuildFailedError.exit_code
    alone = hpcgen("build", "--all", "--cache", "store", "--artifacts-only", "--json", env=env)
    assert alone.returncode == BuildFailedError.exit_code
    assert [(row["block"].split()[0], row["failed"]) for row in json.loads(alone.stdout)] == [("gromacs", True)]
    # libfabric, mpich, gromacs, the one image; and gromacs once more.
    assert len((tmp_path / "calls").read_text().split()) == 5


def test_what_an_earlier_job_could_not_compile_is_not_compiled_again(
    hpcgen: Command, tmp_path: Path, env: dict[str, str]
) -> None:
    words = ("build", "--cache", "store", "--compiled-before", "--member", "md", "--json")
    done = hpcgen(*words, env=env)
    (row,) = json.loads(done.stdout)
    assert (row["result"], done.returncode) == ("failed", BuildFailedError.exit_code)
    assert (
        row["message"].startswith("libfabric ") and "should have been compiled before, but is not in" in row["message"]
    )
    assert hpcgen(*words, "--artifact", "gromacs", env=env).returncode == BuildFailedError.exit_code
    assert not (tmp_path / "calls").exists()
    for block in ("libfabric", "mpich"):
        done = hpcgen(*words, "--artifact", block, env=env)
        assert (done.returncode, "1 compiled, 0 failed" in done.stderr) == (0, True), done.stderr
    assert hpcgen("build", "--all", "--compiled-before", "--no-cache", env=env).returncode == 2


def test_what_advisories_refuse_is_not_compiled(hpcgen: Command, tmp_path: Path, env: dict[str, str]) -> None:
    """Members are judged before the first block; those that are let through are built."""
    stack = yaml.safe_load((ROOT / "recipes/gromacs.yaml").read_text())
    stack["blocks"]["python_packages"] = {"options": {"packages": ["numpy==1.26.4"]}}
    (tmp_path / "risky.yaml").write_text(yaml.safe_dump({**stack, "name": "risky"}))
    (tmp_path / "fleet.yaml").write_text(MEMBERS.replace("stack: gromacs", "stack: ./risky.yaml"))
    advisory = osv("numpy", "PyPI", {"introduced": "0"}) | {"database_specific": {"severity": "HIGH"}}
    (tmp_path / "osv.json").write_text(json.dumps(advisory))
    words = ("build", "--all", "--cache", "store", "--advisories", "osv.json", "--fail-on", "high")
    done = hpcgen(*words, "--artifacts-only", env=env)
    assert done.returncode == PolicyError.exit_code and "md, md-too: refused" in done.stderr, done.stderr
    assert [each.record.block for each in ArtifactStore(tmp_path / "store").records()] == ["libfabric", "mpich"]
    done = hpcgen(
        "build", "--site", "workstation", "--stack", "./risky.yaml", "--allow-unsupported", *words[2:], env=env
    )
    assert done.returncode == PolicyError.exit_code, done.stderr
    assert len((tmp_path / "calls").read_text().split()) == 2


def test_blocks_alone_are_listed_and_compiled(hpcgen: Command, tmp_path: Path, env: dict[str, str]) -> None:
    words = ("build", "--all", "--cache", "store", "--artifacts-only")
    rows = json.loads(hpcgen(*words, "--dry-run", "--json", env=env).stdout)
    assert [(row["block"].split()[0], row["level"]) for row in rows] == [("libfabric", 0), ("mpich", 1), ("gromacs", 2)]
    assert set(rows[2]["needs"]) == {rows[0]["key"], rows[1]["key"]}
    assert not (tmp_path / "calls").exists()
    # As a job of an array or a pipeline does it, with what it needs.
    one = hpcgen("build", "--cache", "store", *rows[1]["options"], env=env)
    assert (one.returncode, "1 compiled, 0 failed" in one.stderr) == (0, True), one.stderr
    kept = {each.record.key for each in ArtifactStore(tmp_path / "store").records()}
    assert kept == {rows[0]["key"], rows[1]["key"]}
    rest = hpcgen(*words, "--json", env=env)
    assert [(row["block"], row["failed"]) for row in json.loads(rest.stdout)] == [(rows[2]["block"], False)]
    assert not (tmp_path / "fleet.lock").exists()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--artifacts-only",), 2, "require a folder for compiled blocks"),
        (("--artifact", "mpic", "--cache", "store"), 4, "did you mean mpich?"),
    ],
)
def test_what_cannot_be_compiled_alone_is_told(
    hpcgen: Command, tmp_path: Path, env: dict[str, str], words: tuple[str, ...], code: int, told: str
) -> None:
    done = hpcgen("build", "--all", *words, env=env)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr


def test_an_array_compiles_level_by_level_and_then_builds(
    hpcgen: Command, tmp_path: Path, collection: Path, env: dict[str, str]
) -> None:
    (collection / "site_profiles" / "mine.yaml").write_text(BUILDING_SITE)
    for name in ("sbatch", "scontrol"):
        (tmp_path / "bin" / name).write_text(SBATCH)
        (tmp_path / "bin" / name).chmod(0o755)
    fleet = "  - {stack: mpi-hello, site: alps, format: docker, name: far, allow_unsupported: true}\n"
    (tmp_path / "fleet.yaml").write_text(MEMBERS + fleet.replace("format: docker, ", "engine: podman, "))
    words = ("--collection", "collection", "build", "--all", "--array", "--on", "mine", "--account", "abc")
    done = hpcgen(*words, "--cache", "store", env=env)
    # The one for another processor is told, and the others are submitted.
    assert (done.returncode, done.stdout.split()) == (3, ["101", "102", "103", "104"]), done.stderr
    assert "the nodes of mine are x86_64, and far are for other processors" in done.stderr
    scripts = (tmp_path / "submitted").read_text().split("#!")[1:]
    waits = [re.findall(r"--dependency=(\S+)", script) for script in scripts]
    assert waits == [[], ["afterany:101"], ["afterany:102"], ["afterany:103"]]
    # A task of a later job never compiles again what an earlier one could not.
    assert ["--compiled-before" in script for script in scripts] == [False, True, True, True]
    assert ["    libfabric\n" in scripts[0], "    mpich\n" in scripts[1], "    gromacs\n" in scripts[2]] == [True] * 3
    assert (
        scripts[0]
        .splitlines()[-1]
        .endswith(
            ' --cache store --member "${members[$SLURM_ARRAY_TASK_ID]}" --artifact "${artifacts[$SLURM_ARRAY_TASK_ID]}"'
        )
    )
    assert "#SBATCH --array=0-2\n" in scripts[3] and "artifact" not in scripts[3]
    # Each level gets what may run at the same time.
    alone = hpcgen(*words, "--cache", "store", "--artifacts-only", "--dry-run", env=env).stdout
    assert alone.count("#SBATCH --array=") == 3


def test_times_and_the_critical_path_come_from_records(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGEN_RECORDS", env["HPCGEN_RECORDS"])
    work = work_of(tmp_path)
    libfabric, mpich, gromacs = work.jobs.values()
    unknown = "the duration is unknown"
    assert work.told[0].endswith(f"3 to compile, 0 in {tmp_path}/store; {unknown}")
    assert work.told[1].endswith(f"then {gromacs.block.label}, then the image md; {unknown}")
    steps = [BuiltStep(block=each.block.label, about="make", seconds=3000.0) for each in (libfabric, mpich)]
    common = {"hpcgen": "0", "started": "2026-11-01T00:00:00Z", "site": "workstation", "partition": "x"}
    made = {"format": "charliecloud", "content": "a" * 64, "engine": "ch-image"}
    for stack, seconds, done in (("mpi-hello", 6600.0, steps), ("gromacs", 300.0, [])):
        record = {**common, **made, "id": f"r-{stack}", "stack": stack, "seconds": seconds}
        save(msgspec.convert({**record, "steps": msgspec.to_builtins(done)}, BuildRecord))
    work = work_of(tmp_path)
    # 6000 s of two blocks, 600 s of the rest of hello, 300 s of each md; nothing tells of gromacs.
    assert work.told[0].endswith("; about 2 h 00 min, not counting 1 of unknown duration")
    assert work.told[1].endswith("then the image hello; about 1 h 50 min")
    kept, archive = artifact(tmp_path, key="cd" * 32)
    ArtifactStore(tmp_path / "store").put(msgspec.structs.replace(kept, block="gromacs", seconds=7200.0), archive)
    work = work_of(tmp_path)
    assert work.told[0].endswith("; about 4 h 00 min")
    assert work.told[1].startswith(f"critical path: {libfabric.block.label}, then {mpich.block.label}, then gromacs ")
    assert work.told[1].endswith("then the image md; about 3 h 45 min")


def test_what_no_member_can_compile_here_is_counted_apart(tmp_path: Path, env: dict[str, str]) -> None:
    work = work_of(tmp_path, able=False)
    assert work.jobs == {} and in_levels([]) == []
    assert "0 to compile, 0 in" in work.told[0] and "3 for other machines" in work.told[0]
