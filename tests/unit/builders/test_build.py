"""``hpcgen build`` where no container engine is: choosing, checking, and with a stand-in for docker a whole build.

A plain machine has no engine at all, so ``docker`` on PATH is a script of this test that answers as the client with
buildx does, which Debian does not have, and prints BuildKit's lines. The real engines, Docker's too, are in
tests/containers/test_build.py.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.backends.engines.building import BundledBase, BundleFolder, Target, Work, file_target
from hpcgen.backends.engines.charliecloud import Charliecloud
from hpcgen.backends.engines.docker import Docker
from hpcgen.builders import BuildOptions, build_image, choose_builder
from hpcgen.core.errors import BuildFailedError, InputError, MissingToolError, OutputError
from hpcgen.core.model.plan import PlannedCopy
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.placing import put_in_place
from hpcgen.core.support.writing import KitFile
from hpcgen.kit.folder import read_kit
from tests.conftest import Command
from tests.helpers.ssh_keys import ssh_key

GOLDEN = Path(__file__).parents[2] / "golden"
DOCKER_KIT = GOLDEN / "workstation" / "mpi-hello"
CHARLIECLOUD_KIT = GOLDEN / "supermuc" / "mpi-hello"
SPECIMENS = GOLDEN.parent / "specimens" / "0.1.0" / "kits"

DOCKER = """\
#!/bin/sh
echo "$@" >> "{log}"
case "$1 $2" in
    "version --format") [ "{engine}" = yes ] && echo 28.2.2 && exit 0
        echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2
        exit 1 ;;
    "--version "*) echo "Docker version 28.2.2, build e6534b4" ;;
    "buildx version") [ "{buildx}" = yes ] || exit 1 ;;
    "image inspect") echo "413000000 sha256:0123" ;;
    "buildx build")
        echo "#5 [builder 1/12] FROM docker.io/library/debian:12"
        echo "#5 CACHED"
        echo "#6 [builder 2/12] RUN apt-get update"
        echo "#6 0.1 words of the step"
        {then} ;;
esac
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, but for the shell's own; records go to the test's folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "bash", "sleep", "cat"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    monkeypatch.delenv("HPCGEN_BUILD_OPTIONS", raising=False)
    return folder


def install(folder: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)


def docker(folder: Path, then: str = "true", engine: str = "yes", buildx: str = "yes") -> Path:
    """Install the stand-in; the file has a line for each time that it was called."""
    calls = folder.parent / "docker.calls"
    install(folder, "docker", DOCKER.format(log=calls, engine=engine, buildx=buildx, then=then))
    return calls


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (folder.parent / "records").glob("*.json")]


# Which program builds


def test_the_engine_that_the_site_runs_images_with_comes_first(path: Path) -> None:
    plan = read_kit(DOCKER_KIT).plan
    install(path, "buildah")
    install(path, "podman")
    assert choose_builder(plan).name == "podman"
    docker(path)
    assert plan.engine == "docker"
    assert choose_builder(plan).name == "docker"
    assert choose_builder(plan, "buildah").name == "buildah"


def test_docker_without_an_engine_is_passed_over(path: Path) -> None:
    docker(path, engine="no")
    install(path, "buildah")
    plan = read_kit(DOCKER_KIT).plan
    assert choose_builder(plan).name == "buildah"
    with pytest.raises(MissingToolError, match="Is the docker daemon running"):
        choose_builder(plan, "docker")


@pytest.mark.parametrize(("buildx", "fits"), [("yes", True), ("no", False)])
def test_docker_builds_from_a_bundle_with_buildx_alone(path: Path, tmp_path: Path, buildx: str, fits: bool) -> None:
    docker(path, buildx=buildx)
    work = Work(
        plan=read_kit(DOCKER_KIT).plan,
        kit=DOCKER_KIT,
        recipe=DOCKER_KIT / "Dockerfile",
        context=tmp_path,
        token="0",
        scratch=tmp_path,
        target=Target("docker", "mpi-hello:here", "hpcgen-build:0", is_file=False),
        steps=[],
        bundle=BundleFolder(tmp_path / "bundle", [BundledBase("localhost/hpcgen-base/debian-12:1", "debian-12", "1")]),
    )
    if fits:
        words = Docker().build(work)[0].argv()
        assert f"localhost/hpcgen-base/debian-12:1=oci-layout://{tmp_path}/bundle/images:debian-12" in words
        assert "--network=none" in words
    else:
        with pytest.raises(MissingToolError, match="cannot build from a bundle"):
            Docker().build(work)


@pytest.mark.parametrize(
    ("own", "built", "cache", "stay"),
    [(1, True, True, True), (0, True, True, False), (1, False, True, False), (1, True, False, False)],
)
def test_images_with_the_stacks_own_code_stay_for_the_next_line(
    own: int, built: bool, cache: bool, stay: bool, tmp_path: Path
) -> None:
    """ch-image changes them faster than it writes both stages anew; nothing else stays, nor what a failure leaves."""
    plan = read_kit(CHARLIECLOUD_KIT).plan
    plan = msgspec.structs.replace(plan, copied=[PlannedCopy("/app", "0" * 64, 1, 1)] * own)
    target = Target("squashfs", str(tmp_path / "x.sqfs"), str(tmp_path / "y.sqfs"))
    work = Work(plan, tmp_path, tmp_path / "Dockerfile", tmp_path, "0", tmp_path, target, [], cache)
    removed = [call.argv()[:2] for call in Charliecloud().clean(work, built)]
    assert removed == ([] if stay else [["ch-image", "delete"]])


def test_docker_without_buildx_says_what_is_missing(path: Path) -> None:
    docker(path, buildx="no")
    with pytest.raises(MissingToolError, match="no plugin buildx"):
        choose_builder(read_kit(DOCKER_KIT).plan)


def test_nothing_installed_names_what_would_do(path: Path) -> None:
    install(path, "buildah")
    with pytest.raises(MissingToolError) as raised:
        choose_builder(read_kit(CHARLIECLOUD_KIT).plan)
    assert "ch-image is needed" in str(raised.value)
    assert "--engine buildah" in str(raised.value)


def test_another_format_is_refused_with_the_command_that_renders_it(path: Path) -> None:
    with pytest.raises(InputError) as raised:
        choose_builder(read_kit(CHARLIECLOUD_KIT).plan, "podman")
    assert "hpcgen render --site supermuc --stack mpi-hello --format docker" in str(raised.value)


# The kit


def test_the_dockerfile_of_charliecloud_is_what_its_script_writes(tmp_path: Path) -> None:
    script = (CHARLIECLOUD_KIT / "build.sh").read_text()
    # The shell's own reading of the here document, as the script has it.
    start = script.index('cat > "$context/Dockerfile"')
    end = script.index("\n\n", script.index("\nHPCGEN_DOCKERFILE\n"))
    subprocess.run(["sh", "-c", f"context={tmp_path}\n{script[start:end]}\n"], check=True)
    assert read_kit(CHARLIECLOUD_KIT).recipe == (tmp_path / "Dockerfile").read_text()


def test_the_kit_says_where_the_dockerfile_ends_in_its_script(tmp_path: Path) -> None:
    files = kit_files(CHARLIECLOUD_KIT)
    other = {name: files[name].replace("HPCGEN_DOCKERFILE", "THE_END") for name in ("build.sh", "recipe.json")}
    renamed = written(tmp_path / "renamed", {**files, **other})
    assert read_kit(renamed).recipe == read_kit(CHARLIECLOUD_KIT).recipe
    cut = written(tmp_path / "cut", {**files, "build.sh": files["build.sh"].replace("\nHPCGEN_DOCKERFILE\n", "\n")})
    with pytest.raises(InputError, match=r"the kit's recipe has no here-document that ends with HPCGEN_DOCKERFILE"):
        read_kit(cut)


def kit_files(source: Path, **changed: str) -> dict[str, str]:
    files = {str(path.relative_to(source)): path.read_text() for path in source.rglob("*") if path.is_file()}
    return {**files, **changed}


def written(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)
    return folder


def test_a_folder_that_is_no_kit_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no plan\.json"):
        read_kit(tmp_path)
    kit = written(tmp_path / "kit", kit_files(DOCKER_KIT, **{"plan.json": '{"hpcgen": 1}'}))
    with pytest.raises(InputError, match=r"plan\.json is not understood"):
        read_kit(kit)
    (kit / "plan.json").write_text((DOCKER_KIT / "plan.json").read_text())
    (kit / "selftest.sh").unlink()
    with pytest.raises(InputError, match=r"selftest\.sh cannot be read"):
        read_kit(kit)


def test_a_certificate_that_is_not_here_stops_before_anything_runs(path: Path, tmp_path: Path) -> None:
    calls = docker(path)
    facts = json.loads((DOCKER_KIT / "recipe.json").read_text())
    facts["certificates"] = [{"source": "/nowhere/ca.crt", "name": "ca.crt"}]
    kit = written(tmp_path / "kit", kit_files(DOCKER_KIT, **{"recipe.json": json.dumps(facts)}))
    with pytest.raises(InputError, match=r"/nowhere/ca\.crt is not on this machine"):
        build_image(kit)
    assert not calls.exists()


# A whole build


def test_a_build_is_recorded_with_its_steps_and_log(path: Path) -> None:
    calls = docker(path, "echo '#6 DONE 1.5s'")
    record = build_image(DOCKER_KIT)
    assert record.result == "built"
    assert record.image is not None
    assert (record.image.kind, record.image.name, record.image.bytes) == ("docker", "mpi-hello:workstation", 413000000)
    assert [(step.result, step.seconds) for step in record.steps] == [("cached", 0.0), ("done", 1.5)]
    assert (record.engine, record.engine_version, record.blocks["rank_test"]) == ("docker", "28.2.2", "1")
    assert any(line.startswith("image ") for line in record.inputs)
    assert "#6 0.1 words of the step" in Path(record.log).read_text()
    assert [kept["id"] for kept in records(path)] == [record.id]
    said = calls.read_text().splitlines()
    build = next(line for line in said if line.startswith("buildx build"))
    assert "--progress=plain" in build
    assert "io.hpcgen.kit.plan.json={" in build
    temporary = build.split(" -t ")[1].split()[0] if " -t " in build else calls.read_text().split(" -t ")[1].split()[0]
    assert f"tag {temporary} mpi-hello:workstation" in said
    assert f"rmi {temporary}" in said


def test_a_build_writes_the_signed_statement_of_its_image(path: Path, tmp_path: Path) -> None:
    (path / "ssh-keygen").symlink_to(shutil.which("ssh-keygen", path=os.defpath) or "")
    key, file = ssh_key(tmp_path / "alice"), tmp_path / "image.json"
    docker(path)
    words = ["build", str(DOCKER_KIT), "--provenance", str(file), "--sign", str(key), "--no-record"]
    done = subprocess.run([sys.executable, "-m", "hpcgen", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"wrote {file}; signed in {file}.sig" in done.stderr, done.stderr
    statement = json.loads(file.read_text())
    assert statement["subject"] == [{"name": "mpi-hello:workstation", "digest": {"sha256": "0123"}}]
    locks = [
        each for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"] if "lock" in each["name"]
    ]
    assert locks == [{"name": "hpcgen.lock", "digest": {"sha256": file_sha256(DOCKER_KIT / "hpcgen.lock")}}]
    # A key that is not there stops it before hours of building.
    calls = docker(path)
    calls.write_text("")
    words[words.index(str(key))] = str(tmp_path / "nobody")
    done = subprocess.run([sys.executable, "-m", "hpcgen", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "there is no key" in done.stderr and not calls.read_text()


def test_a_kit_that_is_not_written_yet_is_built_too(path: Path) -> None:
    from hpcgen.kit.kit import Kit

    docker(path)
    files = {name: KitFile(text, name.endswith(".sh")) for name, text in kit_files(DOCKER_KIT).items()}
    assert build_image(Kit("", files, [])).result == "built"


def test_without_a_record_only_a_failed_build_leaves_its_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    docker(path)
    built = build_image(DOCKER_KIT, BuildOptions(record=False))
    assert (built.result, built.log) == ("built", "")
    assert list(temporary.iterdir()) == []
    docker(path, "echo '#6 ERROR: process did not complete'; exit 1")
    with pytest.raises(BuildFailedError) as raised:
        build_image(DOCKER_KIT, BuildOptions(record=False))
    (log,) = temporary.iterdir()
    assert f"log: {log}" in str(raised.value)
    assert "process did not complete" in log.read_text()
    assert records(path) == []


def test_a_failed_step_is_told_with_its_block_and_last_lines(path: Path) -> None:
    calls = docker(path, "echo '#6 ERROR: process did not complete'; exit 1")
    with pytest.raises(BuildFailedError) as raised:
        build_image(DOCKER_KIT)
    message = str(raised.value)
    assert "step: 2 of" in message
    assert "distribution: packages" in message
    assert "| #6 0.1 words of the step" in message
    [record] = records(path)
    assert record["result"] == "failed"
    assert record["failure"]["step"].startswith("2 of")
    assert record["steps"][-1]["result"] == "failed"
    assert "words of the step" in Path(record["log"]).read_text()
    assert "tag " not in calls.read_text().replace("--label", "")
    assert "rmi hpcgen-build:" in calls.read_text()


def test_what_an_engine_repeats_of_a_proxys_password_is_shown_nowhere(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apptainer runs steps with ``-x``, which shows variables by what they stand for."""
    monkeypatch.setenv("http_proxy", "http://jane:s3cret@proxy.example.org:3128")
    monkeypatch.setenv("APPTAINERENV_https_proxy", "http://joe:k3y@proxy.example.org")
    docker(path, 'echo "#6 + curl --proxy $http_proxy, $APPTAINERENV_https_proxy"; echo "#6 ERROR: no"; exit 1')
    with pytest.raises(BuildFailedError) as raised:
        build_image(DOCKER_KIT)
    shown = "+ curl --proxy http://…@proxy.example.org:3128, http://…@proxy.example.org"
    [record] = records(path)
    for text in (str(raised.value), json.dumps(record, ensure_ascii=False), Path(record["log"]).read_text()):
        assert shown in text and "s3cret" not in text and "k3y" not in text


def test_a_signal_ends_the_engine_and_is_recorded(path: Path) -> None:
    calls = docker(path, "sleep 60")
    command = [sys.executable, "-m", "hpcgen", "build", str(DOCKER_KIT)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(os.environ))
    end = time.monotonic() + 30
    while "buildx build" not in (calls.read_text() if calls.exists() else ""):
        assert time.monotonic() < end, "the engine was not started"
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    [record] = records(path)
    assert record["result"] == "interrupted"
    assert "rmi hpcgen-build:" in calls.read_text()


def test_a_full_disk_below_the_log_does_not_stop_the_build(path: Path) -> None:
    docker(path)
    assert build_image(DOCKER_KIT, BuildOptions(log=Path("/dev/full"))).result == "built"


def test_a_context_that_cannot_be_made_is_told(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = docker(path)

    def full(kit: object, context: Path, bundle: object, more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(context))

    monkeypatch.setattr("hpcgen.builders.running.make_context", full)
    with pytest.raises(OutputError, match="No space left on device") as raised:
        build_image(DOCKER_KIT)
    assert "TMPDIR" in str(raised.value)
    assert "buildx build" not in calls.read_text()
    assert records(path)[0]["result"] == "failed"


def test_dry_run_prints_commands_and_starts_no_build(path: Path) -> None:
    calls = docker(path)
    words = ["build", str(DOCKER_KIT), "--dry-run", "--no-cache", "--engine-option", "--network=host", "-o", "x:1"]
    done = subprocess.run([sys.executable, "-m", "hpcgen", *words], capture_output=True, text=True, check=True)
    build, tag, remove = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert build.startswith(
        "env DOCKER_BUILDKIT=1 docker buildx build --load --progress=plain --no-cache --network=host"
    )
    assert '="$(cat ' in build
    assert tag == "docker tag hpcgen-build:0 x:1"
    assert remove == "docker rmi hpcgen-build:0"
    assert "buildx build" not in calls.read_text()
    assert records(path) == []


NOTEST = "--build-arg HPCGEN_NOTEST=1"


@pytest.mark.parametrize(
    ("kit", "engine", "said"),
    [
        (DOCKER_KIT, "docker", NOTEST),
        (DOCKER_KIT, "podman", NOTEST),
        (CHARLIECLOUD_KIT, "ch-image", NOTEST),
        (GOLDEN / "hlrs-testbed" / "mpi-hello", "apptainer", "--notest"),
        # The recipe of the first release runs no self-test, its definition file does.
        (SPECIMENS / "docker", "docker", ""),
        (SPECIMENS / "singularity", "apptainer", "--notest"),
    ],
)
def test_the_self_test_of_a_build_can_be_left_out(
    kit: Path, engine: str, said: str, path: Path, hpcgen: Command
) -> None:
    docker(path)
    for name in ("podman", "ch-image", "ch-convert", "mksquashfs", "apptainer"):
        install(path, name)

    def commands(*more: str, **variables: str) -> str:
        done = hpcgen("build", str(kit), "--engine", engine, "--dry-run", *more, env=variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "HPCGEN_NOTEST" not in (plain := commands()) and "--notest" not in plain
    left_out = commands("--notest")
    assert said in left_out
    assert said or left_out == plain
    assert commands(HPCGEN_NOTEST="1") == left_out
    assert commands(HPCGEN_NOTEST="") == plain


def test_the_record_of_a_build_says_whether_it_was_tested(path: Path) -> None:
    text = (DOCKER_KIT / "Dockerfile").read_text().partition("\nFROM ")[2].partition("\nFROM ")[2]
    layers = [line for line in f"FROM {text}".splitlines() if line.startswith(("FROM ", "RUN ", "COPY "))]
    number = next(index for index, line in enumerate(layers, 1) if "selftest.sh --build" in line)
    docker(path, f"echo '#9 [stage-1 {number}/{len(layers)}] RUN /bin/sh'; echo '#9 DONE 2.0s'")
    record = build_image(DOCKER_KIT)
    assert (record.notest, record.steps[-1].about, record.steps[-1].seconds) == (False, "run the self-test", 2.0)
    record = build_image(DOCKER_KIT, BuildOptions(notest=True))
    assert (record.notest, record.steps[-1].about) == (True, "do not run the self-test")
    shown = subprocess.run(
        [sys.executable, "-m", "hpcgen", "records", "show", record.id], capture_output=True, text=True, check=True
    )
    assert "left out of the build (--notest)" in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give one KIT"),
        (["a", "b"], "give one KIT"),
        (["--site", "workstation"], "--stack is missing"),
    ],
)
def test_what_to_build_must_be_clear(words: list[str], said: str, path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "hpcgen", "build", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


def test_an_engine_of_another_format_renders_that_format(path: Path) -> None:
    install(path, "podman")
    words = ["build", "--site", "supermuc", "--stack", "mpi-hello", "--engine", "podman", "--dry-run"]
    done = subprocess.run([sys.executable, "-m", "hpcgen", *words], capture_output=True, text=True)
    assert done.returncode == 6, done.stderr
    allowed = subprocess.run(
        [sys.executable, "-m", "hpcgen", *words, "--allow-unsupported"], capture_output=True, text=True, check=True
    )
    assert "podman tag localhost/hpcgen-build:0 mpi-hello:supermuc" in allowed.stdout


# Where images lie


def test_an_older_image_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "image" / "ch").mkdir(parents=True)
    (tmp_path / "image" / "old").touch()
    (tmp_path / "image" / "ch").chmod(0o500)
    target = file_target(str(tmp_path / "image"), "t", {".sqfs": "squashfs"})
    assert target.kind == "directory"
    temporary = Path(target.temporary)
    temporary.mkdir()
    (temporary / "new").touch()
    put_in_place(Path(target.temporary), Path(target.name))
    assert [path.name for path in (tmp_path / "image").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["image"]


def test_a_folder_that_is_no_image_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1").touch()
    with pytest.raises(OutputError, match="this is a folder, not an image"):
        file_target(str(tmp_path / "thesis"), "t", {})
    with pytest.raises(OutputError, match="does not exist"):
        file_target(str(tmp_path / "nowhere" / "image.sif"), "t", {".sif": "sif"})


def test_names_of_files_are_refused_by_engines_with_a_store(path: Path) -> None:
    install(path, "podman")
    for output in ("image.sif", "/tmp/image", "docker:x"):
        with pytest.raises(InputError, match="hpcgen convert"):
            build_image(DOCKER_KIT, BuildOptions(engine="podman", output=output))
