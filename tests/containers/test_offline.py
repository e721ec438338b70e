"""Across the air gap: a lock and a bundle made with this machine's registries, builds with no network at all.

Every build runs in a network namespace of its own whose only interface is a loopback that is down; the kernel's
counters there say whether anything tried to send.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, Buildah, ChImage, Run, Sid, run
from test_rendered_kits import site_profile

from tests.sbom_comparison import DPKG, dpkg_list, missing_from_image, missing_from_sbom

HPCGEN = [sys.executable, "-m", "hpcgen"]
TRUSTING = [*HPCGEN, "--trust-collections"]
NAME = "Übung Eins @A__b"
"""Of the bundle's folder: no image could be called so."""
GREETING = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Runtime, run


class Greeting(Block):
    """A text, by a block of somebody's own collection."""

    name = "greeting"

    def build(self, ctx):
        yield run("greet", "mkdir -p /opt/greeting", "echo from-a-collection > /opt/greeting/text")

    def runtime(self, ctx):
        return Runtime(copies=("/opt/greeting",))
'''
SAY = ["cat", "/opt/greeting/text"]
ALONE = ["unshare", "--net", "--"]
COUNTERS = "grep -hE '^(Ip|Tcp|Udp|Ip6Out|Udp6Out)' /proc/net/snmp /proc/net/snmp6"
SETTINGS = ["--set", "mpi.provider=intel_mpi", "--set", "intel_mpi.version=2021.17.2"]


def attempts(output: str) -> dict[str, int]:
    """What /proc/net/snmp counted: packets sent, connections begun, and tries that found no way out."""
    lines = [line.split() for line in output.splitlines() if line.startswith(("Ip: ", "Tcp: ", "Udp: "))]
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        found |= {f"{names[0]}{name}": int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    six = [line.split() for line in output.splitlines() if line.startswith(("Ip6Out", "Udp6Out"))]
    found |= {words[0]: int(words[1]) for words in six}
    kept = ("Ip:OutRequests", "Ip:OutNoRoutes", "Tcp:ActiveOpens", "Udp:OutDatagrams")
    return {name: found[name] for name in (*kept, "Ip6OutRequests", "Ip6OutNoRoutes", "Udp6OutDatagrams")}


def alone(words: list[Any], env: Any, check: bool = True, before: str = "") -> Run:
    """A command in a network namespace of its own, and after it the counters of that namespace."""
    script = f'{before}"$@" 2>&1; status=$?; {COUNTERS}; exit $status'
    return run([*ALONE, "bash", "-c", script, "bash", *words], env=env, check=check)


def quiet(done: Run) -> None:
    assert set(attempts(done.stdout).values()) == {0}, attempts(done.stdout)


def alone_with_loopback(words: list[Any], env: Any, check: bool = True) -> Run:
    """As :func:`alone`, where the loopback is up as on a disconnected machine: ranks on one node may use it."""
    return alone(words, env, check, before="ip link set lo up && ")


def quiet_but_for_loopback(done: Run) -> None:
    """Nothing looked for a way out, and no name server was asked: what went over the loopback was TCP between ranks."""
    found = attempts(done.stdout)
    names = ("Ip:OutNoRoutes", "Ip6OutNoRoutes", "Udp:OutDatagrams", "Udp6OutDatagrams")
    assert {found[name] for name in names} == {0}, found


@pytest.fixture(scope="session")
def lock(machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lock of mpi-hello and a block of a collection for this machine."""
    folder = tmp_path_factory.mktemp("connected")
    profile = site_profile(machine_facts, plain_base_image)
    del profile["network"]["mirrors"]["images"]
    (folder / "here.yaml").write_text(json.dumps(profile))
    blocks = folder / "ours" / "building_blocks"
    blocks.mkdir(parents=True)
    (blocks / "greeting.py").write_text(GREETING)
    (blocks / "greeting.yaml").write_text('block: greeting\nreleases: {"1": {}}\n')
    image = f"debian:12=oci-archive:{plain_base_image.archive}"
    asked = ["--site", folder / "here.yaml", "--stack", "mpi-hello", *SETTINGS, "--image", image]
    own = ["--collection", folder / "ours"]
    run([*HPCGEN, *own, "lock", *asked, "--add", "greeting", "-o", folder / "hpcgen.lock"])
    return folder / "hpcgen.lock"


@pytest.fixture(scope="session")
def bundle(lock: Path, plain_base_image: BaseImage) -> Path:
    """Its bundle."""
    folder = lock.parent / NAME
    image = f"debian:12=oci-archive:{plain_base_image.archive}"
    own = ["--collection", lock.parent / "ours"]
    done = run([*HPCGEN, *own, "bundle", "create", "--lock", lock, "--image", image, "-o", folder])
    REPORTS.append(done.stdout.splitlines()[-1])
    return folder


def test_counters_notice_an_attempt(testbed_env: dict[str, str]) -> None:
    """The control: the counters are not always zero."""
    program = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 53))"
    done = alone([sys.executable, "-c", program], testbed_env, check=False)
    assert any(attempts(done.stdout).values()), done.stdout


TRIES = {
    "a connection": "socket.create_connection(('198.51.100.1', 443))",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('198.51.100.1', 53))",
    "a name server of this machine": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 53))",
}


@pytest.mark.parametrize("what", TRIES)
def test_counters_notice_an_attempt_beside_a_loopback(testbed_env: dict[str, str], what: str) -> None:
    done = alone_with_loopback([sys.executable, "-c", f"import socket; {TRIES[what]}"], testbed_env, check=False)
    with pytest.raises(AssertionError):
        quiet_but_for_loopback(done)


def test_bundle_is_whole_for_hpcgen_and_for_sha256sum(bundle: Path) -> None:
    run([*HPCGEN, "bundle", "verify", bundle])
    run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=bundle)


def test_the_python_of_a_bundle_runs_once_it_is_trusted(bundle: Path, tmp_path: Path) -> None:
    done = run([*HPCGEN, "render", "--bundle", bundle, "-o", tmp_path / "kit"], check=False)
    assert done.returncode == 6 and "its Python code would run here as you" in done.stdout, done.stdout
    assert not (tmp_path / "kit").exists()


def test_lock_would_not_change(lock: Path, plain_base_image: BaseImage) -> None:
    there = ["--site", "here.yaml", "--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    done = run([*HPCGEN, "--collection", "ours", "lock", "--check", "-o", lock, *there], cwd=lock.parent)
    assert "nothing changes" in done.stdout


@pytest.mark.parametrize("engine", ["buildah", pytest.param("podman", marks=pytest.mark.slow)])
def test_engines_with_a_store_build_with_no_network(bundle: Path, buildah: Buildah, engine: str) -> None:
    name = f"localhost/hpcgen-offline:{engine}"
    env = {**buildah.env, "BUILDAH_ISOLATION": "chroot"}
    done = alone([*TRUSTING, "build", "--bundle", bundle, "--format", "docker", "--engine", engine, "-o", name], env)
    quiet(done)
    assert buildah.exec(name, SAY).stdout == "from-a-collection\n"
    tested = run([*HPCGEN, "test", f"podman:{name}", "--trust-image"], env=buildah.env)
    assert " 0 failed" in tested.stdout, tested.stdout


def test_charliecloud_builds_with_no_network_by_its_script_alone(
    bundle: Path, ch_image: ChImage, tmp_path: Path
) -> None:
    run([*TRUSTING, "render", "--bundle", bundle, "-o", tmp_path / "kit"])
    done = alone([tmp_path / "kit" / "build.sh", "--bundle", bundle, tmp_path / "hello"], ch_image.env)
    quiet(done)
    tested = run([*HPCGEN, "test", tmp_path / "hello", "--trust-image"], env=ch_image.env)
    assert " 0 failed" in tested.stdout, tested.stdout
    assert ch_image.run(["ch-run", tmp_path / "hello", "--", *SAY]).stdout == "from-a-collection\n"
    listed = ch_image.run(
        ["ch-run", tmp_path / "hello", "--", "cat", "/etc/apt/sources.list.d/debian.sources"], check=False
    )
    assert "file:/opt/hpcgen/bundle" not in listed.stdout
    installed = dpkg_list(ch_image.run(["ch-run", tmp_path / "hello", "--", *DPKG]).stdout)
    for name in ("sbom.cdx.json", "sbom.spdx.json"):
        text = (bundle / name).read_text()
        assert missing_from_sbom(text, installed, {}) + missing_from_image(text, installed, {}) == [], name


@pytest.mark.slow
def test_another_distribution_installs_hpcgen_from_the_bundle_and_builds(
    bundle: Path, sid: Sid, tmp_path: Path
) -> None:
    """On Debian sid as an ordinary user: nothing but Python, Apptainer and the bundle."""
    home = sid.folder(tmp_path / "far")
    copied = home / NAME
    shutil.copytree(bundle, copied, copy_function=_link)
    sid.folder(home)
    # A SIF file takes half a minute to compress, and is no more of a proof.
    plain = "--engine-option=--mksquashfs-args '--engine-option=-noI -noD -noF -noX'"
    script = (
        "set -e; cd /far; python3 -m venv tool; "
        f"tool/bin/python -m pip -q install --no-index --find-links '{NAME}/hpcgen.html' hpcgen; "
        f"tool/bin/hpcgen bundle verify '{NAME}'; "
        f"tool/bin/hpcgen --trust-collections build --bundle '{NAME}' --format singularity -o hello.sif --test "
        f"--trust-image {plain}; apptainer exec --unsquash hello.sif {' '.join(SAY)}; "
        f"{COUNTERS}"
    )
    done = sid.run(["bash", "-c", script], binds=[(home, "/far")], alone=True)
    quiet(done)
    assert " 0 failed" in done.stdout and "\nfrom-a-collection\n" in done.stdout, done.stdout


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def test_a_damaged_bundle_builds_nothing(bundle: Path, ch_image: ChImage, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(bundle, damaged, copy_function=_link)
    wheel = next(damaged.glob("files/*/impi_rt*.whl"))
    content = bytearray(wheel.read_bytes())
    content[len(content) // 2] ^= 1
    wheel.unlink()
    wheel.write_bytes(content)
    done = run([*TRUSTING, "build", "--bundle", damaged, "-o", tmp_path / "hello"], env=ch_image.env, check=False)
    assert done.returncode == 3 and wheel.name in done.stdout, done.stdout
    run([*TRUSTING, "render", "--bundle", damaged, "-o", tmp_path / "kit"])
    script = subprocess.run(
        [tmp_path / "kit" / "build.sh", "--bundle", damaged, tmp_path / "hello"],
        env=dict(ch_image.env),
        capture_output=True,
        text=True,
    )
    assert script.returncode == 65 and wheel.name in script.stderr, script.stderr
    assert not (tmp_path / "hello").exists()
