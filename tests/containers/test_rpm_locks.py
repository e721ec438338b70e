"""Locks of bases with dnf and zypper: what they pin, what a locked recipe installs, and one digest of two builds.

There are no images of Rocky Linux and openSUSE here. What stands for them is a Debian root with dnf 4.14, zypper
1.14.42 and rpm 4.18 that has the identity of Rocky Linux 9 or openSUSE Leap 16.0, and a signed repository of made
packages on loopback; that of openSUSE has sha512 as Leap 16.0's. The recipe's steps run in that root; the builds are by
buildah 1.43 in the sid root, as those of test_equal_digests.py, from a bundle.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers
from container_tools import TESTBED, BaseImage, Run, SidHpcgen, need, run
from test_equal_digests import DIGEST, built
from test_mirrors import TOOLS, Signer, signer
from test_rendered_kits import site_profile

from hpcgen.catalog.catalog import Catalog
from hpcgen.kit.lockfile.lock import read_lock
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.locked_rpms import FOLDER
from tests.helpers.file_server import FileServer, serving

__all__ = ["signer"]
pytestmark = pytest.mark.slow
KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9"
ENTER = """\
for folder in dev proc; do mount --rbind "/$folder" "$1/$folder"; done
exec chroot "$1" /bin/sh -ec "$2"
"""
SPEC = """\
Name: {name}
Version: {version}
Release: {release}
{lines}
Summary: A file
License: MIT
BuildArch: noarch
%description
A file.
%install
mkdir -p %{{buildroot}}/opt/rpm/{name}
echo {version} > %{{buildroot}}/opt/rpm/{name}/file
ln -s file %{{buildroot}}/opt/rpm/{name}/link
{scripts}
%files
/opt/rpm/{name}
"""


@dataclass(frozen=True)
class Family:
    """A distribution; ``checksum`` of its repositories, ``settings`` of the repository in its image, ``gone``: what is
    said of a version that it no longer has, ``left``: folders below /var that its package manager writes to."""

    provider: str
    image: str
    identity: str
    checksum: str
    settings: str
    gone: str
    left: tuple[str, ...]


FAMILIES = {
    "dnf": Family(
        provider="rockylinux",
        image="rockylinux/rockylinux:9",
        identity="ID=rocky\nVERSION_ID=9.4\nNAME=made-by-hand\n",
        checksum="sha256",
        settings="etc/yum.repos.d/own.repo",
        gone="No match for argument: hello-1.0_2-3.el9_4.1.noarch",
        left=("cache/dnf", "lib/dnf", "log/dnf"),
    ),
    "zypper": Family(
        provider="opensuse_leap",
        image="opensuse/leap:16.0",
        identity='ID="opensuse-leap"\nVERSION_ID="16.0"\nNAME=made-by-hand\n',
        checksum="sha512",
        settings="etc/zypp/repos.d/own.repo",
        gone="Argument resolves to no package: hello.noarch=1.0_2-3.el9_4.1",
        left=("cache/zypp", "lib/zypp", "lib/YaST2", "log/zypp"),
    ),
}


def package(
    folder: Path, by: Signer | None, name: str, version: str, release: str = "1", *lines: str, scripts: str = ""
) -> Path:
    """An RPM package in a folder."""
    spec = folder / f"{name}.spec"
    spec.write_text(SPEC.format(name=name, version=version, release=release, lines="\n".join(lines), scripts=scripts))
    run(["rpmbuild", "-bb", "--quiet", "--define", f"_topdir {folder}/top", "--define", f"_rpmdir {folder}", spec])
    spec.unlink()
    made = folder / "noarch" / f"{name}-{version}-{release}.noarch.rpm"
    if by is not None:
        settings = ("_gpg_name mirror@example.org", f"_gpg_path {by.folder}", "__gpg /usr/bin/gpg")
        run(["rpmsign", "--addsign", *(word for each in settings for word in ("--define", each)), made])
    return made


def repository(folder: Path, by: Signer, checksum: str, hello: str, needed: Signer | None, *lines: str) -> None:
    """A repository with the tools that the base's block names, and hello, which needs another package.

    Parameters
    ----------
    needed: who signs that one, and ``lines`` that it has besides.
    """
    tools = folder.parent / "tools"
    if not tools.exists():
        tools.mkdir()
        names = ("bzip2", "ca-certificates", "curl", "diffutils", "file", "findutils", "gzip", "patch", "tar", "xz")
        for name in names:
            package(tools, by, name, "1")
    run(["cp", "-r", tools / "noarch", folder])
    package(folder, by, "hello", hello, "3.el9_4.1", "Requires: libneeded")
    package(folder, needed, "libneeded", "2.0^git5", "1.el9", "Epoch: 1", *lines, scripts="%post -p /sbin/ldconfig")
    run(["createrepo_c", "--quiet", "--checksum", checksum, "--excludes", "top/*", folder])
    by.gpg("--batch", "--armor", "--detach-sign", str(folder / "repodata/repomd.xml"))


def files_of(folder: Path) -> dict[str, bytes]:
    """What a repository holds, by path, also as librepo and libzypp write one with ^."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    found = {str(path): (folder / path).read_bytes() for path in paths if "top" not in path.parts}
    return {
        name: data
        for path, data in found.items()
        for name in (path, *(path.replace("^", word) for word in ("%5e", "%5E")))
    }


@pytest.fixture(scope="module")
def root_tar(testbed_env: dict[str, str], machine_facts: dict[str, Any]) -> Path:
    """A root with dnf, zypper and rpm, which belongs to no other distribution yet."""
    need(*TOOLS, "mmdebstrap", path=os.environ["PATH"])
    made = Path(testbed_env["HPCGEN_TESTBED"]) / "rpm-root.tar"
    if not made.exists():
        part = made.with_suffix(".part.tar")
        left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "info", "doc")]
        words = ["--quiet", "--variant=minbase", "--include=ca-certificates,dnf,zypper,rpm,gpg", *left_out]
        run(["mmdebstrap", *words, "bookworm", part, machine_facts["debian"]["mirror"]])
        part.rename(made)
    return made


@dataclass
class World:
    """A base with its repository, and a site that has it."""

    family: Family
    folder: Path
    server: FileServer
    signer: Signer
    archive: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def pack(self) -> None:
        """Make the base image of the root."""
        run(["tar", "-cf", self.folder / "root.tar", "-C", self.root, "."])
        run([sys.executable, TESTBED / "oci_archive.py", self.folder / "root.tar", self.archive, "base:here"])

    def hpcgen(self, *words: Any, check: bool = True) -> Run:
        return run([sys.executable, "-m", "hpcgen", "--collection", self.folder / "collection", *words], check=check)

    def publish(self, hello: str = "1.0_2", *lines: str, signed: bool = True, checksum: str = "") -> None:
        """Have the repository hold this version of hello and no other, and a package with these lines."""
        checksum = checksum or self.family.checksum
        folder = self.folder / f"repository-{hello}-{len(lines)}-{signed}-{checksum}"
        if not folder.exists():
            folder.mkdir()
            repository(folder, self.signer, checksum, hello, self.signer if signed else None, *lines)
        self.server.files = files_of(folder)

    def lock(self, *words: Any, check: bool = True) -> Run:
        base = ["--set", f"base.provider={self.family.provider}", *self.base]
        return self.hpcgen(
            "lock", "--site", "here", "--stack", "tried", *base, *words, "-o", self.folder / "hpcgen.lock", check=check
        )

    @property
    def base(self) -> list[str]:
        return ["--image", f"{self.family.image}=oci-archive:{self.archive}"]


def base_root(root: Path, family: Family, url: str, by: Signer, work: Path) -> None:
    """Make a root that of the distribution: its identity, its repository, its keys, packages that are there."""
    settings = f"[own]\nname=own\nbaseurl={url}\nenabled=1\nautorefresh=1\ngpgcheck=1\ngpgkey=file://{KEY}\n"
    files = {
        "etc/os-release": family.identity,
        "etc/rpm/macros": "%_dbpath /var/lib/rpm\n",
        "etc/dnf/dnf.conf": "[main]\ngpgcheck=1\nbest=True\nskip_if_unavailable=False\n",
        family.settings: settings,
        KEY.lstrip("/"): by.public,
    }
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(text)
    provides = ("Provides: /bin/sh /sbin/ldconfig", "Provides: system-release = 9")
    there = package(work, None, "the-release", "9.4", "1", *provides)
    run(["cp", there, root / "there.rpm"])
    commands = ["rpm -i --nodeps /there.rpm", "rm -rf /there.rpm /var/log/dnf*"]
    if family is FAMILIES["zypper"]:
        commands.append(f"rpm --import {KEY}")
    run(["chroot", root, "sh", "-ec", "; ".join(commands)])


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def world(
    request: pytest.FixtureRequest,
    signer: Signer,
    root_tar: Path,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("rpm")
    archive = folder / "base.tar"
    with serving() as server:
        world = World(request.param, folder, server, signer, archive)
        world.root.mkdir()
        run(["tar", "-xf", root_tar, "-C", world.root])
        base_root(world.root, world.family, server.url(""), signer, folder)
        world.pack()
        write_collection(folder / "collection", without_servers(site_profile(machine_facts, plain_base_image)))
        world.publish()
        yield world


def write_collection(folder: Path, site: dict[str, Any]) -> None:
    del site["network"]["mirrors"]
    stack = {
        "name": "tried",
        "title": "a package of the distribution",
        "blocks": {"os_packages": {"options": {"packages": ["hello"]}}},
        "run": {"command": ["cat", "/opt/rpm/hello/file"], "mpi": False},
    }
    for kind, data in (("recipes", stack), ("site_profiles", site)):
        (folder / kind).mkdir(parents=True)
        (folder / kind / f"{data['name']}.yaml").write_text(json.dumps(data))


def installing(world: World, root: Path | None = None) -> tuple[int, str]:
    """Run the final stage's package step of the lock in the root, or a copy: its exit status, and what it says."""
    held = read_lock(world.folder / "hpcgen.lock")
    steps = assemble(held.plan, Catalog(), held.pins).final.steps
    step = next(step for label, step in steps if label == "distribution")
    files = [f"install -D /dev/stdin {file.target} << 'END'\n{file.text}END" for file in step.files]
    script = "\n".join([f"rm -rf {FOLDER}", *files, *step.commands])
    command = ["unshare", "--mount", "sh", "-ec", ENTER, "sh", root or world.root, script]
    known = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    done = run(command, env={**known, "SOURCE_DATE_EPOCH": str(held.pins.epoch)}, check=False)
    return done.returncode, done.stdout


def test_a_lock_pins_what_the_repository_has(world: World) -> None:
    said = world.lock().stdout
    held = read_lock(world.folder / "hpcgen.lock").pins
    final = held.packages["final"]
    assert {name: pin.version for name, pin in final.added.items()} == {
        "hello": "1.0_2-3.el9_4.1",
        "libneeded": "1:2.0^git5-1.el9",
    }
    assert final.present == {"the-release": "9.4-1"}
    assert "tar" in held.packages["builder"].added
    for pin in final.added.values():
        path = pin.url.removeprefix(world.server.url(""))
        data = world.server.files[path]
        assert (pin.sha256, pin.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert [key.fingerprint for key in held.keys] == [world.signer.fingerprint]
    ring = (
        f"file://{KEY}" if world.family is FAMILIES["dnf"] else f"gpg-pubkey-{world.signer.fingerprint[-8:].lower()}-"
    )
    assert held.keys[0].keyring.startswith(ring)
    assert held.epoch == int(re.search(r"<revision>(\d+)", world.server.files["repodata/repomd.xml"].decode())[1])
    assert "hpcgen bundle create" in said


def test_a_lock_is_checked_against_what_the_repository_has_now(world: World) -> None:
    world.lock()
    lock = world.folder / "hpcgen.lock"
    assert world.hpcgen("lock", "--check", *world.base, "-o", lock).returncode == 0
    world.publish("1.0_3")
    said = world.hpcgen("lock", "--check", *world.base, "-o", lock, check=False)
    assert said.returncode == 1
    assert "1.0_2-3.el9_4.1 → 1.0_3-3.el9_4.1" in said.stdout
    assert re.search(r"libneeded .* a different file under the same version", said.stdout)
    world.hpcgen("lock", "--update", "packages", *world.base, "-o", lock)
    world.publish()
    assert read_lock(lock).pins.packages["final"].added["hello"].version == "1.0_3-3.el9_4.1"


def test_two_builds_of_one_bundle_have_one_digest(world: World, sid_hpcgen: SidHpcgen, tmp_path: Path) -> None:
    world.lock()
    world.hpcgen("bundle", "create", "--lock", world.folder / "hpcgen.lock", *world.base, "-o", tmp_path / "bundle")
    words = ("--format", "docker", "--engine", "buildah", "-o", "localhost/equal:here")
    world.server.requests.clear()
    first, second = (built(sid_hpcgen, tmp_path / "bundle", tmp_path / name, *words).stdout for name in ("one", "two"))
    print(first)
    assert world.server.requests == []
    assert "another digest" not in first
    assert DIGEST.findall(first) == DIGEST.findall(second) != []


def contents(root: Path) -> dict[str, str]:
    """The files of a root, each by its sha256 or where it leads to."""
    found = {}
    for place in root.rglob("*"):
        if place.is_symlink():
            found[str(place.relative_to(root))] = str(place.readlink())
        elif place.is_file():
            found[str(place.relative_to(root))] = hashlib.sha256(place.read_bytes()).hexdigest()
    return found


def test_what_is_fetched_from_the_repository_leaves_the_same_files_each_time(world: World) -> None:
    world.lock()
    found = []
    for name in ("one", "two"):
        root = world.folder / f"copy-{name}"
        run(["cp", "-a", world.root, root])
        status, said = installing(world, root)
        assert status == 0, said
        found.append(contents(root))
        run(["rm", "-rf", root])
    before = contents(world.root)
    first, second = found
    assert {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)} == set()
    new = {path for path in first.keys() | before.keys() if first.get(path) != before.get(path)}
    print(sorted(new))
    assert {path for path in new if not path.startswith(("opt/rpm/", "var/lib/rpm/", "etc/ld.so.cache"))} == set()


def test_a_package_without_a_signature_is_not_installed(world: World) -> None:
    world.publish("1.0_2", signed=False)
    world.lock()
    status, said = installing(world)
    world.publish()
    assert status != 0
    assert "libneeded-2.0^git5-1.el9.noarch.rpm: digests OK" in said
    assert not (world.root / "opt/rpm/libneeded").exists()


def test_a_recipe_installs_what_its_lock_pins_or_nothing(world: World) -> None:
    world.lock()
    world.publish("1.0_3")
    status, said = installing(world)
    assert status != 0
    assert world.family.gone in said

    world.publish("1.0_2", "Provides: other")
    status, said = installing(world)
    assert status != 0
    assert "libneeded-2.0^git5-1.el9.noarch.rpm: FAILED" in said
    assert not (world.root / "opt/rpm/libneeded").exists()

    world.publish()
    status, said = installing(world)
    assert status == 0, said
    assert (world.root / "opt/rpm/hello/file").read_text() == "1.0_2\n"
    var = world.root / "var"
    left = [path for folder in world.family.left for path in var.glob(f"{folder}*/**/*") if path.is_file()]
    assert [*left, *var.glob("log/*.log")] == []


def test_packages_that_nobody_signs_are_not_locked(world: World) -> None:
    """The settings of the repository are those of the image, which says that no signature is wanted."""
    settings = world.root / world.family.settings
    before = settings.read_text()
    settings.write_text(before.replace("gpgcheck=1", "gpgcheck=0"))
    world.pack()
    world.server.files.pop("repodata/repomd.xml.asc")
    said = world.lock(check=False)
    settings.write_text(before)
    world.pack()
    world.publish()
    assert said.returncode != 0
    assert "own is not signed by any key that" in said.stdout
    assert "gpgcheck=1" in said.stdout or "rpm --import" in said.stdout
