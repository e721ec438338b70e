"""What a lock pins, asked of real programs: skopeo with a registry and a store, apt in the real base, every engine."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from container_tools import HERE, BaseImage, Buildah, ChImage, SidHpcgen, need, run
from loopback_registry import Registry
from test_project import remote_index
from test_rendered_kits import site_profile

from hpcgen.blocks.steps import Image
from hpcgen.blocks.steps import run as step
from hpcgen.core.errors import FetchError
from hpcgen.images.oci_layout import folder_layout, holds
from hpcgen.kit.lockfile.lock import parse_lock
from hpcgen.recipe.stages import Stage
from hpcgen.supply.bundle.apt_index import deb_licence, read_control
from hpcgen.supply.pin import base_shell, os_packages
from hpcgen.supply.pin.base_images import fetch_image, pin_image, root_tar
from hpcgen.supply.pin.os_packages import resolve_packages

NAME = "debian:12"
ENTER = """
import sys
from pathlib import Path
from hpcgen.supply.pin import base_shell, os_packages
every = base_shell._ways
base_shell._ways = lambda root: [way for way in every(root) if way[0] == sys.argv[1]]
with base_shell.base_shell(Path("/layout"), "debian:12", {"A": "b c"}) as shell:
    print(shell.run('id -u; pwd; echo "$A"; touch /etc/new && head -c 1 /dev/zero | wc -c'))
"""

STARTED = "subprocess.Popen"
NOTED_LOCK = f"""
import json, os, sys
from hpcgen.cli import main
out = open(sys.argv.pop(1), "a", buffering=1)
def note(event, about):
    if event == "{STARTED}":
        print(json.dumps([event, *map(os.fspath, about[1])]), file=out)
    if event == "socket.connect" and not isinstance(about[1], (str, bytes)):
        print(json.dumps([event, *map(str, about[1])]), file=out)
sys.addaudithook(note)
main()
"""
NUMPY: dict[str, Any] = {
    "name": "numbers",
    "title": "two stages with packages of their own, and wheels that need more",
    "blocks": {
        "debian": {"version": "12"},
        "python_packages": {"options": {"packages": ["scipy==1.15.3", "pandas==2.3.3"]}},
    },
    "run": {"command": ["python3", "-c", "import scipy, pandas"]},
}
SAVES_SPACE = """Acquire::GzipIndexes "true"; Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";"""
"""As in images of Debian and Ubuntu."""


@pytest.fixture
def registry(tmp_path: Path, testbed_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry without encryption, as skopeo's configuration says; its password is where people keep theirs."""
    need("skopeo", path=testbed_env["PATH"])
    server = Registry("me", "secret")
    secret = base64.b64encode(b"me:secret").decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {server.host: {"auth": secret}}}))
    configuration = tmp_path / "home/.config/containers"
    configuration.mkdir(parents=True)
    (configuration / "registries.conf").write_text(f'[[registry]]\nlocation = "{server.host}"\ninsecure = true\n')
    for name, value in testbed_env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def layout(plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base image, fetched as ``hpcgen lock`` does it."""
    folder = tmp_path_factory.mktemp("base") / "images"
    fetch_image(pin_image(NAME, [f"oci-archive:{plain_base_image.archive}"], "x86_64"), NAME, "x86_64", folder)
    return folder


def stage(*commands: str) -> Stage:
    steps = [("test", step("sources", commands))] if commands else []
    return Stage(name="builder", image=Image(NAME), steps=steps, prepared=len(steps))


def source(facts: dict[str, Any]) -> str:
    ring = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    return f"echo 'deb {ring} {facts['debian']['mirror']} bookworm main' > /etc/apt/sources.list"


def mirrored(facts: dict[str, Any]) -> Stage:
    return stage(source(facts))


@pytest.mark.parametrize("kind", ["oci", "v2s2"])
def test_image_of_a_registry_is_pinned_by_its_own_digest_and_copied_whole(
    registry: Registry, plain_base_image: BaseImage, tmp_path: Path, kind: str
) -> None:
    source = f"docker://{registry.host}/base/debian:12"
    run(["skopeo", "copy", "--quiet", "--format", kind, f"oci-archive:{plain_base_image.archive}", source])
    pin = pin_image(NAME, [f"docker://{registry.host}/none:1", source], "x86_64")
    assert (pin.digest, pin.origin) == (registry.manifests["base/debian:12"], source)
    assert (pin.oci is None) == (kind == "oci")
    del registry.manifests["base/debian:12"]  # the tag moves on, the digest stays
    fetch_image(pin, NAME, "x86_64", tmp_path / "images")
    assert holds(tmp_path / "images", NAME, pin.bundled)
    seen = json.loads(run(["skopeo", "inspect", f"oci:{tmp_path}/images:debian-12"]).stdout)
    assert seen["Digest"] == (pin.oci or pin.digest)


def test_an_option_of_skopeo_is_no_origin() -> None:
    with pytest.raises(FetchError, match="names no image"):
        pin_image(NAME, ["--policy=/tmp/mine:x"], "x86_64")


def test_image_of_a_store_has_the_same_pin_each_time_and_every_engine_takes_it(
    registry: Registry, plain_base_image: BaseImage, tmp_path: Path, buildah: Buildah, ch_image: ChImage
) -> None:
    tagged = "localhost/hpcgen-locking:1"
    words = ["--change", "ENV GREETING=good-day", plain_base_image.root_tar, tagged]
    run(["podman", "import", "--quiet", *words])
    try:
        pin = pin_image("base:1", [f"containers-storage:{tagged}"], "x86_64")
        fetch_image(pin, "base:1", "x86_64", tmp_path / "images")
        assert folder_layout(tmp_path / "images").image("base:1").digest == pin.digest
        root_tar(tmp_path / "images", "base:1", tmp_path / "root.tar")
    finally:
        run(["podman", "rmi", "--force", tagged], check=False)
    # buildah makes a name of the path, so that is a short one.
    pulled = buildah.run(["buildah", "pull", "--quiet", "oci:images:base-1"], cwd=tmp_path).stdout.split()[-1]
    ch_image.run(["ch-image", "--no-cache", "import", tmp_path / "root.tar", "hpcgen-locking:1"])
    try:
        assert buildah.exec(pulled, ["sh", "-c", "echo $GREETING"]).stdout.strip() == "good-day"
        assert "good-day" in ch_image.exec("hpcgen-locking:1", ["sh", "-c", "echo $GREETING"]).stdout
        (tmp_path / "Dockerfile").write_text("FROM hpcgen-locking:1\nRUN echo seen: $GREETING\n")
        assert "seen: good-day" in ch_image.build("hpcgen-locking:2", tmp_path / "Dockerfile").stdout
    finally:
        buildah.run(["buildah", "rmi", "--force", pulled], check=False)
        for number in (1, 2):
            ch_image.run(["ch-image", "delete", f"hpcgen-locking:{number}"], check=False)


def test_packages_are_those_that_apt_then_installs_from_them_alone(
    layout: Path, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing but the resolved files and their index: afterwards the base has what the lock says, to the version."""
    from hpcgen.core.model.bundle import BundleItem
    from hpcgen.core.model.image_paths import file_path
    from hpcgen.supply.bundle.apt_index import write_apt_index
    from hpcgen.supply.pin.base_shell import OWN

    (answer,) = resolve_packages(layout, [(mirrored(machine_facts), ["make", "gcc"])], "apt", print)
    found, keys, epoch = answer.packages, answer.keys, answer.epoch
    assert {"make", "gcc", "gcc-12"} <= set(found.added) and ":" in found.added["gcc"].version
    assert all(len(key.fingerprint) == 40 for key in keys) and epoch > 1_600_000_000
    items = []
    for name, pin in found.added.items():
        path = tmp_path / file_path(pin.sha256, f"{name}.deb")
        path.parent.mkdir(parents=True)
        with urlopen(pin.url) as stream:
            path.write_bytes(stream.read())
        assert path.stat().st_size == pin.size
        place = str(path.relative_to(tmp_path))
        items.append(
            BundleItem(kind="package", name=name, origin=pin.url, sha256=pin.sha256, size=pin.size, path=place)
        )
    write_apt_index(tmp_path, items, epoch)
    with base_shell.base_shell(layout, NAME, {}) as shell:
        for item in ("Packages", "Release", *(each.path for each in items)):
            shell.put(f"/{OWN}/bundle/{item}", (tmp_path / item).read_bytes())
        shell.check(
            f"echo 'deb [trusted=yes] file:/{OWN}/bundle ./' > /etc/apt/sources.list\n"
            "apt-get -o APT::Sandbox::User=root update\n",
            "reading the bundle",
        )
        simulated = shell.check("apt-get install -s --no-install-recommends gcc make", "choosing from the bundle")
    chosen = {line.split()[1]: line.split("(")[1].split()[0] for line in simulated if line.startswith("Inst ")}
    assert chosen == {name: pin.version for name, pin in found.added.items()}
    assert deb_licence(tmp_path / next(each.path for each in items if each.name == "make")).startswith("GPL-3.0")


def test_apt_keeps_its_indexes_and_their_cache_where_the_image_is_set_to_save_space(
    layout: Path, machine_facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[list[str]] = []

    @contextlib.contextmanager
    def looked_at(*about: Any) -> Iterator[base_shell.BaseShell]:
        with base_shell.base_shell(*about) as shell:
            yield shell
            left.append(shell.check("cd /var; find cache/apt lib/apt/lists -type f -size +1M", "looking"))

    monkeypatch.setattr(os_packages, "base_shell", looked_at)
    asked = stage(f"echo '{SAVES_SPACE}' > /etc/apt/apt.conf.d/docker-clean", source(machine_facts))
    (answer,) = resolve_packages(layout, [(asked, ["make"])], "apt", print)
    assert "make" in answer.packages.added and answer.keys
    (files,) = left
    assert [Path(each).name for each in files if "cache" in each] == ["pkgcache.bin"]
    assert [each.endswith("_Packages") for each in files if "lists" in each] == [True]


def test_a_lock_unpacks_reads_and_asks_once(
    plain_base_image: BaseImage, machine_facts: dict[str, Any], testbed_env: dict[str, str], tmp_path: Path
) -> None:
    """What a lock of two stages starts; uv tells all of the one index, so that hpcgen itself asks nobody."""
    (tmp_path / "here.yaml").write_text(json.dumps(site_profile(machine_facts, plain_base_image)))
    (tmp_path / "numbers.yaml").write_text(json.dumps(NUMPY))
    own = {name: value for name, value in testbed_env.items() if not name.startswith("PIP_") or name == "PIP_CERT"}
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": remote_index()}
    asked = ["--site", "here.yaml", "--stack", "numbers.yaml", "-o", "hpcgen.lock"]
    image = ["--image", f"{NAME}=oci-archive:{plain_base_image.archive}"]
    run([sys.executable, "-c", NOTED_LOCK, "noted", "lock", *asked, *image], env={**own, **pip}, cwd=tmp_path)
    pins = parse_lock((tmp_path / "hpcgen.lock").read_text(), "hpcgen.lock").pins
    assert all(each.added for each in pins.packages.values()) and len(pins.packages) == 2
    assert len(pins.wheels["python_packages"]) > 2
    noted = [json.loads(line) for line in (tmp_path / "noted").read_text().splitlines()]
    commands = [words for event, *words in noted if event == STARTED]
    assert [words for event, *words in noted if event != STARTED] == []
    of_apt = [line.split() for words in commands for line in words[-1].splitlines() if line.startswith("apt-get ")]
    assert Counter(word for line in of_apt for word in line if word in ("update", "indextargets", "install")) == {
        "update": 1,
        "indextargets": 1,
        "install": 2,
    }
    assert sum("--extract" in words for words in commands) == 1
    assert sum("pip._internal" in words[-1] for words in commands) == 1
    # unshare for each thing that is asked in the base, which hangs on the site's certificates and mirrors.
    programs = Counter(Path(words[0]).name for words in commands if Path(words[0]).name != "unshare")
    assert programs == {Path(sys.executable).name: 1, "skopeo": 2, "uv": 1}


def test_an_index_out_of_reach_ends_the_lock_also_where_apt_ends_well(layout: Path) -> None:
    """Before 2.1.15 apt did not know the mode by which it fails; this is what it did then."""
    wrapper = "#!/bin/sh\nexec /usr/bin/apt-get $@ -o APT::Update::Error-Mode=persistent -o Acquire::Retries=0\n"
    commands = [
        "echo 'deb http://127.0.0.1:9/debian bookworm main' > /etc/apt/sources.list",
        f"printf '{wrapper}' > /usr/local/bin/apt-get".replace("\n", "\\n"),
        "chmod 755 /usr/local/bin/apt-get",
    ]
    with pytest.raises(FetchError, match=r"W: Failed to fetch http://127\.0\.0\.1:9"):
        resolve_packages(layout, [(stage(*commands), ["make"])], "apt", print)


@pytest.mark.parametrize("program", ["unshare", "ch-run"])
def test_engines_of_this_machine_enter_the_base(
    layout: Path, program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = base_shell._ways
    monkeypatch.setattr(base_shell, "_ways", lambda root: [way for way in every(root) if way[0] == program])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with base_shell.base_shell(layout, NAME, {"A": "b c"}) as shell:
        status, lines = shell.run('id -u; pwd; echo "$A"; touch /etc/new && head -c 1 /dev/zero | wc -c')
    assert (status, lines[-4:]) == (0, ["0", "/", "b c", "1"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", ["unshare", "buildah", "ch-run", "apptainer"])
def test_an_ordinary_user_enters_the_base_by_every_engine(sid_hpcgen: SidHpcgen, layout: Path, program: str) -> None:
    own = [(HERE.parent.parent, "/hpcgen/checkout"), (sid_hpcgen.packages, "/hpcgen/packages"), (layout, "/layout")]
    paths = {"PYTHONPATH": "/hpcgen/checkout:/hpcgen/packages", "PYTHONDONTWRITEBYTECODE": "1"}
    layout.parent.chmod(0o755)
    done = sid_hpcgen.sid.run(["python3", "-c", ENTER, program], binds=own, env=paths)
    assert "'0', '/', 'b c', '1'])" in done.stdout


def test_packages_compressed_with_zstd_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "hello" / "DEBIAN"
    folder.mkdir(parents=True)
    control = "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: Me <me@example.org>\nDescription: x\n"
    (folder / "control").write_text(control)
    text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: ISC\n"
    document = tmp_path / "hello/usr/share/doc/hello/copyright"
    document.parent.mkdir(parents=True)
    document.write_text(text)
    for kind in ("zstd", "xz", "gzip", "none"):
        deb = tmp_path / f"{kind}.deb"
        subprocess.run(["dpkg-deb", f"-Z{kind}", "--uniform-compression", "-b", tmp_path / "hello", deb], check=True)
        assert (read_control(deb)["Package"], deb_licence(deb)) == ("hello", "ISC")
