"""Profiles that fit, stacks, and what breaks them: the data for the tests of the contract, in a collection."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan

HOST = "/opt/host-mpi"
NODE = {"cpu": {"target": "skylake_avx512", "cores": 48}, "memory": {"total_gb": 96}, "queues": [{"name": "work"}]}
INTEL: dict[str, Any] = {
    "flavour": "intel",
    "version": "2021.11.0",
    "abi": "mpich",
    "root": HOST,
    "launcher": "mpiexec",
    "libraries": [f"{HOST}/lib"],
    "binds": [{"source": HOST, "target": HOST}],
    "pmi": ["hydra"],
    "glibc": "2.28",
}
OMNI_PATH: dict[str, Any] = {
    "title": "Omni-Path, Intel MPI, Charliecloud",
    "system": {"os": "sles", "glibc": "2.31"},
    "partitions": {"main": NODE},
    "default_partition": "main",
    "containers": {"preferred": "charliecloud", "engines": {"charliecloud": {"version": "0.37"}}},
    "scheduler": {"kind": "slurm"},
    "network": {"internet": {"login": True, "compute": False}},
    "fabric": {"kind": "omni-path", "provider": "psm2"},
    "mpi": INTEL,
    "environment": {"FI_PROVIDER": "psm2"},
}
INFINIBAND = {
    **OMNI_PATH,
    "title": "InfiniBand, Open MPI, Apptainer",
    "containers": {"preferred": "apptainer", "engines": {"apptainer": {"version": "1.2"}}},
    "fabric": {"kind": "infiniband", "provider": "verbs"},
    "mpi": {
        **INTEL,
        "flavour": "openmpi",
        "version": "5.0.6",
        "abi": "openmpi",
        "launcher": "srun",
        "pmi": ["pmix"],
        "glibc": None,
    },
    "environment": {},
}
SLINGSHOT = {
    **OMNI_PATH,
    "title": "Slingshot, Cray MPICH, Singularity",
    "containers": {"preferred": "singularity", "engines": {"singularity": {"version": "3.11"}}},
    "fabric": {"kind": "slingshot", "provider": "cxi", "libraries": [f"{HOST}/libfabric"]},
    "mpi": {**INTEL, "flavour": "cray-mpich", "version": "8.1.30", "launcher": "srun", "pmi": ["pmi2"], "glibc": None},
    "environment": {"FI_PROVIDER": "cxi"},
}
HOOKED = {
    **SLINGSHOT,
    "title": "Slingshot, the host's libfabric by a hook, Container Engine",
    "containers": {"preferred": "container-engine", "engines": {"container-engine": {"version": "26.6"}}},
    "fabric": {"kind": "slingshot", "provider": "cxi", "libfabric": "1.22.0"},
    "mpi": {"flavour": "mpich", "version": "4.3.1", "abi": "mpich", "launcher": "srun", "pmi": ["pmi2"]},
}
NVIDIA: dict[str, Any] = {
    **OMNI_PATH,
    "title": "GPUs of NVIDIA, one node, Apptainer",
    "partitions": {
        "main": {
            **NODE,
            "gpu": {
                "vendor": "nvidia",
                "model": "Tesla P40",
                "capability": "6.1",
                "driver": "560.28.03",
                "data_center": True,
            },
        }
    },
    "containers": {"preferred": "apptainer", "engines": {"apptainer": {"version": "1.2"}}},
    "fabric": {"kind": "ethernet"},
    "mpi": None,
    "environment": {},
}
VOLTA = copy.deepcopy(NVIDIA)
VOLTA["partitions"]["main"]["gpu"] |= {"model": "V100", "capability": "7.0"}
AMD = {
    **NVIDIA,
    "title": "GPUs of AMD, one node, Singularity",
    "partitions": {"main": {**NODE, "gpu": {"vendor": "amd", "model": "MI50", "target": "gfx906"}}},
    "containers": {"preferred": "singularity", "engines": {"singularity": {"version": "3.8"}}},
}
MPICH_SETTINGS = ("mpi.provider=mpich", "mpich.version=3.4.3")

# An MPI of somebody's own, which brings nothing for Omni-Path.
PLAIN_MPI = '''
from hpcgen.blocks.base import Block
from hpcgen.blocks.capabilities import Capabilities

class PlainMpi(Block):
    """An MPI without a fabric."""
    name = "plain_mpi"
    provides = ("mpi",)

    @classmethod
    def preference(cls, facts):
        return 9

    def capabilities(self, ctx):
        return Capabilities("mpich", ctx.release.values["library"], ("hydra", "pmi2"), ("tcp",))
'''
PLAIN_RELEASES = """
block: plain_mpi
releases:
  "1": {values: {library: libmpich.so.12}}
  "2": {values: {library: libmpi.so.12}}
"""
STACKS = {
    "hello": {"blocks": {"mpi": {}, "rank_test": {}}, "run": {"command": ["true"], "gpus_per_node": 0}},
    "packages": {
        "blocks": {"mpi": {}, "rank_test": {}, "os_packages": {"options": {"packages": ["zlib1g"]}}},
        "run": {"command": ["true"]},
    },
    "serial": {"blocks": {"os_packages": {}}, "run": {"mpi": False, "command": ["true"]}},
    "conda": {"blocks": {"mpi": {}, "conda_packages": {}}, "run": {"command": ["true"]}},
    "cuda": {
        "blocks": {"cuda": {}, "os_packages": {"options": {"packages": ["zlib1g"]}}},
        "run": {"mpi": False, "command": ["true"]},
    },
    "tensorrt": {"blocks": {"tensorrt": {}}, "run": {"mpi": False, "command": ["true"]}},
    "rocm": {"blocks": {"rocm": {}}, "run": {"mpi": False, "command": ["true"]}},
    "tcp": {"blocks": {"mpi": {}}, "run": {"command": ["true"], "environment": {"FI_PROVIDER": "psm2,tcp"}}},
}


class Broken(NamedTuple):
    """A good combination, what is changed to break it, and what is said then.

    ``facts``: path of a fact of the profile → another value. ``good``: what takes the place of ``settings`` or
    ``stack`` where a wish and not a fact is wrong.
    """

    site: Mapping[str, Any]
    says: str
    facts: Mapping[str, Any] = {}
    stack: str = "hello"
    settings: tuple[str, ...] = ()
    job: JobRequest | None = None
    good: tuple[str, ...] = ()
    good_stack: str = ""
    good_job: JobRequest | None = None
    format: str | None = None
    conflict: bool = False
    at: str = ""


def zen(target: str) -> dict[str, Any]:
    return {**NODE, "cpu": {"target": target, "cores": 64}}


CASES = {
    "old glibc base": Broken(
        OMNI_PATH,
        "ubuntu 18.04 has 2.27, and libraries of the host's intel ask for 2.28: they are not loaded",
        settings=("base.provider=ubuntu", "base.version=18.04"),
        good=("base.provider=ubuntu", "base.version=22.04"),
        at="mpi.glibc",
    ),
    "base older than the system of the host's Cray MPICH": Broken(
        SLINGSHOT,
        "debian 12 has 2.36, and libraries of the host's cray-mpich may ask for up to the host's own 2.38",
        {"system.glibc": "2.38"},
        settings=(*MPICH_SETTINGS, "base.provider=debian"),
        at="system.glibc",
    ),
    "distribution MPICH under host Intel MPI": Broken(
        OMNI_PATH,
        "the package libmpich12 brings the distribution's MPICH (libmpich.so.12), a second MPI besides intel_mpi",
        stack="packages",
        settings=("os_packages.packages=zlib1g,libmpich12",),
        good=("os_packages.packages=zlib1g",),
    ),
    "MPI linked as libmpich.so.12": Broken(
        SLINGSHOT,
        "plain_mpi 1 of the image is libmpich.so.12, and the host's cray-mpich 8.1.30 is libmpi.so.12",
        settings=("mpi.provider=plain_mpi", "plain_mpi.version=1"),
        good=("mpi.provider=plain_mpi", "plain_mpi.version=2"),
        at="mpi.abi",
    ),
    "Open MPI under an MPICH ABI host": Broken(
        SLINGSHOT,
        "openmpi cannot work at this site, whose cray-mpich 8.1.30 has the binary interface of mpich (",
        settings=("mpi.provider=openmpi",),
        good=MPICH_SETTINGS,
        conflict=True,
    ),
    "host MPI older than the image's": Broken(
        INFINIBAND,
        "the host's Open MPI 5.0.6, which replaces the image's: same major release, not newer",
        settings=("openmpi.version=5.0.8",),
        good=("openmpi.version=5.0.6",),
        conflict=True,
    ),
    "Open MPI 5 with pmi2 only": Broken(
        INFINIBAND,
        "srun offers pmi2, and the host's openmpi 5.0.6 understands pmix: each rank would be a separate job",
        {"mpi.pmi": ["pmi2"]},
        at="mpi.pmi",
    ),
    "srun asked for pmix, and the image's MPICH knows pmi2": Broken(
        SLINGSHOT,
        "srun is set to offer pmix, and mpich 3.4.3 understands hydra, pmi, pmi2",
        {"mpi.pmi": ["pmix", "pmi2"], "mpi.libraries": [], "mpi.binds": [], "fabric.kind": "ethernet"},
        settings=MPICH_SETTINGS,
        at="mpi.pmi",
    ),
    "psm2 absent on Omni-Path": Broken(
        OMNI_PATH,
        "the image cannot use omni-path through psm2, and no host library for it is visible inside",
        settings=("mpi.provider=plain_mpi",),
        good=("mpi.provider=intel_mpi",),
        at="fabric.provider",
    ),
    "Slingshot without the host's libfabric": Broken(
        SLINGSHOT,
        "the image cannot use slingshot through cxi, and no host library for it is visible inside",
        {"fabric.libraries": []},
        settings=MPICH_SETTINGS,
        at="fabric.provider",
    ),
    "libfabric newer than the one that a hook puts in its place": Broken(
        HOOKED,
        "with the host's libfabric 1.22.0, which replaces the image's and ends with FABRIC_1.7",
        settings=("mpi.provider=mpich", "libfabric.version=2.3.1"),
        good=("mpi.provider=mpich",),
        conflict=True,
    ),
    "TCP fallback": Broken(
        OMNI_PATH,
        "FI_PROVIDER=psm2,tcp lets libfabric use TCP, although there is omni-path",
        {"environment.FI_PROVIDER": "psm2,tcp"},
        at="environment.FI_PROVIDER",
    ),
    "TCP fallback on one kind of node": Broken(
        OMNI_PATH,
        "FI_PROVIDER=tcp lets libfabric use TCP, although there is omni-path",
        {"partitions.main": {**NODE, "environment": {"FI_PROVIDER": "tcp"}}},
        at="partitions.main.environment.FI_PROVIDER",
    ),
    "another fabric on one kind of node": Broken(
        OMNI_PATH,
        "the image cannot use slingshot through cxi, and no host library for it is visible inside",
        {"partitions.main": {**NODE, "fabric": {"kind": "slingshot", "provider": "cxi"}}},
        at="partitions.main.fabric.provider",
    ),
    "TCP fallback by the stack": Broken(
        OMNI_PATH, "FI_PROVIDER=psm2,tcp lets libfabric use TCP", stack="tcp", good_stack="hello"
    ),
    "CUDA 13 on a P40": Broken(
        NVIDIA,
        "cuda 12.9.1 is the last that supports capability 6.1",
        {"partitions.main.gpu.driver": "580.65.06"},
        stack="cuda",
        settings=("cuda.version=13.0.2",),
        good=("cuda.version=12.6.3",),
        conflict=True,
    ),
    "TensorRT 10 on V100": Broken(
        VOLTA,
        "tensorrt 10.4.0.26 is the last that supports capability 7.0",
        stack="tensorrt",
        settings=("tensorrt.version=>=10.9",),
        good=("tensorrt.version=10.4.0.26",),
        conflict=True,
    ),
    "AMD gfx906 with a new ROCm": Broken(
        AMD,
        "rocm 5.7.1 is the last that supports target gfx906",
        stack="rocm",
        settings=("rocm.version=>=6",),
        good=("rocm.version=5.7.1",),
        conflict=True,
    ),
    "GPU driver too old": Broken(
        NVIDIA,
        "is the last that supports driver 450.80.02",
        {"partitions.main.gpu.driver": "450.80.02"},
        stack="cuda",
        settings=("cuda.version=12.6.3",),
        good=("cuda.version=12.6.3",),
        conflict=True,
    ),
    "ROCm too new for AMD's driver": Broken(
        AMD,
        "rocm 6.4.1 is the last that supports driver 6.3",
        {"partitions.main.gpu.target": "gfx90a", "partitions.main.gpu.driver": "6.3"},
        stack="rocm",
        settings=("rocm.version=>=7",),
        good=("rocm.version=5.7.1",),
        conflict=True,
    ),
    "forward compatibility on a GeForce": Broken(
        NVIDIA,
        "cuda-compat-12-8 is for a newer driver, which only data-centre GPUs can use; GeForce GTX 1080 Ti is none",
        {"partitions.main.gpu.data_center": False, "partitions.main.gpu.model": "GeForce GTX 1080 Ti"},
        stack="cuda",
        settings=("os_packages.packages=cuda-compat-12-8",),
        at="partitions.main.gpu.data_center",
    ),
    "zen4 code on zen2 nodes of the same queue": Broken(
        OMNI_PATH,
        "the queue work also leads to old (zen2), which lacks avx512_bf16",
        {"partitions.main": zen("zen4"), "partitions.old": zen("zen2")},
        at="partitions.old.cpu.target",
    ),
    "memory per rank": Broken(
        OMNI_PATH,
        "4 ranks × 40 GB = 160 GB exceeds the 96 GB that a job may use on a node of main",
        job=JobRequest(ranks_per_node=4, memory_per_rank_gb=40),
        good_job=JobRequest(ranks_per_node=4, memory_per_rank_gb=20),
        at="partitions.main.memory",
    ),
    "memory that an option of the profile takes away": Broken(
        OMNI_PATH,
        "the ranks of a node need 80 GB, and the job gets 15.5 GB by --mem-per-cpu=3968M",
        {"scheduler.directives": ["--mem-per-cpu=3968M"]},
        job=JobRequest(ranks_per_node=4, threads_per_rank=1, memory_per_rank_gb=20),
        at="scheduler.memory_request",
    ),
    "memory that a queue gives by default": Broken(
        OMNI_PATH,
        "the ranks of a node need 80 GB, and the job gets 4 GB by the default of work",
        {
            "scheduler.memory_request": "none",
            "partitions.main.queues": [{"name": "work", "default_memory": {"cpu": 1}}],
        },
        job=JobRequest(ranks_per_node=4, threads_per_rank=1, memory_per_rank_gb=20),
        at="scheduler.memory_request",
    ),
    "memory above what a queue gives": Broken(
        OMNI_PATH,
        "the ranks of a node need 80 GB, and work gives a job at most 48 GB of a node",
        {"partitions.main.queues": [{"name": "work", "max_memory": {"cpu": 1}}]},
        job=JobRequest(ranks_per_node=4, threads_per_rank=1, memory_per_rank_gb=20),
        at="partitions.main.queues",
    ),
    "no bind shows the host's MPI": Broken(
        OMNI_PATH,
        f"no bind makes {HOST}/lib visible inside: ranks would use the image's own MPI",
        {"mpi.binds": [{"source": "/opt/other", "target": "/opt/other"}]},
        at="mpi.libraries",
    ),
    "a bind covers the image": Broken(
        OMNI_PATH,
        "/opt/. would hide /opt of the image, with everything in it",
        {"mpi.binds": [{"source": "/opt/.", "target": "/opt"}]},
        at="mpi.binds",
    ),
    "a file system covers the image": Broken(
        OMNI_PATH,
        "/opt would hide /opt of the image, with everything in it",
        {"file_systems": {"apps": {"kind": "nfs", "path": "/opt", "bind": True}}},
        at="file_systems.apps.bind",
    ),
    "engine too old for a build in two stages": Broken(
        SLINGSHOT,
        "has singularity 3.1.1: a build in two stages came with 3.2",
        {"containers.engines.singularity.version": "3.1.1"},
        settings=MPICH_SETTINGS,
        at="containers.engines.singularity.version",
    ),
    "engine too old for AMD GPUs": Broken(
        AMD,
        "has singularity 3.4.1: AMD GPUs need --rocm, which came with 3.5",
        {"containers.engines.singularity.version": "3.4.1"},
        stack="rocm",
        settings=("rocm.version=5.7.1",),
        at="containers.engines.singularity.version",
    ),
    "engine too old for the binds of a job": Broken(
        OMNI_PATH,
        "has charliecloud 0.2.3: -b SOURCE:TARGET and -c came with 0.2.4",
        {"containers.engines.charliecloud.version": "0.2.3"},
        at="containers.engines.charliecloud.version",
    ),
    "forbidden engine": Broken(
        OMNI_PATH,
        "does not allow docker (docker: its daemon runs as root, 2024-05)",
        {"containers.engines.docker": {"allowed": False, "reason": "its daemon runs as root", "decided": "2024-05"}},
        format="docker",
        at="containers.engines.docker",
    ),
    "more nodes than a launcher spans": Broken(
        {**NVIDIA, "partitions": {"main": NODE}},
        "2 nodes cannot be used: the profile of broken names no host MPI",
        {"scheduler.kind": "pbs"},
        job=JobRequest(nodes=2),
    ),
    "no network and no bundle": Broken(
        OMNI_PATH,
        "the building host has no internet, and no mirror for the base image debian:12, packages of debian, source",
        {"network.internet.build": False},
        settings=("base.provider=debian",),
        at="network.internet.build",
    ),
}


def changed(site: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """A profile with other values at some paths."""
    result: dict[str, Any] = {"name": "broken", **copy.deepcopy(dict(site))}
    for path, value in facts.items():
        *above, last = path.split(".")
        place = result
        for step in above:
            place = place[step]
        place[last] = value
    return {name: value for name, value in result.items() if value is not None}


class Workshop:
    """A collection with the stacks and the block of these tests, and one profile."""

    def __init__(self, folder: Path) -> None:
        for name in ("recipes", "building_blocks"):
            (folder / name).mkdir(parents=True)
        for name, stack in STACKS.items():
            text = json.dumps({"name": name, "title": name, **stack})
            (folder / "recipes" / f"{name}.yaml").write_text(text)
        blocks = folder / "building_blocks"
        (blocks / "plain_mpi.py").write_text(PLAIN_MPI)
        (blocks / "plain_mpi.yaml").write_text(PLAIN_RELEASES)
        (blocks / "virtuals.yaml").write_text("virtuals:\n  mpi: [plain_mpi]\n")
        self.folder, self.profile = folder, folder / "broken.yaml"

    def plan(self, site: Mapping[str, Any], stack: str, **asked: Any) -> Plan:
        self.profile.write_text(json.dumps(site, indent=1))
        catalog = Catalog([self.folder])
        name = str(self.profile)
        return make_plan(
            catalog,
            catalog.site(name),
            catalog.stack(stack),
            site_document=catalog.site_document(name),
            **asked,
        )

    def line(self, path: str) -> int:
        """The line of the profile on which a fact begins."""
        document = Catalog([self.folder]).site_document(str(self.profile))
        return document.position(path.split(".")).line
