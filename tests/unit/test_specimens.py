"""Files that older releases wrote are read, verified, and written again from what they carry.

tests/specimens/README.md says what they are and how they were made. They stay as they are while hpcgen changes: where
the hpcgen of today would make another image of a lock, it says so and names the command that renews it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpcgen.builders.records.store import add_test_run, find, load_all, save
from hpcgen.core.model.record import TestRun
from hpcgen.core.support import file_formats
from hpcgen.kit.folder import read_kit
from hpcgen.machine.detect.capture import capture
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.machine import Machine, Recorder
from tests.conftest import GOLDEN, ROOT, Command

SPECIMENS = ROOT / "tests" / "specimens" / "0.1.0"
FORMATS = ("docker", "singularity", "charliecloud")
KIT = "opt/hpcgen/kit"
KEY = "ab" * 32
COLLECTION = ("--collection", "collection")


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specimens, with what is packed beside its archive, and an image of each kit."""
    folder = tmp_path_factory.mktemp("specimens") / "all"
    shutil.copytree(SPECIMENS, folder)
    for packed in ("tree.tar.gz", "bundles/newer.tar.gz"):
        # By tar itself: Debian 12's Python has no filters as yet, and one without warns from 3.12 on.
        subprocess.run(["tar", "-xf", Path(packed).name], cwd=(folder / packed).parent, check=True)
    for kit in FORMATS:
        shutil.copytree(folder / "kits" / kit, folder / "images" / kit / KIT)
    return folder


@pytest.fixture
def kept(unpacked: Path, tmp_path: Path) -> Path:
    """The folder of the test, with the specimens in it, as somebody has them who made them long ago."""
    shutil.copytree(unpacked, tmp_path, symlinks=True, dirs_exist_ok=True)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edited(path: Path, **changes: Any) -> None:
    """Change a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def resealed(lock: Path, old: str, new: str) -> None:
    """Change the first of such lines of a lock, at its end, and seal it again."""
    body, _, _ = lock.read_text().rpartition("seal: sha256:")
    line = next(line for line in body.splitlines() if line.startswith(old))
    body = body.replace(f"{line}\n", f"{new}{line.removeprefix(old)[len(new) - len(old) :]}\n", 1)
    lock.write_text(f"{body}seal: sha256:{hashlib.sha256(body.encode()).hexdigest()}\n")


# Kits and images


@pytest.mark.parametrize("format", FORMATS)
def test_kits_are_read(format: str, kept: Path) -> None:
    kit = read_kit(kept / "kits" / format)
    assert (kit.plan.site.name, kit.plan.format) == ("example-cluster", format)
    assert "AS builder" in kit.recipe or "Stage: builder" in kit.recipe
    assert kit.content == kit.lock["content"] and len(kit.content) == 64
    assert any(line.startswith("https://www.mpich.org/") for line in kit.inputs())


IMAGES = {
    "images/docker": "docker",
    "images/singularity": "singularity",
    "images/charliecloud": "charliecloud",
    "images/app.oci": "docker",
}


@pytest.mark.parametrize("image", IMAGES)
def test_images_give_their_kit_back(image: str, kept: Path, hpcgen: Command) -> None:
    kit = contents(kept / "kits" / IMAGES[image])
    shown = json.loads(hpcgen("inspect", image, "--json").stdout)
    assert (shown["site"], shown["format"], shown["hpcgen"]) == ("example-cluster", IMAGES[image], "0.1.0")
    assert {file["name"]: file["bytes"] for file in shown["files"]} == {name: len(data) for name, data in kit.items()}
    assert f"content: {shown['content']}\n".encode() in kit["hpcgen.lock"]
    assert hpcgen("inspect", image, "--plan").stdout.encode() == kit["plan.json"]
    assert shown["job"]["nodes"] == 1 and {"mpich", "rank_test"} <= {block["name"] for block in shown["blocks"]}

    done = hpcgen(*COLLECTION, "rebuild", image, "-o", "again", "--json")
    assert done.returncode == 0, done.stderr
    assert contents(kept / "again") == kit
    told = json.loads(done.stdout)
    assert told["same"] == (not told["differ"] and not told["reason"])
    assert any("hpcgen" in remark and "would write" in remark for remark in told["notes"])


@pytest.mark.parametrize("format", FORMATS)
def test_images_are_started(format: str, kept: Path, hpcgen: Command) -> None:
    done = hpcgen(*COLLECTION, "job", f"images/{format}", "--nodes", "1", "--queue", "test", "--account", "ab12cd")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/bash")
    assert "#SBATCH --nodes=1" in done.stdout and "ab12cd" in done.stdout
    assert "/opt/rank_test/bin/rank_test" in done.stdout


# Locks


def made_or_renewed(done: Any, kit: Path, lock: bytes) -> None:
    """A kit with that very lock, or the refusal of a release that makes another image of it."""
    if done.returncode == 0:
        assert (kit / "hpcgen.lock").read_bytes() == lock
        assert b"=1:2.0-1" in (kit / "Dockerfile").read_bytes()
    else:
        assert done.returncode == 3, done.stderr
        assert "would not build the image that the lock pins" in done.stderr
        assert "hpcgen --collection collection lock --site example-cluster" in done.stderr
        assert not kit.exists()


@pytest.mark.parametrize("name", ["hpcgen", "fortran"])
def test_locks_are_rendered(name: str, kept: Path, hpcgen: Command) -> None:
    lock = kept / "locks" / f"{name}.lock"
    made_or_renewed(hpcgen("render", "--locked", str(lock), "-o", "kit"), kept / "kit", lock.read_bytes())


def test_a_lock_of_which_another_image_is_made_today_names_its_command(kept: Path, hpcgen: Command) -> None:
    lock = kept / "locks" / "hpcgen.lock"
    resealed(lock, "content: ", "content: 0000")
    done = hpcgen("render", "--locked", str(lock), "-o", "kit")
    assert done.returncode == 3
    made_or_renewed(done, kept / "kit", b"")


def test_a_lock_is_checked_against_today(kept: Path, hpcgen: Command) -> None:
    """Only what the lock itself does not hold would need a network; the plan's command is asked again."""
    done = hpcgen(*COLLECTION, "lock", "--check", "--update", "rank_test", "-o", "locks/hpcgen.lock", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) == bool(json.loads(done.stdout))
    assert (kept / "locks" / "hpcgen.lock").read_bytes() == (SPECIMENS / "locks" / "hpcgen.lock").read_bytes()


def test_a_lock_that_was_edited_is_noticed(kept: Path, hpcgen: Command) -> None:
    lock = kept / "locks" / "hpcgen.lock"
    lock.write_text(lock.read_text().replace("'1:2.0-1'", "'1:2.0-2'", 1))
    done = hpcgen("render", "--locked", str(lock))
    assert done.returncode == 3 and "its seal does not match" in done.stderr


def test_what_rests_on_a_profile_is_found(kept: Path, hpcgen: Command) -> None:
    done = hpcgen(*COLLECTION, "site", "doctor", "example-cluster", "--root", "tree", "--locks", ".", "--json")
    rested = {name for drift in json.loads(done.stdout)["drift"] for name in drift["depends"]}
    assert {"kit kits/docker", "kit kits/singularity", "lock locks/hpcgen.lock"} <= rested, done.stderr


# Bundles


def test_bundles_are_verified(kept: Path, hpcgen: Command) -> None:
    for bundle, lock in (("folder", "hpcgen"), ("newer.tar", "fortran")):
        done = hpcgen("bundle", "verify", f"bundles/{bundle}", "--lock", f"locks/{lock}.lock")
        assert done.returncode == 0, done.stderr
    (next((kept / "bundles/folder/files").rglob("*.whl"))).write_bytes(b"another")
    done = hpcgen("bundle", "verify", "bundles/folder")
    assert done.returncode == 3 and "example_tool-1.0" in done.stderr


def test_bundles_are_compared_and_rendered(kept: Path, hpcgen: Command) -> None:
    done = hpcgen("bundle", "diff", "bundles/folder", "bundles/newer.tar", "-o", "increment")
    assert done.returncode == 0 and "example 2.0" in done.stdout, done.stderr
    assert hpcgen("bundle", "verify", "bundles/newer.tar", "--json").returncode == 0
    lock = (kept / "locks" / "hpcgen.lock").read_bytes()
    made_or_renewed(hpcgen("render", "--bundle", "bundles/folder", "-o", "kit"), kept / "kit", lock)


# Records, fleets, captured trees, the user's own file


def test_records_are_listed_shown_and_compared(kept: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_RECORDS": str(kept / "records")}
    listed = json.loads(hpcgen("records", "--json", env=env).stdout)
    assert sorted((each["stack"], each.get("result", "built")) for each in listed) == [
        ("mpi-hello", "built"),
        ("mpi-hello", "failed"),
        ("tf-horovod", "built"),
    ]
    (run,) = next(each for each in listed if each["stack"] == "tf-horovod")["tests"]
    assert [each["result"] for each in run["results"]] == ["passed", "skipped"]
    shown = {each["stack"]: hpcgen("records", "show", each["id"][:6], env=env).stdout for each in listed}
    assert "tensorflow" in shown["tf-horovod"] and "login1" in shown["tf-horovod"]
    failed, built = sorted(
        (each for each in listed if each["stack"] == "mpi-hello"), key=lambda each: "failure" in each
    )
    differs = json.loads(hpcgen("records", "compare", failed["id"], built["id"], "--json", env=env).stdout)
    assert set(differs["facts"]) == {"result"} and differs["blocks"] == {}


def test_a_fleet_knows_what_was_built(kept: Path, hpcgen: Command) -> None:
    rows = json.loads(hpcgen("fleet", "--fleet", "fleet/fleet.yaml", "--json").stdout)
    assert [row["name"] for row in rows] == ["mpi-hello-example-cluster", "tf-horovod-example-cluster"]
    assert {row["state"] for row in rows} <= {"unchanged", "changed"}
    (kept / "fleet" / "fleet.lock").unlink()
    changed = json.loads(hpcgen("fleet", "--fleet", "fleet/fleet.yaml", "--changed", "--json").stdout)
    assert {row["state"] for row in changed} == {"new"}


def test_a_captured_tree_is_looked_at(kept: Path, hpcgen: Command) -> None:
    done = hpcgen("site", "new", "there", "--detect", "--root", "tree")
    assert done.returncode == 0, done.stderr
    assert "os: ubuntu" in done.stdout and "docker" in done.stdout


def test_a_config_file_holds(kept: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_CONFIG": str(kept / "config.yaml"), "HOME": str(kept)}
    done = hpcgen("plan", "--site", "example-cluster", "--stack", "example-app", "--json", env=env)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["job"]["account"] == "ab12cd"
    assert plan["site"]["containers"]["image_directory"] == "/scratch/images"
    assert len(json.loads(hpcgen("records", "--json", env=env).stdout)) == 3


# Numbers of formats


def numbered(path: Path, field: str, number: object = 3) -> None:
    """Give a file of today the number of another format, as a later release may write it."""
    if path.suffix == ".json":
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, field: number, "hpcgen": "0.9.1", "something_new": {}}))
    else:
        text = re.sub(rf"(?m)^{field}: 1$", f"{field}: {number}", path.read_text())
        path.write_text(text.replace("hpcgen: 0.1.0", "hpcgen: 0.9.1"))


IN_IMAGE = f"images/docker/{KIT}"
NEWER = {  # the file, the field of its number, a command that reads it, how it is written again
    "kit": (
        "kits/docker/plan.json",
        "plan",
        "build kits/docker --engine docker --dry-run",
        "render --site example-cluster --stack example-app -o DIR",
    ),
    "kit's lock": (
        "kits/docker/hpcgen.lock",
        "lock",
        "build kits/docker --engine docker --dry-run",
        "lock --site example-cluster --stack example-app -o FILE",
    ),
    "job": (
        f"{IN_IMAGE}/plan.json",
        "plan",
        "job images/docker",
        "render --site example-cluster --stack example-app -o DIR",
    ),
    "job's lock": (
        f"{IN_IMAGE}/hpcgen.lock",
        "lock",
        "job images/docker",
        "lock --site example-cluster --stack example-app -o FILE",
    ),
    "rebuild": (
        f"{IN_IMAGE}/plan.json",
        "plan",
        "rebuild images/docker -o again",
        "render --site example-cluster --stack example-app -o DIR",
    ),
    "recipe of a kit": (
        "kit/recipe.json",
        "recipe",
        "build kit --engine docker --dry-run",
        "render --site SITE --stack STACK -o DIR",
    ),
    "record": ("records/*tf-horovod*.json", "record", "records show", "build"),
    "lock": (
        "locks/hpcgen.lock",
        "lock",
        "render --locked locks/hpcgen.lock",
        "lock --site example-cluster --stack example-app -o FILE",
    ),
    "checked lock": (
        "locks/hpcgen.lock",
        "lock",
        "lock --check -o locks/hpcgen.lock",
        "lock --site example-cluster --stack example-app -o FILE",
    ),
    "plan of a lock": (
        "locks/hpcgen.lock",
        "plan",
        "render --locked locks/hpcgen.lock",
        "lock --site example-cluster --stack example-app -o FILE",
    ),
    "bundle": ("bundles/folder/bundle.json", "bundle", "bundle verify bundles/folder", "bundle create --lock FILE"),
    "older bundle": (
        "bundles/folder/bundle.json",
        "bundle",
        "bundle diff bundles/folder bundles/newer.tar",
        "bundle create",
    ),
    "increment": (
        "increment/increment.json",
        "increment",
        "bundle join bundles/folder increment -o all",
        "bundle diff",
    ),
    "fleet": ("fleet/fleet.lock", "fleet_lock", "fleet --fleet fleet/fleet.yaml", "build --all"),
    "model": ("model.json", "model", "model show model.json", "model fit -o FILE"),
    "conversion": ("result/report.json", "conversion", "onnx bench result --here", "onnx convert ENSEMBLE -o DIR"),
    "install": (
        "share/hpcgen/mine/installed.json",
        "install",
        "uninstall mine --prefix .",
        "install IMAGE --prefix DIR",
    ),
    "artifact": (
        f"artifacts/ab/{KEY}.json",
        "artifact",
        f"cache show {KEY[:8]} --cache artifacts",
        "build --cache DIR",
    ),
    "tree": ("tree/capture.json", "capture", "site new there --detect --root tree", "site capture DIR"),
}


FORMAT_OF = {each.field: each for each in vars(file_formats).values() if isinstance(each, file_formats.FileFormat)}


def test_no_format_is_forgotten() -> None:
    """Each that hpcgen reads back has a case above, and the number of each is in the table of the documentation."""
    written_alone = {"image_facts"}
    assert {field for _, field, _, _ in NEWER.values()} == set(FORMAT_OF) - written_alone
    told = (ROOT / "docs" / "file-formats.md").read_text()
    for field, each in FORMAT_OF.items():
        assert re.search(rf"^\| .*`{field}`.*: {each.newest} \|", told, re.MULTILINE), field


def asked(case: str, kept: Path, hpcgen: Command) -> tuple[Path, list[str]]:
    """The file of a case, which is there, and the words that read it."""
    where, _, words, _ = NEWER[case]
    if case == "increment":
        assert hpcgen("bundle", "diff", "bundles/folder", "bundles/newer.tar", "-o", "increment").returncode == 0
    if case == "model":
        assert hpcgen("model", "fit", "-o", "model.json").returncode == 0
    if case == "install":
        shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", kept / "installed" / KIT)
        words_of = ("--prefix", ".", "--name", "mine", "--engine", "charliecloud")
        assert hpcgen("install", "installed", *words_of).returncode == 0
    if case == "artifact":
        (kept / where).parent.mkdir(parents=True)
        (kept / where).write_text(json.dumps({"artifact": 1, "key": KEY, "hpcgen": "0.1.0"}))
    if case == "conversion":
        (kept / "result").mkdir()
        (kept / where).write_text(json.dumps({"ensemble": "small", "models": {}, "given": [], "hpcgen": "0.1.0"}))
    if case == "recipe of a kit":
        shutil.copytree(GOLDEN / "workstation" / "mpi-hello", kept / "kit")
    path = next(kept.glob(where), kept / where)
    return path, [*words.split(), *([path.stem] if case == "record" else [])]


@pytest.mark.parametrize("case", NEWER)
def test_what_a_newer_release_wrote_is_refused_with_what_to_do(case: str, kept: Path, hpcgen: Command) -> None:
    _, field, _, again = NEWER[case]
    path, words = asked(case, kept, hpcgen)
    if case == "plan of a lock":
        resealed(path, "hpcgen: 0.1.0", "hpcgen: 0.9.1")
        resealed(path, "  hpcgen: 0.1.0", "  plan: 3\n  hpcgen: 0.9.1")
    else:
        numbered(path, field)
    done = hpcgen(*words, env={"HPCGEN_RECORDS": str(kept / "records")})
    said = " ".join(done.stderr.split())
    assert done.returncode == 3, said
    # fleet.lock does not say which release wrote it.
    wrote, needed = ("a newer hpcgen", "the release that wrote the file")
    if case != "fleet":
        wrote, needed = ("hpcgen 0.9.1", ">= 0.9.1")
    assert f"was written by {wrote} in format 3; this one reads up to format {FORMAT_OF[field].newest}" in said
    assert f"remedy: use a newer hpcgen here: {needed}" in said
    if case in ("artifact", "bundle", "older bundle", "increment", "conversion", "tree", "record"):
        # They came from another machine, such as from the connected side of an air gap.
        assert "regenerate" not in said
    else:
        assert said.endswith(f"{needed}, or regenerate it with: hpcgen {again}")
    assert not (kept / "again").exists() and not (kept / "all").exists()


@pytest.mark.parametrize(
    "case", ["kit", "recipe of a kit", "job", "lock", "bundle", "increment", "fleet", "record", "tree"]
)
@pytest.mark.parametrize("release", ["0.9.1", "0.1.0"])
def test_what_is_not_understood_needs_a_newer_release_only_if_a_newer_one_wrote_it(
    case: str, release: str, kept: Path, hpcgen: Command
) -> None:
    """The number alone does not say it: it is missing, or is one that is known here."""
    path, words = asked(case, kept, hpcgen)
    if case == "fleet":
        path.write_text(f"hpcgen: {release}\nsomething_new: {{}}\n{path.read_text()}")
    elif case == "lock":
        resealed(path, "hpcgen: 0.1.0", f"something_new: 1\nhpcgen: {release}")
    else:
        # What is added to a record is kept; what was changed in it is not understood.
        new = {"engine": ["new"]} if case == "record" else {"something_new": {}}
        known = json.loads(path.read_text()) if path.exists() else {}
        broken = {**known, "hpcgen": release, **new}
        if case not in ("record", "recipe of a kit"):
            broken.pop(NEWER[case][1], None)
        path.write_text(json.dumps(broken))
    done = hpcgen(*words, env={"HPCGEN_RECORDS": str(kept / "records")})
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    if release == "0.9.1":
        assert "was written by hpcgen 0.9.1 and this version does not fully understand it" in said, said
        assert "remedy: use a newer hpcgen here: >= 0.9.1" in said
    else:
        assert "newer hpcgen" not in said
        # A lock of a fleet may be edited: it is told what is wrong with its line.
        assert ("fleet.lock:1:1: " if case == "fleet" else "is not understood: ") in said, said


def test_what_a_newer_release_added_to_a_record_is_kept_and_shown(kept: Path, hpcgen: Command) -> None:
    path = next((kept / "records").glob("*tf-horovod*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "energy_j": 5}))
    env = {"HPCGEN_RECORDS": str(kept / "records")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPCGEN_RECORDS", env["HPCGEN_RECORDS"])
        before = find(path.stem)
        run = TestRun(started="2026-11-20T11:00:00Z", site="here", engine="docker", results=[])
        assert add_test_run(before, run) == find(path.stem) != before
    assert json.loads(path.read_text())["energy_j"] == 5
    assert json.loads(hpcgen("records", "show", path.stem, "--json", env=env).stdout)["energy_j"] == 5


@pytest.mark.parametrize("number", [0, -1, "two", True, None, 1.5, [2], "\u001b[2J" * 99])
def test_a_number_that_is_none_is_told_and_not_printed_as_it_is(number: object, kept: Path, hpcgen: Command) -> None:
    numbered(kept / "tree" / "capture.json", "capture", number)
    done = hpcgen("site", "new", "there", "--detect", "--root", "tree")
    assert done.returncode == 3 and "tree is damaged: `capture` is" in done.stderr
    assert "\033" not in done.stderr and len(done.stderr) < 400


def test_an_image_of_a_newer_release_is_shown_as_far_as_it_is_understood(kept: Path, hpcgen: Command) -> None:
    numbered(kept / IN_IMAGE / "plan.json", "plan")
    shown = json.loads(hpcgen("inspect", "images/docker", "--json").stdout)
    assert (shown["stack"], shown["hpcgen"]) == ("example-app", "0.9.1")
    assert "the kit was written by hpcgen 0.9.1 in format 3; this one reads up to format 2" in shown["notes"]


def test_a_record_of_a_newer_release_does_not_hide_the_others(kept: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_RECORDS": str(kept / "records")}
    path = next((kept / "records").glob("*tf-horovod*.json"))
    numbered(path, "record")
    done = hpcgen("records", "--json", env=env)
    assert len(json.loads(done.stdout)) == 2
    assert "written by hpcgen 0.9.1 in format 3" in done.stderr and "use a newer hpcgen here: >= 0.9.1" in done.stderr
    assert hpcgen("records", "show", path.stem, env=env).returncode == 3


def test_what_is_written_today_carries_its_number(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGEN_RECORDS", str(kept / "records"))
    for record in load_all():
        save(record)
        assert json.loads((kept / "records" / f"{record.id}.json").read_text())["record"] == 2
    assert find(record.id) == record
    capture(Recorder.captured(kept / "tree"), kept / "again")
    assert json.loads((kept / "again" / "capture.json").read_text())["capture"] == 1
    assert detect(Machine.captured(kept / "again")) == detect(Machine.captured(kept / "tree"))
    stored = GOLDEN / "supermuc" / "mpi-hello"
    assert json.loads((stored / "plan.json").read_text())["plan"] == 2
    assert "\nlock: 1\n" in (stored / "hpcgen.lock").read_text()
