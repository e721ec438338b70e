"""Conda packages from a channel of small ones: chosen, locked, bundled, built without a network; the host's MPI."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, Buildah, HostMpi, run
from leftovers import remove
from mpi_hello import HOST_ROOT, profile
from test_offline import alone, quiet
from test_rendered_kits import site_profile

from tests.helpers.conda_channel import Channel, small_channel
from tests.helpers.file_server import FileServer, make_signed_certificate, serving

pytestmark = pytest.mark.slow
HPCGEN = [sys.executable, "-m", "hpcgen"]
STACK = {
    "name": "spoken",
    "title": "A program of a conda channel",
    "blocks": {"conda_packages": {"options": {"files": ["environment.yml"]}}},
    "run": {"mpi": False, "command": ["speak"]},
}


RING = """
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    int rank, size, sum;
    char line[4096];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d, sum %d\\n", rank, size, sum);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "/libmpi.so") && strstr(line, "r-xp")) printf("maps %s", strchr(line, '/'));
    return MPI_Finalize();
}
"""


@pytest.fixture
def channel(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Channel, FileServer, Path]]:
    """The channel, its server, and the authority that signed the server's certificate."""
    key, certificate, authority = make_signed_certificate(tmp_path)
    made = small_channel(tmp_path / "channel")
    if host := getattr(request, "param", None):
        add_ring(made, request.getfixturevalue(host), tmp_path)
    with serving((key, certificate)) as server:
        for path in made.folder.rglob("*.*"):
            server.files[f"small/{path.relative_to(made.folder).as_posix()}"] = path.read_bytes()
        yield made, server, authority


def add_ring(channel: Channel, host: HostMpi, folder: Path) -> None:
    """A program linked to libmpi.so.12, as conda-forge builds them: its own lib first, then as ever."""
    (folder / "ring.c").write_text(RING)
    flags = [f"-I{host.root}/include", f"-L{host.root}/lib", "-Wl,-rpath,$ORIGIN/../lib,--allow-shlib-undefined"]
    run(["gcc", "ring.c", *flags, "-lmpi", "-o", "ring"], cwd=folder)
    program = (folder / "ring").read_bytes()
    channel.add("ring", "1.0", {"bin/ring": program}, build="mpi_mpich_0", needs=["mpich >=4.0", "mpi * mpich"])
    channel.write()


def project(folder: Path, facts: dict[str, Any], base: BaseImage, url: str, authority: Path) -> None:
    """A project with an environment.yml, and the profile of this machine."""
    site = site_profile(facts, base)
    del site["network"]["mirrors"]["images"]
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(authority)]
    folder.mkdir()
    (folder / "here.yaml").write_text(json.dumps(site))
    (folder / "spoken.yaml").write_text(json.dumps(STACK))
    (folder / "environment.yml").write_text(
        f"channels: ['{url}']\ndependencies: [speak]\nvariables: {{SPOKEN: 'yes'}}\n"
    )


def trusting(folder: Path, facts: dict[str, Any], authority: Path) -> dict[str, str]:
    """The environment of programs here that trust the authority, too."""
    system = Path("/etc/ssl/certs/ca-certificates.crt")
    known = [*([system] if system.exists() else []), *map(Path, facts["ca_certificates"]), authority]
    together = folder / "trusted.pem"
    together.write_text("\n".join(each.read_text() for each in known))
    return {**os.environ, "SSL_CERT_FILE": str(together), "RATTLER_CACHE_DIR": str(folder / "cache")}


def test_packages_are_chosen_locked_bundled_and_run_without_a_network(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    buildah: Buildah,
    channel: tuple[Channel, FileServer, Path],
    tmp_path: Path,
) -> None:
    made, server, authority = channel
    folder = tmp_path / "project"
    project(folder, machine_facts, plain_base_image, server.url("small"), authority)
    env = trusting(tmp_path, machine_facts, authority)
    image = ["--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    asked = ["--site", "here.yaml", "--stack", "spoken.yaml", *image]
    run([*HPCGEN, "lock", *asked, "-o", "hpcgen.lock"], env=env, cwd=folder)
    text = (folder / "hpcgen.lock").read_text()
    assert made.sha256("speak") in text and "words-2.0-0.tar.bz2" in text and "words-3.0" not in text
    bundled = [*HPCGEN, "bundle", "create", "--lock", "hpcgen.lock", *image, "-o", "bundle"]
    REPORTS.append(run(bundled, env=env, cwd=folder).stdout.splitlines()[-1])
    assert "pkg:conda/speak@1.4?build=h1234_0" in (folder / "bundle/sbom.cdx.json").read_text()
    name = "localhost/hpcgen-conda:here"
    words = ["build", "--bundle", folder / "bundle", "--format", "docker", "--engine", "buildah", "-o", name]
    done = alone([*HPCGEN, *words], {**buildah.env, "BUILDAH_ISOLATION": "chroot"})
    quiet(done)
    assert buildah.exec(name, ["speak"]).stdout == "one\ntwo\n"
    said = buildah.exec(name, ["sh", "-c", "echo $CONDA_PREFIX $SPOKEN; cat /opt/conda/conda-meta/speak-*.json"]).stdout
    assert said.startswith("/opt/conda yes\n")
    assert f'"url": "{server.url("small")}/linux-64/speak-1.4-h1234_0.conda"' in said
    assert "/opt/python" not in buildah.exec(name, ["sh", "-c", "ls -d /opt/*"]).stdout


def ring_project(
    folder: Path, facts: dict[str, Any], base: BaseImage, host: HostMpi, url: str, authority: Path
) -> None:
    site = profile(facts, base, host)
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(authority)]
    stack = {
        "name": "ring",
        "title": "a program of conda over the host's MPI",
        "blocks": {
            "mpi": {"provider": "mpich"},
            "mpich": {"options": {"obtain": "wheels"}},
            "conda_packages": {"options": {"packages": ["ring"], "channels": [url]}},
        },
        "run": {"command": ["ring"], "mpi": True},
    }
    folder.mkdir()
    (folder / "here.yaml").write_text(json.dumps(site))
    (folder / "ring.yaml").write_text(json.dumps(stack))


@pytest.mark.parametrize("channel", ["host_mpi"], indirect=True)
def test_a_program_of_conda_runs_with_the_hosts_mpi(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    channel: tuple[Channel, FileServer, Path],
    tmp_path: Path,
) -> None:
    """The solver takes the build of mpich that is empty; the library that is mapped is the host's."""
    _, server, authority = channel
    folder = tmp_path / "project"
    ring_project(folder, machine_facts, plain_base_image, host_mpi, server.url("small"), authority)
    trusted = trusting(tmp_path, machine_facts, authority)
    env = {**host_mpi.env, **{name: trusted[name] for name in ("SSL_CERT_FILE", "RATTLER_CACHE_DIR")}}
    env = {**env, "HPCGEN_RECORDS": str(tmp_path / "records")}
    asked = ["--site", "here.yaml", "--stack", "ring.yaml"]
    run([*HPCGEN, "lock", *asked, "-o", "hpcgen.lock"], env=env, cwd=folder)
    assert "mpich-4.2.3-external_0.conda" in (folder / "hpcgen.lock").read_text()
    words = ["--locked", "hpcgen.lock", "--engine", "ch-image", "-o", "image"]
    run([*HPCGEN, "build", *words], env=env, cwd=folder)
    start = {**env, "PATH": f"{host_mpi.root}/bin:{env['PATH']}"}
    said = run(
        [*HPCGEN, "run", "image", "--site", "here.yaml", "--ranks-per-node", "2", "--threads", "1"],
        env=start,
        cwd=folder,
    ).stdout
    print(said)
    assert "rank 0 of 2, sum 1" in said and "rank 1 of 2, sum 1" in said, said
    mapped = [line for line in said.splitlines() if line.startswith("maps ")]
    assert len(mapped) == 2 and all(f" {HOST_ROOT}/lib/libmpi.so" in line for line in mapped), said
    remove(folder / "image")
