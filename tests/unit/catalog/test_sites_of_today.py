"""Jobs on the systems of today: how they ask for queue and GPUs, what starts the ranks, and what is bound."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec import structs

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.job import JobRequest
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.planning.planner import make_plan

# Site, partition, nodes; lines of the header; how the last line begins.
JOBS: list[tuple[str, str, int, list[str], str]] = [
    ("lumi-g", "gpu", 2, ["--partition=standard-g", "--gpus-per-node=8", "--exclusive"], "srun --export=ALL --nodes=2"),
    ("lumi-c", "cpu", 2, ["--partition=standard", "--exclusive", "--mem=0"], "srun --export=ALL --nodes=2"),
    ("archer2", "standard", 2, ["--partition=standard", "--qos=standard", "--hint=nomultithread"], "srun "),
    ("archer2", "standard", 1100, ["--partition=standard", "--qos=largescale"], "srun "),
    ("archer2", "highmem", 1, ["--partition=highmem", "--qos=highmem", "--distribution=block:block"], "srun "),
    ("alps", "gh200", 2, ["--partition=normal"], "srun "),
    ("alps-eiger", "zen2", 2, ["--partition=normal", "--hint=nomultithread"], "srun "),
    ("perlmutter", "gpu80", 2, ["--constraint=gpu&hbm80g", "--qos=regular", "--gpus-per-node=4"], "srun "),
    ("perlmutter", "cpu", 2, ["--constraint=cpu", "--qos=regular"], "srun "),
    ("leonardo", "booster", 64, ["--partition=boost_usr_prod", "--gres=gpu:4", "--exclusive"], "mpirun "),
    ("leonardo", "booster", 65, ["--partition=boost_usr_prod", "--qos=boost_qos_bprod", "--gres=gpu:4"], "mpirun "),
    ("marenostrum5", "acc", 1, ["--qos=acc_ehpc", "--cpus-per-task=20", "--gres=gpu:4"], "mpirun -n 4 "),
    ("juwels-booster", "booster", 2, ["--partition=booster", "--gres=gpu:4"], "srun "),
    ("jupiter", "booster", 2, ["--partition=booster", "--gres=gpu:4"], "srun "),
    ("snellius", "gpu_h100", 1, ["--partition=gpu_h100", "--gres=gpu:4"], '"${container[@]}"'),
    ("supermuc-phase2", "gpu", 2, ["--partition=general", "--export=NONE"], "mpiexec -n 16 -ppn 8 "),
    ("hawk", "rome", 1, ["-l select=1:node_type=rome:mpiprocs=1:ompthreads=128"], '"${container[@]}"'),
    (
        "polaris",
        "gpu",
        2,
        ["-l filesystems=home:eagle", "-l singularity_fakeroot=true", "-l place=scatter"],
        "mpiexec ",
    ),
    ("polaris", "gpu", 99, ["-q prod"], "mpiexec -n 396 --ppn 4 --depth 8 --cpu-bind depth "),
    (
        "aurora",
        "gpu",
        2,
        ["-l filesystems=home:flare", "-l place=scatter"],
        "mpiexec -n 24 --ppn 12 --depth 8 ",
    ),
    ("aurora", "gpu", 2000, ["-q prod"], "mpiexec "),
    ("isambard-ai", "gh200", 2, ["--partition=workq", "--gpus-per-node=4"], "srun "),
    ("deltaai", "ghx4", 2, ["--partition=ghx4", "--gpus-per-node=4"], "srun "),
    ("meluxina", "gpu", 2, ["--partition=gpu", "--qos=short", "--hint=nomultithread"], "srun "),
    ("hunter", "mi300a", 1, ["-l select=1:node_type=mi300a:mpiprocs=4:ompthreads=24"], '"${container[@]}"'),
]
CRAY_LIBRARIES = {
    "archer2": "/opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1/lib-abi-mpich",
    "lumi-c": "/opt/cray/pe/mpich/8.1.32/ofi/gnu/12.3/lib-abi-mpich",
    "lumi-g": "/opt/cray/pe/mpich/8.1.32/ofi/gnu/12.3/lib-abi-mpich",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def kit(catalog: Catalog, name: str, partition: str | None = None, **asked: Any) -> Kit:
    job = JobRequest(account="lab", **asked)
    plan = make_plan(catalog, catalog.site(name), catalog.stack("mpi-hello"), partition=partition, job=job)
    return make_kit(plan, catalog)


def script(made: Kit) -> str:
    (name,) = [name for name in made.files if name.startswith("job.")]
    return made.files[name].text


def blocks(made: Kit) -> list[str]:
    return [block["name"] for block in json.loads(made.files["plan.json"].text)["blocks"]]


def header(text: str) -> list[str]:
    return [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(("#SBATCH ", "#PBS "))]


@pytest.mark.parametrize(("site", "partition", "nodes", "lines", "start"), JOBS)
def test_a_job(catalog: Catalog, site: str, partition: str, nodes: int, lines: list[str], start: str) -> None:
    gpu = catalog.site(site).partitions[partition].gpu
    text = script(kit(catalog, site, partition, nodes=nodes, gpus_per_node=gpu.count if gpu is not None else None))
    assert [line for line in lines if line not in header(text)] == []
    assert text.splitlines()[-1].startswith(start)


def test_a_queue_is_asked_for_once(catalog: Catalog) -> None:
    options = [line.split("=")[0] for line in header(script(kit(catalog, "archer2", nodes=1100)))]
    assert len(options) == len(set(options))
    assert not [line for line in header(script(kit(catalog, "perlmutter"))) if line.startswith("--partition")]
    assert "--qos=short" in header(script(kit(catalog, "archer2", queue="short")))


@pytest.mark.parametrize("site", ["alps", "alps-eiger"])
def test_gpus_that_come_with_the_node_are_not_asked_for(catalog: Catalog, site: str) -> None:
    assert not [line for line in header(script(kit(catalog, site))) if "gpu" in line or "gres" in line]


@pytest.mark.parametrize("site", ["archer2", "lumi-c", "lumi-g"])
def test_the_host_mpi_of_cray_systems_comes_by_single_files(catalog: Catalog, site: str) -> None:
    made = kit(catalog, site, nodes=2)
    text, recipe = script(made), made.files["Singularity.def"].text
    mpi = catalog.site(site).mpi
    assert mpi is not None
    root = next(line.removeprefix("mpi=") for line in text.splitlines() if line.startswith("mpi="))
    assert f"LD_LIBRARY_PATH={CRAY_LIBRARIES[site]}:" in text.replace('"$mpi"', root)
    assert "--mpi=" not in text.splitlines()[-1]  # Slurm's default there is what Cray's PMI speaks
    folders = next(line for line in recipe.replace(" \\\n", " ").splitlines() if " /mnt/0 " in line).split()
    files = recipe.replace(" \\\n", " ").split("touch ", 1)[1].splitlines()[0].split()
    for bind in mpi.binds:
        assert f"-B {bind.source}:{bind.target}" in text
        assert (bind.target in files) == bind.file
        assert bind.file or bind.target in folders


def test_lumi_g_alone_shows_rocm(catalog: Catalog) -> None:
    assert "libhsa-runtime64.so" in script(kit(catalog, "lumi-g"))
    assert "libhsa" not in script(kit(catalog, "lumi-c"))


@pytest.mark.parametrize("site", ["alps", "alps-bristen", "alps-eiger", "juwels-booster", "jupiter", "leonardo"])
def test_a_host_that_only_starts_ranks_shows_nothing_of_its_own(catalog: Catalog, site: str) -> None:
    made = kit(catalog, site, nodes=2)
    assert "LD_LIBRARY_PATH=" not in script(made).split("# Preflight", 1)[0]
    last = script(made).splitlines()[-1]
    assert last.startswith("mpirun -" if site == "leonardo" else "srun --export=ALL --nodes=2 ")


def test_alps_starts_mpich_by_pmi2_and_asks_for_slingshot(catalog: Catalog) -> None:
    made = kit(catalog, "alps", nodes=2)
    assert " --mpi=pmi2 " in script(made).splitlines()[-1]
    assert 'com.hooks.cxi.enabled = "true"' in script(made)
    assert "mpich" in blocks(made)


@pytest.mark.parametrize("site", ["alps", "jupiter"])
def test_grace_hopper_images_are_for_arm(catalog: Catalog, site: str) -> None:
    made = kit(catalog, site)
    assert json.loads(made.files["plan.json"].text)["site"]["system"]["architecture"] == "aarch64"
    assert not {"intel_mpi", "psm2"} & set(blocks(made))


@pytest.mark.parametrize(("site", "known"), [("alps", True), ("lumi-g", True), ("leonardo", False)])
def test_hooks_for_slingshot_find_the_libfabric_of_the_image(catalog: Catalog, site: str, known: bool) -> None:
    recipe = kit(catalog, site).recipe
    assert ("/etc/ld.so.conf.d/hpcgen-libfabric.conf" in recipe and "ldconfig" in recipe) == known


def test_juelich_starts_open_mpi_by_its_own_pmix(catalog: Catalog) -> None:
    made = kit(catalog, "juwels-booster", nodes=2)
    assert "export SLURM_MPI_TYPE=pspmix\n" in script(made)
    assert "export PMIX_SECURITY_MODE=native\n" in script(made)
    assert "--mpi=" not in script(made).splitlines()[-1]
    assert "openmpi" in blocks(made)


def test_perlmutter_takes_cray_mpich_by_its_module(catalog: Catalog) -> None:
    text = script(kit(catalog, "perlmutter", "gpu", nodes=2))
    assert "    podman-hpc run --rm\n    --mpi\n    --gpu\n" in text
    assert "-e LD_LIBRARY_PATH=/opt/udiImage/modules/mpich:/opt/udiImage/modules/mpich/dep:/opt/mpich/lib" in text
    assert "/usr/lib/shifter" not in text.split("# Preflight", 1)[0]


@pytest.mark.parametrize("site", ["hunter", "hawk"])
def test_several_nodes_that_nothing_known_starts_ranks_on_are_refused(catalog: Catalog, site: str) -> None:
    with pytest.raises(HpcgenError, match="names no host MPI"):
        kit(catalog, site, nodes=2)


@pytest.mark.parametrize(("site", "horovod"), [("alps", "pytorch-horovod"), ("alps-bristen", "tf-horovod")])
def test_nccl_goes_over_slingshot_on_alps(catalog: Catalog, site: str, horovod: str) -> None:
    def made(stack: str, nodes: int) -> Kit:
        job = JobRequest(account="lab", nodes=nodes)
        return make_kit(make_plan(catalog, catalog.site(site), catalog.stack(stack), job=job), catalog)

    hook = ["'com.hooks.aws_ofi_nccl.enabled = \"true\"'", "'com.hooks.aws_ofi_nccl.variant = \"cuda-dl\"'"]
    several = made(horovod, 2)
    assert [each for each in hook if each in script(several)] == hook
    # The plugin is linked with CUDA's run time by this name, which NVIDIA's image has not.
    if horovod == "tf-horovod":
        assert "ln -sf libcudart.so.12 /opt/cuda/lib64/libcudart.so" in several.recipe
    for other in (made(horovod, 1), made("mpi-hello", 2)):
        assert "com.hooks.cxi.enabled" in script(other) and "aws_ofi_nccl" not in script(other)


def test_each_kind_of_node_of_frontera_has_its_own_provider(catalog: Catalog) -> None:
    rtx, clx = (kit(catalog, "frontera", partition, nodes=2) for partition in ("rtx", "clx"))
    assert "export FI_PROVIDER=tcp\n" in script(rtx) and "FI_PROVIDER" not in script(clx)
    # The preflight fails ranks that go over one of these.
    assert [slow(made) for made in (rtx, clx)] == ["sockets udp net", "tcp sockets udp net"]
    plan = make_plan(catalog, catalog.site("frontera"), catalog.stack("mpi-hello"), partition="rtx")
    outcomes = {each.name: each for each in checks_of(case_of(plan, catalog))}
    assert outcomes["TCP fallback"].reason == "the profile names tcp for infiniband on nodes of rtx"
    assert outcomes["fabric provider"].outcome == "holds"


def slow(made: Kit) -> str:
    """The providers that the preflight does not accept."""
    found = re.search(r"-v slow='?([a-z ]*)'?", made.files["preflight.sh"].text)
    assert found is not None
    return found[1]


def test_lumi_g_leaves_the_cores_of_the_system_alone(catalog: Catalog) -> None:
    lines = header(script(kit(catalog, "lumi-g")))
    assert {"--ntasks-per-node=8", "--cpus-per-task=7"} <= set(lines)
    with pytest.raises(HpcgenError):
        kit(catalog, "lumi-g", ranks_per_node=64, threads_per_rank=2)


@pytest.mark.parametrize("site", ["archer2", "lumi-c", "lumi-g", "perlmutter"])
def test_the_contract_sees_what_single_files_and_the_engine_show(catalog: Catalog, site: str) -> None:
    plan = make_plan(catalog, catalog.site(site), catalog.stack("mpi-hello"))
    assert [finding.message for finding in plan.findings if "no bind makes" in finding.message] == []


def test_a_folder_of_which_nothing_is_bound_is_still_told(catalog: Catalog) -> None:
    site = catalog.site("archer2")
    assert site.mpi is not None
    shown = [bind for bind in site.mpi.binds if not bind.target.startswith("/opt/xpmem/")]
    hidden = structs.replace(site, mpi=structs.replace(site.mpi, binds=shown))
    findings = make_plan(catalog, hidden, catalog.stack("mpi-hello")).findings
    assert any("no bind makes /opt/xpmem/lib64 visible inside" in finding.message for finding in findings)


@pytest.mark.parametrize(("site", "modules"), [("polaris", "spack-pe-base apptainer"), ("aurora", "apptainer")])
def test_jobs_of_alcf_have_its_proxy_and_modules(catalog: Catalog, site: str, modules: str) -> None:
    text = script(kit(catalog, site, nodes=2))
    lines = text.splitlines()
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        assert f"export {name}=http://proxy.alcf.anl.gov:3128" in lines
    places = [lines.index(f"module load {module}") for module in modules.split()]
    assert places == sorted(places)


def test_polaris_shows_cray_mpich_and_not_all_of_opt(catalog: Catalog) -> None:
    text = script(kit(catalog, "polaris", nodes=2))
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("module use /soft/modulefiles") < lines.index("module load spack-pe-base")
    assert "--fakeroot" in lines
    assert "-B /var/run/palsd:/var/run/palsd" in lines
    assert "-B /opt/cray:/opt/cray" in lines
    assert not [line for line in lines if re.match(r"-B /opt(:|$)", line)]


@pytest.mark.parametrize(
    ("nodes", "time", "takes"), [(24, "03:00:00", True), (24, "04:00:00", False), (25, "06:00:00", True)]
)
def test_the_time_of_prod_on_polaris_goes_by_nodes(catalog: Catalog, nodes: int, time: str, takes: bool) -> None:
    if takes:
        assert "-q prod" in header(script(kit(catalog, "polaris", nodes=nodes, walltime=time)))
        return
    with pytest.raises(HpcgenError):
        kit(catalog, "polaris", nodes=nodes, walltime=time)
