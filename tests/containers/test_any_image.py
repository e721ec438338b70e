"""Images that hpcgen did not build, on two virtual nodes by the real Slurm: the host's MPI, their own, or none.

They are written as people write them, by ch-image alone. hpcgen reads them and decides how their ranks are started.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, ChImage, script
from leftovers import remove
from mpi_hello import HOST_ROOT
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow

Site = SlurmSite[VirtualCluster]
NODES = 2
APT = "RUN apt-get update -q && apt-get install -q -y --no-install-recommends"
VENV = "RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install -q"
PATH = "ENV PATH=/opt/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOM = f"RUN mkdir -p {HOST_ROOT}"
"""Old Charliecloud binds onto no folder that an image lacks."""
RECIPES = {
    "mpich": [f"{APT} python3-venv", f"{VENV} mpich mpi4py", PATH, ROOM],
    "intel": [f"{APT} python3-venv", f"{VENV} impi-rt==2021.17.2 mpi4py", PATH, ROOM],
    "closed": [f"{APT} python3-venv", f"{VENV} mpich mpi4py", PATH],
    "openmpi": [f"{APT} openmpi-bin python3-mpi4py", ROOM],
    "none": [f"{APT} python3-minimal", 'ENTRYPOINT ["/usr/bin/python3"]', 'CMD ["-c", "print(\'its own\')"]'],
}
HELLO = (
    "import os; from mpi4py import MPI; c = MPI.COMM_WORLD; maps = open('/proc/self/maps').read(); "
    f"whose = 'host' if '{HOST_ROOT}/lib/libmpi.so' in maps else 'own'; "
    "os.write(1, f'rank {c.rank} of {c.size} on {MPI.Get_processor_name()}, {whose}\\n'.encode())"
)


@pytest.fixture(scope="module")
def made(
    ch_image: ChImage, base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Path]]:
    """Makes one of the images, as a folder that ch-run starts, when it is first asked for."""
    folder = tmp_path_factory.mktemp("any")

    def make(name: str) -> Path:
        image = folder / name
        if not image.exists():
            recipe = folder / f"{name}.df"
            recipe.write_text("\n".join([f"FROM {base_image.ch_image}", *RECIPES[name], ""]))
            ch_image.build(f"any-{name}", recipe)
            ch_image.run(["ch-convert", "-i", "ch-image", "-o", "dir", f"any-{name}", image])
        return image

    yield make
    remove(folder)


def submit(site: Site, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return site.run("submit", str(image), "--nodes", "2", *words)


def ranks_of(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if re.match(r"rank \d of \d on n\d, \w+$", line))


HOSTS, OWN = (
    [f"rank {number} of 4 on n{1 + number // 2}, {whose}" for number in range(4)] for whose in ("host", "own")
)


@pytest.mark.parametrize("name", ["mpich", "intel"])
def test_the_hosts_mpi_takes_the_place_of_one_with_its_interface(
    site: Site, made: Callable[[str], Path], name: str
) -> None:
    done = submit(site, made(name), "--", "python3", "-c", HELLO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"preflight: passed: 4 ranks with {HOST_ROOT}/lib/libmpi.so.12" in done.stdout, done.stdout
    assert ranks_of(done.stdout) == HOSTS, done.stdout
    assert "takes the place of" in done.stderr


@pytest.mark.parametrize("name", ["mpich", "intel"])
def test_an_mpich_of_the_host_takes_their_place_too(site: Site, made: Callable[[str], Path], name: str) -> None:
    root = Path(script("make-host-mpi", "--mpich", env=site.env).strip())
    # Beside it its own libfabric, which would otherwise be the image's.
    libraries = [f"{HOST_ROOT}/lib", f"{HOST_ROOT}/lib/mpich"]
    site.profile["mpi"].update(flavour="mpich", version="5.0.2", libraries=libraries, environment={})
    site.profile["mpi"]["binds"][0]["source"] = str(root)
    site.write()
    site.env["PATH"] = f"{root / 'bin'}{os.pathsep}{site.env['PATH']}"
    done = submit(site, made(name), "--", "python3", "-c", HELLO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"preflight: passed: 4 ranks with {HOST_ROOT}/lib/libmpi.so.12" in done.stdout, done.stdout
    assert ranks_of(done.stdout) == HOSTS, done.stdout


def test_what_a_job_rests_on_lies_beside_it_and_a_changed_image_is_told(
    site: Site, made: Callable[[str], Path]
) -> None:
    image = made("mpich")
    for _ in range(2):
        assert submit(site, image, "--", "true").returncode == 0
    (record,) = sorted((site.work / ".hpcgen/jobs").glob("*-1/*.image.json"))
    told = json.loads(record.read_text())
    assert told["digest"].startswith("sha256:") and told["host_mpi"] == "intel 2021.17.2"
    assert [each["soname"] for each in told["facts"]["mpi"]] == ["libmpi.so.12"]
    (image / "opt/new").write_text("changed\n")
    assert "its digest differs" in submit(site, image, "--", "true").stderr
    (image / "opt/new").unlink()


def test_where_the_host_cannot_be_bound_the_image_keeps_its_own_mpi(site: Site, made: Callable[[str], Path]) -> None:
    site.profile["mpi"].update(launcher="srun", pmi=["pmi2"])
    del site.profile["mpi"]["bootstrap"]
    site.write()
    done = submit(site, made("closed"), "--", "python3", "-c", HELLO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"has no folder {HOST_ROOT}" in done.stderr and "started by srun with pmi2" in done.stderr
    assert ranks_of(done.stdout) == OWN, done.stdout


def test_another_family_is_started_by_a_launcher_that_it_understands(site: Site, made: Callable[[str], Path]) -> None:
    """Slurm has PMIx, by which Open MPI's ranks are told of each other; of the host's Intel MPI nothing is seen."""
    done = submit(site, made("openmpi"), "--", "python3", "-c", HELLO)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the image keeps its own openmpi" in done.stderr and "libmpi.so.40" in done.stderr
    assert "libmpi.so.40" in done.stdout and ranks_of(done.stdout) == OWN, done.stdout
    # On one node by its own launcher.
    alone = site.run("submit", str(made("openmpi")), "--", "python3", "-c", HELLO)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert ranks_of(alone.stdout) == ["rank 0 of 2 on n1, own", "rank 1 of 2 on n1, own"], alone.stdout


@contextmanager
def shell(image: Path, data: bytes) -> Iterator[None]:
    """The image has another shell meanwhile, by which its processor is known."""
    place = image / "usr/bin/dash"
    before = place.read_bytes()
    place.write_bytes(data)
    try:
        yield
    finally:
        place.write_bytes(before)


def refused(site: Site, image: Path, why: str) -> None:
    started = time.monotonic()
    done = submit(site, image, "--", "python3", "-c", HELLO)
    seconds = time.monotonic() - started
    assert done.returncode == 6 and re.search(why, done.stderr), done.stdout + done.stderr
    said = next(line for line in done.stderr.splitlines() if re.search(why, line))
    REPORTS.append(f"refused in {seconds:.1f} s: {said}")
    assert not (site.work / ".hpcgen").exists() and not site.call([*site.cluster.prefix, "squeue", "-h"]).stdout


def test_what_cannot_work_is_refused_before_the_queue(site: Site, made: Callable[[str], Path], tmp_path: Path) -> None:
    other = bytearray((made("none") / "usr/bin/dash").read_bytes())
    other[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    with shell(made("none"), bytes(other)):
        refused(site, made("none"), "is for arm64, and the nodes of cpu are x86_64")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-Wl,-z,x86-64-v4", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    site.profile["partitions"]["cpu"]["cpu"]["target"] = "haswell"
    site.profile["mpi"].update(launcher="srun", pmi=["pmi2"])
    del site.profile["mpi"]["bootstrap"]
    site.write()
    with shell(made("none"), (tmp_path / "a").read_bytes()):
        refused(site, made("none"), "needs x86-64-v4, and haswell lacks avx512")
    refused(site, made("openmpi"), "srun offers pmi2, and openmpi .* understands pmix")


def test_without_mpi_one_process_is_started_on_each_node(site: Site, made: Callable[[str], Path]) -> None:
    site.profile["mpi"].update(launcher="srun", pmi=["pmi2"])
    site.write()
    say = "import os, socket; print('process', os.environ['SLURM_PROCID'], socket.gethostname())"
    words = ["submit", str(made("none")), "--site", "here", "--nodes", "2", "--time", "5m", "--", "python3", "-c", say]
    done = site.call(site.words(*words))
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("process"))
    assert said == ["process 0 n1", "process 1 n2"], done.stdout
    assert "the image has no MPI" in done.stderr


def test_its_own_program_is_started_where_no_other_is_named(site: Site, made: Callable[[str], Path]) -> None:
    """A folder has no entry point any more: it is in the archive of the image's builder."""
    done = site.call(site.words("run", str(made("none")), "--site", "here"))
    assert done.returncode != 0 and "there is no program to start" in done.stderr, done.stdout + done.stderr


def test_the_contract_says_what_each_can_do_here(site: Site, made: Callable[[str], Path]) -> None:
    def outcomes(name: str) -> dict[str, Any]:
        words = ["contract", "--image", str(made(name)), "--site", "here", "--json"]
        return {each["name"]: each for each in json.loads(site.call(site.words(*words)).stdout)}

    assert outcomes("mpich")["MPI ABI"]["outcome"] == "holds"
    assert outcomes("openmpi")["launch"]["outcome"] == "doubtful"
    assert "MPI ABI" not in outcomes("none")
