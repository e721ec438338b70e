"""Combinations of image and host that cannot work: each is refused before a build, and the good one passes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.planning.contract.case import Check
from hpcgen.planning.contract.verdict import AT_START, CHECKS, case_of, case_of_plan, checks_of
from tests.conftest import Command
from tests.helpers.contract_cases import (
    CASES,
    HOOKED,
    INFINIBAND,
    MPICH_SETTINGS,
    NVIDIA,
    OMNI_PATH,
    SLINGSHOT,
    Workshop,
    changed,
    zen,
)


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
    assert not [each for each in plan.findings if each.severity != "detail" and each.name in CHECKS]


def test_everything_that_is_broken_is_told_at_once(workshop: Workshop) -> None:
    facts = {"mpi.pmi": ["pmix"], "environment.FI_PROVIDER": "tcp", "mpi.glibc": "2.99"}
    job = JobRequest(ranks_per_node=2, memory_per_rank_gb=90, queue="none")
    with pytest.raises(PolicyError) as caught:
        workshop.plan(changed(OMNI_PATH, facts), "hello", job=job)
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    for words in ("no queue 'none'", "ask for 2.99", "offers pmix", "FI_PROVIDER=tcp", "180 GB exceeds"):
        assert words in text
    # What does not fit the machine is no matter of policy.
    with pytest.raises(PolicyError, match="no queue 'none'") as still:
        workshop.plan(changed(OMNI_PATH, facts), "hello", job=job, allow_unsupported=True)
    assert len(still.value.problems) == 1


def test_a_closed_site_is_said_and_can_be_planned_for(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {"closed": "2024-01"}), "hello")
    assert [each.message for each in plan.findings if each.severity == "warning"] == [
        "broken is closed (2024-01): no job can run there"
    ]


def test_what_is_not_known_is_one_note(workshop: Workshop) -> None:
    facts = {"mpi.glibc": None, "system.glibc": None, "mpi.pmi": [], "fabric": {"kind": "efa"}}
    plan = workshop.plan(changed(OMNI_PATH, facts), "hello", settings=["mpi.provider=plain_mpi"])
    assert [each.message for each in plan.findings if each.name == "contract"] == [
        "the profile lacks facts to check C library, PMI, fabric provider"
    ]


@pytest.mark.parametrize(
    ("engine", "facts", "allowed", "outcome"),
    [
        ("charliecloud", OMNI_PATH, False, "doubtful"),
        ("charliecloud", OMNI_PATH, True, "holds"),
        ("charliecloud", OMNI_PATH, None, "skipped"),
        ("apptainer", INFINIBAND, False, "doubtful"),
        ("singularity", SLINGSHOT, False, "skipped"),
    ],
)
def test_an_engine_in_user_namespaces_is_doubted_where_users_may_not_create_them(
    workshop: Workshop, engine: str, facts: Mapping[str, Any], allowed: bool | None, outcome: str
) -> None:
    site = changed(facts, {} if allowed is None else {"system.user_namespaces": allowed})
    plan = workshop.plan(site, "hello", settings=MPICH_SETTINGS if facts is SLINGSHOT else ())
    assert plan.engine == engine
    (check,) = checks_of(case_of_plan(plan), only=["user namespaces"])
    assert check.outcome == outcome
    warned = [each.message for each in plan.findings if each.name == "user namespaces"]
    assert warned == ([check.reason] if outcome == "doubtful" else [])


@pytest.mark.parametrize(
    ("engine", "outcome", "says"),
    [
        ({}, "unknown", "MPIR_CVAR_CH4_CMA_ENABLE"),
        ({"version": "1.2.5"}, "doubtful", "copied twice"),
        ({"version": "1.3.0"}, "holds", "as one container"),
        ({"version": "1.2.5", "setuid": True}, "holds", "without user namespaces"),
    ],
)
def test_ranks_that_the_kernel_keeps_apart_are_told(
    workshop: Workshop, engine: Mapping[str, Any], outcome: str, says: str
) -> None:
    plan = workshop.plan(changed(SLINGSHOT, {}), "hello", settings=MPICH_SETTINGS)
    containers = msgspec.convert(
        {"preferred": "apptainer", "engines": {"apptainer": engine}}, type(plan.site.containers)
    )
    blocks = [replace(block, version="5.0.2") if block.name == "mpich" else block for block in plan.blocks]
    mpi = replace(plan.site.mpi, flavour="mpich", version="5.0.2") if plan.site.mpi is not None else None
    site = replace(plan.site, containers=containers, mpi=mpi)
    job = replace(plan.job, ranks_per_node=4)
    (check,) = checks_of(
        case_of_plan(replace(plan, engine="apptainer", site=site, blocks=blocks, job=job)), only=["within a node"]
    )
    assert check.outcome == outcome and says in check.reason


def of_host(workshop: Workshop, site: Mapping[str, Any], flavour: str, version: str, *settings: str) -> Check:
    """The check of versions for a plan whose site has got another MPI since."""
    plan = workshop.plan(changed(site, {}), "hello", settings=settings)
    assert plan.site.mpi is not None
    mpi = replace(plan.site.mpi, flavour=flavour, version=version)
    other = replace(plan, site=replace(plan.site, mpi=mpi))
    return next(each for each in checks_of(case_of_plan(other)) if each.name == "MPI version")


def test_an_image_that_was_planned_for_a_newer_mpi_is_refused(workshop: Workshop) -> None:
    found = of_host(workshop, OMNI_PATH, "intel", "2021.8.0", "intel_mpi.version=2021.11.0")
    assert (found.outcome, found.expected) == ("broken", "intel_mpi 2021.8 or older")
    assert found.reason == (
        "the image has intel_mpi 2021.11.0, the host intel 2021.8.0: "
        "functions new in the image's MPI would be missing at run time"
    )
    assert of_host(workshop, OMNI_PATH, "intel", "2021.12.1", "intel_mpi.version=2021.11.0").outcome == "holds"


def test_a_host_of_which_only_the_year_is_known_may_be_new_enough(workshop: Workshop) -> None:
    found = of_host(workshop, OMNI_PATH, "intel", "2021", "intel_mpi.version=2021.11.0")
    assert (found.outcome, found.path) == ("unknown", "mpi.version")
    assert of_host(workshop, OMNI_PATH, "intel", "2019", "intel_mpi.version=2021.11.0").outcome == "broken"
    assert of_host(workshop, OMNI_PATH, "intel", "2022", "intel_mpi.version=2021.11.0").outcome == "holds"


def test_functions_that_a_cray_mpich_of_another_generation_has_not_are_doubted(workshop: Workshop) -> None:
    mpich = ("mpi.provider=mpich", "mpich.version=4.2.3")
    found = of_host(workshop, OMNI_PATH, "cray-mpich", "8.1.30", *mpich)
    assert found.outcome == "doubtful" and "which is derived from MPICH 3.4" in found.reason
    assert of_host(workshop, OMNI_PATH, "cray-mpich", "9.0.1", *mpich).outcome == "holds"


@pytest.mark.parametrize(
    ("image", "host", "outcome", "says"),
    [
        ("2.3.1", None, "doubtful", "require FABRIC_1.8, and the profile does not say which libfabric"),
        ("2.3.1", "1.22.0", "broken", "require FABRIC_1.8, and the host's 1.22.0 in its place ends with FABRIC_1.7"),
        ("2.3.1", "2.6.0", "holds", "require FABRIC_1.8, and the host's 2.6.0 in its place has FABRIC_1.9"),
        ("1.22.0", "1.20.1", "holds", "require FABRIC_1.7"),
        ("1.20.2", "1.15.2", "broken", "ends with FABRIC_1.6"),
    ],
)
def test_the_libfabric_that_a_hook_brings_has_what_the_images_asks_for(
    workshop: Workshop, image: str, host: str | None, outcome: str, says: str
) -> None:
    settings = ("mpi.provider=mpich", f"libfabric.version={image}")
    plan = workshop.plan(changed(HOOKED, {"fabric.libfabric": None}), "hello", settings=settings)
    assert [each.severity for each in plan.findings if each.name == "libfabric"] == ["warning"]
    fabric = replace(plan.site.fabric, libfabric=host)
    # As of an image that is there, for a host that has another since.
    found = checks_of(case_of_plan(replace(plan, site=replace(plan.site, fabric=fabric))), only=AT_START)
    (check,) = [each for each in found if each.name == "libfabric"]
    assert check.outcome == outcome and says in check.reason
    if outcome != "holds":
        older = check.remedy.rpartition("libfabric.version=")[2].rstrip('"')
        workshop.plan(changed(HOOKED, {"fabric.libfabric": host}), "hello", settings=(f"libfabric.version={older}",))


def test_a_conflict_over_the_fabric_of_one_kind_of_node_names_its_line(workshop: Workshop) -> None:
    nodes = {**SLINGSHOT["partitions"]["main"], "fabric": {**HOOKED["fabric"], "libfabric": "1.15.2"}}
    settings = ("mpi.provider=mpich", "libfabric.version=1.22.0")
    with pytest.raises(ConflictError, match=r"libfabric 1\.15\.2, which replaces the image's") as caught:
        workshop.plan(changed(HOOKED, {"partitions.main": nodes}), "hello", settings=settings)
    assert f"{workshop.profile}:{workshop.line('partitions.main.fabric.libfabric')}:" in str(caught.value)


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
    assert {found[name] for name in mpi} == {"skipped"}
    assert (found["GPU driver"], found["GPU architecture"], found["licences"]) == ("holds", "holds", "doubtful")


def test_a_host_that_only_starts_the_ranks_is_asked_for_its_pmi_alone(workshop: Workshop) -> None:
    facts = {"mpi.libraries": [], "mpi.binds": [], "fabric": {"kind": "ethernet"}}
    found = outcomes(workshop, changed(SLINGSHOT, facts), "hello", settings=MPICH_SETTINGS)
    assert (found["MPI ABI"], found["C library"], found["PMI"]) == ("skipped", "skipped", "holds")


@pytest.mark.parametrize("provider", ["mpich", "openmpi"])
@pytest.mark.parametrize("site", ["snellius", "caviness", "slurm-cpu"])
def test_several_nodes_without_a_described_mpi_are_one_rule(site: str, provider: str) -> None:
    plan = hpcgen.plan(site, "mpi-hello", settings={"mpi.provider": provider}, nodes=2, account="lab")
    pmi = {"mpich": "pmi2", "openmpi": "pmix"}[provider]
    (warning,) = [
        each for each in plan.findings if each.severity == "warning" and each.name not in ("transport key", "limit")
    ]
    assert warning.message == (
        f"the profile of {site} names no host MPI: srun starts the image's own {provider} on 2 nodes by {pmi}; "
        "the profile does not state support for this"
    )
    checks = {each.name: each.outcome for each in checks_of(case_of(plan, Catalog()))}
    assert checks["PMI"] == "unknown" and checks["fabric provider"] in ("holds", "skipped")
    script = hpcgen.render(plan).files["job.slurm"].text
    assert script.splitlines()[-1].startswith("srun ") and f" --mpi={pmi} " in script.splitlines()[-1]
    alone = hpcgen.plan(site, "mpi-hello", settings={"mpi.provider": provider}, nodes=1, account="lab")
    assert not [each for each in alone.findings if each.severity == "warning" and each.name != "limit"]


@pytest.mark.parametrize(
    ("facts", "given", "missing"),
    [
        ({"mpi.libraries": [], "mpi.binds": []}, "mpi.root", "mpi.libraries and mpi.binds"),
        ({"mpi.libraries": []}, "mpi.binds", "mpi.libraries"),
    ],
)
def test_a_host_mpi_that_is_half_described_is_said_to_be(
    workshop: Workshop, facts: dict[str, Any], given: str, missing: str
) -> None:
    plan = workshop.plan(changed(OMNI_PATH, facts), "hello")
    (finding,) = [each for each in plan.findings if each.name == "binds"]
    assert finding.severity == "warning"
    assert finding.message.startswith(f"the profile has {given} and no {missing}, so the host's intel does not replace")
    assert finding.remedy.startswith(f"add {missing}, or remove mpi.root")
    whole = workshop.plan(changed(OMNI_PATH, {}), "hello")
    started = workshop.plan(changed(OMNI_PATH, {**facts, "mpi.root": None, "mpi.binds": []}), "hello")
    assert not [each for each in (*whole.findings, *started.findings) if each.name == "binds"]


def test_a_header_option_keeps_a_job_on_its_kind_of_node(workshop: Workshop) -> None:
    nodes = {"main": {**zen("zen4"), "directives": ["--constraint=new"]}, "old": zen("zen2")}
    assert outcomes(workshop, changed(OMNI_PATH, {"partitions": nodes}), "hello")["CPU"] == "holds"


def test_nodes_that_differ_in_nothing_that_compilers_use_may_share_a_queue(workshop: Workshop) -> None:
    nodes = {"main": zen("broadwell"), "old": zen("haswell")}
    assert outcomes(workshop, changed(OMNI_PATH, {"partitions": nodes}), "hello")["CPU"] == "holds"


def test_an_engine_that_only_cannot_build_is_doubted(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {"containers.engines.charliecloud.version": "0.25"}), "hello")
    [told] = [each for each in plan.findings if each.name == "engine"]
    assert told.severity == "warning" and told.remedy == "build with 0.31 or newer elsewhere"


def test_docker_shows_gpus_from_19_03_on(workshop: Workshop) -> None:
    def engine(version: str) -> str:
        docker = {"preferred": "docker", "engines": {"docker": {"version": version}}}
        return outcomes(workshop, changed(NVIDIA, {"containers": docker}), "cuda", allow_unsupported=True)["engine"]

    assert (engine("18.09.9"), engine("19.03.0")) == ("broken", "holds")


def test_mirrors_are_enough_for_a_host_without_internet(workshop: Workshop) -> None:
    mirrors = {
        "apt": {"debian": {"archive": "https://mirror.example.org/debian"}},
        "files": "https://mirror.example.org/files",
        "pip": "https://mirror.example.org/simple",
        "registry": "registry.example.org/proxy",
    }
    site = changed(OMNI_PATH, {"network.internet.build": False, "network.mirrors": mirrors})
    assert outcomes(workshop, site, "hello", settings=["base.provider=debian"])["network"] == "holds"


def test_a_base_that_is_not_among_the_sites_own_images_is_told(workshop: Workshop) -> None:
    images = {"debian:12": {"docker": "registry.example.org/debian:12"}}
    asked = {"network.internet.build": True, "network.mirrors": {"images": images}}
    site = changed(OMNI_PATH, asked)
    assert outcomes(workshop, site, "hello", settings=["debian.version=12"])["network"] == "holds"
    assert outcomes(workshop, site, "hello", settings=["debian.version=13"])["network"] == "doubtful"
    asked["network.mirrors"] = {"images": images, "registry": "registry.example.org/proxy"}
    assert outcomes(workshop, changed(OMNI_PATH, asked), "hello", settings=["debian.version=13"])["network"] == "holds"


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
    assert table.returncode == 6 and "PMI               broken   mpiexec offers pmix" in table.stdout
    assert hpcgen("contract", *words, "--allow-unsupported").returncode == 0


def test_nothing_is_written_for_a_broken_contract(hpcgen: Command, workshop: Workshop, tmp_path: Path) -> None:
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {"mpi.pmi": ["pmix"]}), indent=1))
    words = ["render", "--site", str(workshop.profile), "--stack", "mpi-hello", "-o", "kit"]
    done = hpcgen(*words)
    assert (done.returncode, (tmp_path / "kit").exists()) == (6, False)
    assert f"{workshop.profile}:{workshop.line('mpi.pmi')}:" in done.stderr
    done = hpcgen(*words, "--allow-unsupported")
    assert done.returncode == 0 and "warning: mpiexec offers pmix" in done.stderr


def test_an_image_that_is_there_is_warned_about_at_another_site(
    hpcgen: Command, workshop: Workshop, tmp_path: Path
) -> None:
    """It cannot be changed any more, so it is started all the same."""
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {}), indent=1))
    (tmp_path / "image" / "opt" / "hpcgen").mkdir(parents=True)
    kit = ["-o", "image/opt/hpcgen/kit"]
    assert hpcgen("render", "--site", str(workshop.profile), "--stack", "mpi-hello", *kit).returncode == 0
    there = hpcgen("job", "./image", "--site", str(workshop.profile))
    facts = {"mpi.version": "2021.4.0", "environment.FI_PROVIDER": "tcp"}
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, facts), indent=1))
    assert there.returncode == 0 and "warning" not in there.stderr
    other = hpcgen("job", "./image", "--site", str(workshop.profile))
    assert other.returncode == 0
    assert "warning: the image has intel_mpi 2021.11.0, the host intel 2021.4.0" in other.stderr
    assert "warning: FI_PROVIDER=tcp lets libfabric use TCP" in other.stderr


def test_the_remedy_for_an_old_base_names_those_that_are_new_enough(workshop: Workshop) -> None:
    settings = ("base.provider=ubuntu", "base.version=18.04")
    with pytest.raises(PolicyError) as caught:
        workshop.plan(changed(OMNI_PATH, {}), "mpi-hello", settings=settings)
    remedy = next(problem.remedy for problem in caught.value.problems if "2.27" in problem.message)
    assert "ubuntu 22.04" in remedy and "ubuntu 18.04" not in remedy


def test_code_for_gpus_of_amd_is_held_against_their_instruction_set(hpcgen: Command) -> None:
    said = hpcgen(
        "contract", "--site", "hunter", "--stack", "onnxruntime", "--set", "onnxruntime.install=source"
    ).stdout
    assert re.search(r"GPU architecture +holds +rocm [0-9.]+ has code for target gfx942", said)
    # Nobody says which driver it has.
    assert re.search(r"GPU driver +unknown +driver 6.3 is enough for rocm, but only assumed", said)


def test_the_release_that_brought_something_has_it(workshop: Workshop) -> None:
    case = CASES["engine too old for a build in two stages"]
    facts = {"containers.engines.singularity.version": "3.2"}
    workshop.plan(changed(case.site, facts), case.stack, settings=case.settings)


def test_an_engine_of_no_known_version_cannot_do_what_its_oldest_release_cannot(workshop: Workshop) -> None:
    case = CASES["engine too old for AMD GPUs"]
    with pytest.raises(PolicyError, match="AMD GPUs need --rocm"):
        facts = {"containers.engines.singularity.version": None}
        workshop.plan(changed(case.site, facts), case.stack, settings=case.settings)


def test_the_nodes_of_a_queue_are_named_by_it(hpcgen: Command) -> None:
    queued = hpcgen("contract", "--site", "supermuc", "--stack", "mpi-hello").stdout
    assert "in the queue micro there are nodes of thin only" in queued
    alone = hpcgen("contract", "--site", "workstation", "--stack", "mpi-hello").stdout
    assert "the job runs on nodes of main only" in alone


@pytest.mark.parametrize(("version", "outcome"), [("4.3.2", "doubtful"), ("3.4.3", "holds")])
def test_functions_of_a_newer_standard_are_doubted_across_names(version: str, outcome: str) -> None:
    """Intel MPI 2019 has MPI 3.1; sessions and counts of 64 bits came with MPICH 4."""
    settings = {"mpi.provider": "mpich", "mpich.version": version}
    plan = hpcgen.plan("supermuc", "mpi-hello", settings=settings)
    (check,) = checks_of(case_of(plan, Catalog()), only=("MPI version",))
    assert check.outcome == outcome
    assert ("mpich.version=<4" in check.remedy) == (outcome == "doubtful")
