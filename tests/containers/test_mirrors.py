"""A mirror for dnf: the steps of the recipe, and the real dnf against a mirror on loopback.

There is no Rocky Linux here. What stands for its image is a root that has its configuration, its key and its
repositories, as rocky-release and rocky-repos 9 lay them out, and this machine's dnf (4.14, as in that image).
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from container_tools import need

from hpcgen.backends.hardware.mirrors import with_mirrors
from hpcgen.catalog.catalog import Catalog
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from tests.helpers.file_server import FileServer, make_certificate, serving

TOOLS = ("dnf", "createrepo_c", "rpmbuild", "rpmsign", "gpg", "unshare")
ARCHITECTURE = platform.machine()
SIGNER = "mirror@example.org"
SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: A file
License: MIT
BuildArch: noarch
%description
A file.
%install
mkdir -p %{{buildroot}}/opt
echo {version} > %{{buildroot}}/opt/{name}
%files
/opt/{name}
"""
CONFIGURATION = """\
[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=True
best=True
skip_if_unavailable=False
"""
# The programs of this machine in a root of its own; nothing of the machine can be written there.
ENTER = """\
for folder in usr dev proc; do mkdir -p "$1/$folder"; mount --rbind "/$folder" "$1/$folder"; done
mount -o remount,bind,ro "$1/usr"
exec chroot "$1" /bin/sh -ec "$2"
"""


class Signer:
    """A key of its own; ``public`` as rpm reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        name = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key", SIGNER, "rsa2048"]
        self.gpg(*name, "sign", "never")
        self.public = self.gpg("--armor", "--export", SIGNER)
        listed = self.gpg("--with-colons", "--fingerprint", SIGNER).splitlines()
        self.fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))

    def gpg(self, *words: str) -> str:
        return _made("gpg", "--homedir", self.folder, *words)

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", self.folder, "--kill", "gpg-agent"], check=True)


def _made(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    need(*TOOLS, path=os.environ["PATH"])
    # The agent's socket lies in this folder, and its path must be short.
    with tempfile.TemporaryDirectory(prefix="hpcgen-") as folder:
        made = Signer(Path(folder))
        yield made
        made.close()


def package(folder: Path, name: str, version: str, signer: Signer | None) -> None:
    """An RPM package with the file /opt/NAME, in a folder."""
    spec = folder / f"{name}.spec"
    spec.write_text(SPEC.format(name=name, version=version))
    _made("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {folder}/top", "--define", f"_rpmdir {folder}", spec)
    spec.unlink()
    if signer is not None:
        settings = {"_gpg_name": SIGNER, "_gpg_path": signer.folder, "__gpg": shutil.which("gpg")}
        words = [word for key, value in settings.items() for word in ("--define", f"{key} {value}")]
        _made("rpmsign", "--addsign", *words, folder / "noarch" / f"{name}-{version}-1.noarch.rpm")


@pytest.fixture(scope="module")
def packages(signer: Signer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a mirror holds, by path; under ``own`` the image's own repository with a newer version."""
    folders = {
        f"rocky/9/BaseOS/{ARCHITECTURE}/os": ("hello", "1", signer),
        f"rocky/9/AppStream/{ARCHITECTURE}/os": ("unsigned", "1", None),
        "own": ("hello", "2", signer),
    }
    files = {}
    for path, (name, version, by) in folders.items():
        folder = tmp_path_factory.mktemp("repository")
        package(folder, name, version, by)
        _made("createrepo_c", "--quiet", folder)
        for file in folder.rglob("*"):
            if file.is_file() and "top" not in file.parts:
                files[f"{path}/{file.relative_to(folder)}"] = file.read_bytes()
    return files


@pytest.fixture
def mirror(packages: dict[str, bytes], tmp_path: Path) -> Iterator[FileServer]:
    with serving(make_certificate(tmp_path)) as server:
        server.files |= packages
        yield server


@pytest.fixture
def root(signer: Signer, mirror: FileServer, tmp_path: Path) -> Path:
    """What stands for the base image; it trusts the certificate of the mirror."""
    root = tmp_path / "root"
    files = {
        "etc/dnf/dnf.conf": CONFIGURATION,
        "etc/yum.repos.d/rocky.repo": f"[baseos]\nname=own\nbaseurl={mirror.url('own')}\nenabled=1\ngpgcheck=1\n"
        "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9\n",
        "etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9": signer.public,
        "etc/ssl/certs/ca-certificates.crt": (tmp_path / "certificate.pem").read_text(),
        "etc/hosts": "127.0.0.1 localhost\n",
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": "root:x:0:\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("tmp", "root", "opt", "var/tmp", "var/cache", "var/lib", "var/log", "run"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    return root


def run(root: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    command = ["unshare", "--mount", "sh", "-ec", ENTER, "sh", root, "\n".join(lines)]
    # dnf says some of it on stdout.
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=120
    )


def commands(mirror: FileServer, *names: str) -> tuple[list[str], list[str]]:
    """Of the final stage of a kit for Rocky Linux: what comes before other packages, these instead, what comes last."""
    catalog = Catalog()
    site = with_mirrors(catalog.site("workstation"), [f"dnf={mirror.url('rocky')}"])
    plan = make_plan(catalog, site, catalog.stack("mpi-hello"), settings=["base.provider=rockylinux"])
    steps = assemble(plan, catalog).final.steps
    trust, forget = (step for label, step in steps if label.startswith("site_trust"))
    copied = [f"install -D /dev/stdin {file.target} << 'END'\n{file.text}END" for file in trust.files]
    install, *after = next(step.commands for label, step in steps if label == "distribution")
    words = [word for word in shlex.split(install) if word in ("dnf", "install") or word.startswith("-")]
    return [*copied, *trust.commands, shlex.join([*words, *names]), *after], list(forget.commands)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_dnf_installs_from_the_mirror_alone_and_forgets_it(root: Path, mirror: FileServer) -> None:
    own = tree(root / "etc")
    build, last = commands(mirror, "hello")
    done = run(root, build)
    assert done.returncode == 0, done.stdout
    assert (root / "opt/hello").read_text() == "1\n"
    asked = [path for path, _ in mirror.requests]
    assert {path.split("/")[2] for path in asked} == {"BaseOS", "AppStream"}
    assert all(path.startswith("rocky/9/") for path in asked)

    assert run(root, last).returncode == 0
    assert tree(root / "etc") == own
    assert tree(root / "var/cache") == {}
    # The image's own repositories are the ones that count again.
    done = run(root, ["dnf install -y hello", "dnf clean all"])
    assert done.returncode == 0, done.stdout
    assert (root / "opt/hello").read_text() == "2\n"


def test_a_package_without_the_distributions_signature_is_refused(root: Path, mirror: FileServer) -> None:
    build, _ = commands(mirror, "unsigned")
    done = run(root, build)
    assert done.returncode != 0
    assert "unsigned-1-1.noarch.rpm is not signed" in done.stdout
    assert not (root / "opt/unsigned").exists()


def test_a_mirror_that_lacks_a_repository_ends_the_build(root: Path, mirror: FileServer) -> None:
    for path in [path for path in mirror.files if "/AppStream/" in path]:
        del mirror.files[path]
    build, _ = commands(mirror, "hello")
    done = run(root, build)
    assert done.returncode != 0
    assert "Failed to download metadata for repo 'appstream'" in done.stdout
    assert not (root / "opt/hello").exists()
