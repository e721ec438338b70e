"""The preflight: what a job script looks for before it starts, and how it tells.

The scripts are real and run by bash. What this machine has not (GPUs, a fabric, ranks) is told by files and small
programs in its place; the container tier has real ranks.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES
from hpcgen.blocks.rank_test import RANK_PROGRAM
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.fields import Source
from hpcgen.core.model.host_mpi import Bind, HostMpi
from hpcgen.core.model.nodes import Fabric, Gpu
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.site import Containers, Site, SiteEngine
from hpcgen.kit.kit import known_files, make_kit
from hpcgen.launch.preflight import oldest_driver, on_host
from hpcgen.launch.script import job_script, preflight_script
from hpcgen.planning.planner import make_plan as real_plan
from hpcgen.recipe.assemble import outline
from tests.conftest import ROOT
from tests.unit.launch.test_launch import IMAGE, SITES, every_script, make_plan, site

replace = msgspec.structs.replace

LIBRARY = "/opt/host-mpi/lib/libmpi.so.12.0.0"

# A launcher that tells its ranks apart, and an engine that starts the command right here.
MPIEXEC = """\
#!/bin/bash
ranks=$2
shift 4
for ((rank = 0; rank < ranks; rank++)); do
    RANK=$rank MPI_LOCALRANKID=$((rank % 2)) "$@" || status=$?
done
exit "${status:-0}"
"""
CH_RUN = """\
#!/bin/bash
if [ "$1" = --version ]; then echo 0.25 >&2; exit; fi
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


class Here:
    """A site that is this machine, and what its ranks say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.host = folder / "host-mpi"
        for made in (self.bin, self.host / "lib", folder / "mpi-hello"):
            made.mkdir(parents=True)
        (self.host / "lib" / "libmpi.so.12").write_text("")
        self.program("mpiexec", MPIEXEC)
        self.program("ch-run", CH_RUN)
        self.program("getent", "#!/bin/bash\n")
        self.ranks(f"rank $RANK of 2 on node$((RANK / 2))\nrank $RANK maps {LIBRARY}\n[0] libfabric provider: psm2")
        profile = site("workstation")
        self.site: Site = replace(
            profile,
            name="here",
            sources={},
            partitions={
                "main": replace(
                    profile.partitions["main"], cpu=replace(profile.partitions["main"].cpu, target="x86_64")
                )
            },
            containers=Containers(preferred="charliecloud", engines={"charliecloud": SiteEngine()}),
            fabric=Fabric(kind="omni-path", provider="psm2"),
            mpi=HostMpi(
                flavour="intel",
                version="2021.17.2",
                abi="mpich",
                root="/opt/host-mpi",
                launcher="mpiexec",
                libraries=["/opt/host-mpi/lib"],
                binds=[Bind(source=str(self.host), target="/opt/host-mpi")],
            ),
        )
        self.replaced: dict[str, str] = {RANK_PROGRAM: str(self.bin / "rank_test")}

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def ranks(self, says: str, status: int = 0) -> None:
        """What each rank prints; $RANK is its number."""
        self.program("rank_test", f'#!/bin/bash\necho "{says}"\nexit {status}\n')

    def plan(self, nodes: int = 1, **given: Any) -> Plan:
        command = ["touch", "started"]
        plan = make_plan(self.site, name="mpi-hello", ranks_per_node=2, threads_per_rank=1, command=command, **given)
        blocks = [*plan.blocks, PlannedBlock(name="rank_test", version="1")]
        # A site without a batch system has one node; its launcher here pretends.
        return replace(plan, blocks=blocks, job=replace(plan.job, nodes=nodes))

    def run(
        self, plan: Plan | None = None, image: str = "mpi-hello", sha256: str = "", **variables: str
    ) -> tuple[int, str, bool]:
        """Exit status, what was said, whether the program was started."""
        plan = plan or self.plan()
        for name, text in (
            ("run.sh", job_script(plan, {"PATH": "/bin:/usr/bin"}, str(self.folder / image))[1]),
            ("preflight.sh", preflight_script(plan, {"PATH": "/bin:/usr/bin"}, sha256=sha256)),
        ):
            for old, new in self.replaced.items():
                text = text.replace(old, new)
            (self.folder / name).write_text(text)
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", **variables}
        done = subprocess.run(["bash", "run.sh"], cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.stdout == ""
        return done.returncode, done.stderr, (self.folder / "started").exists()


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def failed(here: Here, *says: str, plan: Plan | None = None, image: str = "mpi-hello") -> str:
    status, said, started = here.run(plan, image)
    assert (status, started) == (78, False), said
    assert "preflight: FAILED: " in said
    for text in says:
        assert text in said
    assert said.endswith("run.sh: the command was not started; HPCGEN_PREFLIGHT=0 skips the preflight\n")
    return said


# it passes, and how it is skipped


def test_a_good_machine_is_told_in_one_line(here: Here) -> None:
    status, said, started = here.run()
    assert (status, started) == (0, True), said
    assert said == f"preflight: passed: 2 ranks with {LIBRARY} over psm2\n"


def test_it_can_be_skipped_or_only_warn(here: Here) -> None:
    here.ranks("rank 0 of 1 on node0")
    failed(here)
    assert here.run(HPCGEN_PREFLIGHT="0") == (0, "", True)
    (here.folder / "started").unlink()
    status, said, started = here.run(HPCGEN_PREFLIGHT="warn")
    assert (status, started) == (0, True)
    assert "preflight: FAILED: ranks" in said
    assert said.endswith("run.sh: continuing anyway: HPCGEN_PREFLIGHT=warn\n")


def test_a_script_away_from_its_kit_runs_and_says_that_the_preflight_was_skipped(here: Here, tmp_path: Path) -> None:
    here.run()
    (here.folder / "started").unlink()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (here.folder / "run.sh").rename(moved / "run.sh")
    env = {"PATH": f"{here.bin}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", moved / "run.sh"], cwd=here.folder, env=env, capture_output=True, text=True)
    assert done.stderr == f"run.sh: preflight skipped: there is no {moved}/preflight.sh\n"
    assert done.returncode == 0 and (here.folder / "started").exists()


def test_the_launch_line_that_somebody_changed_in_the_job_script_is_what_is_tried(here: Here) -> None:
    here.run()
    (here.folder / "started").unlink()
    script = here.folder / "run.sh"
    script.write_text(script.read_text().replace("mpiexec -n 2", "mpiexec -n 0"))
    env = {"PATH": f"{here.bin}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", script], cwd=here.folder, env=env, capture_output=True, text=True)
    assert done.returncode == 78 and not (here.folder / "started").exists()
    assert "preflight: FAILED: " in done.stderr


def test_the_kits_script_does_nothing_else(here: Here) -> None:
    text = preflight_script(here.plan(), {}).replace(RANK_PROGRAM, here.replaced[RANK_PROGRAM])
    env = {"PATH": f"{here.bin}:{os.environ['PATH']}"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = ["bash", "-c", text, "preflight.sh", *words]
        return subprocess.run(line, cwd=here.folder, env=env, capture_output=True, text=True)

    done = run()
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("preflight: passed: 2 ranks")
    assert not (here.folder / "started").exists()
    gone = run("elsewhere")
    assert gone.returncode == 66
    assert "preflight.sh: there is no image elsewhere" in gone.stderr
    here.ranks("nothing", 3)
    assert run(str(here.folder / "mpi-hello")).returncode == 78


# the ranks


@pytest.mark.parametrize(
    ("says", "status", "told"),
    [
        ("rank 0 of 1 on node0", 3, "expected one job of 2 ranks; seen: 2 ranks in jobs of 1; the PMI of the launcher"),
        ("Fatal error in MPI_Init", 1, "expected one job of 2 ranks; seen: none, status 1; read the lines below"),
        ("rank $RANK of 2 on node0", 2, "expected one job of 2 ranks that ends well; seen: status 2"),
        (
            "rank $RANK of 2 on node0",
            0,
            "MPI library: expected the host's (intel) from /opt/host-mpi/lib /opt/host-mpi;",
        ),
        (
            "rank $RANK of 2 on node0\nrank $RANK maps /opt/intel_mpi/lib/libmpi.so.12",
            0,
            "MPI library: expected the host's (intel) from /opt/host-mpi/lib /opt/host-mpi; seen: /opt/intel_mpi/",
        ),
        (
            "rank $RANK of 2 on node0\nrank $RANK maps /opt/host-mpi/lib/libmpi.so.$RANK",
            0,
            "expected the same in every rank; seen: /opt/host-mpi/lib/libmpi.so.",
        ),
        (
            f"rank $RANK of 2 on n$RANK\nrank $RANK maps {LIBRARY}\nlibrary MPI 4.3.2\nrank 1 has library MPI 4.3.0",
            0,
            "FAILED: MPI library on n1: expected MPI 4.3.2, as rank 0 has; seen: MPI 4.3.0; ask for the same release",
        ),
        (
            f"rank $RANK of 2 on node0\nrank $RANK maps {LIBRARY}\n[0] MPI startup(): libfabric provider: tcp;ofi_rxm",
            0,
            "fabric provider: expected psm2 for omni-path; seen: tcp;ofi_rxm; ",
        ),
    ],
)
def test_ranks_that_break_the_contract_stop_the_job(here: Here, says: str, status: int, told: str) -> None:
    here.ranks(says, status)
    said = failed(here, told)
    assert "preflight: passed" not in said


def test_what_a_broken_start_says_is_shown_without_what_does_not_matter(here: Here) -> None:
    maps = [f"rank 0 maps /lib/{number}.so" for number in range(50)]
    debug = [f"[0] MPI startup(): line {number}" for number in range(50)] + ["MPIDI_OFI_TAG_BITS: 20"] * 50
    here.ranks("\n".join(["MPI startup(): PMI server not found", "rank 0 of 1 on node0", *maps, *debug]), 3)
    said = failed(here, "  | MPI startup(): PMI server not found")
    assert said.count("\n") < 10


def test_a_start_that_hangs_is_ended(here: Here) -> None:
    # What the stand-in of a launcher leaves behind keeps the pipe open until it ends.
    here.program("rank_test", "#!/bin/bash\nexec sleep 2\n")
    here.replaced["timeout --foreground -k 10 120 "] = "timeout --foreground -k 10 1 "
    failed(here, "seen: none, it took longer than 120 s")


def test_tcp_is_refused_on_a_fast_fabric_even_where_no_provider_is_known(here: Here) -> None:
    here.site = replace(here.site, fabric=Fabric(kind="infiniband"))
    good = f"rank $RANK of 2 on node0\nrank $RANK maps {LIBRARY}\n[0] libfabric provider: "
    here.ranks(good + "verbs;ofi_rxm")
    assert here.run()[0] == 0
    (here.folder / "started").unlink()
    here.ranks(good + "tcp")
    failed(here, "fabric provider: expected another than TCP for infiniband; seen: tcp;")
    here.site = replace(here.site, fabric=Fabric(kind="ethernet"))
    assert here.run()[0] == 0


@pytest.mark.parametrize(
    "label",
    [
        "0: ",
        "[0] ",
        "[1,0]<stdout>:",
        "Sun Nov 22 18:43:14 2026<stdout>:",
        "2026-11-22 18:43:15 : ",
        "[0] MPI startup(): ",
    ],
)
def test_ranks_are_found_behind_the_label_of_a_launcher(here: Here, label: str) -> None:
    lines = ["rank $RANK of 2 on node0", f"rank $RANK maps {LIBRARY}", "[0] libfabric provider: psm2"]
    here.ranks("\n".join(label + line for line in lines))
    assert here.run() == (0, f"preflight: passed: 2 ranks with {LIBRARY} over psm2\n", True)


# As srun and Open MPI's mpiexec do by these variables.
LABELLING = MPIEXEC.replace(
    '"$@" || status=$?',
    '"$@" 2>&1 | sed "s/^/${SLURM_LABELIO:+${RANK}: }/" > "${OMPI_MCA_orte_output_filename:-/dev/stdout}"',
)


def test_variables_of_the_caller_do_not_hide_what_ranks_print(here: Here) -> None:
    here.program("mpiexec", LABELLING)
    here.ranks("rank $RANK of 2 on node0\n" + f"rank $RANK maps {LIBRARY}")
    variables = {"SLURM_LABELIO": "1", "OMPI_MCA_orte_output_filename": str(here.folder / "ranks.out")}
    status, said, started = here.run(here.plan(), **variables)
    assert (status, said, started) == (0, f"preflight: passed: 2 ranks with {LIBRARY}\n", True)
    # The job itself keeps them.
    assert (here.folder / "ranks.out").exists()


def test_nodes_are_found_behind_the_label_of_a_launcher(here: Here) -> None:
    here.program("mpiexec", LABELLING.replace("SLURM_LABELIO:+", "RANK:+"))
    here.program("uname", '#!/bin/bash\necho "node$((RANK / 2))"\n')
    here.ranks("rank $RANK of 4 on node$((RANK / 2))\n" + f"rank $RANK maps {LIBRARY}")
    assert here.run(here.plan(nodes=2)) == (0, f"preflight: passed: 4 ranks with {LIBRARY}\n", True)


def test_a_provider_that_nobody_verified_only_warns(here: Here) -> None:
    doubtful = Source(from_="memory", checked="2026-01-01", verified="no")
    here.site = replace(here.site, sources={"fabric": doubtful})
    here.ranks(f"rank $RANK of 2 on n\nrank $RANK maps {LIBRARY}\n[0] libfabric provider: opx")
    status, said, started = here.run()
    assert (status, started) == (0, True)
    assert "preflight: warning: fabric provider: expected psm2 for omni-path; seen: opx;" in said


def test_an_mpi_that_does_not_say_its_provider_passes(here: Here) -> None:
    here.ranks(f"rank $RANK of 2 on node0\nrank $RANK maps {LIBRARY}")
    assert here.run() == (0, f"preflight: passed: 2 ranks with {LIBRARY}\n", True)


OPEN_MPI = "/opt/host-mpi/lib/libmpi.so.40.30.4"
CHATTER = """\
[vm:05075] mca: base: components_open: opening pml components
[vm:05075] mca: base: components_open: found loaded component ob1
[vm:05075] select: init returned priority 20
[vm:05075] selected ob1 best priority 20
[vm:05075] mca: base: close: unloading component ucx
"""


def says_open_mpi(here: Here, *more: str) -> None:
    """A host with Open MPI on InfiniBand, whose ranks say what 4.1.4 says when it is asked to."""
    (here.host / "lib" / "libmpi.so.40").write_text("")
    assert here.site.mpi is not None
    mpi = replace(here.site.mpi, flavour="openmpi", version="4.1.4", abi="openmpi")
    here.site = replace(here.site, mpi=mpi, fabric=Fabric(kind="infiniband", provider="verbs"))
    ranks = ["rank $RANK of 2 on node0", f"rank $RANK maps {OPEN_MPI}"]
    here.ranks("\n".join([*CHATTER.splitlines(), *more, *ranks]))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["[vm:05075] select: component ucx selected"], "over ucx"),
        (
            [
                "[vm:25694] mtl_ofi_component.c:337: mtl:ofi:prov: verbs;ofi_rxm",
                "[vm:25694] select: component cm selected",
            ],
            "over verbs;ofi_rxm",
        ),
        ([], f"with {OPEN_MPI}"),
    ],
)
def test_what_open_mpi_says_of_its_components_is_read(here: Here, more: list[str], told: str) -> None:
    says_open_mpi(here, *more)
    status, said, started = here.run()
    assert (status, started) == (0, True), said
    assert said.startswith("preflight: passed: 2 ranks with ")
    assert said.endswith(f"{told}\n")


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        (["[vm:05075] select: component ob1 selected"], "tcp;"),
        (
            [
                "[vm:1] mtl_ofi_component.c:343: mtl:ofi:provider: tcp;ofi_rxm",
                "[vm:1] select: component cm selected",
            ],
            "tcp;ofi_rxm;",
        ),
    ],
)
def test_open_mpi_over_tcp_is_refused(here: Here, more: list[str], seen: str) -> None:
    says_open_mpi(here, *more)
    failed(here, f"fabric provider: expected verbs for infiniband; seen: {seen}")


def test_errors_of_open_mpi_are_shown_without_its_chatter(here: Here) -> None:
    says_open_mpi(here)
    here.ranks(f"{CHATTER}[vm:05075] *** An error occurred in MPI_Init", 1)
    said = failed(here, "seen: none, status 1", "  | [vm:05075] *** An error occurred in MPI_Init")
    assert "ob1" not in said
    assert "mca: base" not in said


def test_another_way_to_the_same_devices_is_no_finding(here: Here) -> None:
    here.site = replace(here.site, fabric=Fabric(kind="infiniband", provider="verbs"))
    here.ranks(f"rank $RANK of 2 on n\nrank $RANK maps {LIBRARY}\n[0] MPI startup(): libfabric provider: mlx")
    assert here.run() == (0, f"preflight: passed: 2 ranks with {LIBRARY} over mlx\n", True)


def test_the_images_own_launcher_needs_no_rank_test(here: Here) -> None:
    here.site = replace(here.site, mpi=None)
    here.ranks("nothing", 3)
    text = preflight_script(here.plan(), {})
    assert RANK_PROGRAM not in text
    assert "this machine meets all requirements" in text


# the node


def on_cpu(here: Here, name: str, target: str, without: str = "") -> None:
    """A node with a CPU of tests/cpus, for an image that was compiled for another or the same."""
    text = (ROOT / "tests" / "cpus" / name).read_text()
    (here.folder / "cpuinfo").write_text(text.replace(f" {without} ", " ") if without else text)
    here.replaced["/proc/cpuinfo"] = str(here.folder / "cpuinfo")
    cpu = replace(here.site.partitions["main"].cpu, target=target)
    here.site = replace(here.site, partitions={"main": replace(here.site.partitions["main"], cpu=cpu)})


@pytest.mark.parametrize(
    ("name", "target", "without", "lacks"),
    [
        ("broadwell-virtual", "broadwell", "avx2", "avx2"),
        ("zen4-virtual", "mic_knl", "", "avx512er"),
        ("nehalem", "x86_64_v3", "", "abm avx avx2 bmi1 bmi2 f16c fma movbe"),
        ("neoverse-n1", "neoverse_v1", "", "asimdfhm bf16 fcma i8mm ilrcpc sha3 sve svebf16 svei8mm uscat"),
    ],
)
def test_a_cpu_that_lacks_something_is_named_with_it(
    here: Here, name: str, target: str, without: str, lacks: str
) -> None:
    on_cpu(here, name, target, without)
    expected = f"expected {target}, for which the image was compiled; seen: a CPU without {lacks}; its programs"
    failed(here, "CPU on ", expected)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("broadwell-virtual", "broadwell"),
        ("zen4-virtual", "zen4"),
        ("zen4-virtual", "icelake"),
        ("nehalem", "nehalem"),
        ("neoverse-n1", "neoverse_n1"),
        ("neoverse-n1", "power9le"),
    ],
)
def test_what_hypervisors_hide_and_compilers_do_not_use_is_not_asked_for(here: Here, name: str, target: str) -> None:
    """rdseed, pku, clflushopt and the like; archspec names no features of POWER."""
    on_cpu(here, name, target)
    assert here.run()[::2] == (0, True)


def test_the_images_own_target_counts_not_that_of_the_partition(here: Here) -> None:
    text = preflight_script(here.plan(), {}, built_for="zen4")
    assert "'zen4, for which the image was compiled'" in text
    assert "avx512_vnni" in text
    # A CPU that every node of the kind has is not looked for.
    assert "for which the image was compiled" not in preflight_script(here.plan(), {})


def test_what_is_bound_and_the_library_must_be_there(here: Here) -> None:
    (here.host / "lib" / "libmpi.so.12").unlink()
    failed(here, "host MPI on ", f"expected libmpi.so.12; seen: none in {here.host}/lib;")
    (here.host / "lib").rmdir()
    here.host.rmdir()
    failed(here, f"bind on {os.uname().nodename}: expected {here.host}; seen: nothing there; correct mpi.binds")


def test_gpu_device_and_driver(here: Here) -> None:
    gpu = Gpu(vendor="nvidia", model="P100", driver="535.54.03")
    here.site = replace(here.site, partitions={"main": replace(here.site.partitions["main"], gpu=gpu)})
    cuda = PlannedBlock(name="cuda", version="12.4.1", host={"driver": ">=525.60.13", "capability": ">=5.0,<=9.0"})
    plan = here.plan()
    with_cuda = replace(plan, blocks=[*plan.blocks, cuda])
    device, version = here.folder / "nvidiactl", here.folder / "version"
    here.replaced |= {"/dev/nvidiactl": str(device), "/proc/driver/nvidia/version": str(version)}
    failed(here, f"GPU on {os.uname().nodename}: expected {device}; seen: nothing there; use nodes", plan=with_cuda)
    assert here.run(plan)[0] == 0
    (here.folder / "started").unlink()
    device.touch()
    for words in ("x86_64 Kernel Module", "Open Kernel Module for x86_64"):
        line = f"NVRM version: NVIDIA UNIX {words}  %s  Fri Mar 12 10:24:33 UTC 2021\nGCC version:  gcc 12.2.0\n"
        version.write_text(line % "470.57.02")
        failed(
            here,
            "GPU driver on ",
            "expected 525.60.13 or newer, for CUDA of the image; seen: 470.57.02;",
            plan=with_cuda,
        )
        version.write_text(line % "525.105.17")
        assert here.run(with_cuda)[0] == 0
        (here.folder / "started").unlink()


def test_the_newest_of_several_bounds_holds_for_the_driver(here: Here) -> None:
    hosts = [{"driver": ">=450.80.02"}, {"driver": ">=525.60.13,<600"}, {"capability": ">=7.5"}, {}]
    blocks = [PlannedBlock(name=f"b{number}", version="1", host=host) for number, host in enumerate(hosts)]
    assert oldest_driver(replace(here.plan(), blocks=blocks)) == "525.60.13"
    assert oldest_driver(here.plan()) == ""


def test_fabric_devices_stop_a_job_unless_nobody_has_verified_them(here: Here) -> None:
    here.site = replace(here.site, fabric=replace(here.site.fabric, devices=["/dev/hfi1_77"]))
    failed(here, "fabric on ", "expected /dev/hfi1_77; seen: nothing there; use other nodes, or correct fabric.devices")
    doubtful = Source(from_="memory", checked="2026-01-01", verified="no")
    here.site = replace(here.site, sources={"fabric.devices": doubtful})
    status, said, _ = here.run()
    assert status == 0
    assert "preflight: warning: fabric on " in said


def test_an_engine_too_old_for_the_image_or_its_options(here: Here) -> None:
    (here.folder / "mpi-hello.sqfs").write_text("")
    failed(here, "engine on ", "expected ch-run 0.26 or newer; seen: 0.25;", image="mpi-hello.sqfs")
    here.program("ch-run", CH_RUN.replace("0.25", "0.9.7"))
    engine = {"charliecloud": SiteEngine(version="0.31")}
    here.site = replace(here.site, containers=Containers(preferred="charliecloud", engines=engine))
    failed(here, "expected ch-run 0.9.8 or newer; seen: 0.9.7;")


def test_memory_that_is_taken_already(here: Here) -> None:
    fits = replace(here.plan(), job=replace(here.plan().job, memory_per_rank_gb=0.1))
    assert here.run(fits)[0] == 0
    (here.folder / "started").unlink()
    much = replace(fits, job=replace(fits.job, memory_per_rank_gb=100_000.0))
    failed(here, "memory on ", "expected 200000 GB for 2 ranks; seen: ", " GB free; start fewer ranks", plan=much)


def test_by_the_standards_interface_another_library_is_looked_for(here: Here) -> None:
    assert here.site.mpi is not None
    here.site = replace(here.site, mpi=replace(here.site.mpi, version="2021.18.0", abi="mpi5"))
    failed(here, ": expected libmpi_abi.so.1; seen: none in")
    (here.host / "lib" / "libmpi_abi.so.1").write_text("")
    mapped = "/opt/host-mpi/lib/libmpi_abi.so.1.0"
    here.ranks(f"rank $RANK of 2 on n\nrank $RANK maps {mapped}")
    status, said, started = here.run()
    assert (status, started) == (0, True), said
    assert f"2 ranks with {mapped}" in said


# several nodes


def nodes(here: Here, names: list[str]) -> None:
    """Each process is on a node of its own name, as far as uname tells."""
    listed = " ".join(names)
    here.program("uname", f'#!/bin/bash\nnames=({listed})\necho "${{names[$((${{RANK:-0}} / 2))]}}"\n')


def test_every_node_is_looked_at_and_those_that_fail_are_named(here: Here) -> None:
    nodes(here, ["node1", "node2", "node3", "node4", "node5"])
    good = f"rank $RANK of %s on node\nrank $RANK maps {LIBRARY}"
    here.ranks(good % 4)
    status, said, started = here.run(here.plan(nodes=2))
    assert (status, started) == (0, True), said
    assert said == f"preflight: passed: 4 ranks with {LIBRARY}\n"
    (here.folder / "started").unlink()
    here.ranks(good % 10)
    (here.host / "lib" / "libmpi.so.12").unlink()
    said = failed(here, "host MPI on node1, node2, node3 and 2 more: expected libmpi.so.12", plan=here.plan(nodes=5))
    assert said.count("FAILED") == 1


@pytest.mark.parametrize(
    ("flavour", "variable"), [("cray-mpich", "PALS_LOCAL_RANKID"), ("mvapich2", "MV2_COMM_WORLD_LOCAL_RANK")]
)
def test_one_rank_of_each_node_looks_whatever_the_launcher_calls_its_number(
    here: Here, flavour: Any, variable: str
) -> None:
    words = "8" if flavour == "cray-mpich" else "4"  # with the depth and the binding of PALS
    here.program("mpiexec", MPIEXEC.replace("MPI_LOCALRANKID", variable).replace("shift 4", f"shift {words}"))
    here.program("uname", '#!/bin/bash\necho "node$((${RANK:-0} / 2))" | tee -a asked\n')
    here.ranks(f"rank $RANK of 4 on node$((RANK / 2))\nrank $RANK maps {LIBRARY}")
    assert here.site.mpi is not None
    here.site = replace(here.site, mpi=replace(here.site.mpi, flavour=flavour))
    status, said, _ = here.run(here.plan(nodes=2))
    assert status == 0, said
    assert set((here.folder / "asked").read_text().split()) == {"node0", "node1"}


@pytest.mark.parametrize(
    ("program", "on_node2", "told"),
    [
        ("cksum", "echo another", "FAILED: image on node2: expected the same as on node1; seen: another one; copy the"),
        ("cksum", "echo another", "warning: {host}/lib/libmpi.so.12 on node2: expected the same as on node1"),
        (
            "ch-run",
            "echo no right; exit 126",
            "FAILED: engine on node2: expected ch-run that can be started; seen: no r",
        ),
        ("getent", "exit 2", "FAILED: host name on node2: expected an address of node1; seen: none; have /etc/hosts"),
        (
            "df",
            "printf '\\n- 1 1 64 1\\n'",
            "FAILED: /dev/shm on node2: expected 2048 kB for 2 ranks; seen: 64 kB free",
        ),
    ],
)
def test_what_one_node_has_otherwise_is_named(here: Here, program: str, on_node2: str, told: str) -> None:
    nodes(here, ["node1", "node2"])
    usual = CH_RUN if program == "ch-run" else "echo usual"
    here.program(program, f'#!/bin/bash\nif [ "${{RANK:-0}}" -ge 2 ]; then {on_node2}; exit; fi\n{usual}')
    failed(here, told.format(host=here.host), plan=here.plan(nodes=2))


def test_a_provider_of_the_callers_environment_is_compared_with_the_profile(here: Here) -> None:
    status, said, _ = here.run(FI_PROVIDER="tcp;ofi_rxm")
    assert status == 78
    told = "FAILED: FI_PROVIDER on {}: expected psm2 for omni-path; seen: tcp;ofi_rxm, from the environment; unset it"
    assert told.format(os.uname().nodename) in said
    for same in ("psm2", "shm,psm2", "^tcp"):
        assert here.run(FI_PROVIDER=same)[0] == 0


@pytest.mark.parametrize(("kind", "limit", "told"), [("infiniband", 64, True), ("omni-path", 64, False)])
def test_too_little_locked_memory_for_infiniband_is_told(here: Here, kind: Any, limit: int, told: bool) -> None:
    nodes(here, ["node1", "node2"])
    here.site = replace(here.site, fabric=Fabric(kind=kind))
    here.program("mpiexec", MPIEXEC.replace("#!/bin/bash", f"#!/bin/bash\nulimit -S -l {limit}"))
    _, said, _ = here.run(here.plan(nodes=2))
    assert said.count(f"expected 524288 kB or unlimited, or RDMA is left out; seen: {limit} kB") == told, said


def test_a_node_that_does_not_answer_is_missed(here: Here) -> None:
    nodes(here, ["node1", "node1"])
    failed(here, "nodes: expected 2; seen: 1; no answer from the others", plan=here.plan(nodes=2))
    here.program("mpiexec", "#!/bin/bash\necho 'cannot reach node2' >&2\nexit 255\n")
    failed(here, "nodes: expected 2; seen: 0", "  | cannot reach node2", plan=here.plan(nodes=2))


def test_nodes_that_do_not_answer_are_named_as_the_batch_system_calls_them(here: Here) -> None:
    here.site = replace(here.site, scheduler=BatchSystem(kind="slurm"))
    here.program("scontrol", '#!/bin/bash\nprintf "node%s\\n" 1 2 3 4 5 6\n')
    nodes(here, ["node1.example.org", "node3.example.org"])
    plan = here.plan(nodes=2)
    two = replace(plan, job=replace(plan.job, nodes=6, ranks_per_node=2))
    here.program("mpiexec", MPIEXEC.replace("ranks=$2", "ranks=4"))
    says = "preflight: FAILED: nodes: expected 6; seen: 2; no answer from "
    assert f"{says}node2, node4, node5 and 1 more\n" in here.run(two)[1]
    # Other names than those that the nodes have themselves would put the blame on the wrong ones.
    here.program("scontrol", '#!/bin/bash\nprintf "rack1-%s\\n" 1 2 3 4 5 6\n')
    assert f"{says}the others\n" in here.run(two)[1]


def test_outside_of_an_allocation_srun_is_not_queued_for(here: Here) -> None:
    assert here.site.mpi is not None
    here.site = replace(here.site, mpi=replace(here.site.mpi, launcher="srun"))
    here.program("srun", '#!/bin/bash\nexec "${@: -2}"\n')
    status, said, started = here.run()
    assert (status, started) == (0, True)
    assert said.startswith("preflight: skipped: srun would queue")


# texts


def test_hosts_folders_are_found_through_the_binds() -> None:
    binds = [
        Bind(source="/lrz/sys/.", target="/lrz/sys"),
        Bind(source="/opt/real/", target="/opt/mpi"),
        Bind(source="/inner", target="/opt/mpi/lib"),
    ]
    host = HostMpi(
        flavour="intel",
        version="1",
        abi="mpich",
        root="/opt/mpi",
        launcher="srun",
        binds=binds,
        libraries=["/lrz/sys/intel/lib", "/opt/mpi/lib", "/opt/mpi/more", "/usr/lib64", "/opt/mpilib"],
    )
    assert on_host(host, host.libraries) == ["/lrz/sys/./intel/lib", "/inner", "/opt/real/more"]


@pytest.mark.parametrize("provider", sorted(Catalog().virtuals["mpi"]))
def test_the_library_looked_for_is_the_one_that_the_blocks_link_with(provider: str) -> None:
    catalog = Catalog()
    stack = catalog.stack("mpi-hello")
    plan = real_plan(catalog, catalog.site("workstation"), stack, settings=[f"mpi.provider={provider}"])
    promised = outline(plan, catalog).capabilities[provider]
    assert promised.mpi_library == MPI_LIBRARIES[promised.mpi_abi]


def test_no_check_without_a_fact(here: Here) -> None:
    bare = replace(here.site, mpi=None, fabric=Fabric(kind="none"))
    plan = make_plan(bare, "docker", mpi=False, mpi_block="")
    text = preflight_script(plan, {})
    assert not any(
        word in text for word in ("preflight_there", "preflight_older", "preflight_ranks", "cpuinfo", "memory on")
    )


def test_shellcheck_has_nothing_to_say(tmp_path: Path, here: Here) -> None:
    common = [plan for _, plan in every_script()]
    plans = [replace(plan, blocks=[*plan.blocks, PlannedBlock(name="rank_test", version="1")]) for plan in common]
    plans += [make_plan(name) for name in SITES]
    gpu = replace(here.site.partitions["main"], gpu=Gpu(vendor="nvidia", model="P100"))
    here.site = replace(here.site, partitions={"main": gpu})
    full = here.plan(nodes=2)
    cuda = PlannedBlock(name="cuda", version="1", host={"driver": ">=450.80.02"})
    plans.append(replace(full, blocks=[*full.blocks, cuda], job=replace(full.job, memory_per_rank_gb=1.0)))
    # The job scripts of the common ones are read in test_launch; the script of the preflight is a part of the job's.
    texts = {job_script(plan, IMAGE)[1] for plan in plans} | {preflight_script(plan, IMAGE) for plan in plans[::4]}
    files = [tmp_path / f"{number}.sh" for number in range(len(texts))]
    for file, text in zip(files, sorted(texts), strict=True):
        file.write_text(text)
    shellcheck = Path(sysconfig.get_path("scripts"), "shellcheck")
    found = subprocess.run([str(shellcheck), *map(str, files)], text=True, capture_output=True, check=False)
    assert found.stdout == ""


def test_the_kit_has_it_and_the_plan_says_what_cuda_asks_of_the_driver() -> None:
    catalog = Catalog()
    plan = real_plan(catalog, catalog.site("hlrs-testbed"), catalog.stack("tf-horovod"))
    kit = make_kit(plan, catalog)
    assert kit.files["preflight.sh"].executable
    assert "preflight.sh" in known_files()
    bound = next(block for block in plan.blocks if block.name == "cuda").host["driver"].removeprefix(">=")
    assert f'preflight_older "$seen" {bound}' in kit.files["preflight.sh"].text


@pytest.mark.parametrize(
    ("groups", "files", "seen"),
    [
        ("0::/slurm/job_7/step_batch", {"slurm/job_7/memory.max": "8589934592", "slurm/memory.max": "max"}, "8"),
        (
            "12:pids:/a\n7:cpu,memory:/slurm/job_7/step_0",
            {
                "memory/slurm/job_7/memory.limit_in_bytes": "8589934592",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            "8",
        ),
        ("0::/", {"memory.max": "max"}, None),
    ],
)
def test_memory_of_the_job_is_that_of_its_control_group(
    here: Here, groups: str, files: dict[str, str], seen: str | None
) -> None:
    root = here.folder / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    (here.folder / "own").write_text(f"{groups}\n")
    node = here.folder / "meminfo"
    node.write_text("MemAvailable: 400000000 kB\n")
    here.replaced |= {
        "/sys/fs/cgroup": str(root),
        "/proc/self/cgroup": str(here.folder / "own"),
        "/proc/meminfo": str(node),
    }
    plan = replace(here.plan(), job=replace(here.plan().job, memory_per_rank_gb=20.0))
    if seen is None:
        assert here.run(plan)[0] == 0
    else:
        failed(here, "expected 40 GB for 2 ranks; seen: ", f"{seen} GB for the job (cgroup)", plan=plan)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_image_that_was_signed_is_started_and_no_other(here: Here, nodes: int) -> None:
    (here.folder / "image").write_bytes(b"signed")
    sha256 = hashlib.sha256(b"signed").hexdigest()
    assert here.run(here.plan(), "image", sha256)[0] == 0
    (here.folder / "started").unlink()
    (here.folder / "image").write_bytes(b"swapped")
    status, said, started = here.run(here.plan(nodes), "image", sha256)
    assert (status, started) == (78, False), said
    assert f"expected sha256:{sha256}, as signed; seen: {hashlib.sha256(b'swapped').hexdigest()};" in said
    assert "resubmit the job" in said
