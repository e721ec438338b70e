"""Builds that fail for the reasons that people meet: what ``hpcgen build`` then says, and what it leaves.

Each is caused for real, in a few seconds, on this machine or in the sid root: an address where nobody listens, a server
with a certificate of its own, another sha256, a full disk, a killed engine, no entry in /etc/subuid, no permission for
/dev/fuse, an edited recipe, a failing test, no memory. The kernel's killer alone is played by ``kill -9``, which leaves
the same line and the same status; what it leaves under a memory cgroup is in tests/unit/builders/failing_builds.yaml.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, Run, SidHpcgen
from test_rendered_kits import BASE_IN_SID, site_profile

IMAGE = "localhost/failing-build:here"
BLOCK = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Runtime, Test, run


class Tried(Block):
    """A block that does what a test wants to see fail."""

    name = "tried"

    def inputs(self, ctx):
        return [ctx.archive("source")] if FETCH else []

    def build(self, ctx):
        yield run("try it", "mkdir -p /opt/tried", COMMANDS, *([ctx.fetch(ctx.archive("source"))] if FETCH else []))

    def runtime(self, ctx):
        return Runtime(copies=("/opt/tried",))

    def test(self, ctx):
        return [Test("is there", TEST)]
'''
STACK = "name: tried\ntitle: fails\nblocks: {tried: {}}\nrun: {command: [sh], mpi: false}\n"
ARCHIVE = "thing-1.0.tar.gz"

MakeKit = Callable[..., Path]


@pytest.fixture
def make_kit(tmp_path: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage) -> MakeKit:
    """``make_kit(format, commands=…, test=…, sha256=…, bare=…, **network)``: the folder of a kit."""

    def kit(
        format: str,
        commands: tuple[str, ...] = (),
        test: str = "true",
        sha256: str = "",
        bare: bool = True,
        **network: Any,
    ) -> Path:
        collection = tmp_path / "collection"
        for name in ("site_profiles", "recipes", "building_blocks"):
            (collection / name).mkdir(parents=True)
        blocks = collection / "building_blocks"
        constants = f"FETCH, COMMANDS, TEST = {bool(sha256)}, {list(commands)}, {test!r}\n\n\n"
        (blocks / "tried.py").write_text(BLOCK.replace("class Tried", f"{constants}class Tried"))
        archive = f'{{url: "https://example.org/{ARCHIVE}", sha256: "{sha256}"}}' if sha256 else ""
        row = f"{{archives: {{source: {archive}}}}}" if archive else "{}"
        (blocks / "tried.yaml").write_text(f'block: tried\nreleases: {{"1": {row}}}\n')
        if bare:
            write_bare_base(collection)
        (collection / "recipes" / "tried.yaml").write_text(STACK)
        site = site_profile(machine_facts, plain_base_image)
        if bare:
            site = without_servers(site)
        site["network"]["mirrors"].update(network.pop("mirrors", {}))
        site["network"].update(network)
        (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
        command = [sys.executable, "-m", "hpcgen", "--collection", collection, "render", "--site", "here"]
        words = ["--stack", "tried", "--format", format, "-o", tmp_path / "kit"]
        subprocess.run([*command, *words], check=True, capture_output=True)
        return tmp_path / "kit"

    return kit


class Server:
    """A web server with a certificate that it made itself, on loopback."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "own.crt"
        key = folder / "own.key"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.certificate]
        subprocess.run([*made, *names], check=True, capture_output=True)
        (folder / "files").mkdir()
        (folder / "files" / ARCHIVE).write_bytes(b"not what the table says")
        handler = functools.partial(Quiet, directory=str(folder / "files"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests look at what the client says."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    running = Server(folder)
    yield running
    running.server.shutdown()


def words(kit: Path, *more: str) -> list[str | Path]:
    return [sys.executable, "-m", "hpcgen", "build", kit, "--engine", "buildah", "-o", IMAGE, *more]


def environment(folder: Path) -> dict[str, str]:
    return {"HPCGEN_RECORDS": str(folder / "records"), "BUILDAH_ISOLATION": "chroot"}


def build(buildah: Buildah, kit: Path, *more: str) -> Run:
    """Build by buildah; the image must not be there afterwards."""
    done = buildah.run(words(kit, *more), env=environment(kit.parent), check=False, timeout=120)
    left = buildah.run(["buildah", "images", "-q", "--filter", f"reference={IMAGE}"], check=False)
    assert not left.stdout.strip(), "an image is left under the final name"
    return done


def build_in_sid(sid_hpcgen: SidHpcgen, kit: Path, engine: str, output: str, before: str, **env: str) -> Run:
    """Build in the sid root, as an ordinary user; nothing must be there afterwards."""
    sid_hpcgen.sid.folder(kit)
    archives = Path(sid_hpcgen.sid.env["HPCGEN_TESTBED"])
    done = sid_hpcgen.run(
        ["build", "/kit", "--engine", engine, "-o", output],
        binds=[(kit, "/kit"), (archives, BASE_IN_SID)],
        cwd="/kit",
        before=before,
        env={"HPCGEN_RECORDS": "/tmp/records", **env},
        check=False,
        timeout=120,
    )
    assert not (kit / output).exists()
    assert not [each for each in kit.iterdir() if output in each.name]
    return done


def check(done: Run, code: int, step: str, cause: str, remedy: str) -> None:
    """The exit status, and what a person reads: the step with its block, the cause, the remedy."""
    said = done.stdout
    assert done.returncode == code, said
    assert re.search(rf"^  step: \d+ of \d+, .*{step}", said, re.MULTILINE), said
    assert re.search(rf"^  cause: .*{cause}", said, re.MULTILINE), said
    assert re.search(rf"^  remedy: .*{remedy}", said, re.MULTILINE), said
    assert "Traceback" not in said


UPDATE = "apt-get -o Acquire::Retries=0 -o APT::Update::Error-Mode=any update"


def test_no_network(make_kit: MakeKit, buildah: Buildah) -> None:
    mirror = {"archive": "http://127.0.0.1:9/debian", "security": "http://127.0.0.1:9/security"}
    kit = make_kit("docker", (UPDATE,), mirrors={"apt": {"debian": mirror}})
    check(build(buildah, kit), 8, "tried 1: try it", "network does not reach 127.0.0.1:9", r"network\.mirrors")


def test_a_certificate_that_is_not_trusted(make_kit: MakeKit, buildah: Buildah, server: Server) -> None:
    mirror = {"archive": f"{server.address}/debian", "security": f"{server.address}/security"}
    kit = make_kit("docker", (UPDATE,), mirrors={"apt": {"debian": mirror}})
    check(
        build(buildah, kit), 8, "tried 1: try it", "certificate of 127.0.0.1.* not trusted", "network.ca_certificates"
    )


def test_a_changed_archive(make_kit: MakeKit, machine_facts: dict[str, Any], buildah: Buildah, server: Server) -> None:
    trusted = [*machine_facts["ca_certificates"], str(server.certificate)]
    mirrors = {"files": server.address}
    kit = make_kit("docker", bare=False, sha256="0" * 64, ca_certificates=trusted, mirrors=mirrors)
    check(build(buildah, kit), 8, "tried 1: try it", f"{ARCHIVE} is not the file .*sha256", "do not go on with it")


def test_a_full_disk(make_kit: MakeKit, sid_hpcgen: SidHpcgen) -> None:
    before = "mkdir -p /small; mount -t tmpfs -o size=40m,mode=1777 tmpfs /small"
    done = build_in_sid(sid_hpcgen, make_kit("singularity"), "apptainer", "out", before, TMPDIR="/small")
    check(
        done, 8, "base image", r"the disk of /small \(the unpacked image, temporary files\) is full", "APPTAINER_TMPDIR"
    )


def test_a_killed_engine(make_kit: MakeKit, buildah: Buildah, tmp_path: Path) -> None:
    kit = make_kit("docker", ("echo now-it-waits", "sleep 20"))
    log = tmp_path / "log"
    process = subprocess.Popen(
        words(kit, "--log", str(log)),
        # What buildah has half fetched stays where it is killed.
        env={**buildah.env, **environment(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not log.exists() or "now-it-waits" not in log.read_text().splitlines():
            assert time.monotonic() < deadline, "the step never began"
            assert process.poll() is None
            time.sleep(0.2)
        os.kill(child(process.pid, "buildah"), signal.SIGKILL)
        said, _ = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    done = subprocess.CompletedProcess(process.args, process.returncode, said)
    check(done, 8, "tried 1: try it", "buildah itself was killed by signal 9", "dmesg")
    assert "signal 9" in said


def child(parent: int, name: str) -> int:
    """The process of this name that another one has started."""
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            text = status.read_text()
            if f"\nPPid:\t{parent}\n" in text and text.startswith(f"Name:\t{name}\n"):
                return int(status.parent.name)
    pytest.fail(f"{name} is not there")


def test_a_user_without_subordinate_ids(make_kit: MakeKit, sid_hpcgen: SidHpcgen) -> None:
    before = "for f in subuid subgid; do : > /run/$f; mount --bind /run/$f /etc/$f; done"
    done = build_in_sid(sid_hpcgen, make_kit("singularity"), "apptainer", "out", before)
    check(done, 8, "tried 1|site_trust|hpcgen", "no entry in /etc/subuid", "usermod --add-subuids")


STORAGE = """\
mkdir -p /store; mount -t tmpfs -o mode=1777 tmpfs /store
printf '%s\\n' '[storage]' 'driver = "overlay"' 'graphroot = "/store/root"' 'runroot = "/store/run"' \
    '[storage.options.overlay]' 'mount_program = "/usr/bin/fuse-overlayfs"' > /store/storage.conf
"""


def test_a_fuse_device_that_is_forbidden(make_kit: MakeKit, sid_hpcgen: SidHpcgen, plain_base_image: BaseImage) -> None:
    name = f"oci-archive:{BASE_IN_SID}/{plain_base_image.archive.name}"
    kit = make_kit("docker")
    recipe = kit / "Dockerfile"
    recipe.write_text(recipe.read_text().replace(f"FROM {plain_base_image.oci}", f"FROM {name}"))
    variables = {"CONTAINERS_STORAGE_CONF": "/store/storage.conf", "BUILDAH_ISOLATION": "chroot"}
    done = build_in_sid(sid_hpcgen, kit, "buildah", IMAGE, STORAGE + "chmod 000 /dev/fuse", **variables)
    check(done, 8, "base image", "/dev/fuse cannot be used .Permission denied", r"administrator.*vfs")


@pytest.mark.parametrize("engine", ["buildah", "ch-image"])
def test_an_unknown_instruction(make_kit: MakeKit, buildah: Buildah, tmp_path: Path, engine: str) -> None:
    kit = make_kit("docker" if engine == "buildah" else "charliecloud", ("true",))
    recipe = kit / ("Dockerfile" if engine == "buildah" else "build.sh")
    recipe.write_text(re.sub(r"\nFROM ", "\nFROBNICATE all\nFROM ", recipe.read_text(), count=2))
    if engine == "buildah":
        done = build(buildah, kit)
    else:
        command = [sys.executable, "-m", "hpcgen", "build", kit, "--engine", engine, "-o", tmp_path / "image"]
        done = buildah.run([*command, "--no-cache"], env=environment(tmp_path), check=False, timeout=120)
        assert not (tmp_path / "image").exists()
    assert done.returncode == 8, done.stdout
    assert re.search(r"^  cause: .*(FROBNICATE|Dockerfile:\d+)", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^  remedy: render the kit again", done.stdout, re.MULTILINE), done.stdout


SELF_TEST = ("does not pass its self-test: tried 1: is there", "--notest")


def test_a_failing_self_test_of_a_definition_file(make_kit: MakeKit, sid_hpcgen: SidHpcgen) -> None:
    kit = make_kit("singularity", test="false")
    check(build_in_sid(sid_hpcgen, kit, "apptainer", "out", ""), 8, "", *SELF_TEST)


def test_a_failing_self_test_of_a_dockerfile(make_kit: MakeKit, buildah: Buildah) -> None:
    """Of what a test writes nothing is in an image that was tested, nor is there an image of one that failed."""
    kit = make_kit("docker", test="touch $HOME/left $(mktemp --suffix=left) && test -e /opt/tried")
    image = buildah.run(words(kit), env=environment(kit.parent), check=False, timeout=120)
    assert image.returncode == 0, image.stdout
    assert "1 passed, 0 failed" in next((kit.parent / "records").glob("*.log")).read_text()
    assert buildah.exec(IMAGE, ["find", "/", "-xdev", "-name", "*left"]).stdout == ""
    buildah.run(["buildah", "rmi", IMAGE])
    recipe = kit / "selftest.sh"
    recipe.write_text(recipe.read_text().replace("-e /opt/tried", "-e /opt/gone"))
    check(build(buildah, kit), 8, "hpcgen: run the self-test", *SELF_TEST)
    script = ["bash", kit / "build.sh", IMAGE]
    engine = {"HPCGEN_ENGINE": "buildah"}
    assert buildah.run(script, env={**environment(kit.parent), **engine}, check=False, timeout=120).returncode != 0
    assert buildah.run(["buildah", "inspect", IMAGE], check=False).returncode != 0
    buildah.run([*script, "--notest"], env={**environment(kit.parent), **engine}, timeout=120)
    buildah.run(["buildah", "rmi", IMAGE])


UNSEALED = f"""\
#!{sys.executable}
# buildah; as often as there are files in a folder, its builds find that the kernel refuses F_ADD_SEALS with EBUSY.
import ctypes, os, pathlib, platform, struct, sys

left = sorted(pathlib.Path(os.environ["REFUSALS"]).iterdir())
if sys.argv[1] == "build" and left:
    left[0].unlink()
    fcntl = {{"x86_64": 72, "aarch64": 25}}[platform.machine()]
    filter = [  # the number of the call, its second argument; SECCOMP_RET_ERRNO and SECCOMP_RET_ALLOW
        (0x20, 0, 0, 0), (0x15, 0, 3, fcntl), (0x20, 0, 0, 24), (0x15, 0, 1, 1033),
        (0x06, 0, 0, 0x00050000 | 16), (0x06, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filter))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filter), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv({shutil.which("buildah")!r}, ["buildah", *sys.argv[1:]])
"""


@pytest.mark.parametrize("refusals", [1, 3])
def test_an_engine_that_fails_by_chance_is_started_again(
    make_kit: MakeKit, buildah: Buildah, tmp_path: Path, refusals: int
) -> None:
    """Twice at most; the kernel really refuses."""
    kit = make_kit("docker", (f"echo {tmp_path}",))
    for folder in ("bin", "refusals"):
        (tmp_path / folder).mkdir()
    for each in range(refusals):
        (tmp_path / "refusals" / str(each)).touch()
    program = tmp_path / "bin" / "buildah"
    program.write_text(UNSEALED)
    program.chmod(0o755)
    path = f"{program.parent}:{buildah.env.get('PATH', os.environ['PATH'])}"
    env = {**environment(tmp_path), "PATH": path, "REFUSALS": str(tmp_path / "refusals")}
    done = buildah.run(words(kit), env=env, check=False, timeout=120)
    again = "hpcgen: buildah could not seal the copy of itself by which it starts a step"
    assert done.stdout.count(f"{again}: the kernel was using its memory; buildah is started again") == min(refusals, 2)
    if refusals == 3:
        check(done, 8, "tried 1: try it", "buildah could not seal the copy of itself", "build again")
        return
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^hpcgen: \[(\d)/8\]", done.stdout, re.MULTILINE) == list("12345678"), done.stdout
    (record,) = (json.loads(each.read_text()) for each in (tmp_path / "records").glob("*.json"))
    assert len(record["steps"]) == 8
    assert not any(step.get("result") == "failed" for step in record["steps"])
    buildah.run(["buildah", "rmi", IMAGE])


@pytest.mark.slow
def test_a_failing_self_test_of_charliecloud(make_kit: MakeKit, buildah: Buildah, tmp_path: Path) -> None:
    kit = make_kit("charliecloud", test="false")
    output = tmp_path / "image"
    command = [sys.executable, "-m", "hpcgen", "build", kit, "--engine", "ch-image", "-o", output, "--no-cache"]
    check(buildah.run(command, env=environment(tmp_path), check=False, timeout=120), 8, "", *SELF_TEST)
    assert not output.exists()
    options = {**environment(tmp_path), "HPCGEN_BUILD_OPTIONS": "--no-cache"}
    script = ["bash", kit / "build.sh", output]
    assert buildah.run(script, env=options, check=False, timeout=120).returncode != 0
    assert not output.exists()
    buildah.run([*script, "--notest"], env=options, timeout=120)
    assert output.is_dir()


def test_a_test_that_fails_after_the_build(make_kit: MakeKit, buildah: Buildah) -> None:
    """The image is built and kept; the exit status says that it is not good."""
    kit = make_kit("docker", test="false")
    done = buildah.run(
        words(kit, "--notest", "--test", "--trust-image"), env=environment(kit.parent), check=False, timeout=120
    )
    assert done.returncode == 9, done.stdout
    assert "is there" in done.stdout
    buildah.run(["buildah", "rmi", IMAGE])


def test_no_memory(make_kit: MakeKit, buildah: Buildah) -> None:
    kit = make_kit("docker", ("sh -c 'kill -9 $$'",))
    check(build(buildah, kit), 8, "tried 1: try it", "not enough memory", "taskset")


def test_the_record_says_the_same(make_kit: MakeKit, buildah: Buildah, tmp_path: Path) -> None:
    """The cause is in the record, too, and the whole output in its log."""
    done = build(buildah, make_kit("docker", ("frobnicate --all",)))
    check(done, 8, "tried 1: try it", "frobnicate, which is not in the builder", "block")
    (record,) = (json.loads(file.read_text()) for file in (tmp_path / "records").glob("*.json"))
    assert record["result"] == "failed"
    assert "frobnicate" in record["failure"]["cause"]
    assert record["failure"]["remedy"]
    assert "frobnicate: not found" in Path(record["log"]).read_text()


@pytest.mark.parametrize(("engine", "format"), [("buildah", "docker"), ("ch-image", "charliecloud")])
def test_a_step_sees_the_proxy_as_the_profile_has_it(
    make_kit: MakeKit, buildah: Buildah, tmp_path: Path, engine: str, format: str
) -> None:
    """ch-image takes quotes around a build argument as part of it, and apt then knows no such proxy."""
    proxy = {"http": "http://127.0.0.1:9", "no_proxy": "localhost,.example.org"}
    kit = make_kit(format, ('echo "the proxy is $http_proxy, not for $no_proxy"', "false"), proxy=proxy)
    command = [sys.executable, "-m", "hpcgen", "build", kit, "--engine", engine, "--no-cache"]
    log = tmp_path / "log"
    output = IMAGE if engine == "buildah" else str(tmp_path / "image")
    done = buildah.run([*command, "-o", output, "--log", log], env=environment(tmp_path), check=False, timeout=120)
    assert done.returncode == 8, done.stdout
    assert "the proxy is http://127.0.0.1:9, not for localhost,.example.org" in log.read_text().splitlines()


@pytest.mark.parametrize(("engine", "format"), [("buildah", "docker"), ("ch-image", "charliecloud")])
def test_a_proxys_password_in_the_environment_is_used_and_left_nowhere(
    make_kit: MakeKit, buildah: Buildah, tmp_path: Path, engine: str, format: str
) -> None:
    """It reaches the steps; neither the image, its history, the log nor the record has it."""
    address = "http://jane:s3cret@127.0.0.1:9"
    # The step's own words are in the image; there the shell puts the two halves together.
    kit = make_kit(format, ("""test "$http_proxy" = http://jane:s3''cret@127.0.0.1:9""",))
    made = tmp_path / "made"
    made.mkdir()
    output = IMAGE if engine == "buildah" else str(made / "image")
    command = [sys.executable, "-m", "hpcgen", "build", kit, "--engine", engine, "--no-cache", "-o", output]
    env = {**environment(tmp_path), "http_proxy": address, "https_proxy": address}
    done = buildah.run([*command, "--log", made / "log"], env=env, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    if engine == "buildah":
        buildah.run(["buildah", "push", "-q", "--disable-compression", IMAGE, f"oci:{made}/image:here"])
        buildah.run(["buildah", "rmi", IMAGE])
    assert (made / "log").stat().st_size and any((made / "image").iterdir())
    found = subprocess.run(["grep", "-rl", "s3cret", made, tmp_path / "records", kit], capture_output=True, text=True)
    assert found.returncode == 1, found.stdout


def test_apptainer_leaves_a_proxys_password_nowhere(make_kit: MakeKit, sid_hpcgen: SidHpcgen, tmp_path: Path) -> None:
    """As with the others: neither file system, definition file and labels of the SIF, nor cache, log and record."""
    address = "http://jane:s3cret@127.0.0.1:9"
    kit = make_kit("singularity", ("""test "$http_proxy" = http://jane:s3''cret@127.0.0.1:9""",))
    made = sid_hpcgen.sid.folder(tmp_path / "made")
    sid_hpcgen.sid.folder(kit)
    archives = Path(sid_hpcgen.sid.env["HPCGEN_TESTBED"])
    # Uncompressed, so that a search of the file is one of all that is in it.
    plain = ("--engine-option=--mksquashfs-args", "--engine-option=-noI -noD -noF -noX")
    sid_hpcgen.run(
        ["build", "/kit", "--engine", "apptainer", *plain, "-o", "/made/image.sif", "--log", "/made/log"],
        binds=[(kit, "/kit"), (archives, BASE_IN_SID), (made, "/made")],
        cwd="/kit",
        env={"HOME": "/made", "HPCGEN_RECORDS": "/made/records", "http_proxy": address, "https_proxy": address},
        timeout=240,
    )
    for told in ("# build script of tried", "io.hpcgen.stack", "jane:s3''cret"):
        assert subprocess.run(["grep", "-qa", told, made / "image.sif"]).returncode == 0, "it is searched as it is"
    assert list((made / "records").glob("*.json"))
    assert "+ test http://…@127.0.0.1:9 = http://…@127.0.0.1:9\n" in (made / "log").read_text()
    found = subprocess.run(["grep", "-rla", "s3cret", made, kit], capture_output=True, text=True)
    assert found.returncode == 1, found.stdout
