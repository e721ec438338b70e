"""``hpcgen build`` with the real engines: cache, interruption, names, records.

Most of it is done with a stack of two small blocks on the bare base, so that a build takes seconds. The Docker engine
is Debian's (20.10, BuildKit in the client and in the engine), started here with nothing of the machine's network.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, ChImage, Run, Sid, SidHpcgen, Tool, need, run
from leftovers import kept_while_used
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

from tests.helpers.ssh_keys import allowed, ssh_key

SLOW = pytest.mark.slow
# podman and buildah build by the same library and into the same store: one of them is enough in CI.
CACHED = ["buildah", pytest.param("podman", marks=SLOW), "ch-image"]
STOPPED = [pytest.param("buildah", marks=SLOW), "podman", "ch-image"]
BLOCK = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Runtime, run


class Small(Block):
    """{about}."""

    name = "{name}"
    of_project = {own}

    def build(self, ctx):
        yield run("{about}", "mkdir -p /opt/{name}", "echo {text} > /opt/{name}/text", *{commands!r})

    def runtime(self, ctx):
        # Builders leave out a stage that nothing is copied from.
        return Runtime(copies=("/opt/{name}",))
'''
STACK = (
    "name: small\ntitle: two blocks\nblocks: {early: {}, late: {}}\nrun: {command: [cat, /opt/late/text], mpi: false}\n"
)
SLOW_S = 3
CACHE = "/kit/cache"
WAITING = "waiting-for-the-signal"


class Small:
    """A stack of an early block that takes some seconds and a late one, whose text can be changed."""

    def __init__(self, folder: Path, profile: dict[str, Any]) -> None:
        self.folder = folder
        self.early = uuid.uuid4().hex
        self.profile = without_servers(profile)

    def collection(self, text: str, *late: str) -> Path:
        """A collection whose late block writes ``text`` and runs commands."""
        folder = self.folder / text
        for name in ("site_profiles", "recipes", "building_blocks"):
            (folder / name).mkdir(parents=True)
        write_bare_base(folder)
        blocks = {"early": (self.early, [f"sleep {SLOW_S}"]), "late": (text, list(late))}
        for name, (written, commands) in blocks.items():
            block = BLOCK.format(
                name=name, about=f"the {name} one", own=name == "late", text=written, commands=commands
            )
            (folder / "building_blocks" / f"{name}.py").write_text(block)
            (folder / "building_blocks" / f"{name}.yaml").write_text(f'block: {name}\nreleases: {{"1": {{}}}}\n')
        (folder / "recipes" / "small.yaml").write_text(STACK)
        (folder / "site_profiles" / "here.yaml").write_text(json.dumps(self.profile))
        return folder


@pytest.fixture
def small(tmp_path: Path, machine_facts: dict[str, Any], base_image: BaseImage) -> Small:
    return Small(tmp_path, site_profile(machine_facts, base_image))


STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{own}/storage"
runroot = "{own}/run"
[storage.options]
additionalimagestores = ["{shared}/storage"]
"""


@pytest.fixture
def here(testbed_env: dict[str, str], base_image: BaseImage, tmp_path: Path) -> Iterator[Tool]:
    """This machine's tools, with folders of their own for records and images; the base is in the shared store."""
    own = tmp_path / "containers"
    own.mkdir()
    shared = Path(testbed_env["CONTAINERS_STORAGE_CONF"]).parent
    (own / "storage.conf").write_text(STORAGE.format(own=own, shared=shared))
    more = {"HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"}
    yield Tool({**testbed_env, "CONTAINERS_STORAGE_CONF": str(own / "storage.conf"), **more})
    # podman leaves its overlay mounted.
    run(["umount", own / "storage/overlay"], check=False)


def words(collection: Path | str, engine: str, output: str) -> list[str]:
    named = ["--site", "here", "--stack", "small", "--engine", engine, "-o", output, "--json"]
    return ["--collection", str(collection), "build", *named]


def build(here: Tool, collection: Path, engine: str, output: str) -> dict[str, Any]:
    return record_in(here.run([sys.executable, "-m", "hpcgen", *words(collection, engine, output)]))


def record_in(done: Run) -> dict[str, Any]:
    """The record that --json printed, among the lines for people."""
    text = done.stdout
    record: dict[str, Any] = json.JSONDecoder().raw_decode(text[text.index("\n{") + 1 :])[0]
    return record


def results(record: Mapping[str, Any]) -> dict[str, str]:
    """How the steps of the two blocks ended."""
    return {step["block"].split()[0]: step.get("result", "done") for step in record["steps"] if "one" in step["about"]}


def copied(record: Mapping[str, Any], name: str) -> str:
    """How the step ended that takes a block's folder over into the final stage."""
    about = f"copy /opt/{name} from the builder"
    return str(next(step.get("result", "done") for step in record["steps"] if step["about"] == about))


def output_of(engine: str, folder: Path) -> str:
    return str(folder / "image") if engine == "ch-image" else "localhost/small:1"


def text_in(here: Tool, engine: str, output: str) -> str:
    """What the late block wrote."""
    if engine == "ch-image":
        return (Path(output) / "opt" / "late" / "text").read_text().strip()
    # Not by podman run, which waits 20 s for its conmon where init is slow to take leave of the dead.
    return Buildah(here.env).exec(output, ["cat", "/opt/late/text"]).stdout.split()[-1]


def left(here: Tool, engine: str, folder: Path) -> set[str]:
    """Everything that builds could leave: working containers or images in the store, and half files."""
    listing = ["ch-image", "list"] if engine == "ch-image" else ["buildah", "containers", "-q"]
    # A name is a line of one word; what ch-image says of its storage, when it is new, has more.
    names = {line for line in here.run(listing).stdout.splitlines() if " " not in line.strip()}
    if engine != "ch-image":
        names |= {line for line in here.run(["buildah", "images"]).stdout.splitlines() if "hpcgen-build" in line}
    return names | {path.name for path in folder.iterdir() if path.name.startswith(".hpcgen")}


@pytest.mark.parametrize("engine", CACHED)
def test_what_came_before_a_change_is_taken_from_the_cache(
    engine: str, small: Small, here: Tool, tmp_path: Path
) -> None:
    output = output_of(engine, tmp_path)
    before = left(here, engine, tmp_path)
    cold = build(here, small.collection("first"), engine, output)
    assert results(cold) == {"early": "done", "late": "done"}
    assert next(step["seconds"] for step in cold["steps"] if step["about"] == "the early one") >= SLOW_S
    assert text_in(here, engine, output) == "first"
    warm = build(here, small.collection("second"), engine, output)
    assert results(warm) == {"early": "cached", "late": "done"}
    assert (copied(warm, "early"), copied(warm, "late")) == ("cached", "done")
    assert text_in(here, engine, output) == "second"
    assert left(here, engine, tmp_path) == before
    kept = json.loads((tmp_path / "records" / f"{warm['id']}.json").read_text())
    assert kept == {"record": 2, **warm}
    assert kept["image"]["bytes"] > 100e6
    assert "[early 1: the early one" not in Path(kept["log"]).read_text()
    assert "early 1: the early one … cached" in Path(kept["log"]).read_text()


@pytest.mark.parametrize("engine", STOPPED)
def test_a_signal_leaves_the_older_image_and_nothing_else(
    engine: str, small: Small, here: Tool, tmp_path: Path
) -> None:
    output = output_of(engine, tmp_path)
    build(here, small.collection("older"), engine, output)
    before = left(here, engine, tmp_path)
    slow = small.collection("newer", f"echo {WAITING}", "sleep 300")
    log = tmp_path / "log"
    command = [sys.executable, "-m", "hpcgen", *words(slow, engine, output), "--log", str(log)]
    process = subprocess.Popen(command, env=dict(here.env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(log, process)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130, said
    assert "late 1: the late one … stopped after" in said
    assert time.monotonic() - asked < 30
    assert left(here, engine, tmp_path) == before
    assert text_in(here, engine, output) == "older"
    records = [json.loads(path.read_text()) for path in (tmp_path / "records").glob("*.json")]
    assert sorted(record.get("result", "built") for record in records) == ["built", "interrupted"]


def wait_for(log: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the step prints its word on a line of its own."""
    end = time.monotonic() + 120
    while not (log.exists() and re.search(rf"^(#\d+ [\d.]+ )?{WAITING}$", log.read_text(), re.MULTILINE)):
        assert process.poll() is None, process.communicate()[0].decode()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def test_charliecloud_writes_what_the_run_script_looks_for(small: Small, here: Tool, tmp_path: Path) -> None:
    """Without -o, by the site's own engine: the kit's script finds it."""
    named = ["--collection", small.collection("found"), "build", "--site", "here", "--stack", "small"]
    command = [sys.executable, "-m", "hpcgen", *named, "--kit", tmp_path / "kit", "--no-cache", "--json"]
    record = record_in(here.run(command, cwd=tmp_path))
    assert record["image"]["kind"] == "squashfs"
    digest = here.run(["sha256sum", tmp_path / "small.sqfs"]).stdout.split()[0]
    assert record["image"]["digest"] == f"sha256:{digest}"
    said = here.run(["bash", tmp_path / "kit" / "run.sh"], cwd=tmp_path).stdout.splitlines()
    assert said == ["preflight: passed: this machine meets all requirements", "found"]


@pytest.mark.parametrize(("engine", "name"), [("buildah", "localhost/small:1"), ("ch-image", "small.sqfs")])
def test_a_built_image_proves_where_it_comes_from(
    engine: str, name: str, small: Small, here: Tool, tmp_path: Path
) -> None:
    for key in ("alice", "eve"):
        ssh_key(tmp_path / key)
        allowed(tmp_path / f"only_{key}", {f"{key}@example.org": tmp_path / key})
    statement = ["--provenance", tmp_path / "small.json"]
    command = [sys.executable, "-m", "hpcgen"]
    built = words(small.collection("proved"), engine, name)
    here.run([*command, *built, *statement, "--sign", tmp_path / "alice"], cwd=tmp_path)
    verify = [*command, "verify", f"podman:{name}" if engine == "buildah" else name, *statement]
    said = here.run([*verify, "--signer", tmp_path / "only_alice"], cwd=tmp_path).stdout
    rows = [line.split("  ")[0] for line in said.splitlines() if " holds " in line]
    assert rows == ["signature", "digest", "plan", "hpcgen.lock"] and "does not hold" not in said, said
    refused = here.run([*verify, "--signer", tmp_path / "only_eve"], cwd=tmp_path, check=False)
    assert refused.returncode == 6 and "none of the allowed signers" in refused.stdout


def test_the_record_of_a_real_stack_has_its_steps_and_inputs(mpi_hello_image: Path) -> None:
    (record,) = (json.loads(file.read_text()) for file in (mpi_hello_image.parent / "records").glob("*.json"))
    assert {"intel_mpi 2021.17.2", "rank_test 1"} <= {step["block"] for step in record["steps"]}
    assert any(line.startswith("wheels ") for line in record["inputs"])


# The newer tools, with hpcgen itself in their root


@pytest.fixture
def sid_small(machine_facts: dict[str, Any], base_image: BaseImage, sid: Sid, tmp_path: Path) -> Small:
    """The same stack in a folder of the user "builder"."""
    folder = tmp_path / "sid"
    folder.mkdir()
    return Small(folder, site_profile(machine_facts, base_image))


class SidBuild:
    """hpcgen build in the sid root, in a folder that is /kit there."""

    def __init__(self, hpcgen: SidHpcgen, folder: Path, base: BaseImage) -> None:
        self.hpcgen, self.folder = hpcgen, folder
        self.binds = [(folder, "/kit"), (base.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
        self.env = {"HPCGEN_RECORDS": "/kit/records", "CH_IMAGE_STORAGE": "/kit/storage", "APPTAINER_CACHEDIR": CACHE}

    def build(self, collection: Path, engine: str, output: str) -> dict[str, Any]:
        """One build; the record."""
        self.hpcgen.sid.folder(self.folder)
        argv = words(f"/kit/{collection.name}", engine, output)
        return record_in(self.hpcgen.run(argv, binds=self.binds, env=self.env, cwd="/kit"))

    def run(self, command: list[str]) -> Run:
        """Any command there."""
        return self.hpcgen.sid.run(command, binds=self.binds, env=self.env, cwd="/kit")


@pytest.fixture
def sid_build(sid_hpcgen: SidHpcgen, sid_small: Small, base_image: BaseImage) -> SidBuild:
    return SidBuild(sid_hpcgen, sid_small.folder, base_image)


def test_apptainer_writes_a_sif_file_and_a_folder(sid_small: Small, sid_build: SidBuild) -> None:
    folder = sid_build.build(sid_small.collection("folder"), "apptainer", "image")
    assert folder["image"]["kind"] == "directory"
    file = sid_build.build(sid_small.collection("file"), "apptainer", "image.sif")
    assert file["image"]["kind"] == "sif"
    assert results(folder) == {"early": "done", "late": "done"}
    # Apptainer keeps no steps; what comes before those of the project is kept as an image.
    assert results(file) == {"early": "cached", "late": "done"}
    (kept,) = (sid_small.folder / "cache" / "hpcgen-builders").iterdir()
    assert kept.name.startswith("small-here-") and kept.stat().st_mode & 0o777 == 0o755
    assert [step["about"] for step in file["steps"]][-2:] == ["run the self-test", "write the SIF file"]
    assert len([step for step in file["steps"] if step["about"].startswith("base image")]) == 2
    digest = run(["sha256sum", sid_small.folder / "image.sif"]).stdout.split()[0]
    assert file["image"]["digest"] == f"sha256:{digest}"
    for image, text in (("image", "folder"), ("image.sif", "file")):
        said = sid_build.run(["apptainer", "exec", image, "cat", "/opt/late/text"]).stdout
        assert said.split()[-1] == text


@pytest.mark.slow
def test_a_signal_to_apptainer_leaves_the_older_image(sid_small: Small, sid_build: SidBuild) -> None:
    # A folder of a subordinate user id, which "builder" alone cannot remove.
    private = sid_small.collection("older", "install -d -o 42 -m 700 /opt/late/private")
    older = sid_build.build(private, "apptainer", "image")
    slow = sid_small.collection("newer", f"echo {WAITING}", "sleep 300")
    sid_build.hpcgen.sid.folder(sid_small.folder)
    stop = f"python3 -m hpcgen {' '.join(words(f'/kit/{slow.name}', 'apptainer', 'image'))} & pid=$!; n=0;"
    stop += f" until grep -qx {WAITING} /kit/records/*.log || [ $n = 600 ]; do sleep 0.2; n=$((n+1)); done;"
    stop += " kill -TERM $pid; wait $pid; echo status $?; pgrep -x sleep; echo; ls -a /kit; ls /tmp"
    paths = {"PYTHONPATH": "/hpcgen/checkout:/hpcgen/packages", "PYTHONDONTWRITEBYTECODE": "1"}
    own = [(Path(__file__).parents[2], "/hpcgen/checkout"), (sid_build.hpcgen.packages, "/hpcgen/packages")]
    done = sid_build.hpcgen.sid.run(
        ["bash", "-c", stop], binds=[*own, *sid_build.binds], env={**paths, **sid_build.env}, cwd="/kit"
    )
    assert "status 130" in done.stdout
    assert "late 1: the late one … stopped after" in done.stdout
    assert ".hpcgen-" not in done.stdout.split("status 130")[1]
    assert "hpcgen-build" not in done.stdout.split("status 130")[1]
    assert older["image"]["name"] == "/kit/image"
    assert sid_build.run(["apptainer", "exec", "image", "cat", "/opt/late/text"]).stdout.split()[-1] == "older"
    sid_build.build(sid_small.collection("newest"), "apptainer", "image")
    assert sid_build.run(["apptainer", "exec", "image", "cat", "/opt/late/text"]).stdout.split()[-1] == "newest"
    assert not [path.name for path in sid_small.folder.iterdir() if path.name.startswith(".hpcgen")]


@pytest.mark.slow
def test_newer_charliecloud_has_a_cache_too(
    sid_small: Small, sid_build: SidBuild, base_image: BaseImage, ch_image: ChImage
) -> None:
    sid_build.hpcgen.sid.folder(sid_small.folder)
    base = f"{BASE_IN_SID}/{base_image.root_tar.name}"
    sid_build.run(["ch-image", "--no-cache", "import", base, base_image.ch_image])
    cold = sid_build.build(sid_small.collection("first"), "ch-image", "image")
    warm = sid_build.build(sid_small.collection("second"), "ch-image", "image")
    assert results(cold) == {"early": "done", "late": "done"}
    assert results(warm) == {"early": "cached", "late": "done"}
    assert (sid_small.folder / "image" / "opt" / "late" / "text").read_text().strip() == "second"
    assert sid_build.run(["ch-image", "list"]).stdout.split() == [base_image.ch_image]


# Docker


@pytest.fixture(scope="module")
def docker(
    testbed_env: dict[str, str],
    base_image: BaseImage,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tool]:
    """A Docker engine of its own, with the base in its store."""
    need("docker", "dockerd", path=testbed_env["PATH"])
    with kept_while_used(request, tmp_path_factory, "docker") as folder:
        yield from docker_in(folder, testbed_env, base_image)


def docker_in(folder: Path, testbed_env: dict[str, str], base_image: BaseImage) -> Iterator[Tool]:
    socket = f"unix://{folder}/socket"
    words = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "-H", socket]
    words += ["--pidfile", f"{folder}/pid", "--bridge=none", "--iptables=false", "--ip6tables=false"]
    with (folder / "log").open("w") as log:
        engine = subprocess.Popen(words, env=dict(testbed_env), stdout=log, stderr=subprocess.STDOUT)
    tool = Tool({**testbed_env, "DOCKER_HOST": socket, "HPCGEN_RECORDS": str(folder / "records")})
    try:
        end = time.monotonic() + 60
        while tool.run(["docker", "version"], check=False).returncode:
            assert engine.poll() is None and time.monotonic() < end, (folder / "log").read_text()[-3000:]
            time.sleep(0.2)
        tool.run(["docker", "import", base_image.root_tar, base_image.oci])
        yield tool
    finally:
        engine.terminate()
        engine.wait(60)


def docker_kit(collection: Path) -> Path:
    """A rendered kit without the line that has BuildKit fetch a newer reader of Dockerfiles from its registry."""
    kit = collection / "kit"
    named = ["--site", "here", "--stack", "small", "--format", "docker", "-o", str(kit)]
    run([sys.executable, "-m", "hpcgen", "--collection", str(collection), "render", *named])
    recipe = kit / "Dockerfile"
    syntax, rest = recipe.read_text().split("\n", 1)
    assert syntax.startswith("# syntax=")
    recipe.write_text(rest)
    return kit


def docker_words(collection: Path) -> list[str]:
    named = ["--engine", "docker", "-o", "small:1", "--engine-option", "--network=host", "--json"]
    return [sys.executable, "-m", "hpcgen", "build", str(docker_kit(collection)), *named]


def test_docker_builds_with_its_cache(small: Small, docker: Tool) -> None:
    cold = record_in(docker.run(docker_words(small.collection("first"))))
    assert results(cold) == {"early": "done", "late": "done"}
    assert next(step["seconds"] for step in cold["steps"] if step["about"] == "the early one") >= SLOW_S
    warm = record_in(docker.run(docker_words(small.collection("second"))))
    assert results(warm) == {"early": "cached", "late": "done"}
    said = docker.run(["docker", "run", "--rm", "--network=host", "small:1", "cat", "/opt/late/text"]).stdout
    assert said.split() == ["second"]
    assert warm["image"]["digest"] == docker.run(["docker", "images", "-q", "--no-trunc", "small:1"]).stdout.strip()
    assert "hpcgen-build" not in docker.run(["docker", "images"]).stdout


def test_a_signal_to_docker_leaves_the_older_image(small: Small, docker: Tool, tmp_path: Path) -> None:
    older = record_in(docker.run(docker_words(small.collection("older"))))
    slow = docker_words(small.collection("newer", f"echo {WAITING}", "sleep 300"))
    log = tmp_path / "log"
    process = subprocess.Popen(
        [*slow, "--log", str(log)], env=dict(docker.env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_for(log, process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130, said
    assert older["image"]["digest"] == docker.run(["docker", "images", "-q", "--no-trunc", "small:1"]).stdout.strip()
    assert "hpcgen-build" not in docker.run(["docker", "images"]).stdout


def test_a_step_that_fails_in_docker_is_named(small: Small, docker: Tool) -> None:
    done = docker.run(docker_words(small.collection("failing", "echo last words", "sh -c 'exit 3'")), check=False)
    assert done.returncode == 8
    assert "late 1: the late one" in done.stdout
    assert "last words" in done.stdout


def test_clean_removes_what_builds_left_in_a_store_and_nothing_else(small: Small, here: Tool, tmp_path: Path) -> None:
    image = output_of("podman", tmp_path)

    def listed(*words: str) -> dict[str, set[str]]:
        done = here.run([sys.executable, "-m", "hpcgen", "clean", "images", "build-cache", "--json", *words])
        kinds: dict[str, set[str]] = {"images": set(), "build-cache": set()}
        for things in json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("[") :])[0]:
            if things["place"] == "podman":
                assert things["bytes"] > 0
                kinds[things["kind"]] |= set(things["names"])
        return kinds

    def ids(*words: str) -> list[str]:
        return here.run(["podman", "images", "--quiet", "--no-trunc", *words]).stdout.replace("sha256:", "").split()

    build(here, small.collection("first"), "podman", image)
    assert not listed()["images"]
    (first,) = ids(image)
    build(here, small.collection("second"), "podman", image)
    # A user's own images lose their names too: those of nothing, and those of hpcgen's.
    theirs: set[str] = set()
    for text, base in (("one", "scratch"), ("two", image), ("three", "scratch")):
        (tmp_path / "Dockerfile").write_text(f"FROM {base}\nCOPY text /text\n")
        (tmp_path / "text").write_text(text)
        here.run(["podman", "build", "--layers=false", "-q", "-t", "own", tmp_path])
        theirs.update(ids("own"))
    # A base that lost its name to a newer one, and a step of a recipe's on it.
    for base, line, name in (("scratch", "/text", "base"), ("base", "/opt/hpcgen/build/text", "step")):
        (tmp_path / "Dockerfile").write_text(f"FROM {base}\nCOPY text {line}\n")
        here.run(["podman", "build", "--layers=false", "-q", "-t", name, tmp_path])
    theirs.update(ids("base"))
    (step,) = ids("step")
    here.run(["podman", "untag", "base"])
    here.run(["podman", "untag", "step"])
    found = listed()
    assert step in found["build-cache"]
    assert found["images"] == {first} and found["build-cache"]
    assert len(theirs) == 4 and not theirs & {*found["images"], *found["build-cache"]}
    listed("--yes")
    assert listed() == {"images": set(), "build-cache": set()}
    assert theirs <= set(ids("--all")) and first not in ids("--all")
    assert text_in(here, "podman", image) == "second"


def test_clean_removes_stages_in_the_store_of_ch_image(here: Tool, base_image: BaseImage, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {base_image.ch_image}\nRUN true\n")
    for name in ("hpcgen-build-small-here", "own"):
        here.run(["ch-image", "build", "--no-cache", "-t", name, "-f", tmp_path / "Dockerfile", tmp_path])
    done = here.run([sys.executable, "-m", "hpcgen", "clean", "build-cache", "--yes"])
    assert "ch-image" in done.stdout and "removed" in done.stdout
    names = here.run(["ch-image", "list"]).stdout.split()
    assert "own" in names and "hpcgen-build-small-here" not in names
