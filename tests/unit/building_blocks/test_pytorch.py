"""PyTorch for every kind of node: which release and wheel is chosen, what is refused, what the programs do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from packaging.specifiers import SpecifierSet

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.blocks.pytorch_wheels import AMD_TARGETS, OLDEST_CAPABILITY, OLDEST_DRIVER
from hpcgen.blocks.steps import Run, WheelFile, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.stages import Assembly
from tests.unit.building_blocks.test_onnxruntime import (
    A100,
    H100,
    MI50,
    MI250X,
    P40,
    P100,
    SITE,
    T4,
    V100,
    versions,
    with_driver,
)

ROOT = Path(__file__).resolve().parents[3]
GH200 = "vendor: nvidia, model: GH200, capability: 9.0"


def planned(
    collection: Path,
    gpu: str = "",
    *settings: str,
    architecture: str = "x86_64",
    distribution: str = "ubuntu",
    gpus: int | None = None,
    stack: str = "pytorch",
) -> Plan:
    cpu = "x86_64_v3" if architecture == "x86_64" else "neoverse_v2"
    text = SITE.format(gpu=f"gpu: {{{with_driver(gpu)}}}" if gpu else "", architecture=architecture, cpu=cpu)
    (collection / "site_profiles" / "it.yaml").write_text(f"{text}image: {{distribution: {distribution}}}\n")
    catalog = Catalog([collection])
    return make_plan(
        catalog,
        catalog.site("it"),
        catalog.stack(stack),
        settings=settings,
        job=JobRequest(gpus_per_node=gpus),
        site_document=catalog.site_document("it"),
        stack_document=catalog.stack_document(stack),
    )


def way(plan: Plan) -> tuple[str, object, object]:
    block = plan.block("pytorch")
    assert block is not None
    return block.version, block.options["accelerator"], block.options["install"]


def assembled(plan: Plan) -> Assembly:
    return assemble(plan, Catalog())


def commands(assembly: Assembly) -> str:
    steps: list[Run] = [step for stage in (assembly.builder, assembly.final) for _, step in stage.steps]
    return "\n".join(line for step in steps for line in step.commands)


CHOICES = [
    ("", "x86_64", ("2.13.0", "cpu", "wheel")),
    ("", "aarch64", ("2.10.0", "cpu", "pip")),
    (P40, "x86_64", ("2.7.1", "cuda", "pip")),
    (P100, "x86_64", ("2.7.1", "cuda", "pip")),
    (V100, "x86_64", ("2.10.0", "cuda", "pip")),
    (T4, "x86_64", ("2.15.0", "cuda", "pip")),
    (H100, "x86_64", ("2.15.0", "cuda", "pip")),
    (f"{A100}, driver: 535.54.03", "x86_64", ("2.10.0", "cuda", "pip")),
    (f"{V100}, driver: 470.57.02", "x86_64", ("1.13.1", "cuda", "pip")),
    (f"{V100}, driver: 440.33.01", "x86_64", ("1.10.2", "cuda", "pip")),
    (GH200, "aarch64", ("2.15.0", "cuda", "pip")),
    (MI250X, "x86_64", ("2.9.1", "rocm", "wheel")),
    (MI50, "x86_64", ("2.9.1", "rocm", "wheel")),
]


@pytest.mark.parametrize(("gpu", "architecture", "wanted"), CHOICES)
def test_the_node_decides_what_computes_and_which_wheel_has_it(
    collection: Path, gpu: str, architecture: str, wanted: tuple[str, str, str]
) -> None:
    plan = planned(collection, gpu, architecture=architecture)
    assert way(plan) == wanted
    assert not assembled(plan).loose


def test_a_node_without_a_gpu_gets_no_cuda(collection: Path) -> None:
    inputs = [item for _, item in assembled(planned(collection)).inputs]
    (file,) = [item for item in inputs if isinstance(item, WheelFile)]
    assert file.name == "torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert not any("nvidia" in line for item in inputs if isinstance(item, Wheels) for line in item.requirements)
    with pytest.raises(HpcgenError, match=r"1\.5\.1"):
        planned(collection, "", "pytorch.version=1.5.1")


def test_the_wheel_decides_the_python(collection: Path) -> None:
    assert versions(planned(collection, "", distribution="debian"))["python"] == "3.11.2"
    found = versions(planned(collection, "", "pytorch.version=2.1.2"))
    assert (found["python"], found["ubuntu"]) == ("3.10.12", "22.04")


def test_a_pin_without_a_wheel_for_cpus_takes_the_one_with_cuda_and_says_so(collection: Path) -> None:
    plan = planned(collection, "", "pytorch.version=2.2.2")
    assert way(plan) == ("2.2.2", "cpu", "pip")
    assembly = assembled(plan)
    assert not assembly.loose
    assert any("brings CUDA in several GB" in note for note in notices(assembly))
    assert any("with wheel, the default, it is not available" in str(finding) for finding in plan.findings)
    # What the user said does not give way.
    with pytest.raises(
        HpcgenError, match=r"pytorch 2\.2\.2: it is available only with pytorch\.install=pip, and here that is wheel"
    ):
        planned(collection, "", "pytorch.version=2.2.2", "pytorch.install=wheel")


def test_a_wheel_file_is_fetched_by_its_address_checked_and_installed_with_what_it_needs(collection: Path) -> None:
    told = commands(assembled(planned(collection)))
    assert "https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl" in told
    fetched, installed = told.index("sha256sum -c"), told.index("--no-index /opt/hpcgen/build/torch-2.13.0+cpu")
    assert fetched < installed < told.index("pip check")
    assert told.index("torch-2.13.0-needs.txt") < installed


def test_the_distributions_package_is_debians_alone(collection: Path) -> None:
    plan = planned(collection, "", "pytorch.install=package")
    assert versions(plan)["debian"] == "12"
    assert way(plan) == ("1.13.1", "cpu", "package")
    assert "python3-torch" in commands(assembled(plan))


def test_older_gpus_can_have_a_newer_release_with_cuda_12_6(collection: Path) -> None:
    plan = planned(collection, P40, "pytorch.install=wheel")
    assert way(plan) == ("2.12.1", "cuda", "wheel")
    assert not assembled(plan).loose


def test_a_volta_or_an_old_driver_gets_what_is_asked_for_with_cuda_12_6(collection: Path) -> None:
    for gpu in (V100, f"{H100}, driver: 535.104.05"):
        plan = planned(collection, gpu, "pytorch.version=>=2.11")
        assert way(plan) == ("2.12.1", "cuda", "wheel")
        assert not assembled(plan).loose
    # By default it is still the index's.
    assert way(planned(collection, V100))[2] == "pip"


def test_a_gpu_that_no_wheel_serves_is_computed_on_the_cpu_and_said(collection: Path) -> None:
    old = "vendor: nvidia, model: K20, capability: 3.5"
    for gpu, why in ((f"{P40}, driver: 390.46", "driver is 390.46"), (old, "no code for capability 3.5")):
        with pytest.raises(PolicyError, match="but the image cannot use them"):
            planned(collection, gpu)
        plan = planned(collection, gpu, gpus=0)
        assert way(plan)[1:] == ("cpu", "wheel")
        assert any(why in note for note in notices(assembled(plan)))


def test_where_the_driver_is_too_old_for_a_wheel_another_way_is_planned_before_the_gpu_is_given_up(
    collection: Path,
) -> None:
    with pytest.raises(PolicyError) as refused:
        planned(collection, f"{GH200}, driver: 565.57.01", architecture="aarch64")
    (problem,) = refused.value.problems
    assert problem.message.startswith("pytorch 2.10.0 computes on the CPU: the node's driver is 565.57.01")
    (remedy,) = refused.value.remedies
    assert problem.remedy.startswith(remedy.text) and "--gpus 0" in problem.remedy
    settings = [f"{name}={value}" for name, value in remedy.settings.items()]
    plan = planned(collection, f"{GH200}, driver: 565.57.01", *settings, architecture="aarch64")
    assert way(plan)[1] == "cuda"


def test_no_remedy_gives_up_the_gpu_where_another_keeps_it(collection: Path) -> None:
    with pytest.raises(HpcgenError) as refused:
        planned(collection, f"{H100}, driver: 535.104.05", "pytorch.version=2.15.0", gpus=1)
    assert refused.value.remedies
    assert not any("pytorch.accelerator" in each.settings for each in refused.value.remedies)


def test_the_block_knows_the_bounds_of_its_table() -> None:
    ways = [way for row in Catalog().releases("pytorch").values() for way in row.ways]
    ways = [way for way in ways if way.only["install"] != ["hub"]]
    for architecture in ("x86_64", "aarch64"):
        cuda = [each for each in ways if each.only["accelerator"] == ["cuda"] and each.host]
        cuda = [each for each in cuda if architecture in (each.architectures or ["x86_64"])]
        for fact, known in (("driver", OLDEST_DRIVER), ("capability", OLDEST_CAPABILITY)):
            lowest = [spec.version for w in cuda for spec in SpecifierSet(w.host[fact]) if spec.operator == ">="]
            assert min(lowest, key=lambda text: [int(part) for part in text.split(".")]) == known[architecture]
    assert {target for way in ways for target in way.targets} == AMD_TARGETS


def test_a_compiler_is_kept_for_torch_compile(collection: Path) -> None:
    plan = planned(collection, "", "pytorch.compile=true")
    final = "\n".join(line for _, step in assembled(plan).final.steps for line in step.commands)
    assert "g++-13" in final
    assert "python3-dev" in final
    assert not any("torch.compile will fail" in note for note in notices(assembled(plan)))
    assert any("torch.compile will fail" in note for note in notices(assembled(planned(collection))))


def test_from_source_it_is_compiled_for_the_cpu_with_what_is_asked_for(collection: Path) -> None:
    plan = planned(collection, "", "pytorch.install=source", "pytorch.mpi=true", "pytorch.blas=eigen")
    told = commands(assembled(plan))
    assert way(plan) == ("2.9.1", "cpu", "source")
    for word in ("USE_CUDA=0", "USE_MPI=1", "USE_MKLDNN=1", "BLAS=Eigen", "-march=x86-64-v3", "pytorch-v2.9.1.tar.gz"):
        assert word in told


# programs


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "building_blocks" / "files" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_STEP_NODELIST": "gpu[08-10,12],x1",
    "SLURM_JOB_ID": "4711",
}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}),
        (OPEN_MPI, {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"}),
        ({**HYDRA, "SLURM_JOB_NODELIST": "n1,n2"}, {"RANK": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "n1"}),
        (SRUN, {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "gpu08", "MASTER_PORT": "24711"}),
        ({**SRUN, "PMI_RANK": "0", "PMI_SIZE": "1"}, {"RANK": "5", "WORLD_SIZE": "8"}),
        ({**SRUN, "RANK": "2", "MASTER_ADDR": "elsewhere"}, {"RANK": "2", "MASTER_ADDR": "elsewhere"}),
    ],
)
def test_ranks_are_told_by_any_launcher(environment: dict[str, str], wanted: dict[str, str]) -> None:
    found = program("torch_ranks").variables(environment)
    assert found is not None
    assert {name: found[name] for name in wanted} == wanted


def test_ranks_that_cannot_meet_are_refused() -> None:
    assert program("torch_ranks").variables(HYDRA) is None


def test_the_first_node_is_read_from_a_file_of_nodes(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("node7\nnode7\nnode8\n")
    found = program("torch_ranks").variables({**HYDRA, "PBS_NODEFILE": str(tmp_path / "nodes")})
    assert found is not None
    assert found["MASTER_ADDR"] == "node7"


@pytest.mark.parametrize("stack", ["pytorch", "jax", "vllm"])
def test_wheels_that_bring_nvidias_libraries_ask_for_its_licences(stack: str) -> None:
    plan = hpcgen.plan("alps-bristen", stack)
    assert {"nvidia-cuda-eula", "nvidia-cudnn"} <= {each.name for each in plan.licences}
    assert hpcgen.plan("workstation", "pytorch").licences == []


ARM_WITHOUT_GPU = """extends: alps
name: arm-cpu
default_partition: cpu
layouts: []
partitions:
  cpu:
    {nodes: 4, cpu: {target: neoverse_v2, cores: 144, sockets: 2}, memory: {total_gb: 400}, queues: [{name: normal}]}
"""


def test_arm_without_a_gpu_takes_a_wheel_with_cuda_only_where_that_is_asked_for(tmp_path: Path) -> None:
    site = tmp_path / "arm.yaml"
    site.write_text(ARM_WITHOUT_GPU, "utf-8")
    usual = hpcgen.plan(str(site), "pytorch").block("pytorch")
    assert usual is not None and usual.version == "2.10.0"
    asked = hpcgen.plan(str(site), "pytorch", settings={"pytorch.version": "2.13.0"})
    block = asked.block("pytorch")
    assert block is not None and (block.options["accelerator"], block.options["install"]) == ("cpu", "pip")
    assert any("brings CUDA in several GB" in each for each in notices(assemble(asked, default_catalog())))


@pytest.mark.parametrize(
    ("gpu", "cuda"), [(f"{A100}, driver: 535.104", "12"), (f"{H100}, driver: 580.65", "13"), (MI250X, ""), ("", "")]
)
def test_extensions_in_cuda_have_the_compiler_of_the_wheels_cuda(collection: Path, gpu: str, cuda: str) -> None:
    plan = planned(collection, gpu, "pytorch.extensions=true")
    blocks = versions(plan)
    assert "jit_compiler" in blocks and blocks.get("cuda", "").split(".")[0] == cuda
    assert ("cuda_compiler" in blocks) == bool(cuda)
    if cuda:
        assembly = assembled(plan)
        ends = {path.rpartition("/")[2] for path in assembly.final.copies if "cuda" in path}
        assert {"bin", "nvvm", "include"} <= ends
        variable = "TORCH_CUDA_ARCH_LIST"
        assert variable in assembly.builder.environment and variable not in assembly.final.environment
