"""Job scripts: their directives, how ranks are started, and that shells accept them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.backends.engines import engine_format
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.model.batch import Queue
from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.host_mpi import Bind, HostMpi
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.plan import Plan, PlannedBlock, PlannedMpi
from hpcgen.core.model.site import FileSystem, Site, SiteEngine
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.launch.job.layout import resolve_job
from hpcgen.launch.script import job_script
from hpcgen.recipe.bind_targets import bind_targets

IMAGE = {
    "PATH": "/opt/python/bin:/usr/bin:/bin",
    "LD_LIBRARY_PATH": "/opt/intel_mpi/lib",
    "I_MPI_ROOT": "/opt/intel_mpi",
}
SITES = ["supermuc", "hlrs-testbed", "workstation"]
ENGINES: list[EngineName] = ["charliecloud", "apptainer", "singularity", "docker", "podman"]
VERSIONS = {"charliecloud": "0.31", "apptainer": "1.4.5", "singularity": "3.4.1", "docker": None, "podman": None}
replace = msgspec.structs.replace


def site(name: str) -> Site:
    return Catalog().site(name)


def make_plan(the_site: Site | str, engine: EngineName | None = None, version: str | None = None, **given: Any) -> Plan:
    """A plan by hand. Fields of the job request and of the stack's run are told apart by their names."""
    profile = site(the_site) if isinstance(the_site, str) else the_site
    request = {k: v for k, v in given.items() if k in JobRequest.__struct_fields__ and k not in ("command", "name")}
    run = {"command": ["python", "train.py"], **{k: v for k, v in given.items() if k not in request}}
    mpi_block = run.pop("mpi_block", "intel_mpi")
    stack = Stack(name=run.pop("name", "demo"), title="A demonstration", blocks={}, run=RunSpec(**run))
    partition = profile.default_partition
    chosen = engine or profile.containers.preferred
    if version is not None:
        engines = {**profile.containers.engines, chosen: SiteEngine(version=version)}
        profile = replace(profile, containers=replace(profile.containers, engines=engines))
    mpi = [PlannedBlock(name=mpi_block, version="1", provides=["mpi"])] if mpi_block else []
    return Plan(
        hpcgen="0.0",
        site=profile,
        stack=stack,
        partition=partition,
        format=engine_format(chosen),
        engine=chosen,
        blocks=[PlannedBlock(name="debian", version="12"), *mpi],
        job=resolve_job(profile, partition, stack, JobRequest(**request)),
        command="hpcgen render --site demo --stack demo",
    )


def directives(text: str, mark: str) -> set[str]:
    return {line.removeprefix(mark + " ") for line in text.splitlines() if line.startswith(mark)}


def container(text: str) -> list[str]:
    """The words of the container array."""
    before, _, after = text.partition("container=(\n")
    root = before.rpartition("\nmpi=")[2].split("\n")[0]
    return [word.replace("$mpi", root) for word in shlex.split(after.split("\n)\n", 1)[0])]


def last(text: str) -> str:
    return text.strip().splitlines()[-1]


def variables(words: list[str]) -> dict[str, str]:
    after = words[words.index("/usr/bin/env") :] if "/usr/bin/env" in words else []
    return dict(word.split("=", 1) for word in after if "=" in word)


def taken_out(words: list[str]) -> set[str]:
    by_env = {name for option, name in pairwise(words) if option == "-u"}
    return by_env | {w.removeprefix("--unset-env=") for w in words if w.startswith("--unset-env=")}


def allow_every_engine(profile: Site) -> Site:
    engines = {name: SiteEngine(version=VERSIONS[name]) for name in ENGINES}
    return replace(profile, containers=replace(profile.containers, engines=engines))


# headers


def test_slurm_header() -> None:
    name, text = job_script(make_plan("supermuc", nodes=32, walltime="36h", account="pn12ab"), IMAGE)
    assert name == "job.slurm"
    assert directives(text, "#SBATCH") == {
        "-J demo",
        "-o ./%x.%j.out",
        "-e ./%x.%j.err",
        "-D ./",
        "--time=36:00:00",
        "--nodes=32",
        "--ntasks-per-node=4",
        "--cpus-per-task=12",
        "--partition=general",
        "--account=pn12ab",
        "--no-requeue",
        "--export=NONE",
        "--get-user-env",
        "--ear=off",
    }


def test_directives_come_before_any_command() -> None:
    for profile in SITES:
        text = job_script(make_plan(profile), IMAGE)[1]
        lines = text.splitlines()
        assert lines[0] == "#!/bin/bash"
        first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        assert not any(line.startswith(("#SBATCH", "#PBS")) for line in lines[first_command:])


def test_a_missing_account_leaves_a_line_to_fill_in() -> None:
    text = job_script(make_plan("supermuc"), IMAGE)[1]
    assert not any("account" in directive for directive in directives(text, "#SBATCH"))
    assert "make this line a directive: #SBATCH --account=YOUR-ACCOUNT\n" in text
    assert "YOUR-ACCOUNT" not in job_script(make_plan("supermuc", account="pn12ab"), IMAGE)[1]


def test_what_has_to_be_done_before_a_job_is_submitted_stands_in_its_head() -> None:
    text = job_script(make_plan("darwin", mpi=False), IMAGE)[1]
    assert "\n# Before it is submitted, in the same shell: workgroup -g NAME\n" in text.partition("set -euo")[0]
    assert "Before it is submitted" not in job_script(make_plan("supermuc"), IMAGE)[1]


def test_torque_header() -> None:
    name, text = job_script(make_plan("hlrs-testbed", walltime="36h"), IMAGE)
    assert name == "job.pbs"
    assert directives(text, "#PBS") == {"-N demo", "-S /bin/bash", "-l nodes=1:ppn=40:gpus=1,walltime=36:00:00"}
    assert 'cd "${PBS_O_WORKDIR:-.}"' in text.splitlines()


def test_pbs_header() -> None:
    profile = with_mpi(site("hlrs-testbed"), launcher="mpiexec", flavour="mpich")
    profile = replace(profile, scheduler=replace(profile.scheduler, kind="pbs"))
    plan = make_plan(
        profile, nodes=2, ranks_per_node=2, threads_per_rank=5, account="pr1", queue="gpuq", name="7days-of-training"
    )
    assert directives(job_script(plan, IMAGE)[1], "#PBS") == {
        "-N j7days-of-train",
        "-S /bin/bash",
        "-l select=2:ncpus=40:mpiprocs=2:ompthreads=5:ngpus=1",
        "-l walltime=12:00:00",
        "-l place=scatter",
        "-q gpuq",
        "-A pr1",
    }


def test_a_workstation_has_no_header() -> None:
    name, text = job_script(make_plan("workstation"), IMAGE)
    assert name == "run.sh"
    assert not directives(text, "#SBATCH") | directives(text, "#PBS")


def test_slurm_asks_for_gpus_unless_the_site_does() -> None:
    profile = site("supermuc")
    thin = profile.partitions["thin"]
    with_gpu = replace(thin, gpu=Gpu(vendor="nvidia", model="A100", count=4))
    text = job_script(make_plan(replace(profile, partitions={"thin": with_gpu})), IMAGE)[1]
    assert "--gres=gpu:4" in directives(text, "#SBATCH")
    own = replace(with_gpu, directives=["--gpus-per-node=4"])
    text = job_script(make_plan(replace(profile, partitions={"thin": own})), IMAGE)[1]
    assert "--gpus-per-node=4" in directives(text, "#SBATCH")
    assert "--gres=gpu:4" not in directives(text, "#SBATCH")


def test_gpus_are_asked_for_as_the_site_wants_it() -> None:
    profile = site("supermuc")
    thin = replace(profile.partitions["thin"], gpu=Gpu(vendor="nvidia", model="GPU", count=4))
    for request, expected in (("gpus-per-node", {"--gpus-per-node=4"}), ("none", set())):
        scheduler = replace(profile.scheduler, gpu_request=request)
        text = job_script(make_plan(replace(profile, partitions={"thin": thin}, scheduler=scheduler)), IMAGE)[1]
        assert {line for line in directives(text, "#SBATCH") if line.startswith(("--gres", "--gpu"))} == expected


def test_modules_are_loaded_with_the_sites_own_tool() -> None:
    profile = site("supermuc")
    plain = job_script(make_plan(profile), IMAGE)[1]
    assert plain.startswith("#!/bin/bash\n")
    assert "\nmodule load charliecloud\n" in plain
    valet = job_script(make_plan(replace(profile, system=replace(profile.system, modules="valet"))), IMAGE)[1]
    assert valet.startswith("#!/bin/bash -l\n")
    assert "\nvpkg_require charliecloud\n" in valet
    assert "module load" not in valet


# launchers


def with_mpi(profile: Site, **changes: Any) -> Site:
    mpi = {
        "flavour": "intel",
        "version": "2021.10",
        "abi": "mpich",
        "root": "/opt/host/mpi",
        "libraries": ["/opt/host/mpi/lib"],
        "binds": [Bind(source="/opt/host", target="/opt/host")],
        "launcher": "mpiexec",
    }
    return replace(profile, mpi=HostMpi(**{**mpi, **changes}))


def test_the_hosts_launcher_starts_one_container_per_rank() -> None:
    text = job_script(make_plan("supermuc", nodes=17), IMAGE)[1]
    assert last(text) == 'mpiexec -n 68 -ppn 4 "${container[@]}" "$@"'
    assert "export I_MPI_HYDRA_BOOTSTRAP=slurm" in text
    assert "export HPCGEN_RANKS=68" in text
    assert "export OMP_NUM_THREADS=12" in text
    # Of the profile, for Intel's OpenMP; this image has GCC's.
    assert "KMP_" not in text


def test_srun_passes_variables_and_names_the_pmi() -> None:
    text = job_script(make_plan(with_mpi(site("supermuc"), launcher="srun", pmi=["hydra", "pmi2"]), nodes=2), IMAGE)[1]
    words = shlex.split(last(text))
    assert words[0] == "srun"
    assert set(words[1:7]) == {
        "--export=ALL",
        "--nodes=2",
        "--ntasks=8",
        "--ntasks-per-node=4",
        "--cpus-per-task=12",
        "--mpi=pmi2",
    }


def test_open_mpi_maps_ranks_in_its_own_words() -> None:
    profile = with_mpi(site("supermuc"), flavour="openmpi", abi="openmpi", launcher="mpirun", bootstrap="slurm")
    text = job_script(make_plan(profile, nodes=2, mpi_block="openmpi"), IMAGE)[1]
    assert last(text).startswith("mpirun -n 8 --map-by ppr:4:node:PE=12 ")
    assert "HYDRA" not in text


def test_taccs_launcher_starts_what_the_header_says() -> None:
    text = job_script(make_plan(with_mpi(site("supermuc"), launcher="ibrun"), nodes=2), IMAGE)[1]
    assert last(text) == 'ibrun "${container[@]}" "$@"'


def test_a_host_mpi_that_shows_nothing_only_starts_the_images_own() -> None:
    profile = with_mpi(allow_every_engine(site("supermuc")), libraries=[], binds=[])
    image = {**IMAGE, "FI_PROVIDER_PATH": "/opt/intel_mpi/libfabric/prov"}
    for engine in ("charliecloud", "apptainer"):
        text = job_script(make_plan(profile, engine, VERSIONS[engine], nodes=2), image)[1]
        inside = variables(container(text))
        assert last(text).startswith("mpiexec -n 8 ")
        assert "/opt/host/mpi" not in text
        assert inside.get("I_MPI_ROOT", image["I_MPI_ROOT"]) == image["I_MPI_ROOT"]
        assert "FI_PROVIDER_PATH" not in taken_out(container(text))


def test_ranks_of_other_mpis_share_a_container() -> None:
    intel = container(job_script(make_plan("supermuc"), IMAGE)[1])
    assert "--join" not in intel
    mpich = container(job_script(make_plan(with_mpi(site("supermuc"), flavour="mpich"), mpi_block="mpich"), IMAGE)[1])
    assert mpich[mpich.index("--join") + 1] == "--join-ct=4"


APART = [
    ("mpich", "5.0.2", "none", {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}),
    ("mpich", "4.3.2", "none", {}),
    ("openmpi", "5.0.8", "infiniband", {"UCX_POSIX_USE_PROC_LINK": "n", "UCX_TLS": "^cma"}),
    ("openmpi", "4.1.8", "none", {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}),
    ("intel", "2021.17", "infiniband", {}),
]


@pytest.mark.parametrize(("flavour", "version", "kind", "told"), APART)
def test_apptainers_ranks_share_namespaces_or_do_not_read_each_others_memory(
    flavour: str, version: str, kind: str, told: dict[str, str]
) -> None:
    """--sharens is of 1.3; an installation with setuid needs neither."""
    profile = with_mpi(site("supermuc"), flavour=flavour, version=version)
    profile = replace(profile, fabric=replace(profile.fabric, kind=kind, provider=None))
    block = "openmpi" if flavour == "openmpi" else "mpich"
    names = {name for *_, each in APART for name in each}

    def of(engine: SiteEngine, **more: Any) -> tuple[bool, dict[str, str]]:
        containers = replace(profile.containers, engines={"apptainer": engine}, preferred="apptainer")
        made = make_plan(replace(profile, containers=containers), mpi_block=block, **more)
        text = job_script(made, IMAGE)[1]
        return "--sharens" in container(text), exported(text, names)

    assert of(SiteEngine(version="1.3.6")) == (flavour != "intel", {})
    assert of(SiteEngine(version="1.2.5")) == of(SiteEngine()) == (False, told)
    assert of(SiteEngine(version="1.4.5", setuid=True)) == (False, {})
    assert of(SiteEngine(), ranks_per_node=1) == (False, {})
    own = of(SiteEngine(), environment={"UCX_TLS": "rc,sm"})[1]
    assert own.get("UCX_TLS") == "rc,sm"


def exported(text: str, names: set[str]) -> dict[str, str]:
    """Of these variables those that a job script exports."""
    found = dict(re.findall(r"^ *export (\w+)='?([^'\n]*)'?$", text, re.MULTILINE))
    return {name: found[name] for name in names & found.keys()}


def test_without_a_host_mpi_the_images_launcher_starts_the_ranks() -> None:
    text = job_script(make_plan("hlrs-testbed", ranks_per_node=2), IMAGE)[1]
    assert last(text) == '"${container[@]}" "$@"'
    words = container(text)
    assert words[-3:] == ["mpiexec", "-n", "2"]
    openmpi = container(job_script(make_plan("hlrs-testbed", ranks_per_node=2, mpi_block="openmpi"), IMAGE)[1])
    assert openmpi[-5:] == ["mpiexec", "-n", "2", "--bind-to", "none"]
    assert variables(words)["I_MPI_HYDRA_BOOTSTRAP"] == "fork"
    assert {"PBS_NODEFILE", "SLURM_JOB_ID"} <= taken_out(words)


@pytest.mark.parametrize(("flavour", "words"), [("mpich", ["-n", "2"]), ("openmpi", ["--bind-to", "none"])])
def test_the_standards_mpi_is_started_as_its_flavour_asks(flavour: str, words: list[str]) -> None:
    """The interface is anybody's; the launcher is that of the software."""
    plan = make_plan("hlrs-testbed", ranks_per_node=2, mpi_block="mine")
    *others, block = plan.blocks
    mine = replace(block, mpi=PlannedMpi(abi="mpi5", flavour=flavour))
    started = container(job_script(replace(plan, blocks=[*others, mine], number=2), IMAGE)[1])
    assert started[-2:] == words
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in variables(started)) == (flavour == "openmpi")


def test_a_stack_without_mpi_is_just_run() -> None:
    for profile in SITES:
        text = job_script(make_plan(profile, mpi=False), IMAGE)[1]
        assert "mpiexec" not in text
        assert last(text) == '"${container[@]}" "$@"'


def test_several_nodes_need_the_hosts_launcher() -> None:
    with pytest.raises(PolicyError, match="names no host MPI"):
        job_script(make_plan("hlrs-testbed", nodes=2), IMAGE)
    with pytest.raises(PolicyError, match="does not let the host's launcher"):
        job_script(make_plan(allow_every_engine(site("supermuc")), "docker", nodes=2), IMAGE)
    with pytest.raises(PolicyError, match="no MPI to start them"):
        job_script(make_plan("supermuc", mpi_block=""), IMAGE)


# engines


def test_charliecloud_swaps_in_the_hosts_mpi() -> None:
    plan = make_plan("supermuc")
    words = container(job_script(plan, IMAGE)[1])
    mpi = plan.site.mpi
    assert mpi is not None
    first = words.index("ch-run")
    assert "mkdir -p '/var/tmp/${USER:-}.ch/mnt'" in words[first - 2]
    assert words[first + 1 : first + 3] == ["-b", "/lrz/sys/.:/lrz/sys"]
    assert words[words.index("--") - 1] == "$image"
    inside = variables(words)
    assert inside["LD_LIBRARY_PATH"] == ":".join([*mpi.libraries, "/opt/intel_mpi/lib"])
    assert inside["I_MPI_ROOT"] == mpi.root
    assert inside["FI_PROVIDER_PATH"].startswith(mpi.root)
    assert inside["PATH"] == IMAGE["PATH"]
    assert "-w" not in words


def test_the_images_providers_are_not_used_with_the_hosts_fabric_library() -> None:
    plan = make_plan(with_mpi(site("supermuc")))
    words = container(job_script(plan, {**IMAGE, "FI_PROVIDER_PATH": "/opt/intel_mpi/prov"})[1])
    assert "FI_PROVIDER_PATH" not in variables(words)
    assert "FI_PROVIDER_PATH" in taken_out(words)


def test_the_host_environment_is_kept_out_where_it_harms() -> None:
    for version in (None, "0.9.7", "0.31"):
        words = container(job_script(make_plan("supermuc", version=version), IMAGE)[1])
        assert {"PYTHONPATH", "PYTHONHOME", "LD_PRELOAD"} <= taken_out(words)
        assert "LD_LIBRARY_PATH" not in taken_out(words)
    bare = container(job_script(make_plan("supermuc", mpi=False), {"PATH": "/bin"})[1])
    assert "LD_LIBRARY_PATH" in taken_out(bare)
    own = replace(site("supermuc"), unset_environment=["MODULEPATH"])
    assert "MODULEPATH" in taken_out(container(job_script(make_plan(own), IMAGE)[1]))


def test_charliecloud_keeps_caches_in_the_folder_of_the_job() -> None:
    """The home directory is not inside, and the image is read-only."""
    plan = make_plan("supermuc")
    script = job_script(plan, IMAGE)[1]
    assert '    XDG_CACHE_HOME="${XDG_CACHE_HOME:-/mnt/0/.cache}"\n' in script
    assert "JUPYTER" not in script
    python = replace(plan, blocks=[*plan.blocks, PlannedBlock(name="python", version="3.11")])
    kept = '    JUPYTER_DATA_DIR="${JUPYTER_DATA_DIR:-/mnt/0/.cache/jupyter/data}"\n'
    assert kept in job_script(python, IMAGE)[1]


@pytest.mark.parametrize(("version", "option"), [(None, False), ("0.9.7", False), ("0.9.8", True), ("0.31", True)])
def test_charliecloud_options_by_version(version: str | None, option: bool) -> None:
    words = container(job_script(make_plan("supermuc", version=version), IMAGE)[1])
    assert ("--unset-env=PYTHONPATH" in words) is option
    assert ("PYTHONPATH" in words) is not option
    assert not any(word.startswith("--set-env") for word in words)


@pytest.mark.parametrize(
    ("version", "images"),
    [(None, ["demo", "demo.sqfs"]), ("0.25", ["demo"]), ("0.31", ["demo.sqfs", "demo"])],
)
def test_charliecloud_images_by_version(version: str | None, images: list[str]) -> None:
    text = job_script(make_plan("supermuc", version=version), IMAGE)[1]
    choice = " ".join(f'"$folder"/{image}' for image in images)
    assert (f"for image in {choice}; do" if len(images) > 1 else f"${{HPCGEN_IMAGE:-{choice}}}") in text


def test_singularity_binds_the_gpu_and_keeps_the_drivers_libraries() -> None:
    words = container(job_script(make_plan("hlrs-testbed"), IMAGE)[1])
    assert words[:3] == ["singularity", "exec", "--nv"]
    assert "--env" not in words
    swapped = with_mpi(site("hlrs-testbed"))
    words = container(job_script(make_plan(swapped), IMAGE)[1])
    assert variables(words)["LD_LIBRARY_PATH"] == "/opt/host/mpi/lib:/opt/intel_mpi/lib:/.singularity.d/libs"
    assert words[3:5] == ["-B", "/opt/host:/opt/host"]


def test_the_sites_value_wins_over_the_images() -> None:
    profile = replace(site("hlrs-testbed"), environment={"FI_PROVIDER": "tcp"})
    words = container(job_script(make_plan(profile), {**IMAGE, "FI_PROVIDER": "psm2"})[1])
    assert variables(words)["FI_PROVIDER"] == "tcp"
    words = container(job_script(make_plan(replace(profile, containers=site("supermuc").containers)), IMAGE)[1])
    assert "FI_PROVIDER" not in variables(words)


def test_variables_of_the_hosts_mpi_reach_its_launcher_and_its_ranks() -> None:
    """But for those that name files of the container: they would keep the host's programs from starting."""
    profile = with_mpi(site("hlrs-testbed"))
    assert profile.mpi is not None
    own = {"I_MPI_PIN": "off", "LD_LIBRARY_PATH": "/opt/host/more"}
    profile = replace(profile, environment={"I_MPI_PIN": "on"}, mpi=replace(profile.mpi, environment=own))
    text = job_script(make_plan(profile), IMAGE)[1]
    assert "export I_MPI_PIN=off\n" in text and "export LD_LIBRARY_PATH" not in text
    assert own.items() <= variables(container(text)).items()


def test_amd_gpus_need_a_singularity_that_knows_them() -> None:
    profile = site("hlrs-testbed")
    amd = replace(profile.partitions["gpu"], gpu=Gpu(vendor="amd", model="MI50"))
    profile = replace(profile, partitions={"gpu": amd})
    with pytest.raises(PolicyError, match="--rocm"):
        job_script(make_plan(profile), IMAGE)
    assert "--rocm" in container(job_script(make_plan(profile, version="3.5.0"), IMAGE)[1])
    assert "--rocm" in container(job_script(make_plan(profile, "apptainer"), IMAGE)[1])


@pytest.mark.parametrize(
    ("engine", "words"), [("docker", ["--gpus", "all"]), ("podman", ["--device", "nvidia.com/gpu=all"])]
)
def test_docker_and_podman_gpus(engine: EngineName, words: list[str]) -> None:
    profile = allow_every_engine(site("hlrs-testbed"))
    found = container(job_script(make_plan(profile, engine), IMAGE)[1])
    assert words[0] in found
    assert found[found.index(words[0]) + 1] == words[1]


def test_docker_is_told_every_variable() -> None:
    text = job_script(make_plan("workstation", environment={"TF_CPP_MIN_LOG_LEVEL": "1"}, ranks_per_node=2), IMAGE)[1]
    words = container(text)
    named = {name for option, name in pairwise(words) if option == "-e"}
    assert {"TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "HPCGEN_RANKS"} <= named
    assert "--ipc=host" in words
    assert "export TF_CPP_MIN_LOG_LEVEL=1" in text
    assert "image=${HPCGEN_IMAGE:-demo:workstation}" in text


def test_the_image_directory_of_the_site_is_used() -> None:
    profile = site("hlrs-testbed")
    profile = replace(profile, containers=replace(profile.containers, image_directory="/shared/images"))
    assert "image=${HPCGEN_IMAGE:-/shared/images/demo.sif}" in job_script(make_plan(profile), IMAGE)[1]


# text


def test_modules_come_in_order_and_before_strictness() -> None:
    text = job_script(make_plan("supermuc"), IMAGE)[1]
    lines = text.splitlines()
    modules = [line for line in lines if line.startswith("module load")]
    assert [line.split()[-1] for line in modules] == [
        "slurm_setup",
        "mpi.intel/2019",
        "devEnv/Intel/2019",
        "charliecloud",
    ]
    assert lines.index("set -euo pipefail") > lines.index(modules[-1])
    assert "module load mpi.intel/2019" not in job_script(make_plan("supermuc", mpi=False), IMAGE)[1]


def test_the_script_says_where_it_is_from() -> None:
    text = job_script(make_plan("supermuc", memory_per_rank_gb=15.0), IMAGE)[1]
    for part in (
        "hpcgen 0.0",
        "supermuc",
        "demo",
        "thin",
        "hpcgen render --site demo --stack demo",
        "60 GB of the 77 GB",
    ):
        assert part in text


def test_the_same_plan_gives_the_same_bytes() -> None:
    for profile in SITES:
        assert job_script(make_plan(profile), IMAGE) == job_script(make_plan(profile), dict(reversed(IMAGE.items())))


@pytest.mark.parametrize("bad", ["a b", "x'y", 'x"y', "x\n#SBATCH --nodes=9", "$(id)", "x;y"])
def test_what_a_header_cannot_hold_is_refused(bad: str) -> None:
    with pytest.raises(InputError):
        job_script(make_plan("supermuc", account=bad), IMAGE)
    profile = site("supermuc")
    partition = replace(profile.partitions["thin"], queues=[Queue(name=bad)])
    with pytest.raises(InputError):
        job_script(make_plan(replace(profile, partitions={"thin": partition})), IMAGE)


@pytest.mark.parametrize("field", ["output", "directives"])
def test_a_profile_cannot_smuggle_lines_into_the_header(field: str) -> None:
    profile = site("supermuc")
    evil = "--mail-user=x\n#SBATCH --nodes=9"
    scheduler = replace(profile.scheduler, **{field: [evil] if field == "directives" else evil})
    with pytest.raises(InputError):
        job_script(make_plan(replace(profile, scheduler=scheduler)), IMAGE)


@pytest.mark.parametrize("where", ["command", "environment", "image"])
def test_line_breaks_are_refused_everywhere(where: str) -> None:
    evil = "x\nrm -rf ~"
    plan = make_plan(
        "supermuc",
        command=["python", evil if where == "command" else "x"],
        environment={"A": evil if where == "environment" else "x"},
    )
    with pytest.raises(InputError):
        job_script(plan, {**IMAGE, "B": evil if where == "image" else "x"})


def test_binds_with_separators_are_refused() -> None:
    profile = with_mpi(site("supermuc"), binds=[Bind(source="/a:b", target="/c")])
    with pytest.raises(InputError, match="separators"):
        job_script(make_plan(profile), IMAGE)


def with_file_systems(profile: Site, **systems: FileSystem) -> Site:
    return replace(profile, file_systems=systems)


def test_a_file_system_whose_path_has_separators_is_refused() -> None:
    profile = with_file_systems(site("workstation"), work=FileSystem(kind="nfs", path="/a,b", bind=True))
    with pytest.raises(InputError, match="separators"):
        job_script(make_plan(profile, "apptainer"), IMAGE)


def test_a_file_system_that_is_bound_anyway_is_not_bound_twice() -> None:
    profile = with_mpi(site("supermuc"), binds=[Bind(source="/work", target="/work")])
    profile = with_file_systems(profile, work=FileSystem(kind="nfs", path="/work", bind=True))
    assert "places=" not in job_script(make_plan(profile), IMAGE)[1]


# real shells


@pytest.mark.parametrize(
    ("engine", "option"), [("apptainer", "-B"), ("singularity", "-B"), ("docker", "-v"), ("podman", "-v")]
)
def test_jobs_see_the_file_systems_that_the_node_has(tmp_path: Path, engine: EngineName, option: str) -> None:
    here, named = tmp_path / "here", tmp_path / "with space"
    here.mkdir()
    named.mkdir()
    profile = with_file_systems(
        allow_every_engine(site("workstation")),
        work=FileSystem(kind="nfs", path=str(here), bind=True),
        gone=FileSystem(kind="nfs", path=str(tmp_path / "gone"), bind=True),
        scratch=FileSystem(kind="nfs", variable="SCRATCH", bind=True),
        unset=FileSystem(kind="nfs", variable="UNSET", bind=True),
        home=FileSystem(kind="nfs", path="/"),
    )
    script = parts_of(job_script(make_plan(profile, engine), IMAGE)[1]) + "\nprintf '%s\\0' \"${container[@]}\"\n"
    env = {"PATH": os.environ["PATH"], "SCRATCH": str(named)}
    out = subprocess.run(["bash", "-euc", script], capture_output=True, check=True, text=True, env=env)
    words = out.stdout.split("\0")
    bound = [word for before, word in pairwise(words) if before == option]
    assert f"{here}:{here}" in bound and f"{named}:{named}" in bound
    assert not any(word.startswith(("/:", ":", str(tmp_path / "gone"))) for word in bound)


def test_a_node_without_any_of_the_file_systems_still_runs_the_job(tmp_path: Path) -> None:
    profile = with_file_systems(site("supermuc"), gone=FileSystem(kind="nfs", path=str(tmp_path / "x"), bind=True))
    script = parts_of(job_script(make_plan(profile), IMAGE)[1])
    script += "\nprintf '%s\\0' \"${container[@]}\"\n"
    out = subprocess.run(["bash", "-euc", script], capture_output=True, check=True, text=True)
    words = out.stdout.split("\0")
    assert "" not in words[:-1] and not any(str(tmp_path) in word for word in words)


def test_charliecloud_binds_only_what_the_image_has_a_folder_for() -> None:
    """The value of a variable is not known when the image is built."""
    profile = with_file_systems(
        site("supermuc"),
        work=FileSystem(kind="nfs", path="/work", bind=True),
        scratch=FileSystem(kind="nfs", variable="SCRATCH", bind=True),
    )
    plan = make_plan(profile)
    assert "places=(/work)\n" in job_script(plan, IMAGE)[1]
    assert "/work" in bind_targets(plan)


def every_script() -> list[tuple[str, Plan]]:
    plans = [(name, make_plan(name)) for name in SITES]
    for name in SITES:
        profile = allow_every_engine(site(name))
        for engine in ENGINES:
            plans.append((f"{name}-{engine}", make_plan(profile, engine)))
            plans.append((f"{name}-{engine}-plain", make_plan(profile, engine, mpi=False)))
    return plans


@pytest.mark.parametrize(("name", "plan"), every_script(), ids=lambda value: value if isinstance(value, str) else "")
def test_bash_accepts_every_script(name: str, plan: Plan) -> None:
    subprocess.run(["bash", "-n"], input=job_script(plan, IMAGE)[1], text=True, check=True)


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    shellcheck = Path(sysconfig.get_path("scripts"), "shellcheck")
    files = []
    for name, plan in every_script():
        files.append(tmp_path / f"{name}.sh")
        files[-1].write_text(job_script(plan, IMAGE)[1])
    found = subprocess.run([str(shellcheck), *map(str, files)], text=True, capture_output=True, check=False)
    assert found.stdout == ""


def parts_of(text: str) -> str:
    """The script without modules, checks and start: what sets the variables, the command and the container."""
    body = text[text.index('[ "$#" -gt 0 ]') : text.index("# Do the nodes have")]
    return f"image=/tmp/image\nfolder=/tmp\n{body}"


@given(
    word=st.text(st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" '\"$`\\!*")),
    value=st.text(st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" '\"$`\\!*")),
)
def test_bash_hands_over_words_as_they_were(word: str, value: str) -> None:
    """Quotes and all that a shell could read otherwise arrive unchanged: in the command and in the variables."""
    plan = PLAIN_PLAN
    run = replace(plan.stack.run, environment={"DEMO": value})
    plan = replace(plan, stack=replace(plan.stack, run=run), job=replace(plan.job, command=["python", word]))
    try:
        text = job_script(plan, {**IMAGE, "OTHER": value})[1]
    except InputError:
        assert not (word + value).isprintable()
        return
    script = parts_of(text) + '\nprintf \'%s\\0\' "$DEMO" "$@" "${container[@]}"\n'
    out = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"PATH": os.environ["PATH"]})
    words = out.stdout.decode().split("\0")
    assert words[:3] == [value, "python", word]
    assert f"OTHER={value}" in words


PLAIN_PLAN = make_plan("supermuc", mpi=False)


def test_a_missing_program_and_a_missing_image_are_told_apart(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(job_script(make_plan(allow_every_engine(site("workstation")), "charliecloud"), IMAGE)[1])
    nothing = tmp_path / "bin"
    nothing.mkdir()
    bash = shutil.which("bash") or "/bin/bash"
    found = subprocess.run([bash, script], cwd=tmp_path, env={"PATH": str(nothing)}, capture_output=True, text=True)
    assert found.returncode == 69
    assert "ch-run is not on PATH" in found.stderr
    (nothing / "ch-run").symlink_to("/bin/false")
    found = subprocess.run([bash, script], cwd=tmp_path, env={"PATH": str(nothing)}, capture_output=True, text=True)
    assert found.returncode == 66
    assert "build.sh" in found.stderr
