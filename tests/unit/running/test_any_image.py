"""Images that hpcgen did not build against shipped machines: by what was read of them, before anything is started."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.image_facts import (
    GpuCode,
    ImageFabric,
    ImageFacts,
    ImageFramework,
    ImageGpu,
    ImageMpi,
    ImagePackage,
    ImageSettings,
    ImageSoftware,
    ImageSystem,
    Shown,
)
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import FoundImage, Plan, PlannedBlock, PlannedMpi
from hpcgen.core.model.stack import RunSpec
from hpcgen.planning.observed import compiled_for, seen
from hpcgen.running import foreign
from hpcgen.running.foreign import foreign_checks, foreign_plan

CATALOG = Catalog()
LIBRARY = "/usr/lib/libmpi.so.12"


def software(name: str, version: str, file: str = "/usr/lib/it") -> ImageSoftware:
    return ImageSoftware(name=name, file=file, version=Shown(version, file))


def system(glibc: str = "2.36", libc: str = "glibc", architecture: str = "amd64") -> ImageSystem:
    return ImageSystem(
        distribution=Shown("debian", "/etc/os-release"),
        release=Shown("12", "/etc/os-release"),
        architecture=Shown(architecture, "/bin/sh"),
        c_library=software(libc, glibc, "/lib/libc.so.6"),
    )


def mpi(name: str, version: str, pmi: Sequence[str] = ("pmi", "pmi2")) -> ImageMpi:
    abi = "openmpi" if name == "openmpi" else "mpich"
    soname = "libmpi.so.40" if name == "openmpi" else "libmpi.so.12"
    told = [Shown(each, LIBRARY) for each in pmi]
    return ImageMpi(
        name=name, file=f"/usr/lib/{soname}", version=Shown(version, LIBRARY), soname=soname, abi=abi, pmi=told
    )


def of(*libraries: ImageMpi, libc: ImageSystem | None = None, **more: object) -> ImageFacts:
    facts = ImageFacts(system=libc or system(), settings=ImageSettings(), mpi=list(libraries))
    return replace(facts, **more)


CUDA = of(
    frameworks=[ImageFramework(name="torch", file="/t", version=Shown("2.6.0", "/t"), variant="cuda")],
    gpu=ImageGpu(
        libraries=[software("cuda", "12.4.127", "/usr/local/lib/python3.11/site-packages/nvidia/libcudart.so.12")],
        code=[
            GpuCode("/torch/lib/libtorch_cuda.so", "code", cubins=["5.0", "6.0", "7.0", "8.0", "9.0"]),
            GpuCode("/torch/lib/libtorch_python.so", "list", cubins=["5.0", "6.0", "7.0", "8.0", "9.0"]),
        ],
    ),
)


def plan_of(facts: ImageFacts, site: str, **asked: int) -> Plan:
    """As a start of the image has it, with all folders that are bound."""
    profile = CATALOG.site(site)
    request = JobRequest(**asked)
    several = bool(asked)
    blocks = seen(facts, CATALOG, profile.mpi.abi if profile.mpi is not None else "").blocks
    if several and not facts.mpi:
        blocks = [*blocks, PlannedBlock(name=foreign.PROCESSES, version="", provides=["mpi"], mpi=PlannedMpi())]
    stack = replace(foreign.STACK, run=RunSpec(mpi=several))
    plan = foreign_plan(profile, None, stack, request, blocks)
    targets = [bind.target for bind in (profile.mpi.binds if profile.mpi is not None else [])]
    return foreign._with_mpi(replace(plan, found=FoundImage(folders=targets)), facts, CATALOG)


def outcomes(facts: ImageFacts, site: str, **asked: int) -> dict[str, str]:
    plan = plan_of(facts, site, **asked)
    return {each.name: each.outcome for each in foreign_checks(plan, facts, CATALOG)}


def test_the_hosts_mpi_is_taken_where_the_interfaces_agree() -> None:
    plan = plan_of(of(mpi("mpich", "4.1.2")), "supermuc", nodes=2)
    assert plan.site.mpi is not None and plan.site.mpi.shown_inside
    assert [each.severity for each in plan.findings] == ["note"]
    assert "replaces mpich 4.1.2" in plan.findings[0].message


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (of(mpi("openmpi", "4.1.4", ["pmix"])), "libmpi.so.40"),
        (of(mpi("mpich", "4.1.2"), libc=system("1.2.3", "musl")), "musl"),
    ],
)
def test_an_mpi_that_cannot_be_replaced_stays_and_is_told(facts: ImageFacts, why: str) -> None:
    plan = plan_of(facts, "supermuc", ranks_per_node=2)
    assert plan.site.mpi is None or not plan.site.mpi.shown_inside
    (finding,) = plan.findings
    assert finding.severity == "warning" and why in finding.message and finding.remedy


@pytest.mark.parametrize(("nodes", "outcome"), [(2, "broken"), (1, "skipped")])
def test_a_launcher_that_offers_nothing_of_the_images_starts_no_ranks_on_several_nodes(
    nodes: int, outcome: str
) -> None:
    facts = of(mpi("openmpi", "4.1.4", ["pmix"]))
    plan = plan_of(facts, "supermuc", nodes=nodes)
    host = CATALOG.site("supermuc").mpi
    assert host is not None
    plan = replace(plan, site=replace(plan.site, mpi=replace(host, launcher="srun", pmi=["pmi2"])))
    plan = foreign._with_mpi(plan, facts, CATALOG)
    checks = {each.name: each for each in foreign_checks(plan, facts, CATALOG)}
    assert checks["PMI"].outcome == outcome, checks["PMI"]


def test_what_looks_for_its_own_mpi_first_is_told_of_the_hosts() -> None:
    facts = of(mpi("mpich", "4.1.2"), packages=[ImagePackage("python", "mpi4py", "4.1.0", "/opt/venv")])
    assert foreign.set_inside(plan_of(facts, "supermuc", nodes=2), facts) == {"MPI4PY_LIBMPI": "libmpi.so.12"}
    alone = replace(facts, mpi=[mpi("openmpi", "4.1.4")])
    assert foreign.set_inside(plan_of(alone, "supermuc", nodes=2), alone) == {}


def test_ranks_that_speak_pmi_are_served_by_hydra_whatever_else_they_speak() -> None:
    facts = of(mpi("intel", "2021.10", ["pmi", "pmix"]))
    can = seen(facts, CATALOG).capabilities["intel_mpi"].pmi
    assert {"hydra", "pmi", "pmi2", "pmix"} == set(can)


def test_of_two_the_one_with_the_hosts_interface_counts() -> None:
    both = of(replace(mpi("openmpi", "4.1.4"), file="/opt/a/libmpi.so.40"), mpi("mpich", "4.1.2"))
    plan = plan_of(both, "supermuc", nodes=2)
    assert plan.mpi.flavour == "mpich"
    # Also where nothing of the host is left to choose by.
    alone = replace(plan, site=replace(plan.site, mpi=None))
    assert foreign.foreign_case(alone, both, CATALOG).mpi_capabilities.mpi_library == "libmpi.so.12"


def test_without_mpi_the_launcher_starts_processes() -> None:
    plan = plan_of(of(), "juwels-booster", nodes=2, ranks_per_node=1)
    assert plan.mpi.abi == "" and "the image has no MPI" in plan.findings[0].message
    assert "MPI ABI" not in outcomes(of(), "juwels-booster", nodes=2, ranks_per_node=1)


@pytest.mark.parametrize(
    ("site", "driver", "code", "use"),
    [
        ("juwels-booster", "holds", "holds", "holds"),
        ("crpl-leia", "holds", "holds", "holds"),
        ("lumi-g", "skipped", "skipped", "broken"),
    ],
)
def test_cuda_is_held_against_driver_and_gpu(site: str, driver: str, code: str, use: str) -> None:
    found = outcomes(CUDA, site)
    assert (found["GPU architecture"], found["GPU use"]) == (code, use)
    assert found["GPU driver"] in (driver, "unknown", "broken")


@pytest.mark.parametrize(
    ("compat", "data_center", "outcome"),
    [
        ("550.54.15", True, "doubtful"),
        ("550.54.15", None, "doubtful"),
        ("550.54.15", False, "broken"),
        ("470.57.02", True, "broken"),
        ("", True, "broken"),
    ],
)
def test_a_newer_drivers_libraries_in_the_image_are_told_of(
    compat: str, data_center: bool | None, outcome: str
) -> None:
    file = "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15"
    brought = [software("compat", compat, file)] if compat else []
    facts = replace(CUDA, gpu=replace(CUDA.gpu, libraries=[*CUDA.gpu.libraries, *brought]))
    plan = plan_of(facts, "juwels-booster")
    node = plan.site.partitions[plan.partition]
    assert node.gpu is not None
    gpu = replace(node.gpu, driver="470.57.02", driver_assumed=False, data_center=data_center)
    node = replace(node, gpu=gpu)
    plan = replace(plan, site=replace(plan.site, partitions={plan.partition: node}))
    found = [each for each in foreign_checks(plan, facts, CATALOG) if each.name == "GPU driver"]
    assert [each.outcome for each in found] == [outcome], found
    told = "env LD_LIBRARY_PATH=/usr/local/cuda-12.4/compat COMMAND"
    assert (told in found[0].remedy) == (outcome == "doubtful")


def test_machine_code_runs_on_its_own_generation_and_ptx_on_all_that_follow() -> None:
    def on_a100(*, cubins: Sequence[str] = (), ptx: Sequence[str] = ()) -> str:
        code = [GpuCode("/lib/it.so", "code", cubins=list(cubins), ptx=list(ptx))]
        return outcomes(replace(CUDA, gpu=replace(CUDA.gpu, code=code)), "juwels-booster")["GPU architecture"]

    assert on_a100(cubins=["8.0"]) == "holds"
    assert on_a100(cubins=["8.6", "9.0"]) == "broken"
    assert on_a100(cubins=["7.5"]) == "broken"
    assert on_a100(cubins=["7.5"], ptx=["7.5"]) == "holds"
    assert on_a100(ptx=["9.0"]) == "broken"


def test_a_part_of_a_vendors_library_says_nothing_of_the_rest() -> None:
    part = GpuCode("/nvidia/cufft/lib/libcufft.so.11", "code", cubins=["5.2"])
    own = GpuCode("/opt/app/libmine.so", "code", cubins=["8.0"])
    listed = GpuCode("/torch/lib/libtorch_python.so", "list", cubins=["8.0"])
    for code, wanted in (([part, own], "holds"), ([part, listed], "holds"), ([part], "broken")):
        facts = replace(CUDA, gpu=replace(CUDA.gpu, code=code))
        assert outcomes(facts, "juwels-booster")["GPU architecture"] == wanted


def test_a_build_for_cpus_wastes_the_gpus_of_a_job() -> None:
    framework = ImageFramework(name="torch", file="/t", version=Shown("2.6.0+cpu", "/t"), variant="cpu")
    assert outcomes(of(frameworks=[framework]), "juwels-booster")["GPU use"] == "broken"
    # What has no framework may still be a program for GPUs.
    assert outcomes(of(), "juwels-booster")["GPU use"] == "doubtful"


def test_processors_are_told_apart() -> None:
    assert outcomes(of(libc=system(architecture="arm64")), "supermuc")["CPU"] == "broken"
    level = replace(of(), system=replace(system(), cpu=[Shown("x86-64-v4", "/lib/libc.so.6")]))
    assert outcomes(level, "supermuc")["CPU"] == "holds"
    assert outcomes(level, "lumi-g")["CPU"] == "broken"
    assert (compiled_for(level), compiled_for(of())) == ("x86_64_v4", "x86_64")


def test_what_is_not_known_is_unknown() -> None:
    bare = ImageFacts(system=ImageSystem(), settings=ImageSettings())
    assert outcomes(bare, "supermuc")["CPU"] == "unknown"
    nameless = of(replace(mpi("mpich", "4.1"), version=None))
    assert outcomes(nameless, "supermuc", nodes=2)["MPI version"] == "unknown"


def test_verbs_bring_nccl_onto_infiniband() -> None:
    nccl = software("nccl", "2.21.5", "/usr/lib/libnccl.so.2")
    facts = replace(CUDA, gpu=replace(CUDA.gpu, libraries=[*CUDA.gpu.libraries, nccl]))
    assert outcomes(facts, "juwels-booster", nodes=2, ranks_per_node=1)["collectives"] == "doubtful"
    verbs = ImageFabric(libraries=[software("rdma-core", "44.0", "/usr/lib/libibverbs.so.1")])
    facts = replace(facts, fabric=verbs)
    assert outcomes(facts, "juwels-booster", nodes=2, ranks_per_node=1)["collectives"] == "holds"
