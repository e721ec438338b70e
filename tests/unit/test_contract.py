"""Combinations of image and host that cannot work: each is refused before a build, and the good one passes."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from hpcgen.assemble import assemble
from hpcgen.catalog import Catalog
from hpcgen.contract.case import Check
from hpcgen.contract.verdict import CHECKS, case_of, checks_of, light_case
from hpcgen.errors import ConflictError, HpcgenError, PolicyError
from hpcgen.model.job import JobRequest
from hpcgen.model.plan import Plan
from hpcgen.planning import make_plan
from tests.conftest import Command

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
from hpcgen.block import Block
from hpcgen.promises import Promises

class PlainMpi(Block):
    """An MPI without a fabric."""
    name = "plain_mpi"
    provides = ("mpi",)

    @classmethod
    def suits(cls, facts):
        return 9

    def promises(self, ctx):
        return Promises("mpich", ctx.release.values["library"], ("hydra", "pmi2"), ("tcp",))
'''
PLAIN_RELEASES = """
block: plain_mpi
releases:
  "1": {values: {library: libmpich.so.12}}
  "2": {values: {library: libmpi.so.12}}
"""
STACKS = {
    "hello": {"blocks": {"mpi": {}, "rank_test": {}}, "run": {"command": ["true"]}},
    "packages": {
        "blocks": {"mpi": {}, "rank_test": {}, "os_packages": {"options": {"packages": ["zlib1g"]}}},
        "run": {"command": ["true"]},
    },
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
        "the package libmpich12 brings libmpich.so.12, which the host's intel (libmpi.so.12) does not replace",
        stack="packages",
        settings=("os_packages.packages=zlib1g,libmpich12",),
        good=("os_packages.packages=zlib1g",),
        at="mpi.abi",
    ),
    "MPI linked as libmpich.so.12": Broken(
        SLINGSHOT,
        "plain_mpi 1 of the image is libmpich.so.12, and the host's cray-mpich 8.1.30 is libmpi.so.12",
        settings=("mpi.provider=plain_mpi", "plain_mpi.version=1"),
        good=("mpi.provider=plain_mpi", "plain_mpi.version=2"),
        at="mpi.abi",
    ),
    "Open MPI under an MPICH ABI host": Broken(
        SLINGSHOT, "openmpi", settings=("mpi.provider=openmpi",), good=MPICH_SETTINGS, conflict=True
    ),
    "host MPI older than the image's": Broken(
        INFINIBAND,
        "the host's Open MPI 5.0.6, which takes its place: same major, not newer",
        settings=("openmpi.version=5.0.8",),
        good=("openmpi.version=5.0.6",),
        conflict=True,
    ),
    "Open MPI 5 with pmi2 only": Broken(
        INFINIBAND,
        "srun offers pmi2, and the host's openmpi 5.0.6 understands pmix: each rank would be a job of its own",
        {"mpi.pmi": ["pmi2"]},
        at="mpi.pmi",
    ),
    "srun asked for pmix, and the image's MPICH knows pmi2": Broken(
        SLINGSHOT,
        "srun is asked for pmix, and mpich 3.4.3 understands hydra, pmi, pmi2",
        {"mpi.pmi": ["pmix", "pmi2"], "mpi.libraries": [], "mpi.binds": [], "fabric.kind": "ethernet"},
        settings=MPICH_SETTINGS,
        at="mpi.pmi",
    ),
    "psm2 absent on Omni-Path": Broken(
        OMNI_PATH,
        "nothing in the image can drive omni-path by psm2, and no library of the host for it is shown there",
        settings=("mpi.provider=plain_mpi",),
        good=("mpi.provider=intel_mpi",),
        at="fabric.provider",
    ),
    "Slingshot without the host's libfabric": Broken(
        SLINGSHOT,
        "nothing in the image can drive slingshot by cxi, and no library of the host for it is shown there",
        {"fabric.libraries": []},
        settings=MPICH_SETTINGS,
        at="fabric.provider",
    ),
    "TCP fallback": Broken(
        OMNI_PATH,
        "FI_PROVIDER=psm2,tcp lets libfabric take TCP, although there is omni-path",
        {"environment.FI_PROVIDER": "psm2,tcp"},
        at="environment.FI_PROVIDER",
    ),
    "TCP fallback by the stack": Broken(
        OMNI_PATH, "FI_PROVIDER=psm2,tcp lets libfabric take TCP", stack="tcp", good_stack="hello"
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
    "forward compatibility on a GeForce": Broken(
        NVIDIA,
        "cuda-compat-12-8 is of a newer driver, which NVIDIA supports on data-centre GPUs; GeForce GTX 1080 Ti is none",
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
        "4 ranks × 40 GB = 160 GB exceed the 96 GB that a job may use on a node of main",
        job=JobRequest(ranks_per_node=4, memory_per_rank_gb=40),
        good_job=JobRequest(ranks_per_node=4, memory_per_rank_gb=20),
        at="partitions.main.memory",
    ),
    "no bind shows the host's MPI": Broken(
        OMNI_PATH,
        f"no bind shows {HOST}/lib inside: ranks would use the image's own MPI",
        {"mpi.binds": [{"source": "/opt/other", "target": "/opt/other"}]},
        at="mpi.libraries",
    ),
    "a bind covers the image": Broken(
        OMNI_PATH,
        "/opt/. would cover /opt of the image, with all that is in there",
        {"mpi.binds": [{"source": "/opt/.", "target": "/opt"}]},
        at="mpi.binds",
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
    "ch-image too old": Broken(
        OMNI_PATH,
        "has charliecloud 0.25: the instructions of the recipe (ch-image) came with 0.31",
        {"containers.engines.charliecloud.version": "0.25"},
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
        job=JobRequest(nodes=2),
    ),
    "no network and no bundle": Broken(
        OMNI_PATH,
        "the host that builds has no internet, and no mirror for the base image debian:12, packages of debian, source",
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


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "collection")


@pytest.mark.parametrize("name", list(CASES))
def test_a_broken_combination_is_refused_with_its_reason(name: str, workshop: Workshop) -> None:
    case = CASES[name]
    asked: dict[str, Any] = {"settings": case.settings, "job": case.job, "format": case.format}
    with pytest.raises(HpcgenError) as caught:
        workshop.plan(changed(case.site, case.facts), case.stack, **asked)
    assert type(caught.value) is (ConflictError if case.conflict else PolicyError)
    found = [problem for problem in caught.value.problems if case.says in problem.message]
    assert found, str(caught.value)
    assert found[0].remedy
    if case.at:
        assert str(found[0].where).startswith(f"{workshop.profile}:{workshop.line(case.at)}:")
    if not case.conflict:
        overruled = workshop.plan(changed(case.site, case.facts), case.stack, allow_unsupported=True, **asked)
        assert [each.severity for each in overruled.findings if case.says in each.message] == ["warning"]


@pytest.mark.parametrize("name", list(CASES))
def test_the_corrected_one_passes(name: str, workshop: Workshop) -> None:
    case = CASES[name]
    settings = case.good or case.settings
    if name == "forward compatibility on a GeForce":
        assert case.site is NVIDIA  # whose GPU is one of a data centre, so that the same package may stay
    plan = workshop.plan(changed(case.site, {}), case.good_stack or case.stack, settings=settings, job=case.good_job)
    assert not [each for each in plan.findings if each.severity != "note" and each.name in CHECKS]


def test_everything_that_is_broken_is_told_at_once(workshop: Workshop) -> None:
    facts = {"mpi.pmi": ["pmix"], "environment.FI_PROVIDER": "tcp", "mpi.glibc": "2.99"}
    job = JobRequest(ranks_per_node=2, memory_per_rank_gb=90, queue="none")
    with pytest.raises(PolicyError) as caught:
        workshop.plan(changed(OMNI_PATH, facts), "hello", job=job)
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    for words in ("no queue 'none'", "ask for 2.99", "offers pmix", "FI_PROVIDER=tcp", "180 GB exceed"):
        assert words in text
    # What does not fit the machine is no matter of policy.
    with pytest.raises(PolicyError, match="no queue 'none'") as still:
        workshop.plan(changed(OMNI_PATH, facts), "hello", job=job, allow_unsupported=True)
    assert len(still.value.problems) == 1


def test_a_closed_site_is_said_and_can_be_planned_for(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {"status": "closed", "closed": "2024-01"}), "hello")
    assert [each.message for each in plan.findings if each.severity == "warning"] == [
        "broken is closed (2024-01): no job can run there"
    ]


def test_what_is_not_known_is_one_note(workshop: Workshop) -> None:
    facts = {"mpi.glibc": None, "system.glibc": None, "mpi.pmi": [], "fabric": {"kind": "efa"}}
    plan = workshop.plan(changed(OMNI_PATH, facts), "hello", settings=["mpi.provider=plain_mpi"])
    assert [each.message for each in plan.findings if each.name == "contract"] == [
        "the profile does not say enough to check C library, PMI, fabric provider"
    ]


def of_host(workshop: Workshop, site: Mapping[str, Any], flavour: str, version: str, *settings: str) -> Check:
    """The check of versions for a plan whose site has got another MPI since."""
    plan = workshop.plan(changed(site, {}), "hello", settings=settings)
    assert plan.site.mpi is not None
    mpi = replace(plan.site.mpi, flavour=flavour, version=version)
    other = replace(plan, site=replace(plan.site, mpi=mpi))
    return next(each for each in checks_of(light_case(other)) if each.name == "MPI version")


def test_an_image_that_was_planned_for_a_newer_mpi_is_refused(workshop: Workshop) -> None:
    found = of_host(workshop, OMNI_PATH, "intel", "2021.8.0", "intel_mpi.version=2021.11.0")
    assert (found.outcome, found.expected) == ("broken", "intel_mpi 2021.8 or older")
    assert found.reason == (
        "the image has intel_mpi 2021.11.0, the host intel 2021.8.0: "
        "what is newer in the image's would be missing at run time"
    )
    assert of_host(workshop, OMNI_PATH, "intel", "2021.12.1", "intel_mpi.version=2021.11.0").outcome == "holds"


def test_functions_that_a_cray_mpich_of_another_generation_has_not_are_doubted(workshop: Workshop) -> None:
    mpich = ("mpi.provider=mpich", "mpich.version=4.2.3")
    found = of_host(workshop, OMNI_PATH, "cray-mpich", "8.1.30", *mpich)
    assert found.outcome == "doubtful" and "which is made from MPICH 3.4" in found.reason
    assert of_host(workshop, OMNI_PATH, "cray-mpich", "9.0.1", *mpich).outcome == "holds"


def outcomes(workshop: Workshop, site: Mapping[str, Any], stack: str, **asked: Any) -> dict[str, str]:
    plan = workshop.plan(site, stack, **asked)
    found = checks_of(case_of(plan, Catalog([workshop.folder])))
    assert {each.name for each in found} == set(CHECKS)
    return {each.name: each.outcome for each in found}


def test_the_usual_provider_of_a_fabric_is_enough_where_the_profile_names_none(workshop: Workshop) -> None:
    assert outcomes(workshop, changed(OMNI_PATH, {"fabric.provider": None}), "hello")["fabric provider"] == "holds"


def test_what_does_not_arise_is_left_out(workshop: Workshop) -> None:
    found = outcomes(workshop, changed(NVIDIA, {}), "cuda")
    mpi = ("C library", "MPI ABI", "MPI version", "PMI", "fabric provider", "TCP fallback", "binds")
    assert {found[name] for name in mpi} == {"left out"}
    assert (found["GPU driver"], found["GPU architecture"], found["licences"]) == ("holds", "holds", "doubtful")


def test_a_host_that_only_starts_the_ranks_is_asked_for_its_pmi_alone(workshop: Workshop) -> None:
    facts = {"mpi.libraries": [], "mpi.binds": [], "fabric": {"kind": "ethernet"}}
    found = outcomes(workshop, changed(SLINGSHOT, facts), "hello", settings=MPICH_SETTINGS)
    assert (found["MPI ABI"], found["C library"], found["PMI"]) == ("left out", "left out", "holds")


def test_a_header_option_keeps_a_job_on_its_kind_of_node(workshop: Workshop) -> None:
    nodes = {"main": {**zen("zen4"), "directives": ["--constraint=new"]}, "old": zen("zen2")}
    assert outcomes(workshop, changed(OMNI_PATH, {"partitions": nodes}), "hello")["CPU"] == "holds"


def test_mirrors_are_enough_for_a_host_without_internet(workshop: Workshop) -> None:
    mirrors = {
        "apt": {"debian": {"archive": "https://mirror.example.org/debian"}},
        "files": "https://mirror.example.org/files",
        "pip": "https://mirror.example.org/simple",
        "registry": "registry.example.org/proxy",
    }
    site = changed(OMNI_PATH, {"network.internet.build": False, "network.mirrors": mirrors})
    assert outcomes(workshop, site, "hello", settings=["base.provider=debian"])["network"] == "holds"


# the command


def test_the_command_shows_every_check_and_fails_by_what_is_broken(hpcgen: Command, workshop: Workshop) -> None:
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {"mpi.pmi": ["pmix"]}), indent=1))
    words = ["--site", str(workshop.profile), "--stack", "mpi-hello"]
    done = hpcgen("contract", *words, "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 6 and set(rows) == set(CHECKS)
    assert rows["PMI"]["outcome"] == "broken"
    assert rows["PMI"]["where"].startswith(f"{workshop.profile}:{workshop.line('mpi.pmi')}:")
    table = hpcgen("contract", *words)
    assert table.returncode == 6 and "PMI               broken    mpiexec offers pmix" in table.stdout
    assert hpcgen("contract", *words, "--allow-unsupported").returncode == 0


def test_nothing_is_written_for_a_broken_contract(hpcgen: Command, workshop: Workshop, tmp_path: Path) -> None:
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {"mpi.pmi": ["pmix"]}), indent=1))
    words = ["render", "--site", str(workshop.profile), "--stack", "mpi-hello", "-o", "kit"]
    done = hpcgen(*words)
    assert (done.returncode, (tmp_path / "kit").exists()) == (6, False)
    assert f"{workshop.profile}:{workshop.line('mpi.pmi')}:" in done.stderr
    done = hpcgen(*words, "--allow-unsupported")
    assert done.returncode == 0 and "warning: mpiexec offers pmix" in done.stderr


# licences


def licensed(workshop: Workshop, tmp_path: Path) -> list[str]:
    """A kit in which Intel MPI is, whose licence a person has to accept."""
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {}), indent=1))
    return ["--site", str(workshop.profile), "--stack", "mpi-hello"]


NOBODY = {"HPCGEN_ACCEPT_LICENCES": ""}
REFUSED = "Intel Simplified Software License has to be accepted by a person: https://"


def test_render_notes_a_licence_and_build_wants_it_accepted(
    hpcgen: Command, workshop: Workshop, tmp_path: Path
) -> None:
    words = licensed(workshop, tmp_path)
    rendered = hpcgen("render", *words, "-o", "kit", env=NOBODY)
    assert rendered.returncode == 0
    assert "note: building it wants --accept-licence intel-simplified" in rendered.stderr
    [licence] = json.loads((tmp_path / "kit" / "plan.json").read_text())["licences"]
    assert licence["name"] == "intel-simplified" and "accepted" not in licence
    for what in ([*words], ["kit"]):
        done = hpcgen("build", *what, env=NOBODY)
        assert (done.returncode, REFUSED in done.stderr) == (6, True)
        assert "add --accept-licence intel-simplified, or set HPCGEN_ACCEPT_LICENCES=intel-simplified" in done.stderr


def test_lock_wants_every_licence_before_it_asks_anybody(hpcgen: Command, workshop: Workshop, tmp_path: Path) -> None:
    done = hpcgen("lock", *licensed(workshop, tmp_path), env=NOBODY)
    assert (done.returncode, REFUSED in done.stderr) == (6, True)
    assert not (tmp_path / "hpcgen.lock").exists()


@pytest.mark.parametrize("how", ["option", "all", "environment", "config"])
def test_a_licence_is_accepted_in_four_ways(hpcgen: Command, workshop: Workshop, tmp_path: Path, how: str) -> None:
    words, env = licensed(workshop, tmp_path), dict(NOBODY)
    if how == "environment":
        env["HPCGEN_ACCEPT_LICENCES"] = "other, intel-simplified"
    elif how == "config":
        (tmp_path / "config.yaml").write_text("licences: {intel-simplified: 2026-11-20}\n")
        env["HPCGEN_CONFIG"] = str(tmp_path / "config.yaml")
    else:
        words += ["--accept-licence", "all" if how == "all" else "intel-simplified"]
    done = hpcgen("contract", *words, "--json", env=env)
    [row] = [row for row in json.loads(done.stdout) if row["name"] == "licences"]
    assert row["outcome"] == "holds", row
    # No engine is needed to come beyond the question.
    engine = {"PATH": str(tmp_path)}
    built = hpcgen("build", *words, "--kit", "kit", env={**env, **engine})
    assert REFUSED not in built.stderr and built.returncode == 69
    [licence] = json.loads((tmp_path / "kit" / "plan.json").read_text())["licences"]
    assert licence["accepted"] is True


def test_a_licence_is_asked_for_once_on_a_terminal(workshop: Workshop, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hpcgen", "build", *licensed(workshop, tmp_path)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    env = {**clean, "HPCGEN_CONFIG": str(tmp_path / "config.yaml"), "HPCGEN_ENTRY_POINTS": "0", "PATH": str(tmp_path)}
    asked = on_a_terminal(words, "n\n", env, tmp_path)
    assert "Do you accept it?" in asked and "has to be accepted by a person" in asked
    assert not (tmp_path / "config.yaml").exists()
    assert "kept in" in on_a_terminal(words, "y\n", env, tmp_path)
    assert "intel-simplified: 20" in (tmp_path / "config.yaml").read_text()
    assert "Do you accept it?" not in on_a_terminal(words, "", env, tmp_path)


def on_a_terminal(words: list[str], typed: str, env: Mapping[str, str], folder: Path) -> str:
    """What a command says on a terminal, on which something is typed."""
    near, far = os.openpty()
    try:
        os.write(near, typed.encode())
        process = subprocess.Popen(words, stdin=far, stdout=far, stderr=far, env=dict(env), cwd=folder)
        os.close(far)
        said = b""
        while True:
            try:
                said += os.read(near, 4096)
            except OSError:  # Linux says EIO when the last one on the other side is gone
                break
        process.wait(timeout=60)
    finally:
        os.close(near)
    return said.decode()


def test_the_hash_of_an_image_does_not_depend_on_who_accepted_what(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "hello")
    accepted = replace(plan, licences=[replace(each, accepted=True) for each in plan.licences])
    catalog = Catalog([workshop.folder])
    first, second = (assemble(each, catalog).labels["io.hpcgen.content"] for each in (plan, accepted))
    assert plan.licences and first == second
