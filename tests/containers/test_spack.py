"""A Spack environment: chosen in the base, locked, bundled, compiled without a network, over the image's MPI alone.

Spack and its packages are those of git clones in the folder that HPCGEN_TEST_SPACK names, ``spack`` and
``spack-packages``, checked out at releases that go together. The test serves by https Spack, and a package repository
with what its two packages may need and one small package more, over MPI: from all 8,600 Spack needs minutes to choose.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, Buildah, Run, run
from test_conda import RING, trusting
from test_offline import alone_with_loopback, attempts
from test_rendered_kits import site_profile

from tests.helpers.file_server import make_signed_certificate
from tests.helpers.git_server import serving_git

pytestmark = pytest.mark.slow
HPCGEN = [sys.executable, "-m", "hpcgen"]
TRUSTING = [*HPCGEN, "--trust-collections"]
PACKAGE = '''\
from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class RingOfRanks(Package):
    """Ranks that sum their numbers."""

    url = "https://example.org/ring-1.0.tar.gz"

    version("1.0", sha256="{sha256}")

    depends_on("c", type="build")
    depends_on("mpi")
    depends_on("bzip2")

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        Executable(spec["mpi"].mpicc)("ring.c", "-o", prefix.bin.ring, "-Wl,--no-as-needed", "-lbz2")
'''
SPACK_YAML = """\
spack:
  specs: [ring-of-ranks, lz4@1.9.4]
  view: /home/me/view
  packages:
    mpich:
      externals: [{spec: mpich@3.3, prefix: /opt/cray/mpich}]
"""
ARCHIVES = ("b/bzip2/bzip2_1.0.8.orig.tar.gz", "l/lz4/lz4_1.9.4.orig.tar.gz")
"""Debian's copies of two sources, with the hashes that Spack knows."""


BUILTIN = "repos/spack_repo/builtin"
DEPENDENCY = re.compile(r'depends_on\(\s*"([a-z0-9][a-z0-9-]*)')
SYSTEMS = ("autotools", "cmake", "generic", "makefile")
"""Build systems of the packages here."""
NAMED = ("bzip2", "lz4", "mpich", "cuda", "gcc", "hip", "compiler-wrapper", "gcc-runtime", "glibc", "musl")
"""Packages that the test, the settings of the block, or Spack itself names."""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    return run(["git", *who, "-C", folder, *words]).stdout.strip()


def named(file: Path, folder: Path) -> str:
    """Put a file where a bundle looks for it, as mirrors of Spack have it; its sha256."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    file.rename(folder / f"{digest}.tar.gz")
    return digest


def copy_needed(builtin: Path, into: Path) -> None:
    """Copy a package repository with the packages alone that those of the test may need."""
    shutil.copytree(builtin, into, ignore=shutil.ignore_patterns("packages"))
    systems = [(builtin / f"build_systems/{each}.py").read_text() for each in SYSTEMS]
    left = [*NAMED, *(name for text in systems for name in DEPENDENCY.findall(text))]
    while left:
        name = left.pop().replace("-", "_")
        source, target = (folder / "packages" / name for folder in (builtin, into))
        if source.exists() and not target.exists():  # a virtual has no folder
            shutil.copytree(source, target)
            left += DEPENDENCY.findall((source / "package.py").read_text())


@pytest.fixture
def served(tmp_path: Path, machine_facts: dict[str, Any]) -> Iterator[tuple[Path, str, Path]]:
    """A folder with the sources of all packages, the address of the repositories, and who signs for the server."""
    clones, sources, repositories = Path(os.environ["HPCGEN_TEST_SPACK"]), tmp_path / "sources", tmp_path / "git"
    sources.mkdir()
    for path in ARCHIVES:
        url = f"{machine_facts['debian']['mirror']}/pool/main/{path}"
        run(["curl", "-fsSL", "-o", tmp_path / "source", url])
        named(tmp_path / "source", sources)
    (tmp_path / "ring.c").write_text(RING)
    with tarfile.open(tmp_path / "ring.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "ring.c", "ring-1.0/ring.c")
    digest = named(tmp_path / "ring.tar.gz", sources)
    repositories.mkdir()
    git(tmp_path, "clone", "-q", "--shared", str(clones / "spack"), str(repositories / "spack"))
    packages = repositories / "spack-packages"
    copy_needed(clones / "spack-packages" / BUILTIN, packages / BUILTIN)
    own = packages / BUILTIN / "packages/ring_of_ranks"
    own.mkdir()
    (own / "package.py").write_text(PACKAGE.replace("{sha256}", digest))
    git(packages, "init", "-q")
    git(packages, "add", "repos")
    git(packages, "commit", "-qm", "a ring")
    key, certificate, authority = make_signed_certificate(tmp_path)
    with serving_git(repositories, key, certificate) as address:
        yield sources, address, authority


def write_project(folder: Path, site: dict[str, Any], address: str) -> None:
    folder.mkdir()
    (folder / "here.yaml").write_text(json.dumps(site))
    (folder / "spack.yaml").write_text(SPACK_YAML)
    stack = {
        "name": "spacky",
        "title": "packages of Spack",
        "blocks": {
            "base": {"provider": "debian", "version": "==12"},
            "mpi": {"provider": "mpich"},
            "mpich": {"options": {"obtain": "wheels"}},
            "spack_packages": {"options": {"files": ["spack.yaml"]}},
        },
        "run": {"command": ["ring"], "mpi": True},
    }
    (folder / "spacky.yaml").write_text(json.dumps(stack))
    blocks = folder / "ours/building_blocks"
    blocks.mkdir(parents=True)
    above = folder.parent / "git"
    trees = {
        name: {"url": f"{address}{path}/.git", "commit": git(above / path, "rev-parse", "HEAD")}
        for name, path in (("spack", "spack"), ("packages", "spack-packages"))
    }
    row = {"trees": trees, "values": {"clingo": "5.8.0"}}
    (blocks / "spack_packages.yaml").write_text(json.dumps({"block": "spack_packages", "releases": {"1.1.0": row}}))


def tries(done: Run) -> dict[str, int]:
    """How often something looked for a way out of the machine."""
    found = attempts(done.stdout)
    return {name: found[name] for name in ("Ip:OutNoRoutes", "Ip6OutNoRoutes", "Udp:OutDatagrams", "Udp6OutDatagrams")}


def launched_alone(name: str, buildah: Buildah) -> Run:
    """Two ranks as the self-test starts them: MPICH's launcher asks the name server where its own host is."""
    ranks = "buildah run --isolation chroot $made -- mpiexec -launcher fork -n 2 mpivars; buildah rm $made"
    return alone_with_loopback(["sh", "-c", f"made=$(buildah from {name}) && {ranks}"], buildah.env)


def test_packages_are_compiled_without_a_network_over_the_images_mpi(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    buildah: Buildah,
    served: tuple[Path, str, Path],
    tmp_path: Path,
) -> None:
    sources, address, authority = served
    site = site_profile(machine_facts, plain_base_image)
    del site["network"]["mirrors"]["images"]
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(authority)]
    folder = tmp_path / "project"
    write_project(folder, site, address)
    trusted = trusting(tmp_path, machine_facts, authority)
    env = {**trusted, "GIT_SSL_CAINFO": trusted["SSL_CERT_FILE"]}
    image = ["--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    own = ["--collection", "ours"]
    asked = ["--site", "here.yaml", "--stack", "spacky.yaml", *image]
    run([*HPCGEN, *own, "lock", *asked, "-o", "hpcgen.lock"], env=env, cwd=folder)
    bundled = [
        *HPCGEN,
        *own,
        "bundle",
        "create",
        "--lock",
        "hpcgen.lock",
        *image,
        "--files",
        sources,
        "-o",
        "bundle",
    ]
    REPORTS.append(run(bundled, env=env, cwd=folder).stdout.splitlines()[-1])
    name = "localhost/hpcgen-spack:here"
    words = ["build", "--bundle", folder / "bundle", "--format", "docker", "--engine", "buildah", "-o", name]
    done = alone_with_loopback([*TRUSTING, *words], {**buildah.env, "BUILDAH_ISOLATION": "chroot"})
    assert tries(done) == tries(launched_alone(name, buildah)), done.stdout[-3000:]
    said = buildah.exec(name, ["mpiexec", "-n", "2", "ring"]).stdout
    assert "rank 0 of 2, sum 1" in said and "rank 1 of 2, sum 1" in said, said
    mapped = {line.split()[1] for line in said.splitlines() if line.startswith("maps ")}
    assert len(mapped) == 1 and re.match(r"/opt/mpich/lib/libmpi\.so", mapped.pop()), said
    kept = buildah.exec(name, ["sh", "-c", "lz4 --version; ls /opt/spack_packages/store/*"]).stdout
    assert "v1.9.4" in kept and "bzip2-1.0.8-" in kept and "compiler-wrapper" not in kept, kept
